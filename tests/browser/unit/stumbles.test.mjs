import assert from "node:assert/strict";
import { test } from "node:test";

import { Lane, stumbles } from "../../../web/page/stumbles.js";
import { record, UNKNOWN_TURN } from "./fake_record.mjs";

const gap = (at_ms, duration_ms, cause = "tts") => ({ at_ms, duration_ms, cause });
const still = (at_ms, duration_ms, w3c, cause = "render") => ({ at_ms, duration_ms, cause, w3c });

test("a reply is as long as it took from its first sample sent to its last", () => {
  const { begin, end, marks, left } = stumbles(record());
  assert.deepEqual([begin, end, marks, left], [0, 4000, [], 0]);
});

test("gaps, freezes and stalls lie where they happened, in that order, with their cause in words", () => {
  const { marks } = stumbles(
    record({ render_freezes: [still(3000, 500, true), still(200, 130, false, "loop")], speech_gaps: [gap(1000, 352.4)] }),
  );
  assert.deepEqual(marks.map(({ lane, text }) => [lane, text]), [
    [Lane.PICTURE, "Stall of 130 ms at 0.2 s: the server was busy"],
    [Lane.SOUND, "Speech gap of 352 ms at 1 s: the voice was late"],
    [Lane.PICTURE, "Freeze of 500 ms at 3 s: the face was drawn late"],
  ]);
  assert.equal(marks[1].from, 0.25);
  assert.ok(Math.abs(marks[1].to - 1352.4 / 4000) < 1e-9);
});

test("every cause has words, and one that is not known says so", () => {
  const told = ["llm", "tts", "render", "encode", "loop", "network", "paint", "unknown", "constructor", null].map(
    (cause) => stumbles(record({ speech_gaps: [gap(0, 100, cause)] })).marks[0].text.split(": ")[1],
  );
  assert.equal(new Set(told).size, 8);
  assert.deepEqual(told.slice(-3), Array(3).fill("cause not known"));
});

test("what stood still before the reply, or beyond its end, widens the strip", () => {
  const { begin, end, marks } = stumbles(record({ render_freezes: [still(-500, 300, true), still(3900, 600, true)] }));
  assert.deepEqual([begin, end], [-500, 4500]);
  assert.deepEqual([marks[0].from, marks[1].to], [0, 1]);
});

test("of too many the longest are shown, and the others counted", () => {
  const gaps = Array.from({ length: 20 }, (_, index) => gap(index * 100, 40 + (index % 2 ? index : 0)));
  const { marks, left } = stumbles(record({ speech_gaps: gaps }));
  assert.deepEqual([marks.length, left], [12, 8]);
  assert.ok(marks.some(({ text }) => text.startsWith("Speech gap of 59 ms")));
  const starts = marks.map(({ from }) => from);
  assert.deepEqual(starts, starts.toSorted((one, other) => one - other));
});

test("without a reply there is nothing to stumble", () => {
  assert.equal(stumbles(UNKNOWN_TURN), null);
  assert.equal(stumbles({}), null);
});

test("a gap in a reply of unknown length is still shown", () => {
  const { end, marks } = stumbles({ speech_gaps: [gap(1000, 250), { at_ms: null }, null, 7] });
  assert.deepEqual([end, marks.length], [1250, 1]);
});
