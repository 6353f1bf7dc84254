/** The picture, what is laid over it, and the line below that says how things stand. */

export class Stage {
  #frame;
  #video;
  #label;
  #hint;
  #hear;
  #card;
  #onAction = null;

  /** @param {Document|ShadowRoot} root */
  constructor(root) {
    this.#frame = root.querySelector("#frame");
    this.#video = root.querySelector("#avatar");
    this.#label = root.querySelector("#state-label");
    this.#hint = root.querySelector("#state-hint");
    this.#hear = root.querySelector("#hear");
    this.#card = root.querySelector("#notice");
    this.#hear.addEventListener("click", () => this.#play());
    this.#video.addEventListener("playing", () => {
      this.#frame.dataset.picture = "live";
    });
  }

  get video() {
    return this.#video;
  }

  /** @param {MediaStream} stream */
  async show(stream) {
    this.#video.srcObject = stream;
    await this.#play();
  }

  /** The last picture makes way for the poster. */
  clear() {
    this.#video.srcObject = null;
    this.#hear.hidden = true;
    this.#frame.dataset.picture = "none";
  }

  /** @param {{mood: string, label: string, hint: string}} status */
  set status({ mood, label, hint }) {
    this.#frame.dataset.mood = mood;
    this.#label.textContent = label;
    this.#hint.textContent = hint;
  }

  /**
   * @param {{title: string, text: string, actions: {action: string, label: string}[]}} notice
   * @param {(action: string) => void} onAction
   */
  showNotice({ title, text, actions }, onAction) {
    this.#onAction = onAction;
    const heading = document.createElement("h2");
    heading.textContent = title;
    const paragraph = document.createElement("p");
    paragraph.textContent = text;
    const buttons = document.createElement("div");
    buttons.className = "actions";
    for (const [index, { action, label }] of actions.entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = index === 0 ? "primary" : "quiet";
      button.textContent = label;
      button.dataset.action = action;
      button.addEventListener("click", () => this.#onAction?.(action));
      buttons.append(button);
    }
    this.#card.replaceChildren(heading, paragraph, buttons);
    this.#card.hidden = false;
  }

  hideNotice() {
    this.#onAction = null;
    this.#card.hidden = true;
    this.#card.replaceChildren();
  }

  /** Plays with sound; where the browser wants a gesture first, without, and asks for a tap. */
  async #play() {
    this.#video.muted = false;
    this.#hear.hidden = true;
    if (await begin(this.#video)) return;
    this.#video.muted = true;
    this.#hear.hidden = false;
    await begin(this.#video);
  }
}

/** @returns {Promise<boolean>} false where the browser wants a gesture first */
async function begin(video) {
  try {
    await video.play();
  } catch (error) {
    if (error.name === "NotAllowedError") return false;
    // AbortError: another stream or a hang-up came first.
    if (error.name !== "AbortError") throw error;
  }
  return true;
}
