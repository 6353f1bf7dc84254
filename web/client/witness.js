/**
 * A second witness of when the avatar's voice is heard: an energy gate on its sound, which knows nothing of RTP.
 *
 * It listens where the browser lets sound play. Elsewhere it says nothing, rather than to let it.
 */

import { now } from "./clock.js";

const GATE = new URL("./energy_gate.js", import.meta.url);
/** 10 ms are a whole number of samples. */
const SAMPLE_RATE = 48_000;
/** Looks at both clocks, of which the median counts: the context's goes on in steps. */
const LOOKS = 25;

export class Witness {
  #track = null;
  #context = null;
  #gate = null;
  #source = null;
  /** The page's clock less the context's, seconds. */
  #ahead = [];
  #onsets = [];

  /** @param {MediaStreamTrack|undefined} track the avatar's voice */
  async start(track) {
    if (globalThis.AudioContext === undefined || track === undefined) return;
    // Nothing is to come out of it, so it needs no sound device where it may do without.
    const context = new AudioContext({ sampleRate: SAMPLE_RATE, sinkId: { type: "none" } });
    this.#context = context;
    try {
      await context.audioWorklet.addModule(GATE);
    } catch (error) {
      console.warn("no energy gate:", error);
      this.stop();
      return;
    }
    // Its call may have ended meanwhile.
    if (this.#context !== context) return;
    this.#track = track;
    this.#gate = new AudioWorkletNode(context, "energy-gate");
    this.#gate.port.onmessage = ({ data }) => this.#hear(data);
    // Only what leads to the destination runs everywhere; what comes out of the gate is silence.
    this.#gate.connect(context.destination);
    this.#attach();
  }

  /** To be called again and again: notes how the two clocks stand. */
  look() {
    if (this.#context?.state !== "running") return;
    this.#ahead.push(now() - this.#context.currentTime);
    if (this.#ahead.length > LOOKS) this.#ahead.shift();
  }

  /**
   * When runs of audible sound left the decoder that began since it was last asked.
   * @returns {number[]} seconds of `now()`
   */
  take() {
    return this.#onsets.splice(0);
  }

  stop() {
    this.#context?.close();
    this.#context = null;
  }

  #hear({ onset, silent }) {
    if (this.#context === null) return;
    if (silent) this.#attach();
    else if (this.#ahead.length > 0) this.#onsets.push(onset + median(this.#ahead));
  }

  /** Whenever the context could not keep up, Chromium's queue before a source grows, and it never shrinks. */
  #attach() {
    this.#source?.disconnect();
    this.#source = this.#context.createMediaStreamSource(new MediaStream([this.#track]));
    this.#source.connect(this.#gate);
  }
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}
