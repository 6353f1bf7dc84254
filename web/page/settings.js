/** Which microphone and which speaker, and when the user is heard, in a dialog. */

import { listDevices } from "./devices.js";

/** Events: `microphone` (detail: device id), `shortcut` and `pushtotalk` (detail: on). */
export class Settings extends EventTarget {
  #dialog;
  #microphones;
  #speakers;
  #pushToTalk;
  #note;
  #video;

  /**
   * @param {HTMLDialogElement} dialog
   * @param {HTMLMediaElement} video plays the avatar's voice
   */
  constructor(dialog, video) {
    super();
    this.#dialog = dialog;
    this.#video = video;
    this.#microphones = dialog.querySelector("#microphone");
    this.#speakers = dialog.querySelector("#speaker");
    this.#pushToTalk = dialog.querySelector("#push-to-talk");
    this.#note = dialog.querySelector("#devices-note");
    dialog.querySelector("#speaker-field").hidden = typeof video.setSinkId !== "function";
    this.#microphones.addEventListener("change", () => this.#emit("microphone", this.microphone));
    this.#speakers.addEventListener("change", () => this.#chooseSpeaker());
    dialog.querySelector("#shortcut").addEventListener("change", ({ target }) => this.#emit("shortcut", target.checked));
    this.#pushToTalk.addEventListener("change", () => this.#emit("pushtotalk", this.pushToTalk));
    navigator.mediaDevices?.addEventListener("devicechange", () => this.refresh());
  }

  /** The chosen microphone's id; empty for the browser's choice. */
  get microphone() {
    return this.#microphones.value;
  }

  /** Whether the user is heard only while a button is held. */
  get pushToTalk() {
    return this.#pushToTalk.checked;
  }

  async open() {
    await this.refresh();
    this.#dialog.showModal();
  }

  /** Lists anew what is plugged in. */
  async refresh() {
    const { microphones, speakers } = await listDevices();
    fill(this.#microphones, microphones);
    fill(this.#speakers, speakers);
    this.#note.hidden = microphones.length > 0;
  }

  async #chooseSpeaker() {
    try {
      await this.#video.setSinkId(this.#speakers.value);
    } catch (error) {
      // The speaker went away or may not be used: the voice stays where it was.
      console.warn("speaker not changed:", error);
      this.#speakers.value = this.#video.sinkId;
    }
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** Options for devices, the chosen one kept while it is there. */
function fill(select, devices) {
  const chosen = select.value;
  // "default" is the browser's own choice under another name.
  const listed = devices.filter(({ deviceId }) => deviceId !== "default");
  const options = listed.map(({ deviceId, label }) => new Option(label, deviceId));
  select.replaceChildren(new Option("Browser’s choice", ""), ...options);
  select.value = listed.some(({ deviceId }) => deviceId === chosen) ? chosen : "";
}
