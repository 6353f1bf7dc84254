import assert from "node:assert/strict";
import { test } from "node:test";

import { account, Standing } from "../../../web/page/turn_account.js";
import { provisional, record, UNKNOWN_TURN } from "./fake_record.mjs";

const { MEASURED, PENDING, CUT_OFF } = Standing;

function figures(told, standing = MEASURED) {
  return Object.fromEntries(account(told, standing).figures.map(({ name, value, detail }) => [name, [value, detail]]));
}

test("a measured turn by voice: what begins with an estimate says “about”", () => {
  const told = figures(record());
  assert.deepEqual(told["First audio"], ["about 600 ms", ""]);
  assert.deepEqual(told["First moving picture"], ["about 640 ms", ""]);
  assert.deepEqual(told["First token"], ["90 ms", ""]);
  assert.deepEqual(told["Tokens a second"], ["61", ""]);
  const { note, wait, remarks } = account(record(), MEASURED);
  assert.equal(note, "By voice");
  assert.match(wait, /^From your last syllable to .* in your ear: about 600 ms\.$/);
  assert.match(remarks.join(), /voice detector’s estimate.*within 0\.4 ms/);
});

test("a client that made the speech knows its end, and text has a known moment", () => {
  for (const told of [{ speech_end_by: "client" }, { input: "text" }]) {
    assert.equal(figures(record(told))["First audio"][0], "600 ms");
    assert.doesNotMatch(account(record(told), MEASURED).remarks.join(), /estimate/);
  }
  assert.match(account(record({ input: "text" }), MEASURED).wait, /^From your message’s arrival/);
});

test("skew says which side it is on, and how far it was at most", () => {
  const skew = (p50) => figures(record({ av_skew_ms: { p50, p95: 30, max_abs: 41 } }))["Sound against picture"];
  assert.deepEqual(skew(12.3), ["12 ms late", "at most 41 ms off"]);
  assert.deepEqual(skew(-25), ["25 ms early", "at most 41 ms off"]);
  assert.deepEqual(skew(0), ["in step", "at most 41 ms off"]);
});

test("a reply that was cut off tells how soon it stopped, another that nobody cut in", () => {
  const stop = (told) => figures(record(told))["Barge-in stop"];
  assert.deepEqual(stop({ interrupted: true, barge_in_stop_ms: 180 }), ["180 ms", ""]);
  assert.deepEqual(stop({ interrupted: true }), ["–", "not known"]);
  assert.deepEqual(stop({}), ["–", "you did not cut in"]);
  assert.equal(account(record({ interrupted: true }), MEASURED).note, "By voice · Interrupted");
});

test("what is not known says why", () => {
  const lacking = { time_to_first_audio_ms: "this client has no means to tell" };
  const told = record({ time_to_first_audio_ms: null, not_measured: lacking });
  assert.deepEqual(figures(told)["First audio"], ["–", "this client has no means to tell"]);
  assert.match(account(told, MEASURED).wait, /this client has no means to tell\.$/);
  assert.deepEqual(figures(provisional(), PENDING)["First audio"], ["–", "being measured"]);
  assert.match(account(provisional(), PENDING).note, /is being measured$/);
  assert.match(figures(provisional(), CUT_OFF)["First audio"][1], /call ended/);
  assert.deepEqual(figures(record({ av_skew_ms: null }))["Sound against picture"], ["–", "not known"]);
  const tricky = record({ time_to_first_frame_ms: null, not_measured: { time_to_first_frame_ms: 7 } });
  assert.deepEqual(figures(tricky)["First moving picture"], ["–", "not known"]);
});

test("a failed turn says in words what failed, and a code without words is shown as it is", () => {
  const failed = { ...UNKNOWN_TURN, input: "voice", failed: "llm_failed" };
  const { note, noWait } = account(failed, MEASURED);
  assert.equal(note, "By voice · Failed: the language model did not answer");
  assert.equal(noWait, "How long you waited: the turn failed.");
  assert.equal(account({ ...failed, failed: "route_lost" }, MEASURED).note, "By voice · Failed: route_lost");
});

test("a turn of which nothing is known has six figures, none of them a number", () => {
  for (const told of [UNKNOWN_TURN, {}]) {
    const { note, figures: shown, remarks } = account(told, MEASURED);
    assert.equal(note, "");
    assert.deepEqual(shown.map(({ value }) => value), Array(6).fill("–"));
    assert.ok(shown.every(({ detail }) => detail));
    assert.deepEqual(remarks, []);
  }
});

test("stages that contradict each other are told", () => {
  const { remarks } = account(record({ stages_violated: ["sent 40 ms after it was heard"] }), MEASURED);
  assert.match(remarks.join(), /contradict each other: sent 40 ms after it was heard\./);
});
