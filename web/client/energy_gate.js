/**
 * An AudioWorklet that says when runs of audible sound began, in seconds of its context's time: at least four
 * frames of 10 ms above -50 dBFS RMS (docs/metrics.md).
 */

const FRAME = sampleRate / 100;
const LOUD = 10 ** (-50 / 10) * FRAME;
const RUN_FRAMES = 4;

class EnergyGate extends AudioWorkletProcessor {
  #samples = 0;
  #energy = 0;
  /** Loud frames in a row. */
  #loud = 0;

  process([[channel]]) {
    if (channel === undefined) {
      this.#samples = this.#energy = this.#loud = 0;
      return true;
    }
    for (let i = 0; i < channel.length; i += 1) {
      this.#energy += channel[i] * channel[i];
      this.#samples += 1;
      if (this.#samples === FRAME) this.#frame(currentFrame + i + 1);
    }
    return true;
  }

  /** @param {number} end the context's frame after its last one */
  #frame(end) {
    this.#loud = this.#energy > LOUD ? this.#loud + 1 : 0;
    this.#samples = this.#energy = 0;
    if (this.#loud === RUN_FRAMES) this.port.postMessage((end - RUN_FRAMES * FRAME) / sampleRate);
  }
}

registerProcessor("energy-gate", EnergyGate);
