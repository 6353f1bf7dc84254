import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { DECODER_DELAY, SoundMoments } from "../../../web/client/sound_moments.js";

const LOOK = 0.04;
const STEP = LOOK * 48_000;

let moments;

beforeEach(() => {
  moments = new SoundMoments();
});

/** Looks at a steady playout from `stamp` on; `late`: by how many ms each was. */
function look(stamp, late, begin = 100) {
  late.forEach((ms, index) => moments.add((stamp + index * STEP) % 2 ** 32, begin + index * LOOK + ms / 1000));
}

/** ms by which each moment is later than in a steady playout. */
function told(stamp, begin = 100, device = 0) {
  return moments
    .take(device)
    .map(([rtp, at]) => (at - begin - DECODER_DELAY - (((rtp - stamp) >>> 0) / 48_000)) * 1000)
    .map((ms) => Number(ms.toFixed(3)) + 0);
}

test("what decoder and device keep comes on top", () => {
  look(960, [0]);
  assert.deepEqual(told(960, 100, 0.03), [30]);
});

test("each moment is told once", () => {
  look(960, [0, 0]);
  assert.equal(moments.take(0).length, 2);
  assert.deepEqual(moments.take(0), []);
});

test("a device that asks in pieces of its own makes no difference over a few looks", () => {
  look(960, [0, 10, 0, 0, 10, 0, 10, 0, 0, 10]);
  for (const late of told(960)) assert.ok(Math.abs(late - 4) <= 2, late);
});

test("it evens out across reports, too", () => {
  look(960, [0, 10, 0, 10]);
  moments.take(0);
  look(960 + 4 * STEP, [5], 100 + 4 * LOOK);
  assert.deepEqual(told(960), [5]);
  look(960 + 5 * STEP, [10], 100 + 5 * LOOK);
  assert.deepEqual(told(960), [7]);
});

test("sound that was left out or made up is no jitter", () => {
  look(960, [0, 0, 0, 60, 60, 60]);
  assert.deepEqual(told(960), [0, 0, 0, 60, 60, 60]);
});

test("time stamps begin anew", () => {
  const stamp = 2 ** 32 - 2 * STEP;
  look(stamp, [0, 4, 0, 4]);
  assert.deepEqual(told(stamp), [2, 2, 2, 2]);
});
