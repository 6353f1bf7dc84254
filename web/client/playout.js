/**
 * What of the reply has reached the ear: told to the server while the avatar speaks, so that it knows
 * which words were heard when it is interrupted.
 */

const REPORT_INTERVAL_MS = 200;

export class PlayoutReporter {
  #receiver;
  #send;
  #delay = new PlayoutDelay();
  #timer = null;
  #speaking = false;
  #held = false;

  /**
   * @param {RTCRtpReceiver} receiver of the avatar's voice
   * @param {(report: {rtp_timestamp: number}) => void} send
   */
  constructor(receiver, send) {
    this.#receiver = receiver;
    this.#send = send;
  }

  /** How long sound takes from its arrival to the ear, in ms, as last measured; 0 until it was. */
  get delayMs() {
    return this.#delay.ms;
  }

  /** @param {{type: string, data: object}} message from the server */
  observe({ type, data }) {
    switch (type) {
      case "bot-started-speaking":
        this.#speaking = true;
        break;
      case "bot-stopped-speaking":
        this.#speaking = false;
        break;
      case "user-started-speaking":
        this.#report();
        return;
      case "server-message":
        if (data.type !== "visavis.state") return;
        if (data.agent === "held" && !this.#held) this.#report();
        this.#held = data.agent === "held";
        break;
      default:
        return;
    }
    if (this.#speaking || this.#held) this.#start();
    else this.stop();
  }

  stop() {
    this.#speaking = this.#held = false;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #start() {
    if (this.#timer !== null) return;
    this.#measure();
    this.#timer = setInterval(() => {
      this.#report();
      this.#measure();
    }, REPORT_INTERVAL_MS);
  }

  #report() {
    // Safari does not say what it plays.
    const timestamp = this.#receiver.getSynchronizationSources?.()[0]?.rtpTimestamp;
    if (timestamp !== undefined) this.#send({ rtp_timestamp: timestamp });
  }

  async #measure() {
    try {
      this.#delay.update(await this.#receiver.getStats());
    } catch (error) {
      // The connection was closed while it was asked.
      if (error.name !== "InvalidStateError") throw error;
    }
  }
}

/**
 * The mean time between a packet's arrival and its sound, over what was played since the last look:
 * the jitter buffer's share and, where the browser counts it, the sound device's.
 * Source: webrtc-stats, `jitterBufferDelay` and `totalPlayoutDelay`, both in seconds summed over samples.
 */
export class PlayoutDelay {
  #totals = new Map();
  #means = new Map();

  get ms() {
    let seconds = 0;
    for (const mean of this.#means.values()) seconds += mean;
    return seconds * 1000;
  }

  /** 0 where the browser does not count it. */
  get deviceMs() {
    return (this.#means.get("device") ?? 0) * 1000;
  }

  /** @param {ReadonlyMap<string, object>} report an RTCStatsReport of the receiver */
  update(report) {
    for (const stats of report.values()) {
      if (stats.type === "inbound-rtp") this.#add("buffer", stats.jitterBufferDelay, stats.jitterBufferEmittedCount);
      if (stats.type === "media-playout") this.#add("device", stats.totalPlayoutDelay, stats.totalSamplesCount);
    }
  }

  #add(name, total, count) {
    const before = this.#totals.get(name) ?? { total: 0, count: 0 };
    if (!(count > before.count)) return;
    this.#means.set(name, (total - before.total) / (count - before.count));
    this.#totals.set(name, { total, count });
  }
}
