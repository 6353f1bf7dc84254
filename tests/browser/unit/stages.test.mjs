import assert from "node:assert/strict";
import { test } from "node:test";

import { STAGES, waterfall } from "../../../web/page/stages.js";
import { provisional, record, UNKNOWN_TURN } from "./fake_record.mjs";

const close = (one, other) => assert.ok(Math.abs(one - other) < 1e-9, `${one} is not ${other}`);

function row(laid, stage) {
  return laid.rows.find((each) => each.stage === stage);
}

test("every stage has its row, in the order shares are taken, and words for it", () => {
  const { rows } = waterfall(record());
  const order = ["uplink", "endpointing", "asr", "route", "prefill", "handoff", "first_clause", "tts", "egress", "playout"];
  assert.deepEqual(rows.map(({ stage }) => stage), order);
  for (const { name, about } of STAGES) assert.ok(name && about.length > 10);
});

test("shares lie end to end from the speech end to the first sound in the ear", () => {
  const laid = waterfall(record());
  assert.equal(laid.total, 600);
  assert.equal(laid.heard, true);
  assert.equal(laid.rest, 0);
  const added = laid.rows.flatMap((each) => (each.added ? [each.added] : []));
  close(added[0].from, laid.zero);
  close(added.at(-1).to, 1);
  for (let index = 1; index < added.length; index += 1) close(added[index].from, added[index - 1].to);
  close(row(laid, "endpointing").added.to - row(laid, "endpointing").added.from, (200 / 600) * (1 - laid.zero));
});

test("a share of nothing has no bar, and an unknown one is not 0", () => {
  const laid = waterfall(record());
  assert.deepEqual([row(laid, "asr").share, row(laid, "asr").added], [0, null]);
  assert.deepEqual([row(laid, "uplink").share, row(laid, "uplink").added], [null, null]);
});

test("the stage that added most is marked, and only that one", () => {
  const longest = waterfall(record()).rows.filter((each) => each.longest);
  assert.deepEqual(longest.map(({ stage }) => stage), ["endpointing"]);
});

test("work that was dropped is not shown", () => {
  const laid = waterfall(record());
  assert.equal(laid.zero, 0, "only revision 1 was at work before the speech end");
  assert.deepEqual(row(laid, "asr").work.map(({ start, end }) => [start, end]), [[32, 132]]);
});

test("work before the speech end is shown to the left of it, up to a quarter of the wait", () => {
  const early = (start_ms) => {
    const { stages, ...rest } = record();
    const spans = [{ stage: "asr", start_ms, end_ms: 0, revision: 2 }];
    return waterfall({ ...rest, stages: { ...stages, spans } });
  };
  const some = early(-60);
  close(some.zero, 60 / 660);
  close(row(some, "asr").work[0].from, 0);
  close(row(some, "asr").work[0].to, some.zero);
  const much = early(-3000);
  close(much.zero, 150 / 750);
  assert.equal(row(much, "asr").work[0].from, 0);
  assert.equal(row(much, "asr").work[0].start, -3000, "the words say how early it was all the same");
});

test("what no stage accounts for is told, and rounding is not", () => {
  assert.equal(waterfall(record({ time_to_first_audio_ms: 600.9 })).rest, 0);
  assert.equal(waterfall(record({ time_to_first_audio_ms: 650 })).rest, 50);
  assert.equal(waterfall(record({ time_to_first_audio_ms: 570 })).rest, -30);
});

test("until it is measured the wait ends where the sound is sent", () => {
  const laid = waterfall(provisional());
  assert.deepEqual([laid.total, laid.heard, laid.rest], [500, false, 0]);
  assert.deepEqual([row(laid, "playout").share, row(laid, "playout").work], [null, []]);
});

test("no wait, or an unknown one, is not laid out", () => {
  assert.equal(waterfall(UNKNOWN_TURN), null);
  assert.equal(waterfall({}), null);
  assert.equal(waterfall(record({ time_to_first_audio_ms: -40 })), null);
  assert.equal(waterfall({ stages: { shares_ms: "?", spans: [null, 7, {}] } }), null);
});

test("a wait whose stages are not known is still a wait", () => {
  const laid = waterfall({ time_to_first_audio_ms: 600, stages: null });
  assert.deepEqual([laid.total, laid.rest], [600, 600]);
  assert.ok(laid.rows.every(({ share, longest }) => share === null && !longest));
});
