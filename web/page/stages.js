/** Where a turn's wait went: the stages of docs/metrics.md, laid out on one axis. */

import { entries, finite } from "./numbers.js";

/** In the order in which shares are taken. */
export const STAGES = Object.freeze([
  { stage: "uplink", name: "Uplink", about: "your voice on its way to the server" },
  { stage: "endpointing", name: "Endpointing", about: "making sure that you had finished" },
  { stage: "asr", name: "Recognition", about: "your speech becoming text" },
  { stage: "route", name: "Route", about: "putting the prompt together and choosing an engine" },
  { stage: "prefill", name: "Prefill", about: "the language model reading the prompt, up to its first token" },
  { stage: "handoff", name: "Hand-off", about: "what was read moving to the engine that writes" },
  { stage: "first_clause", name: "First clause", about: "writing enough to begin to speak" },
  { stage: "tts", name: "Voice", about: "that clause becoming sound" },
  { stage: "egress", name: "Egress", about: "the sound leaving the server" },
  { stage: "playout", name: "Playout", about: "the way to your ear: network, buffers, loudspeaker" },
]);

/** How much of the axis may lie before the user's speech end, in terms of what lies after it. */
const MOST_BEFORE = 0.25;

/** Shares are rounded to a tenth each; more than this many ms apart is no rounding. */
const ROUNDING = 1;

/**
 * The wait from the user's speech end to the first sound of the reply's own words, as heard or, where that
 * is not known, as sent.
 *
 * A stage's `share` is what it alone added to the wait: shares lie end to end. Its `work` is when it was
 * busy, which may overlap with other stages', and begin before the user had finished.
 *
 * @param {object} record of a turn
 * @returns {{total: number, heard: boolean, rest: number, zero: number, rows: Row[]}|null} ms, but `zero`,
 *   where the speech end lies on the axis, 0 to 1; `rest`: what no stage accounts for. Null when there was
 *   no wait, or nothing is known of it.
 * @typedef {{stage: string, name: string, about: string, share: number|null, longest: boolean,
 *   added: Bar|null, work: (Bar & {start: number, end: number})[]}} Row
 * @typedef {{from: number, to: number}} Bar on the axis, 0 to 1
 */
export function waterfall(record) {
  const shares = record.stages?.shares_ms ?? {};
  const heard = finite(record.time_to_first_audio_ms);
  const known = STAGES.map(({ stage }) => finite(shares[stage]));
  const sum = known.reduce((total, share) => total + (share ?? 0), 0);
  const total = heard ?? sum;
  if (total <= 0) return null;

  const work = STAGES.map(({ stage }) => workOf(stage, record));
  const earliest = Math.min(0, ...work.flat().map(({ start }) => start));
  const before = Math.min(-earliest, total * MOST_BEFORE);
  const place = (at) => Math.min(1, Math.max(0, (at + before) / (total + before)));
  const longest = known.indexOf(Math.max(...known.map((share) => share ?? 0)));

  let reached = 0;
  const rows = STAGES.map((stage, index) => {
    const share = known[index];
    const begun = reached;
    reached += share ?? 0;
    return {
      ...stage,
      share,
      longest: index === longest && share > 0,
      added: share > 0 ? { from: place(begun), to: place(reached) } : null,
      work: work[index].map(({ start, end }) => ({ start, end, from: place(start), to: place(end) })),
    };
  });
  const rest = heard === null || Math.abs(heard - sum) <= ROUNDING ? 0 : heard - sum;
  return { total, heard: heard !== null, rest, zero: place(0), rows };
}

/**
 * When a stage was busy with what became the turn.
 * @param {object} record of a turn
 * @returns {{start: number, end: number}[]} ms from the user's speech end
 */
export function workOf(stage, { stages, committed_revision: committed }) {
  return entries(stages?.spans)
    .filter((span) => span.stage === stage && (committed ?? span.revision) === span.revision)
    .map(({ start_ms: start, end_ms: end }) => ({ start: finite(start), end: finite(end) }))
    .filter(({ start, end }) => start !== null && end !== null && start <= end);
}
