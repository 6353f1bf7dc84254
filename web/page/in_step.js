/** Keeps what is shown in step with what is heard: sound takes longer to the ear than a message to the page. */

export class InStep {
  #delayMs;
  #due = 0;
  /** Actions and their timers, in order. */
  #waiting = [];

  /** @param {() => number} delayMs by how much the sound is behind now */
  constructor(delayMs) {
    this.#delayMs = delayMs;
  }

  /** Does something when the sound that belongs to it is heard, and never before what came earlier. */
  run(action) {
    const now = performance.now();
    this.#due = Math.max(this.#due, now + this.#delayMs());
    if (this.#due <= now && this.#waiting.length === 0) {
      action();
      return;
    }
    // Timers of fractions of a millisecond may overtake one another: each takes whatever is first.
    const timer = setTimeout(() => this.#waiting.shift().action(), this.#due - now);
    this.#waiting.push({ action, timer });
  }

  /** Forgets what has not been done yet. */
  clear() {
    for (const { timer } of this.#waiting) clearTimeout(timer);
    this.#waiting = [];
    this.#due = 0;
  }
}
