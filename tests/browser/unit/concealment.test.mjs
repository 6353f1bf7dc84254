import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Concealment } from "../../../web/client/concealment.js";

const MS = 48;

let concealment;

beforeEach(() => {
  concealment = new Concealment();
  look(10, 480 * MS, 3);
});

/** What is told of a look at `at` s, when so many samples and events had been counted. */
function look(at, concealedSamples, concealmentEvents) {
  const report = new Map([
    ["P", { type: "media-playout" }],
    ["A", { type: "inbound-rtp", concealedSamples, concealmentEvents }],
  ]);
  return concealment.update(report, at).map((times) => times.map((time) => Math.round(time * 1000)));
}

test("what was concealed before the first look is none of ours", () => {
  assert.deepEqual(look(10.24, 480 * MS, 3), []);
});

test("a stretch ends where it was seen", () => {
  assert.deepEqual(look(10.24, 600 * MS, 4), [[10_120, 10_240]]);
  assert.deepEqual(look(10.48, 600 * MS, 4), []);
});

test("a stretch that a look fell into goes on where it was", () => {
  assert.deepEqual(look(10.24, 560 * MS, 4), [[10_160, 10_240]]);
  assert.deepEqual(look(10.48, 680 * MS, 4), [[10_240, 10_360]]);
  assert.deepEqual(look(10.72, 700 * MS, 5), [[10_700, 10_720]]);
});

test("several between two looks do not adjoin", () => {
  assert.deepEqual(look(10.24, 540 * MS, 6), [[10_060, 10_080], [10_140, 10_160], [10_220, 10_240]]);
});

test("where events are not counted, each look has a stretch of its own", () => {
  concealment = new Concealment();
  look(10, 0);
  assert.deepEqual(look(10.24, 100 * MS), [[10_140, 10_240]]);
});

test("a browser that counts nothing tells nothing", () => {
  concealment = new Concealment();
  assert.deepEqual(concealment.update(new Map(), 10), []);
});
