import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { now } from "../../../web/client/clock.js";
import { Witness } from "../../../web/client/witness.js";

const TRACK = { kind: "audio" };

let contexts;
let gates;
/** One for each time that the voice was connected. */
let sources;
let loading;
let witness;

class FakeNode {
  connected = false;

  connect(other) {
    this.connected = true;
    return other;
  }

  disconnect() {
    this.connected = false;
  }
}

class FakeContext {
  destination = new FakeNode();
  state = "running";
  currentTime = 10;
  audioWorklet = { addModule: (url) => loading.then(() => assert.match(String(url), /energy_gate\.js$/)) };

  constructor() {
    contexts.push(this);
  }

  createMediaStreamSource({ tracks }) {
    assert.deepEqual(tracks, [TRACK]);
    sources.push(new FakeNode());
    return sources.at(-1);
  }

  close() {
    this.state = "closed";
  }

  resume() {
    assert.fail("what the browser keeps silent stays silent");
  }
}

beforeEach(() => {
  contexts = [];
  gates = [];
  sources = [];
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

function hear(message) {
  gates[0].port.onmessage({ data: message });
}

test("an onset is told once, on the page's clock", async () => {
  await witness.start(TRACK);
  const looked = now();
  // The context's clock goes on in steps: it is late, by more or less.
  for (const late of [0.001, 0.02, 0.004]) {
    contexts[0].currentTime = 10 + now() - looked - late;
    witness.look();
  }
  hear({ onset: 9.5 });
  const [onset, ...others] = witness.take();
  assert.ok(Math.abs(onset - (looked - 0.5 + 0.004)) < 2e-3);
  assert.deepEqual([others, witness.take()], [[], []]);
});

test("where the browser does not let it listen nothing is made up", async () => {
  await witness.start(TRACK);
  contexts[0].state = "suspended";
  witness.look();
  hear({ onset: 0.1 });
  assert.deepEqual(witness.take(), []);
});

test("when it was silent the voice is connected anew", async () => {
  await witness.start(TRACK);
  hear({ silent: true });
  assert.deepEqual(sources.map(({ connected }) => connected), [false, true]);
});

test("a browser without Web Audio, and a call without sound, have no witness", async () => {
  await witness.start(undefined);
  delete globalThis.AudioContext;
  await witness.start(TRACK);
  assert.deepEqual([contexts, witness.take()], [[], []]);
});

test("nothing goes on after the end, and what is under way then comes to nothing", async () => {
  await witness.start(TRACK);
  witness.look();
  witness.stop();
  hear({ onset: 9.5 });
  hear({ silent: true });
  assert.deepEqual([contexts[0].state, sources.length, witness.take()], ["closed", 1, []]);
  const started = witness.start(TRACK);
  witness.stop();
  await started;
  assert.deepEqual([contexts[1].state, gates.length], ["closed", 1]);
});

test("a gate that cannot be loaded is done without", async (t) => {
  t.mock.method(console, "warn", () => {});
  loading = Promise.reject(new Error("404"));
  await witness.start(TRACK);
  assert.deepEqual([contexts[0].state, gates.length], ["closed", 0]);
  witness.stop();
});
