/**
 * When the avatar's sound is heard, sample by sample, from what a browser says of packets.
 *
 * `getSynchronizationSources` names the packet that was decoded last, and when the sound device asked for it. The
 * device asks in pieces of its own, so that these times jitter by such a piece; over a few of them it evens out.
 */

/** Of Opus, whatever the microphone's was. */
const RATE = 48_000;

/**
 * Seconds from there until the packet's first sample leaves the decoder. NetEq (neteq_impl.cc) keeps 5 ms to blend
 * over, and decodes when less than 10 ms of the packet before are left: 5 on average. Opus is behind the time stamp
 * by its look-ahead, 312 samples or 6.5 ms (libopus, OPUS_GET_LOOKAHEAD).
 */
export const DECODER_DELAY = 0.0165;

/** Seconds by which times of one steady playout differ; more is sound that was left out or stretched. */
const JITTER = 0.012;
/** Looks that are taken together: at 40 ms each, longer than two periods that hardly differ take to meet again. */
const TOGETHER = 5;

export class SoundMoments {
  /** [RTP time stamp, seconds]; the first `#told` were handed out, and stay as neighbours. */
  #moments = [];
  #told = 0;

  /**
   * @param {number} rtpTimestamp of the packet that was decoded
   * @param {number} at when, in seconds
   */
  add(rtpTimestamp, at) {
    this.#moments.push([rtpTimestamp, at]);
  }

  /**
   * What is new, and when it is heard.
   * @param {number} deviceDelay seconds for which the sound device keeps a sample
   * @returns {[number, number][]} RTP time stamps and seconds
   */
  take(deviceDelay) {
    const all = this.#moments;
    const heard = [];
    for (let i = this.#told; i < all.length; i += 1) {
      heard.push([all[i][0], all[i][1] + this.#correction(i) + DECODER_DELAY + deviceDelay]);
    }
    this.#moments = all.slice(-(TOGETHER - 1));
    this.#told = this.#moments.length;
    return heard;
  }

  /** How much later than moment `index` its neighbours have it, on average. */
  #correction(index) {
    const first = Math.max(0, Math.min(index - (TOGETHER >> 1), this.#moments.length - TOGETHER));
    const later = this.#moments
      .slice(first, first + TOGETHER)
      .map((moment) => apart(this.#moments[index], moment))
      .filter((difference) => Math.abs(difference) <= JITTER);
    return later.reduce((sum, difference) => sum + difference) / later.length;
  }
}

/** Seconds by which the second moment's sound is later than the first one's, beyond the sound between them. */
function apart([stamp, at], [otherStamp, otherAt]) {
  return otherAt - at - ((otherStamp - stamp) | 0) / RATE; // time stamps begin anew at 2 ** 32
}
