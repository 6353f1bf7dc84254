/** The buttons of a call, and the keys that stand for them. */

import { ClientState } from "../client/state.js";

const MUTE_KEY = "m";
const INTERRUPT_KEY = "Escape";

/** While the agent is in one of these there is something to interrupt. */
const SPEAKING = Object.freeze(["speaking", "held"]);

/**
 * Events: `call` (start, cancel or hang up), `mute`, `interrupt`, `captions` (detail: shown), `settings`.
 */
export class Controls extends EventTarget {
  #call;
  #callLabel;
  #mute;
  #muteLabel;
  #interrupt;
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
    this.#interrupt = root.querySelector("#interrupt");
    this.#captions = root.querySelector("#captions-toggle");
    this.#call.addEventListener("click", () => this.#emit("call"));
    this.#mute.addEventListener("click", () => this.#emit("mute"));
    this.#interrupt.addEventListener("click", () => this.#emit("interrupt"));
    root.querySelector("#settings-open").addEventListener("click", () => this.#emit("settings"));
    this.#captions.addEventListener("click", () => this.#toggleCaptions());
    root.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** @param {{state: string, asking: boolean, agent: string, muted: boolean, hasMicrophone: boolean}} facts */
  show({ state, asking, agent, muted, hasMicrophone }) {
    const ready = state === ClientState.READY;
    const trying = asking || state === ClientState.CONNECTING || state === ClientState.RECONNECTING;
    this.#call.dataset.does = ready ? "hang-up" : trying ? "cancel" : "start";
    this.#callLabel.textContent = ready ? "Hang up" : trying ? "Cancel" : "Start talking";
    this.#interrupt.hidden = !ready || !SPEAKING.includes(agent);
    if (hasMicrophone || !ready) {
      this.#mute.disabled = false;
      this.#muteLabel.textContent = "Mute";
      this.#mute.setAttribute("aria-pressed", String(muted));
    } else {
      this.#mute.disabled = asking;
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
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    // Escape first belongs to a dialog, or to an input method.
    if (event.key === INTERRUPT_KEY && !event.isComposing && !event.target.closest("dialog, select")) {
      if (!this.#interrupt.hidden) this.#emit("interrupt");
    }
    if (event.key.toLowerCase() === MUTE_KEY) this.#onMuteKey(event);
  }

  #onMuteKey(event) {
    if (!this.shortcut || this.#mute.disabled) return;
    // A key that writes or chooses belongs to where the focus is.
    if (event.target.closest("input, textarea, select, dialog, [contenteditable]")) return;
    event.preventDefault();
    this.#emit("mute");
  }

  #emit(type, detail = null) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
