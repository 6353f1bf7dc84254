import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { now, seconds } from "../../../web/client/clock.js";
import { Observer } from "../../../web/client/observer.js";
import { DECODER_DELAY } from "../../../web/client/sound_moments.js";

const REPORT_MS = 240;
const LOOK_MS = 40;

/** As much of a video as is watched; `show` presents a picture. */
class FakeVideo {
  ownerDocument = { hidden: false };
  waiting = new Map();
  #next = 1;

  requestVideoFrameCallback(callback) {
    this.waiting.set(this.#next, callback);
    return this.#next++;
  }

  cancelVideoFrameCallback(handle) {
    this.waiting.delete(handle);
  }

  show(rtpTimestamp, expectedDisplayTime) {
    const callbacks = [...this.waiting.values()];
    this.waiting.clear();
    for (const callback of callbacks) callback(0, { rtpTimestamp, expectedDisplayTime });
  }
}

/** What the receiver says it plays now; null: nothing came yet. */
let source;
let deviceMs;
/** Seconds played so far, one for each time that the receiver was asked. */
let played;
let concealedSamples;
let fault;
let onsets;
let reports;
let observer;

beforeEach((t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  source = null;
  deviceMs = 0;
  played = 0;
  concealedSamples = 480;
  fault = null;
  onsets = [];
  reports = [];
  observer = new Observer({
    receiver: {
      getSynchronizationSources: () => (source === null ? [] : [source]),
      getStats: async () => {
        if (fault !== null) throw fault;
        played += 1;
        return new Map([
          ["A", { type: "inbound-rtp", concealedSamples }],
          ["B", { type: "media-playout", totalPlayoutDelay: played * deviceMs * 48, totalSamplesCount: played * 48_000 }],
        ]);
      },
    },
    send: (report) => reports.push(report),
    witness: { start: () => {}, look: () => {}, take: () => onsets.splice(0), stop: () => {} },
  });
});

/** Looks by look, as the browser's timers do. */
async function pass(t, ms) {
  for (let at = 0; at < ms; at += LOOK_MS) {
    t.mock.timers.tick(LOOK_MS);
    await new Promise(setImmediate); // what the receiver counted
  }
}

test("what is played is told four times a second, each sample once", async (t) => {
  observer.start();
  source = { rtpTimestamp: 960, timestamp: 5000 };
  await pass(t, 80);
  source = { rtpTimestamp: 2880, timestamp: 5040 };
  await pass(t, REPORT_MS - 80);
  const [[first, at], [second, later]] = reports[0].sound;
  assert.deepEqual([first, second], [960, 2880]);
  assert.ok(Math.abs(at - 5 - DECODER_DELAY) < 1e-9);
  assert.ok(Math.abs(later - at - 0.04) < 1e-9);
  await pass(t, REPORT_MS);
  assert.deepEqual(reports[1].sound, []);
});

test("what the sound device still keeps comes on top", async (t) => {
  observer.start();
  source = { rtpTimestamp: 960, timestamp: 5000 };
  deviceMs = 30;
  await pass(t, REPORT_MS);
  const [[stamp, at]] = reports[0].sound;
  assert.equal(stamp, 960);
  assert.ok(Math.abs(at - 5.03 - DECODER_DELAY) < 1e-9);
});

test("every picture is told with the time it is to be seen", async (t) => {
  const video = new FakeVideo();
  observer.watch(video);
  observer.start();
  video.show(3600, 100);
  video.show(7200, 140);
  await pass(t, REPORT_MS);
  assert.deepEqual(reports[0].pictures, [[3600, seconds(100)], [7200, seconds(140)]]);
  await pass(t, REPORT_MS);
  assert.deepEqual(reports[1].pictures, []);
});

test("a page that is not shown says so, and so does one without a video", async (t) => {
  observer.start();
  await pass(t, REPORT_MS);
  const video = new FakeVideo();
  observer.watch(video);
  await pass(t, REPORT_MS);
  video.ownerDocument.hidden = true;
  await pass(t, REPORT_MS);
  assert.deepEqual(reports.map(({ hidden }) => hidden), [true, false, true]);
});

test("a browser that tells everything lacks nothing, before the first packet as well", async (t) => {
  observer.watch(new FakeVideo());
  observer.start();
  await pass(t, REPORT_MS);
  source = { rtpTimestamp: 960, timestamp: 5000 };
  await pass(t, REPORT_MS);
  assert.deepEqual(reports.map(({ lacks }) => lacks), [[], []]);
});

test("sound without an RTP time stamp is lacking, and nothing is made up", async (t) => {
  observer.start();
  source = { timestamp: 5000 };
  await pass(t, REPORT_MS);
  const nothing = { sound: [], concealed: [], pictures: [], audible: [] };
  assert.deepEqual(reports[0], { ...nothing, hidden: true, lacks: ["sound"] });
});

test("pictures are lacking where the browser does not tell of them, or not which", async (t) => {
  observer.watch({ ownerDocument: { hidden: false } });
  observer.start();
  await pass(t, REPORT_MS);
  assert.deepEqual(reports[0].lacks, ["pictures"]);
  const video = new FakeVideo();
  observer.watch(video);
  video.show(undefined, 100);
  await pass(t, REPORT_MS);
  assert.deepEqual([reports[1].lacks, reports[1].pictures], [["pictures"], []]);
  video.show(3600, 140);
  await pass(t, REPORT_MS);
  assert.deepEqual(reports[2].lacks, []);
});

test("another video takes the place of the first one, and nothing is told after the end", async (t) => {
  const [first, second] = [new FakeVideo(), new FakeVideo()];
  observer.watch(first);
  observer.watch(second);
  assert.deepEqual([first.waiting.size, second.waiting.size], [0, 1]);
  observer.start();
  observer.stop();
  assert.equal(second.waiting.size, 0);
  await pass(t, REPORT_MS * 4);
  assert.deepEqual(reports, []);
});

test("what was concealed is told with what the sound device still keeps", async (t) => {
  observer.start();
  deviceMs = 30;
  await pass(t, REPORT_MS);
  concealedSamples += 4800;
  await pass(t, REPORT_MS);
  const [[start, end]] = reports[1].concealed;
  assert.ok(Math.abs(end - start - 0.1) < 1e-6);
  assert.ok(end > now() && end <= now() + 0.03);
  await pass(t, REPORT_MS);
  assert.deepEqual(reports[2].concealed, []);
});

test("a connection that closes meanwhile is no fault", async (t) => {
  fault = Object.assign(new Error("closed"), { name: "InvalidStateError" });
  observer.start();
  await pass(t, REPORT_MS);
  assert.deepEqual(reports[0].concealed, []);
});

test("a report is no longer than the server takes, and holds the newest", async (t) => {
  const video = new FakeVideo();
  observer.start();
  observer.watch(video);
  for (let at = 0; at < 200; at += 1) video.show(at, at);
  await pass(t, REPORT_MS);
  assert.equal(reports[0].pictures.length, 128);
  assert.equal(reports[0].pictures.at(-1)[0], 199);
});
