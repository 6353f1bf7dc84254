/** Where a reply stumbled: gaps in its sound and pictures that stood still, each with its cause. */

import { entries, finite, milliseconds, seconds } from "./numbers.js";
import { workOf } from "./stages.js";

export const Lane = Object.freeze({ SOUND: "sound", PICTURE: "picture" });

const CAUSES = new Map([
  ["llm", "the language model was late"],
  ["tts", "the voice was late"],
  ["render", "the face was drawn late"],
  ["encode", "sound or picture was packed late"],
  ["loop", "the server was busy"],
  ["network", "it was late on its way here"],
  ["paint", "this page was not shown"],
]);

/** More are not read one by one; the longest stand for them. */
const MOST = 12;

/**
 * @param {object} record of a turn
 * @returns {{begin: number, end: number, marks: Mark[], left: number}|null} ms from the reply's first
 *   sample; `begin` is below 0 when something stood still before it. Marks in the order in which they
 *   happened, the longest ones; `left`: how many shorter ones there are. Null when there was no reply.
 * @typedef {{lane: string, from: number, to: number, text: string}} Mark `from`, `to`: 0 to 1 of the strip
 */
export function stumbles(record) {
  const all = [
    ...entries(record.speech_gaps).map((gap) => mark(gap, Lane.SOUND, "Speech gap")),
    ...entries(record.render_freezes).map((still) => mark(still, Lane.PICTURE, still.w3c ? "Freeze" : "Stall")),
  ].filter(({ at, duration }) => at !== null && duration !== null);
  const length = replyLength(record);
  if (length === null && all.length === 0) return null;

  const longest = all.toSorted((one, other) => other.duration - one.duration).slice(0, MOST);
  const marks = longest.toSorted((one, other) => one.at - other.at);
  const begin = Math.min(0, ...marks.map(({ at }) => at));
  const end = Math.max(length ?? 0, 1, ...marks.map(({ at, duration }) => at + duration));
  const place = (at) => (at - begin) / (end - begin);
  return {
    begin,
    end,
    marks: marks.map((each) => ({
      lane: each.lane,
      from: place(each.at),
      to: place(each.at + each.duration),
      text: words(each),
    })),
    left: all.length - marks.length,
  };
}

function mark({ at_ms: at, duration_ms: duration, cause }, lane, kind) {
  return { lane, kind, at: finite(at), duration: finite(duration), why: CAUSES.get(cause) ?? "cause not known" };
}

function words({ kind, at, duration, why }) {
  return `${kind} of ${milliseconds(duration)} at ${seconds(at)}: ${why}`;
}

/** From the first sample sent to the last, ms; null when it cannot be told. */
function replyLength(record) {
  const sent = workOf("egress", record).at(-1)?.end ?? null;
  const spoken = finite(record.stages?.speech_end_ms);
  const total = finite(record.total_ms);
  if (sent === null || spoken === null || total === null) return null;
  return Math.max(0, total - spoken - sent);
}
