/** Where sound had to be made up because none had come, from what a receiver counts: nobody says when. */

/** Of Opus, whatever the microphone's was. */
const SAMPLE_RATE = 48_000;

/**
 * Source: webrtc-stats, `concealedSamples` and `concealmentEvents` of an inbound-rtp. An event is what follows
 * a sample that was not concealed; without a new one, the last stretch went on.
 */
export class Concealment {
  #before = null;
  #looked = 0;
  #end = 0;

  /**
   * What was concealed since the last look, as [start, end] in seconds. A stretch that goes on adjoins what
   * was told of it; a new one is taken to end at the look, several to be alike and spread since the last.
   * @param {ReadonlyMap<string, object>} report an RTCStatsReport of the receiver
   * @param {number} at when what was counted last is heard
   */
  update(report, at) {
    const { concealedSamples: samples, concealmentEvents: events } =
      [...report.values()].find(({ type }) => type === "inbound-rtp") ?? {};
    if (samples === undefined) return [];
    const before = this.#before ?? { samples, events };
    const since = this.#looked;
    this.#before = { samples, events };
    this.#looked = at;
    const lasted = (samples - before.samples) / SAMPLE_RATE;
    if (lasted <= 0) return [];
    const started = this.#end;
    const begun = events === undefined ? 1 : events - before.events;
    this.#end = begun === 0 ? started + lasted : at;
    if (begun === 0) return [[started, this.#end]];
    const ends = Array.from({ length: begun }, (_, index) => at - ((at - since) * (begun - 1 - index)) / begun);
    return ends.map((end) => [end - lasted / begun, end]);
  }
}
