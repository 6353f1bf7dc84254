/** What the turns of a call come to. */

import { finite } from "./numbers.js";

/**
 * @param {readonly number[]} values in any order
 * @param {number} share 0.5 for the median
 * @returns {number|null} interpolated between the two nearest, as NumPy does; null for no values
 */
export function percentile(values, share) {
  if (values.length === 0) return null;
  const sorted = values.toSorted((one, other) => one - other);
  const at = (sorted.length - 1) * share;
  const below = Math.floor(at);
  const above = sorted[Math.min(below + 1, sorted.length - 1)];
  return sorted[below] + (above - sorted[below]) * (at - below);
}

/** Time to first audio over the turns of one call. A turn's record comes twice; the later one counts. */
export class CallFigures {
  #turns = new Map();

  /** @param {object} record of a turn */
  add({ turn_id: id, input, failed, time_to_first_audio_ms: wait }) {
    this.#turns.set(id, { input, failed: typeof failed === "string", wait: finite(wait) });
  }

  get turns() {
    return this.#turns.size;
  }

  get failed() {
    return this.#list().filter(({ failed }) => failed).length;
  }

  /**
   * By voice the wait begins with the end of speech, by text with the arrival of the message: two numbers.
   * @param {"voice"|"text"} input
   * @returns {{n: number, median: number|null, p90: number|null}} over the `n` turns whose wait is known
   */
  wait(input) {
    const waits = this.#list()
      .filter((turn) => turn.input === input && turn.wait !== null)
      .map((turn) => turn.wait);
    return { n: waits.length, median: percentile(waits, 0.5), p90: percentile(waits, 0.9) };
  }

  #list() {
    return [...this.#turns.values()];
  }
}
