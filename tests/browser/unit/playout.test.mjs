import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { PlayoutDelay, PlayoutReporter } from "../../../web/client/playout.js";

let played;
let stats;
let sent;
let reporter;

beforeEach((t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  played = 7000;
  stats = new Map();
  sent = [];
  const receiver = {
    getSynchronizationSources: () => (played === null ? [] : [{ rtpTimestamp: played }]),
    getStats: async () => stats,
  };
  reporter = new PlayoutReporter(receiver, (report) => sent.push(report.rtp_timestamp));
});

function tell(type, data = {}) {
  reporter.observe({ type, data });
}

function state(agent) {
  tell("server-message", { type: "visavis.state", user: "silent", agent, mood: "idle" });
}

function pass(t, ms) {
  for (let at = 0; at < ms; at += 200) {
    played += 9600;
    t.mock.timers.tick(200);
  }
}

test("what is played is told five times a second while the avatar speaks", (t) => {
  pass(t, 400);
  assert.deepEqual(sent, []);
  played = 7000;
  tell("bot-started-speaking");
  pass(t, 600);
  assert.deepEqual(sent, [16_600, 26_200, 35_800]);
  tell("bot-stopped-speaking");
  pass(t, 1000);
  assert.equal(sent.length, 3);
});

test("a hold is told at once, and the reports go on until it is over", (t) => {
  tell("bot-started-speaking");
  state("speaking");
  assert.deepEqual(sent, []);
  state("held");
  assert.deepEqual(sent, [7000]);
  state("held");
  assert.equal(sent.length, 1);
  tell("bot-stopped-speaking");
  pass(t, 400);
  assert.equal(sent.length, 3);
  state("preparing");
  pass(t, 400);
  assert.equal(sent.length, 3);
});

test("the user's first sound is told at once", () => {
  tell("user-started-speaking");
  assert.deepEqual(sent, [7000]);
});

test("a browser that does not say what it plays sends nothing", (t) => {
  played = null;
  tell("bot-started-speaking");
  t.mock.timers.tick(400);
  state("held");
  const silent = new PlayoutReporter({ getStats: async () => stats }, (report) => sent.push(report));
  silent.observe({ type: "user-started-speaking", data: {} });
  assert.deepEqual(sent, []);
});

test("nothing is told after the end", (t) => {
  tell("bot-started-speaking");
  reporter.stop();
  pass(t, 1000);
  assert.deepEqual(sent, []);
});

test("one connection that begins to speak twice has one timer", (t) => {
  tell("bot-started-speaking");
  tell("bot-started-speaking");
  pass(t, 200);
  assert.equal(sent.length, 1);
});

test("the delay is measured while the avatar speaks", async () => {
  const inbound = { type: "inbound-rtp", jitterBufferDelay: 48_000 * 0.06, jitterBufferEmittedCount: 48_000 };
  stats.set("a", inbound);
  assert.equal(reporter.delayMs, 0);
  tell("bot-started-speaking");
  await new Promise((resolve) => setTimeout(resolve));
  assert.ok(Math.abs(reporter.delayMs - 60) < 1e-6);
});

function report(buffer, played, device = null) {
  const stats = [
    ["i", { type: "inbound-rtp", jitterBufferDelay: buffer, jitterBufferEmittedCount: played }],
    ["c", { type: "codec" }],
  ];
  if (device !== null) stats.push(["p", { type: "media-playout", totalPlayoutDelay: device, totalSamplesCount: played }]);
  return new Map(stats);
}

test("the delay is that of what was played since the last look, buffer and device together", () => {
  const delay = new PlayoutDelay();
  delay.update(report(48, 1000, 20));
  assert.ok(Math.abs(delay.ms - 68) < 1e-9);
  delay.update(report(148, 2000, 30));
  assert.ok(Math.abs(delay.ms - 110) < 1e-9);
  delay.update(report(148, 2000, 30));
  assert.ok(Math.abs(delay.ms - 110) < 1e-9, "nothing was played: the last figure stands");
});

test("a browser that counts less gives what it has", () => {
  const delay = new PlayoutDelay();
  delay.update(new Map([["i", { type: "inbound-rtp" }]]));
  assert.equal(delay.ms, 0);
  delay.update(report(60, 1000));
  assert.ok(Math.abs(delay.ms - 60) < 1e-9);
});
