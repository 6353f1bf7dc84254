/**
 * An AudioWorklet that says when runs of audible sound began, in seconds of its context's time: at least four
 * frames of 10 ms above -50 dBFS RMS (docs/metrics.md). And when it has been silent again for a while.
 *
 * Messages: {onset: seconds}, {silent: true}.
 */

const FRAME = sampleRate / 100;
const LOUD = 10 ** (-50 / 10) * FRAME;
const RUN_FRAMES = 4;
const SILENT_FRAMES = 50;

class EnergyGate extends AudioWorkletProcessor {
  #samples = 0;
  #energy = 0;
  /** Loud frames in a row. */
  #loud = 0;
  /** Quiet frames since the latest run; null when that was told, or before any. */
  #quiet = null;

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
    const loud = this.#energy > LOUD;
    this.#samples = this.#energy = 0;
    this.#loud = loud ? this.#loud + 1 : 0;
    if (this.#loud >= RUN_FRAMES) this.#quiet = 0;
    else if (this.#quiet !== null) this.#quiet += 1;
    if (this.#loud === RUN_FRAMES) this.port.postMessage({ onset: (end - RUN_FRAMES * FRAME) / sampleRate });
    if (this.#quiet === SILENT_FRAMES) {
      this.#quiet = null;
      this.port.postMessage({ silent: true });
    }
  }
}

registerProcessor("energy-gate", EnergyGate);
