/**
 * The button that is held to talk. Pointer, touch and keys hold it; letting go anywhere, leaving the
 * page or losing the focus lets it go. Assistive technology that can only click it switches it instead.
 */

const KEYS = Object.freeze([" ", "Enter"]);

/** Events: `press`, `release`, each only after the other. */
export class TalkButton extends EventTarget {
  #button;
  #pressed = false;

  /** @param {HTMLButtonElement} button */
  constructor(button) {
    super();
    this.#button = button;
    button.addEventListener("pointerdown", (event) => this.#onPointer(event));
    for (const type of ["pointerup", "pointercancel", "lostpointercapture", "blur"]) {
      button.addEventListener(type, () => this.#release());
    }
    button.addEventListener("keydown", (event) => this.#onKeyDown(event));
    button.addEventListener("keyup", (event) => this.#onKeyUp(event));
    button.addEventListener("click", (event) => this.#onClick(event));
    // A long touch would open a menu.
    button.addEventListener("contextmenu", (event) => event.preventDefault());
    const view = button.ownerDocument.defaultView;
    view.addEventListener("blur", () => this.#release());
    button.ownerDocument.addEventListener("visibilitychange", () => this.#release());
  }

  get pressed() {
    return this.#pressed;
  }

  /** @param {{shown: boolean, enabled: boolean}} state a button that goes away is let go */
  show({ shown, enabled }) {
    if (!shown || !enabled) this.#release();
    this.#button.hidden = !shown;
    this.#button.disabled = !enabled;
  }

  #onPointer(event) {
    if (event.button !== 0 || !event.isPrimary) return;
    this.#button.setPointerCapture(event.pointerId);
    this.#press();
  }

  #onKeyDown(event) {
    if (!KEYS.includes(event.key)) return;
    event.preventDefault();
    if (!event.repeat) this.#press();
  }

  #onKeyUp(event) {
    if (!KEYS.includes(event.key)) return;
    event.preventDefault();
    this.#release();
  }

  #onClick(event) {
    // A pointer's click counts its presses; it was dealt with.
    if (event.detail > 0) return;
    if (this.#pressed) this.#release();
    else this.#press();
  }

  #press() {
    if (this.#pressed) return;
    this.#set(true);
    this.dispatchEvent(new CustomEvent("press"));
  }

  #release() {
    if (!this.#pressed) return;
    this.#set(false);
    this.dispatchEvent(new CustomEvent("release"));
  }

  #set(pressed) {
    this.#pressed = pressed;
    this.#button.setAttribute("aria-pressed", String(pressed));
  }
}
