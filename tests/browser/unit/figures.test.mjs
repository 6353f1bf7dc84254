import assert from "node:assert/strict";
import { test } from "node:test";

import { CallFigures, percentile } from "../../../web/page/figures.js";
import { finite, milliseconds, plain, seconds } from "../../../web/page/numbers.js";

test("percentiles lie between the two nearest values, whatever their order", () => {
  assert.equal(percentile([], 0.5), null);
  assert.equal(percentile([7], 0.9), 7);
  assert.equal(percentile([30, 10, 20], 0.5), 20);
  assert.equal(percentile([40, 10, 20, 30], 0.5), 25);
  assert.ok(Math.abs(percentile([10, 20, 30, 40, 50], 0.9) - 46) < 1e-9);
  assert.equal(percentile([9, 100, 1000], 0.5), 100, "by number, not by letter");
});

function turn(id, wait, rest = {}) {
  return { turn_id: id, input: "voice", failed: null, time_to_first_audio_ms: wait, ...rest };
}

test("what is not known is left out, not counted as 0", () => {
  const figures = new CallFigures();
  for (const [id, wait] of [["a", 600], ["b", null], ["c", 800], ["d", undefined]]) figures.add(turn(id, wait));
  assert.equal(figures.turns, 4);
  assert.deepEqual(figures.wait("voice"), { n: 2, median: 700, p90: 780 });
});

test("a turn's second record takes the place of its first one", () => {
  const figures = new CallFigures();
  figures.add(turn("a", null));
  assert.equal(figures.wait("voice").n, 0);
  figures.add(turn("a", 600));
  assert.equal(figures.turns, 1);
  assert.deepEqual(figures.wait("voice"), { n: 1, median: 600, p90: 600 });
});

test("turns by voice and by text are not mixed, and failed ones are counted", () => {
  const figures = new CallFigures();
  figures.add(turn("a", 600));
  figures.add(turn("b", 200, { input: "text" }));
  figures.add(turn("c", null, { failed: "llm_failed" }));
  assert.equal(figures.wait("voice").median, 600);
  assert.equal(figures.wait("text").median, 200);
  assert.deepEqual([figures.turns, figures.failed], [3, 1]);
});

test("numbers are written so that they can be read, and unknown ones never as 0", () => {
  assert.equal(milliseconds(null), "–");
  assert.equal(milliseconds(612.4), "612 ms");
  assert.equal(milliseconds(1234.5), "1,235 ms");
  assert.equal(milliseconds(0.36), "0.4 ms");
  assert.equal(milliseconds(-12.4), "−12 ms");
  assert.equal(plain(-0.01), "0");
  assert.equal(seconds(1240), "1.2 s");
  for (const value of [null, undefined, NaN, Infinity, "7", {}]) assert.equal(finite(value), null);
});
