/** The conversation so far, as a log that screen readers follow. All text is text, never markup. */

/** A reader who is this near the end, in pixels, is taken to follow along. */
const NEAR_END = 48;

export class Transcript {
  #log;
  #list;
  #empty;
  #name = "Vis";
  #open = { user: null, bot: null };
  #lastReply = null;

  /**
   * @param {HTMLElement} log scrolls, has role log, and holds a list
   * @param {HTMLElement} empty shown while nothing was said
   */
  constructor(log, empty) {
    this.#log = log;
    this.#list = log.querySelector("ol");
    this.#empty = empty;
  }

  set name(name) {
    this.#name = name;
  }

  /** What the user said; a partial is replaced by what follows it. */
  addUserText(text, { final = true } = {}) {
    this.#open.user ??= this.#entry("user", "You");
    this.#follow(() => {
      this.#open.user.text.textContent = text;
      this.#settle("user", final);
    });
  }

  /** A word of the reply, now that it is heard. */
  addBotWord(word) {
    this.#open.bot ??= this.#entry("bot", this.#name);
    this.#lastReply = this.#open.bot;
    const { text } = this.#open.bot;
    this.#follow(() => text.append(text.textContent ? ` ${word}` : word));
  }

  /** The reply is over; the next word begins another. */
  endReply() {
    if (this.#open.bot) this.#settle("bot", true);
  }

  /** Says something about the reply that was heard last, once. */
  markReply(word) {
    if (this.#lastReply?.item.querySelector(".mark")) return;
    const mark = document.createElement("span");
    mark.className = "mark";
    mark.textContent = word;
    this.#follow(() => this.#lastReply?.item.append(mark));
  }

  /** Something that happened and that nobody said. */
  addNote(text) {
    const { item } = this.#entry("note", "");
    this.#follow(() => {
      item.textContent = text;
      item.removeAttribute("aria-busy");
    });
  }

  #entry(from, who) {
    const item = document.createElement("li");
    item.dataset.from = from;
    // Read out once it is whole, not word by word.
    item.setAttribute("aria-busy", "true");
    const speaker = document.createElement("span");
    speaker.className = "speaker";
    speaker.textContent = who;
    const text = document.createElement("p");
    item.append(speaker, text);
    this.#follow(() => this.#list.append(item));
    this.#empty.hidden = true;
    return { item, text };
  }

  #settle(from, final) {
    if (!final) return;
    this.#open[from].item.removeAttribute("aria-busy");
    this.#open[from] = null;
  }

  #follow(change) {
    const { scrollHeight, scrollTop, clientHeight } = this.#log;
    const following = scrollHeight - scrollTop - clientHeight < NEAR_END;
    change();
    if (following) this.#log.scrollTop = this.#log.scrollHeight;
  }
}
