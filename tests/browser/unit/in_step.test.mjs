import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { InStep } from "../../../web/page/in_step.js";

let delay;
let done;
let inStep;

beforeEach((t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  delay = 0;
  done = [];
  inStep = new InStep(() => delay);
});

const run = (name) => inStep.run(() => done.push(name));

test("without a delay things happen at once", () => {
  run("a");
  assert.deepEqual(done, ["a"]);
});

test("what is late comes late, and in order though the delay shrinks", (t) => {
  delay = 100;
  run("a");
  delay = 0;
  run("b");
  delay = 20;
  run("c");
  assert.deepEqual(done, []);
  t.mock.timers.tick(101);
  assert.deepEqual(done, ["a", "b", "c"]);
  delay = 0;
});

test("what is cleared never comes, and what follows does", (t) => {
  delay = 100;
  run("a");
  inStep.clear();
  delay = 0;
  run("b");
  t.mock.timers.tick(1000);
  assert.deepEqual(done, ["b"]);
});
