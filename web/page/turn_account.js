/** What a turn's record says, in words and figures, and why it says no more. */

import { finite, milliseconds, plain, UNKNOWN } from "./numbers.js";

/** How much of a turn is known. */
export const Standing = Object.freeze({
  /** The turn is over; what this page heard and saw of it is on its way. */
  PENDING: "pending",
  MEASURED: "measured",
  /** The call ended before it was measured. */
  CUT_OFF: "cut_off",
});

/** The codes of failures, in words. */
const FAILURES = new Map([
  ["asr_failed", "what you said could not be recognised"],
  ["not_understood", "what you said could not be made out"],
  ["llm_failed", "the language model did not answer"],
  ["reply_empty", "the answer held nothing that can be said"],
  ["tts_failed", "the answer could not be spoken"],
]);

/**
 * @param {object} record of a turn
 * @param {string} standing one of `Standing`
 * @returns {{note: string, wait: string, noWait: string, figures: {name: string, value: string, detail: string}[],
 *   remarks: string[]}} `note`: what kind of turn it was; `wait`: what the
 *   waterfall shows; `noWait`: why there is none
 */
export function account(record, standing) {
  return {
    note: note(record, standing),
    wait: wait(record, standing),
    noWait: noWait(record, standing),
    figures: figures(record, standing),
    remarks: remarks(record),
  };
}

/**
 * @param {string} field of the record, which is null
 * @returns {string} why
 */
export function reason(record, standing, field) {
  const told = record.not_measured;
  if (told && Object.hasOwn(told, field) && typeof told[field] === "string") return told[field];
  if (standing === Standing.PENDING) return "being measured";
  if (standing === Standing.CUT_OFF) return "the call ended before it was measured";
  return record.failed ? "the turn failed" : "not known";
}

function note({ input, interrupted, failed }, standing) {
  const parts = [];
  if (input === "voice") parts.push("By voice");
  if (input === "text") parts.push("By text");
  if (interrupted === true) parts.push("Interrupted");
  if (failed) parts.push(`Failed: ${FAILURES.get(failed) ?? failed}`);
  if (standing === Standing.PENDING) parts.push("What you heard is being measured");
  return parts.join(" · ");
}

function wait(record, standing) {
  const begin = record.input === "text" ? "From your message’s arrival" : "From your last syllable";
  const heard = finite(record.time_to_first_audio_ms);
  if (heard === null) {
    const why = reason(record, standing, "time_to_first_audio_ms");
    return `${begin} to the first sound sent. When you heard it: ${why}.`;
  }
  return `${begin} to the first sound of the reply in your ear: ${about(record)}${milliseconds(heard)}.`;
}

function noWait(record, standing) {
  const heard = finite(record.time_to_first_audio_ms);
  if (heard !== null) return "The reply was in your ear before you had stopped speaking.";
  return `How long you waited: ${reason(record, standing, "time_to_first_audio_ms")}.`;
}

function figures(record, standing) {
  const figure = (name, field, value, detail = "") => ({
    name,
    value: value ?? UNKNOWN,
    detail: value === null ? reason(record, standing, field) : detail,
  });
  const since = (field) => {
    const value = finite(record[field]);
    return value === null ? null : about(record) + milliseconds(value);
  };
  const duration = (field) => {
    const value = finite(record[field]);
    return value === null ? null : milliseconds(value);
  };
  const rate = finite(record.output_tokens_per_s);
  const stop = figure("Barge-in stop", "barge_in_stop_ms", duration("barge_in_stop_ms"));
  if (record.interrupted !== true) stop.detail = "you did not cut in";
  return [
    figure("First audio", "time_to_first_audio_ms", since("time_to_first_audio_ms")),
    figure("First moving picture", "time_to_first_frame_ms", since("time_to_first_frame_ms")),
    figure("Sound against picture", "av_skew_ms", ...skew(record.av_skew_ms)),
    stop,
    figure("First token", "first_token_ms", duration("first_token_ms")),
    figure("Tokens a second", "output_tokens_per_s", rate === null ? null : plain(rate)),
  ];
}

/** @returns {[string|null, string]} the median, and how far off it was at most */
function skew(told) {
  const median = finite(told?.p50);
  if (median === null) return [null, ""];
  const side = median > 0 ? "late" : "early";
  const value = plain(Math.abs(median)) === "0" ? "in step" : `${milliseconds(Math.abs(median))} ${side}`;
  const most = finite(told.max_abs);
  return [value, most === null ? "" : `at most ${milliseconds(most)} off`];
}

function remarks(record) {
  const found = [];
  if (isEstimated(record)) found.push("“About”: that you had stopped speaking is the voice detector’s estimate.");
  const bound = finite(record.clock_bound_ms);
  if (bound !== null) found.push(`The server’s clock and this page’s are tied to within ${milliseconds(bound)}.`);
  const violated = Array.isArray(record.stages_violated) ? record.stages_violated : [];
  if (violated.length > 0) found.push(`The stages contradict each other: ${violated.join("; ")}.`);
  return found;
}

/** Text arrives at a known moment; the end of speech is known only to who made the speech. */
function isEstimated({ input, speech_end_by: by }) {
  return input === "voice" && by === "server";
}

function about(record) {
  return isEstimated(record) ? "about " : "";
}
