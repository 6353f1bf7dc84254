import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { MicrophoneGate } from "../../../web/client/microphone_gate.js";

let gate;
let track;
let told;

beforeEach((t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  gate = new MicrophoneGate();
  track = { enabled: true };
  told = [];
  gate.addEventListener("talking", ({ detail }) => told.push(detail));
});

test("a microphone is heard unless it is muted", () => {
  gate.track = track;
  assert.equal(track.enabled, true);
  gate.muted = true;
  assert.equal(track.enabled, false);
  gate.muted = false;
  assert.equal(track.enabled, true);
});

test("one that is muted before it comes is never heard", () => {
  gate.muted = true;
  gate.track = track;
  assert.equal(track.enabled, false);
});

test("with push-to-talk it is heard while the button is held, and a moment longer", (t) => {
  gate.pushToTalk = true;
  gate.track = track;
  assert.equal(track.enabled, false);
  gate.press();
  gate.press();
  assert.equal(track.enabled, true);
  gate.release();
  gate.release();
  t.mock.timers.tick(99);
  assert.deepEqual([track.enabled, told], [true, [true]]);
  t.mock.timers.tick(1);
  assert.deepEqual([track.enabled, told], [false, [true, false]]);
});

test("whoever presses again at once was never silent", (t) => {
  gate.pushToTalk = true;
  gate.track = track;
  gate.press();
  gate.release();
  t.mock.timers.tick(50);
  gate.press();
  t.mock.timers.tick(1000);
  assert.deepEqual([track.enabled, told], [true, [true]]);
});

for (const [what, act] of [
  ["muting", () => (gate.muted = true)],
  ["losing the microphone", () => (gate.track = null)],
]) {
  test(`${what} ends the talk at once`, (t) => {
    gate.pushToTalk = true;
    gate.track = track;
    gate.press();
    act();
    gate.release();
    t.mock.timers.tick(1000);
    assert.deepEqual(told, [true, false]);
  });
}

test("switching push-to-talk off in mid-talk leaves the microphone open", () => {
  gate.pushToTalk = true;
  gate.track = track;
  gate.press();
  gate.pushToTalk = false;
  assert.deepEqual([track.enabled, told], [true, [true, false]]);
});

test("the button means nothing without push-to-talk, without a microphone, or while muted", () => {
  gate.track = track;
  gate.press();
  gate.pushToTalk = true;
  gate.muted = true;
  gate.press();
  gate.muted = false;
  assert.equal(track.enabled, false, "a press while muted is not kept");
  gate.track = null;
  gate.press();
  assert.deepEqual(told, []);
});

test("after a reset nothing comes any more", (t) => {
  gate.pushToTalk = true;
  gate.track = track;
  gate.press();
  gate.release();
  gate.reset();
  t.mock.timers.tick(1000);
  assert.deepEqual([track.enabled, told], [false, [true]]);
  gate.press();
  assert.deepEqual(told, [true, true]);
});
