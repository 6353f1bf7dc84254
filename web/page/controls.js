/** The row of buttons under the picture, and the key that mutes. */

import { ClientState } from "../client/state.js";

const MUTE_KEY = "m";

/** Events: `call` (start, cancel or hang up), `mute`, `captions` (detail: shown), `settings`. */
export class Controls extends EventTarget {
  #call;
  #callLabel;
  #mute;
  #muteLabel;
  #captions;
  /** Single-key shortcuts must be possible to switch off (WCAG 2.1.4). */
  shortcut = true;

  /** @param {Document} root */
  constructor(root) {
    super();
    this.#call = root.querySelector("#call");
    this.#callLabel = this.#call.querySelector(".label");
    this.#mute = root.querySelector("#mute");
    this.#muteLabel = this.#mute.querySelector(".label");
    this.#captions = root.querySelector("#captions-toggle");
    this.#call.addEventListener("click", () => this.#emit("call"));
    this.#mute.addEventListener("click", () => this.#emit("mute"));
    root.querySelector("#settings-open").addEventListener("click", () => this.#emit("settings"));
    this.#captions.addEventListener("click", () => this.#toggleCaptions());
    root.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** @param {{state: string, asking: boolean, muted: boolean, hasMicrophone: boolean}} facts */
  show({ state, asking, muted, hasMicrophone }) {
    const ready = state === ClientState.READY;
    const trying = asking || state === ClientState.CONNECTING || state === ClientState.RECONNECTING;
    this.#call.dataset.does = ready ? "hang-up" : trying ? "cancel" : "start";
    this.#callLabel.textContent = ready ? "Hang up" : trying ? "Cancel" : "Start talking";
    this.#mute.disabled = !ready || asking;
    if (hasMicrophone || !ready) {
      this.#muteLabel.textContent = "Mute";
      this.#mute.setAttribute("aria-pressed", String(muted));
    } else {
      this.#muteLabel.textContent = "Turn on microphone";
      this.#mute.removeAttribute("aria-pressed");
    }
  }

  #toggleCaptions() {
    const shown = this.#captions.getAttribute("aria-pressed") !== "true";
    this.#captions.setAttribute("aria-pressed", String(shown));
    this.#emit("captions", shown);
  }

  #onKey(event) {
    if (!this.shortcut || event.key.toLowerCase() !== MUTE_KEY || event.repeat) return;
    if (event.ctrlKey || event.metaKey || event.altKey || this.#mute.disabled) return;
    // A key that writes or chooses belongs to where the focus is.
    if (event.target.closest("input, textarea, select, dialog, [contenteditable]")) return;
    event.preventDefault();
    this.#emit("mute");
  }

  #emit(type, detail = null) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
