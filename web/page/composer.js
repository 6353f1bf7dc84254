/** Where a person types. Enter sends, Shift+Enter starts a new line. */

/** From this share of the limit on, the page says how much room is left. */
const WARN_SHARE = 0.8;

/** Events: `submit`, detail the text. */
export class Composer extends EventTarget {
  #form;
  #input;
  #button;
  #counter;
  #limit = Infinity;
  #enabled = true;

  /** @param {HTMLFormElement} form holds a textarea, a submit button and an output */
  constructor(form) {
    super();
    this.#form = form;
    this.#input = form.querySelector("textarea");
    this.#button = form.querySelector("button");
    this.#counter = form.querySelector("output");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#input.addEventListener("input", () => this.#refresh());
    this.#input.addEventListener("keydown", (event) => {
      // Enter that ends an input method's composition is not ours.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#submit();
    });
    this.#refresh();
  }

  /** Most characters a message may have. */
  set limit(limit) {
    this.#limit = limit;
    this.#input.maxLength = limit;
    this.#refresh();
  }

  set enabled(enabled) {
    this.#enabled = enabled;
    this.#refresh();
  }

  /** Gives a message back that could not be sent, unless another was begun. */
  restore(text) {
    if (this.#input.value === "") this.#input.value = text;
    this.#refresh();
  }

  focus() {
    this.#input.focus();
  }

  #submit() {
    const text = this.#input.value.trim();
    if (text === "" || !this.#enabled) return;
    this.#input.value = "";
    this.#refresh();
    this.dispatchEvent(new CustomEvent("submit", { detail: text }));
  }

  #refresh() {
    const { value } = this.#input;
    this.#button.disabled = !this.#enabled || value.trim() === "";
    const left = this.#limit - value.length;
    const warn = value.length >= this.#limit * WARN_SHARE;
    this.#counter.textContent = warn ? `${left} characters left` : "";
  }
}
