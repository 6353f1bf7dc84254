/** A turn's record as the server sends it once it is measured, in figures that are easily followed. */

import { readFileSync } from "node:fs";

const TEXT = readFileSync(new URL("turn_record.json", import.meta.url), "utf8");

/** @param {object} told what is different about this turn */
export function record(told = {}) {
  return { ...JSON.parse(TEXT), ...told };
}

/** What the server alone knows of the same turn when it is over. */
export function provisional(told = {}) {
  const { stages } = record();
  return record({
    time_to_first_audio_ms: null,
    time_to_first_frame_ms: null,
    stages: {
      ...stages,
      shares_ms: { ...stages.shares_ms, playout: null },
      spans: stages.spans.filter(({ stage }) => stage !== "playout"),
    },
    speech_gaps: null,
    render_freezes: null,
    av_skew_ms: null,
    speech_end_by: null,
    clock_bound_ms: null,
    not_measured: null,
    ...told,
  });
}

/** A turn of which nothing is known. */
export const UNKNOWN_TURN = Object.freeze(
  Object.fromEntries(Object.keys(record()).map((field) => [field, field === "interrupted" ? false : null])),
);
