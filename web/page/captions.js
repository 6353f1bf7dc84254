/** Live captions: words appear over the picture as they are spoken. */

/** Two lines at the size we set them; subtitle guidelines allow 37 to 42 characters a line. */
const PAGE_LENGTH = 84;
/** A sentence shorter than this shares its page with the next one. */
const SHORT_SENTENCE = 28;
/** How long the last words stay when the reply is over. */
const LINGER_MS = 2500;

/** The words now shown. Pages, not rolling lines: a word never moves once it stands. */
export class CaptionPage {
  #words = [];
  #ended = false;

  get words() {
    return this.#words;
  }

  get text() {
    return this.#words.join(" ");
  }

  /** @returns {boolean} whether the word opened a new page */
  add(word) {
    const fresh = this.#ended || this.#words.length === 0 || this.#isFull(word);
    this.#ended = false;
    this.#words = fresh ? [word] : [...this.#words, word];
    return fresh;
  }

  /** The reply is over: its words stand, and the next word opens a page. */
  end() {
    this.#ended = true;
  }

  clear() {
    this.#words = [];
  }

  #isFull(word) {
    const { text } = this;
    if (text.length + 1 + word.length > PAGE_LENGTH) return true;
    return text.length >= SHORT_SENTENCE && /[.!?…]["')\]’”]*$/u.test(text);
  }
}

/** The captions on the picture, and the text track that goes with them. */
export class Captions {
  #element;
  #track;
  #page = new CaptionPage();
  #timer = 0;

  /**
   * @param {HTMLElement} element shows the page
   * @param {import("./caption_track.js").CaptionTrack} track
   */
  constructor(element, track) {
    this.#element = element;
    this.#track = track;
  }

  set shown(shown) {
    this.#element.hidden = !shown;
  }

  /** While the reply is held back, its words stand and wait. */
  set paused(paused) {
    if (paused) this.#track.hold();
    this.#element.dataset.paused = String(paused);
  }

  addWord(text) {
    clearTimeout(this.#timer);
    if (this.#page.add(text)) this.#turnPage();
    const word = document.createElement("span");
    word.textContent = text;
    this.#element.append(word, " ");
    this.#track.addWord(text);
    this.#element.dataset.empty = "false";
  }

  endClause() {
    this.#track.endClause();
  }

  /** The reply is over: the last words stay for a moment. */
  finish() {
    clearTimeout(this.#timer);
    this.#track.endClause();
    this.#page.end();
    this.#timer = setTimeout(() => this.clear(), LINGER_MS);
  }

  /** The reply was cut off, or another begins. */
  clear() {
    clearTimeout(this.#timer);
    this.#track.cut();
    this.#page.clear();
    this.#element.replaceChildren();
    this.#element.dataset.empty = "true";
    this.#element.dataset.paused = "false";
  }

  /** Another stream begins. */
  restart() {
    this.clear();
    this.#track.restart();
  }

  #turnPage() {
    this.#track.endClause();
    this.#element.replaceChildren();
  }
}
