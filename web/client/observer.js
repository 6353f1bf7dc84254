/**
 * What of the avatar reached eye and ear, and when: RTP time stamps beside the page's clock, told in small
 * batches to the server, which alone knows what they carried.
 *
 * Sound: `getSynchronizationSources` says which packet was taken from the jitter buffer when; what decoder and
 * sound device still keep of it comes on top. Pictures: `requestVideoFrameCallback` says when one is to be seen.
 * The estimates that browsers make from RTCP (`captureTime`, `estimatedPlayoutTimestamp`) are not used: against
 * a sender that stamps its reports late they are off by tens of milliseconds.
 */

import { now, seconds } from "./clock.js";
import { Concealment } from "./concealment.js";
import { PlayoutDelay } from "./playout.js";
import { SoundMoments } from "./sound_moments.js";
import { Witness } from "./witness.js";

const LOOK_INTERVAL_MS = 40;
const REPORT_INTERVAL_MS = 240;
/** Of each kind in one report; the server takes no more. Timers of a page in the background hardly run. */
const MOST_MOMENTS = 128;

export class Observer {
  #receiver;
  #send;
  #witness;
  #video = null;
  #callback = null;
  /** Whether the browser says which picture it shows; taken to be so until it shows one. */
  #stamped = true;
  #timers = [];
  #heard = null;
  #concealment = new Concealment();
  #delay = new PlayoutDelay();
  #sound = new SoundMoments();
  #pictures = [];

  /**
   * @param {{receiver: RTCRtpReceiver, send: (observed: object) => void, witness?: Witness}} parts `receiver` of
   *   the avatar's voice
   */
  constructor({ receiver, send, witness = new Witness() }) {
    this.#receiver = receiver;
    this.#send = send;
    this.#witness = witness;
  }

  start() {
    this.#witness.start(this.#receiver.track);
    this.#timers = [
      setInterval(() => this.#listen(), LOOK_INTERVAL_MS),
      setInterval(() => this.#report(), REPORT_INTERVAL_MS),
    ];
  }

  /** @param {HTMLVideoElement|null} video the element that shows the avatar */
  watch(video) {
    if (this.#callback !== null) this.#video.cancelVideoFrameCallback(this.#callback);
    this.#callback = null;
    this.#video = video;
    this.#look();
  }

  stop() {
    for (const timer of this.#timers) clearInterval(timer);
    this.#witness.stop();
    this.watch(null);
  }

  #look() {
    this.#callback =
      this.#video?.requestVideoFrameCallback?.((_, { rtpTimestamp, expectedDisplayTime }) => {
        this.#stamped = rtpTimestamp !== undefined;
        if (this.#stamped) this.#pictures.push([rtpTimestamp, seconds(expectedDisplayTime)]);
        this.#look();
      }) ?? null;
  }

  #listen() {
    this.#witness.look();
    const source = this.#receiver.getSynchronizationSources?.()[0];
    // The stamp is on the scale of performance.timeOrigin + performance.now().
    if (source?.rtpTimestamp === undefined || source.timestamp === this.#heard) return;
    this.#heard = source.timestamp;
    this.#sound.add(source.rtpTimestamp, source.timestamp / 1000);
  }

  async #report() {
    const counted = await this.#counted();
    this.#delay.update(counted);
    const late = this.#delay.deviceMs / 1000;
    this.#send({
      sound: this.#sound.take(late).slice(-MOST_MOMENTS),
      concealed: this.#concealment.update(counted, now() + late).slice(-MOST_MOMENTS),
      pictures: this.#pictures.splice(0).slice(-MOST_MOMENTS),
      audible: this.#witness.take().slice(-MOST_MOMENTS).map((at) => at + late),
      hidden: this.#video?.ownerDocument.hidden ?? true,
      lacks: this.#lacks(),
    });
  }

  async #counted() {
    try {
      return (await this.#receiver.getStats?.()) ?? new Map();
    } catch (error) {
      // The connection was closed while it was asked.
      if (error.name !== "InvalidStateError") throw error;
      return new Map();
    }
  }

  /** What this browser cannot say, so that the server leaves it open and says why. */
  #lacks() {
    const lacks = [];
    const [source] = this.#receiver.getSynchronizationSources?.() ?? [];
    if (source !== undefined && source.rtpTimestamp === undefined) lacks.push("sound");
    const tells = this.#video === null || ("requestVideoFrameCallback" in this.#video && this.#stamped);
    if (!tells) lacks.push("pictures");
    return lacks;
  }
}
