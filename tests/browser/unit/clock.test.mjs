import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { ClockQuestions, now, seconds } from "../../../web/client/clock.js";

let asked;
let questions;

beforeEach((t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  asked = [];
  questions = new ClockQuestions((question) => asked.push(question));
});

test("the page's clock is in seconds, and on the scale of what the browser stamps", () => {
  assert.equal(seconds(0), performance.timeOrigin / 1000);
  assert.ok(Math.abs(seconds(1500) - seconds(0) - 1.5) < 1e-6);
  const before = now();
  assert.ok(before <= now());
});

test("the first question comes at once and without an answer", () => {
  questions.start();
  assert.equal(asked.length, 1);
  assert.equal(asked[0].before, null);
  assert.ok(Math.abs(asked[0].asked - now()) < 1);
});

test("questions come often at first, then every two seconds", (t) => {
  questions.start();
  for (const wait of [100, 200, 400, 800, 1600, 2000, 2000]) {
    const before = asked.length;
    t.mock.timers.tick(wait - 1);
    assert.equal(asked.length, before);
    t.mock.timers.tick(1);
    assert.equal(asked.length, before + 1, `after ${wait} ms`);
  }
});

test("a question carries the four stamps of the one before, once", (t) => {
  questions.start();
  const { asked: first } = asked[0];
  questions.answered({ asked: first, received: 70.5, answered: 70.6 });
  t.mock.timers.tick(100);
  const [sent, received, answered, returned] = asked[1].before;
  assert.deepEqual([sent, received, answered], [first, 70.5, 70.6]);
  assert.ok(returned >= first && returned <= now());
  t.mock.timers.tick(200);
  assert.equal(asked[2].before, null, "the answer to the second question has not come yet");
});

test("an answer that comes late belongs to its own question", (t) => {
  questions.start();
  t.mock.timers.tick(100);
  questions.answered({ asked: asked[0].asked, received: 1, answered: 2 });
  t.mock.timers.tick(200);
  assert.equal(asked[2].before[0], asked[0].asked);
});

test("nothing is asked after the end", (t) => {
  questions.start();
  questions.stop();
  t.mock.timers.tick(10_000);
  assert.equal(asked.length, 1);
});
