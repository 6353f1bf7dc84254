import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const RATE = 48_000;
const QUANTUM = 128;
/** RMS of -50 dBFS. */
const LEVEL = 10 ** (-50 / 20);

/** What the worklet finds around it. */
let EnergyGate;
let onsets;
let silences;
let gate;
globalThis.sampleRate = RATE;
globalThis.AudioWorkletProcessor = class {
  port = { postMessage: ({ onset, silent }) => (silent ? (silences += 1) : onsets.push(onset)) };
};
globalThis.registerProcessor = (name, processor) => {
  assert.equal(name, "energy-gate");
  EnergyGate = processor;
};
await import("../../../web/client/energy_gate.js");

beforeEach(() => {
  globalThis.currentFrame = 0;
  onsets = [];
  silences = 0;
  gate = new EnergyGate();
});

/** @param {[number, number][]} pieces seconds of a constant level each */
function hear(...pieces) {
  const sound = pieces.flatMap(([length, level]) => Array(Math.round(length * RATE)).fill(level));
  for (let at = 0; at + QUANTUM <= sound.length; at += QUANTUM) {
    gate.process([[Float32Array.from(sound.slice(at, at + QUANTUM))]]);
    globalThis.currentFrame += QUANTUM;
  }
}

test("a run is told once, by its first frame", () => {
  hear([0.5, 0], [0.3, 0.1], [0.2, 0]);
  assert.deepEqual(onsets, [0.5]);
});

test("what is too short or too quiet is no run", () => {
  hear([0.1, 0], [0.03, 0.1], [0.1, 0], [0.3, LEVEL * 0.99], [0.1, 0]);
  assert.deepEqual(onsets, []);
  hear([0.1, LEVEL * 1.01]);
  assert.equal(onsets.length, 1);
});

test("each run after a silent frame is a new one", () => {
  hear([0.1, 0], [0.1, 0.1], [0.02, 0], [0.1, 0.1]);
  assert.equal(onsets.length, 2);
  assert.ok(Math.abs(onsets[1] - 0.22) < 0.011);
});

test("half a second without a run is told once after each time that there was one", () => {
  hear([1, 0], [0.1, 0.1], [0.45, 0], [0.1, 0.1], [0.03, 0], [0.03, 0.1]);
  assert.equal(silences, 0);
  hear([2, 0]);
  assert.equal(silences, 1);
  hear([0.1, 0.1], [0.6, 0]);
  assert.equal(silences, 2);
});

test("where nothing is connected there is no run, and none goes on over it", () => {
  hear([0.03, 0.1]);
  gate.process([[]]);
  globalThis.currentFrame += QUANTUM;
  hear([0.03, 0.1]);
  assert.deepEqual(onsets, []);
});
