/**
 * Says when sound ended, by the definition of docs/metrics.md: runs of four frames of 10 ms above -50 dBFS.
 * The frames are laid at each millisecond, and the median of what they say is told, once it was silent for
 * long enough: seconds of the context's time.
 */

const STEP = sampleRate / 1000;
const STEPS = 10;
const POWER = 10 ** (-50 / 10);
const RUN = 4;
const SILENCE_STEPS = 250;

class SpeechEnds extends AudioWorkletProcessor {
  #samples = 0;
  #sum = 0;
  /** Of the latest ten milliseconds, and of all of them together. */
  #energies = new Float64Array(STEPS);
  #steps = 0;
  /** Of each way to lay the frames: how many in a row are loud, and where the latest run ended. */
  #runs = new Uint32Array(STEPS);
  #ends = new Map();
  #loudest = 0;

  process([[channel]]) {
    if (channel === undefined) return true;
    for (let i = 0; i < channel.length; i += 1) {
      this.#sum += channel[i] * channel[i];
      this.#samples += 1;
      if (this.#samples === STEP) this.#step((currentFrame + i + 1) / sampleRate);
    }
    return true;
  }

  /** @param {number} now where this millisecond ends */
  #step(now) {
    const way = this.#steps % STEPS;
    this.#energies[way] = this.#sum;
    this.#samples = this.#sum = 0;
    this.#steps += 1;
    const power = this.#energies.reduce((sum, energy) => sum + energy) / (STEP * STEPS);
    this.#runs[way] = power > POWER ? this.#runs[way] + 1 : 0;
    if (this.#runs[way] >= RUN) {
      this.#ends.set(way, now);
      this.#loudest = this.#steps;
    } else if (this.#ends.size > 0 && this.#steps - this.#loudest >= SILENCE_STEPS) {
      const ends = [...this.#ends.values()].sort((a, b) => a - b);
      this.#ends.clear();
      this.port.postMessage(ends[ends.length >> 1]);
    }
  }
}

registerProcessor("speech-ends", SpeechEnds);
