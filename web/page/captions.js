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

export class Captions {
  #element;
  #video;
  #track;
  #cue = null;
  #page = new CaptionPage();
  #timer = 0;

  /**
   * @param {HTMLElement} element shows the page
   * @param {HTMLVideoElement} video gets a text track too, for players that show their own captions
   */
  constructor(element, video) {
    this.#element = element;
    this.#video = video;
    this.#track = video.addTextTrack("captions", "Live captions", "en");
    this.#track.mode = "hidden";
  }

  set shown(shown) {
    this.#element.hidden = !shown;
  }

  addWord(text) {
    clearTimeout(this.#timer);
    if (this.#page.add(text)) this.#turnPage();
    const word = document.createElement("span");
    word.textContent = text;
    this.#element.append(word, " ");
    this.#cue.text = this.#page.text;
    this.#element.dataset.empty = "false";
  }

  /** The reply is over: the last words stay for a moment. */
  finish() {
    clearTimeout(this.#timer);
    this.#page.end();
    this.#timer = setTimeout(() => this.clear(), LINGER_MS);
  }

  clear() {
    clearTimeout(this.#timer);
    this.#page.clear();
    this.#endCue();
    this.#element.replaceChildren();
    this.#element.dataset.empty = "true";
  }

  #turnPage() {
    this.#endCue();
    this.#element.replaceChildren();
    const now = this.#video.currentTime;
    this.#cue = new VTTCue(now, now + 60, "");
    this.#track.addCue(this.#cue);
  }

  #endCue() {
    if (this.#cue === null) return;
    this.#cue.endTime = Math.max(this.#video.currentTime, this.#cue.startTime);
    this.#cue = null;
  }
}
