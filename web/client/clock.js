/** The page's clock, and the questions that tie the server's to it. */

const FIRST_MS = 100;
const LONGEST_MS = 2000;

/** Seconds of the page's own clock: monotonic, whatever happens to the date. */
export function now() {
  return seconds(performance.now());
}

/** What the browser stamps on the scale of `performance.now()`, in ms → seconds of `now()`. */
export function seconds(stamp) {
  return (performance.timeOrigin + stamp) / 1000;
}

/**
 * Asks the server for the time again and again: often at first, then every two seconds. Each question
 * carries the four stamps of the one before, once that was answered; the server does the arithmetic.
 */
export class ClockQuestions {
  #send;
  #stamps = null;
  #wait = FIRST_MS;
  #timer = null;

  /** @param {(question: {asked: number, before: number[]|null}) => void} send */
  constructor(send) {
    this.#send = send;
  }

  start() {
    this.#send({ asked: now(), before: this.#stamps });
    // A sample counts once, though the next answer may be late.
    this.#stamps = null;
    this.#timer = setTimeout(() => this.start(), this.#wait);
    this.#wait = Math.min(this.#wait * 2, LONGEST_MS);
  }

  /** @param {{asked: number, received: number, answered: number}} answer */
  answered({ asked, received, answered }) {
    this.#stamps = [asked, received, answered, now()];
  }

  stop() {
    clearTimeout(this.#timer);
  }
}
