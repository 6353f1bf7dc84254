import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { seconds } from "../../../web/client/clock.js";
import { Witness } from "../../../web/client/witness.js";

const TRACK = { kind: "audio" };

let contexts;
let gates;
/** What the browser says it puts out now, as AudioContext.getOutputTimestamp. */
let output;
let loading;
let witness;

class FakeNode {
  connect(other) {
    return other;
  }
}

class FakeContext {
  destination = new FakeNode();
  closed = false;
  audioWorklet = { addModule: (url) => loading.then(() => assert.match(String(url), /energy_gate\.js$/)) };

  constructor() {
    contexts.push(this);
  }

  createMediaStreamSource({ tracks }) {
    assert.deepEqual(tracks, [TRACK]);
    return new FakeNode();
  }

  getOutputTimestamp() {
    return output;
  }

  close() {
    this.closed = true;
  }

  resume() {
    assert.fail("what the browser keeps silent stays silent");
  }
}

beforeEach(() => {
  contexts = [];
  gates = [];
  output = { contextTime: 10, performanceTime: 70_000 };
  loading = Promise.resolve();
  globalThis.AudioContext = FakeContext;
  globalThis.MediaStream = class {
    constructor(tracks) {
      this.tracks = tracks;
    }
  };
  globalThis.AudioWorkletNode = class extends FakeNode {
    port = {};

    constructor() {
      super();
      gates.push(this);
    }
  };
  witness = new Witness();
});

afterEach(() => {
  delete globalThis.AudioContext;
  delete globalThis.AudioWorkletNode;
});

test("an onset is told once, on the page's clock", async () => {
  await witness.start(TRACK);
  gates[0].port.onmessage({ data: 9.5 });
  const [onset, ...others] = witness.take();
  assert.ok(Math.abs(onset - (seconds(70_000) - 0.5)) < 1e-9);
  assert.deepEqual([others, witness.take()], [[], []]);
});

test("before anything was put out nothing is made up", async () => {
  await witness.start(TRACK);
  output = { contextTime: 0, performanceTime: 0 };
  gates[0].port.onmessage({ data: 0.1 });
  assert.deepEqual(witness.take(), []);
});

test("a browser without Web Audio, and a call without sound, have no witness", async () => {
  await witness.start(undefined);
  delete globalThis.AudioContext;
  await witness.start(TRACK);
  assert.deepEqual([contexts, witness.take()], [[], []]);
});

test("nothing goes on after the end, and what is under way then comes to nothing", async () => {
  await witness.start(TRACK);
  witness.stop();
  gates[0].port.onmessage({ data: 9.5 });
  assert.deepEqual([contexts[0].closed, witness.take()], [true, []]);
  const started = witness.start(TRACK);
  witness.stop();
  await started;
  assert.deepEqual([contexts[1].closed, gates.length], [true, 1]);
});

test("a gate that cannot be loaded is done without", async (t) => {
  t.mock.method(console, "warn", () => {});
  loading = Promise.reject(new Error("404"));
  await witness.start(TRACK);
  assert.deepEqual([contexts[0].closed, gates.length], [true, 0]);
  witness.stop();
});
