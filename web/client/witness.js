/**
 * A second witness of when the avatar's voice is heard: an energy gate on its sound, which knows nothing of RTP.
 *
 * It listens where the browser lets sound play. Elsewhere it says nothing, rather than to let it.
 */

import { seconds } from "./clock.js";

const GATE = new URL("./energy_gate.js", import.meta.url);
/** 10 ms are a whole number of samples. */
const SAMPLE_RATE = 48_000;

export class Witness {
  #context = null;
  #onsets = [];

  /** @param {MediaStreamTrack|undefined} track the avatar's voice */
  async start(track) {
    if (globalThis.AudioContext === undefined || track === undefined) return;
    const context = new AudioContext({ sampleRate: SAMPLE_RATE, latencyHint: "playback" });
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
    const gate = new AudioWorkletNode(context, "energy-gate");
    gate.port.onmessage = ({ data: onset }) => this.#note(onset);
    // Only what leads to the destination runs everywhere; what comes out of the gate is silence.
    context.createMediaStreamSource(new MediaStream([track])).connect(gate).connect(context.destination);
  }

  /** @returns {number[]} when runs of audible sound began since it was last asked, seconds of `now()` */
  take() {
    return this.#onsets.splice(0);
  }

  stop() {
    this.#context?.close();
    this.#context = null;
  }

  #note(onset) {
    const { contextTime, performanceTime } = this.#context?.getOutputTimestamp() ?? {};
    // Nothing was put out yet: there is no telling what its time is worth.
    if (!(contextTime > 0)) return;
    this.#onsets.push(seconds(performanceTime) + onset - contextTime);
  }
}
