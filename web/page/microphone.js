/** The microphone that the page holds: asked for, shown on the meter, lost, let go. */

import { openMicrophone } from "./devices.js";

/**
 * Events: `change` (a question was asked or answered, a microphone came or went), `problem` (detail the
 * error), `lost` (it was unplugged).
 */
export class Microphone extends EventTarget {
  #meter;
  #track = null;
  /** Set while the browser asks; a person may lose patience and cancel. */
  #question = null;

  /** @param {import("./meter.js").LevelMeter} meter */
  constructor(meter) {
    super();
    this.#meter = meter;
  }

  /** @returns {MediaStreamTrack|null} */
  get track() {
    return this.#track;
  }

  /** Whether the browser is asking the person now. */
  get asking() {
    return this.#question !== null;
  }

  /**
   * @param {string} deviceId empty for the browser's choice
   * @returns {Promise<MediaStreamTrack|null>} null where it was refused or cancelled, and reported
   */
  async ask(deviceId) {
    const question = { cancelled: false };
    this.#question = question;
    this.#emit("change");
    let track = null;
    try {
      track = await openMicrophone(deviceId);
    } catch (error) {
      if (!question.cancelled) this.#emit("problem", error);
    }
    if (question.cancelled) {
      track?.stop();
      return null;
    }
    this.#question = null;
    if (track) this.#adopt(track);
    this.#emit("change");
    return track;
  }

  /** Takes the question back. */
  cancel() {
    this.#question.cancelled = true;
    this.#question = null;
    this.#emit("change");
  }

  drop() {
    this.#meter.detach();
    this.#track?.stop();
    this.#track = null;
  }

  #adopt(track) {
    this.#track?.stop();
    this.#track = track;
    this.#meter.attach(track);
    track.addEventListener("ended", () => this.#lose(track));
  }

  #lose(track) {
    if (track !== this.#track) return;
    this.drop();
    this.#emit("lost");
  }

  #emit(type, detail = null) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
