import assert from "node:assert/strict";
import { test } from "node:test";

import { Problem, ProblemCode } from "../../../web/client/problem.js";
import { ClientState } from "../../../web/client/state.js";
import { CaptionPage } from "../../../web/page/captions.js";
import { listDevices, openMicrophone } from "../../../web/page/devices.js";
import { level } from "../../../web/page/meter.js";
import { notice } from "../../../web/page/notices.js";
import { status } from "../../../web/page/status.js";

function scope({ secure = true, error = null, devices = [] } = {}) {
  const track = { kind: "audio" };
  const mediaDevices = {
    getUserMedia: async (wanted) => {
      if (error) throw new DOMException("as the test says", error);
      mediaDevices.wanted = wanted;
      return { getAudioTracks: () => [track] };
    },
    enumerateDevices: async () => devices,
  };
  return { isSecureContext: secure, navigator: { mediaDevices: secure ? mediaDevices : undefined }, track };
}

test("a microphone is opened with echo cancellation, and the one that was chosen", async () => {
  const place = scope();
  assert.equal(await openMicrophone("m1", place), place.track);
  const { audio } = place.navigator.mediaDevices.wanted;
  assert.equal(audio.echoCancellation, true);
  assert.deepEqual(audio.deviceId, { exact: "m1" });
});

const MICROPHONE_ERRORS = {
  NotAllowedError: ProblemCode.MICROPHONE_REFUSED,
  NotFoundError: ProblemCode.MICROPHONE_MISSING,
  OverconstrainedError: ProblemCode.MICROPHONE_MISSING,
  NotReadableError: ProblemCode.MICROPHONE_BUSY,
};

for (const [error, code] of Object.entries(MICROPHONE_ERRORS)) {
  test(`${error} is ${code}`, async () => {
    await assert.rejects(openMicrophone("", scope({ error })), { name: "Problem", code });
  });
}

test("plain http has no microphone to give", async () => {
  await assert.rejects(openMicrophone("", scope({ secure: false })), { code: ProblemCode.INSECURE_CONTEXT });
});

test("an error that nobody foresaw is not dressed up", async () => {
  await assert.rejects(openMicrophone("", scope({ error: "DataError" })), { name: "DataError" });
});

test("devices are listed by kind, nameless ones left out", async () => {
  const devices = [
    { kind: "audioinput", label: "Desk", deviceId: "1" },
    { kind: "audioinput", label: "", deviceId: "" },
    { kind: "audiooutput", label: "Phones", deviceId: "2" },
    { kind: "videoinput", label: "Camera", deviceId: "3" },
  ];
  const { microphones, speakers } = await listDevices(scope({ devices }));
  assert.deepEqual([microphones.map((d) => d.deviceId), speakers.map((d) => d.deviceId)], [["1"], ["2"]]);
  assert.deepEqual(await listDevices(scope({ secure: false })), { microphones: [], speakers: [] });
});

for (const code of Object.values(ProblemCode)) {
  test(`${code} has a message in plain words and a way on`, () => {
    const { title, text, actions } = notice(new Problem(code, "Nobody spoke for a long while."), "Ada");
    assert.ok(title.length > 10 && text.length >= 30);
    assert.doesNotMatch(title + text, /[{}_]|undefined/);
    if (code !== ProblemCode.UNSUPPORTED_BROWSER) assert.ok(actions.length > 0);
    for (const { label } of actions) assert.ok(label);
  });
}

const FACTS = {
  asking: false,
  mood: "idle",
  muted: false,
  pushToTalk: false,
  talking: false,
  hasMicrophone: true,
  name: "Ada",
  attempt: null,
};

test("every state has a label, and the server's mood shows only while connected", () => {
  for (const state of Object.values(ClientState)) {
    const shown = status({ ...FACTS, state, mood: "speaking" });
    assert.ok(shown.label);
    assert.equal(shown.mood === "speaking", state === ClientState.READY);
  }
});

test("a mood the page does not know is shown as ready", () => {
  assert.equal(status({ ...FACTS, state: ClientState.READY, mood: "constructor" }).label, "Ready");
});

test("who is muted or has no microphone is told so", () => {
  const ready = { ...FACTS, state: ClientState.READY, mood: "listening" };
  assert.match(status({ ...ready, muted: true }).hint, /muted/);
  assert.match(status({ ...ready, hasMicrophone: false }).hint, /microphone is off/);
  assert.match(status({ ...FACTS, state: ClientState.IDLE, muted: true }).hint, /begin muted/);
});

test("who holds a button to talk is told when", () => {
  const ready = { ...FACTS, state: ClientState.READY, pushToTalk: true };
  assert.match(status(ready).hint, /Hold the button/);
  assert.match(status({ ...ready, mood: "listening", talking: true }).hint, /Let go/);
  assert.match(status({ ...ready, muted: true }).hint, /muted/);
  assert.equal(status({ ...ready, mood: "speaking" }).hint, "");
});

test("captions turn the page when it is full, and after a sentence", () => {
  const page = new CaptionPage();
  const turns = "One two three. Four".split(" ").map((word) => page.add(word));
  assert.deepEqual(turns, [true, false, false, false], "a short sentence shares its page");
  const long = "This sentence is long enough to stand on its own. Next".split(" ");
  for (const word of long) page.add(word);
  assert.equal(page.text, "Next");
  for (let index = 0; index < 40; index += 1) {
    page.add("syllable");
    assert.ok(page.text.length <= 84);
  }
});

test("a word longer than a page stands alone", () => {
  const page = new CaptionPage();
  page.add("Look:");
  assert.equal(page.add("x".repeat(100)), true);
  assert.deepEqual(page.words, ["x".repeat(100)]);
});

test("the meter spans quiet to loud speech", () => {
  const tone = (amplitude) => Float32Array.from({ length: 1024 }, (_, n) => amplitude * Math.sin(n / 7));
  assert.equal(level(new Float32Array(1024)), 0);
  assert.equal(level(tone(1)), 1);
  assert.ok(level(tone(0.05)) > 0.3 && level(tone(0.05)) < 0.9);
});
