/** The conversation so far, as a log that screen readers follow. All text is text, never markup. */

/** A reader who is this near the end, in pixels, is taken to follow along. */
const NEAR_END = 48;

export class Transcript {
  #scroller;
  #list;
  #empty;
  #partial;
  #partialText;
  #name = "Vis";
  /** What the user said last, as long as nothing answered it: it may not have been all. */
  #unanswered = null;
  #reply = null;
  #lastReply = null;
  /** What was typed and not yet taken by the server, in order. */
  #typed = [];
  /** Whether the reader is at the end, and stays there as it moves. */
  #following = true;

  /**
   * @param {HTMLElement} scroller holds a log with a list, and beside it `.partial`, which no screen
   *   reader follows, and `.log-empty`, shown while nothing was said
   */
  constructor(scroller) {
    this.#scroller = scroller;
    this.#list = scroller.querySelector("ol");
    this.#empty = scroller.querySelector(".log-empty");
    this.#partial = scroller.querySelector(".partial");
    this.#partialText = this.#partial.querySelector("p");
    scroller.addEventListener("scroll", () => (this.#following = this.#isNearEnd()));
    new ResizeObserver(() => this.#keepUp()).observe(scroller);
  }

  set name(name) {
    this.#name = name;
  }

  /** What the user is saying, as far as it was understood: provisional, and longer each time. */
  showPartial(text) {
    const before = this.#partialText.textContent;
    this.#follow(() => {
      if (text.startsWith(before)) {
        const added = document.createElement("span");
        added.textContent = text.slice(before.length);
        this.#partialText.append(added);
      } else {
        this.#partialText.textContent = text;
      }
      this.#partial.hidden = text === "";
      this.#showEmpty();
    });
  }

  clearPartial() {
    this.#partial.hidden = true;
    this.#partialText.replaceChildren();
    this.#showEmpty();
  }

  /** What the user said or typed, in the server's last word for it; nothing is provisional any more. */
  addUserText(text) {
    this.clearPartial();
    const typed = this.#typed.findIndex((entry) => sameWords(entry.text.textContent, text));
    this.#follow(() => {
      if (typed >= 0) {
        finish(this.#typed.splice(typed, 1)[0], text);
        this.#unanswered = null;
      } else {
        this.#unanswered = this.#add("user", "You");
        finish(this.#unanswered, text);
      }
    });
  }

  /** What the user said last was not all: it is provisional again. */
  reopenUserText() {
    if (this.#unanswered === null) return;
    const { item, text } = this.#unanswered;
    this.#unanswered = null;
    item.remove();
    if (this.#partial.hidden) this.showPartial(text.textContent);
    this.#showEmpty();
  }

  /** What the user typed; it waits for the server to take it. */
  addTypedText(text) {
    this.#follow(() => {
      const entry = this.#add("user", "You");
      entry.text.textContent = text;
      this.#typed.push(entry);
    });
  }

  /** A word of the reply, now that it is heard. */
  addBotWord(word) {
    this.#unanswered = null;
    this.#follow(() => {
      this.#reply ??= this.#add("bot", this.#name);
      this.#lastReply = this.#reply;
      const { text } = this.#reply;
      text.append(text.textContent ? ` ${word}` : word);
    });
  }

  /** The reply is over; the next word begins another. */
  endReply() {
    if (this.#reply) finish(this.#reply);
    this.#reply = null;
  }

  /**
   * The reply that was heard last was cut off.
   * @param {string} [heard] what was heard of it, where the server knows: a word that was sent may not have been
   */
  cutReply(heard = this.#lastReply?.text.textContent) {
    if (this.#lastReply === null) return;
    const { item, text } = this.#lastReply;
    this.#follow(() => {
      text.textContent = heard;
      if (item.querySelector(".mark")) return;
      const mark = document.createElement("span");
      mark.className = "mark";
      mark.textContent = "interrupted";
      item.append(mark);
    });
  }

  /** Something that happened and that nobody said. */
  addNote(text) {
    this.#follow(() => {
      const { item } = this.#add("note", "");
      item.textContent = text;
      item.removeAttribute("aria-busy");
    });
  }

  /** Nothing more will be said of what is unfinished. */
  settle() {
    this.clearPartial();
    this.endReply();
    for (const entry of this.#typed.splice(0)) finish(entry);
    this.#unanswered = null;
  }

  #add(from, who) {
    const item = document.createElement("li");
    item.dataset.from = from;
    // Read out once it is whole, not word by word.
    item.setAttribute("aria-busy", "true");
    const speaker = document.createElement("span");
    speaker.className = "speaker";
    speaker.textContent = who;
    const text = document.createElement("p");
    item.append(speaker, text);
    this.#list.append(item);
    this.#showEmpty();
    return { item, text };
  }

  #showEmpty() {
    this.#empty.hidden = this.#list.childElementCount > 0 || !this.#partial.hidden;
  }

  #follow(change) {
    change();
    this.#keepUp();
  }

  #keepUp() {
    if (this.#following) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #isNearEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR_END;
  }
}

function finish({ item, text }, words = text.textContent) {
  text.textContent = words;
  item.removeAttribute("aria-busy");
}

function sameWords(one, other) {
  const words = (text) => text.trim().split(/\s+/u).join(" ");
  return words(one) === words(other);
}
