import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { CaptionTrack } from "../../../web/page/caption_track.js";
import { Captions } from "../../../web/page/captions.js";
import { Conversation } from "../../../web/page/conversation.js";
import { InStep } from "../../../web/page/in_step.js";

/** What the captions need of a page and a video: `cues` holds each that stood, `shown` what stands now. */
class FakePlace {
  cues = [];
  spans = [];
  dataset = {};
  currentTime = 0;

  get shown() {
    return this.spans.map((span) => span.textContent ?? span).join("").trim();
  }

  addTextTrack() {
    const { cues } = this;
    return { cues, addCue: (cue) => cues.push(cue), removeCue: (cue) => cues.splice(cues.indexOf(cue), 1) };
  }

  append(...spans) {
    this.spans.push(...spans);
  }

  replaceChildren() {
    this.spans = [];
  }
}

class FakeTranscript {
  events = [];
  partial = null;

  addBotWord(word) {
    this.events.push(word);
  }

  addUserText(text) {
    this.partial = null;
    this.events.push(`you: ${text}`);
  }

  showPartial(text) {
    this.partial = text;
  }

  clearPartial() {
    this.partial = null;
  }

  endReply() {}

  settle() {
    this.partial = null;
  }

  cutReply(heard = "cut off") {
    this.events.push(`(${heard})`);
  }
}

let place;
let transcript;
let captions;
let conversation;
/** How much the sound is behind, in ms. */
let delay;

beforeEach(() => {
  delay = 0;
  globalThis.document = { createElement: () => ({}) };
  globalThis.VTTCue = class {
    constructor(startTime, endTime, text) {
      Object.assign(this, { startTime, endTime, text });
    }
  };
  place = new FakePlace();
  transcript = new FakeTranscript();
  captions = new Captions(place, new CaptionTrack(place));
  conversation = new Conversation(transcript, captions, new InStep(() => delay));
});

function tell(type, data = {}) {
  conversation.handle({ type, data });
}

function speak(clause, heard = clause) {
  tell("bot-output", { spoken_status: "new" });
  for (const text of heard.split(" ")) {
    tell("bot-tts-text", { text });
    tell("bot-output", { spoken_status: "in-progress" });
  }
  if (heard === clause) tell("bot-output", { spoken_status: "completed" });
}

function state(user, agent) {
  tell("server-message", { type: "visavis.state", user, agent, mood: "idle" });
}

const cues = () => place.cues.map((cue) => cue.text);

test("a reply that was cut off leaves no caption and is marked", () => {
  tell("bot-llm-started");
  speak("Hello, I am Vis.", "Hello,");
  tell("bot-output", { spoken_status: "new" });
  tell("bot-stopped-speaking");
  assert.equal(place.shown, "");
  tell("bot-llm-started");
  speak("I'm sorry.");
  assert.equal(place.shown, "I'm sorry.");
  assert.deepEqual(cues(), ["Hello,", "I'm sorry."]);
  assert.deepEqual(transcript.events, ["Hello,", "(cut off)", "I'm", "sorry."]);
});

test("a reply that was heard out stays for a moment, unmarked, and the next one stands alone", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  tell("bot-llm-started");
  speak("Yes.");
  tell("bot-stopped-speaking");
  assert.equal(place.shown, "Yes.");
  speak("And no.");
  assert.deepEqual(cues(), ["Yes.", "And no."]);
  tell("bot-stopped-speaking");
  t.mock.timers.tick(2500);
  assert.equal(place.shown, "");
  assert.deepEqual(transcript.events, ["Yes.", "And", "no."]);
});

test("a new reply begins with an empty caption, whatever stood there", () => {
  speak("Hello, I am Vis.", "Hello,");
  tell("bot-llm-started");
  assert.equal(place.shown, "");
  speak("Right.");
  assert.deepEqual(cues(), ["Hello,", "Right."]);
});

test("a cue says what was heard of its clause so far, and from when to when", () => {
  tell("bot-output", { spoken_status: "new" });
  place.currentTime = 1;
  tell("bot-tts-text", { text: "Right" });
  place.currentTime = 1.5;
  tell("bot-tts-text", { text: "here," });
  tell("bot-output", { spoken_status: "in-progress" });
  assert.deepEqual(cues(), ["Right here,"]);
  assert.ok(place.cues[0].endTime > 10, "open");
  place.currentTime = 2;
  tell("bot-output", { spoken_status: "completed" });
  tell("bot-tts-text", { text: "with" });
  place.currentTime = 2.5;
  tell("bot-tts-text", { text: "you." });
  assert.equal(place.shown, "Right here, with you.", "short clauses share a page");
  tell("bot-output", { spoken_status: "completed" });
  tell("bot-stopped-speaking");
  assert.deepEqual(cues(), ["Right here,", "with you."]);
  assert.deepEqual(place.cues.map(({ startTime, endTime }) => [startTime, endTime]), [[1, 2], [2, 2.5]]);
});

test("a cue's text is no markup", () => {
  speak("Fish & <b>chips</b>.");
  assert.deepEqual(cues(), ["Fish &amp; &lt;b&gt;chips&lt;/b&gt;."]);
});

test("captions of a reply that is held wait, and a cue that is cut there ends there", () => {
  place.currentTime = 1;
  speak("Once upon a time.", "Once upon");
  place.currentTime = 2;
  state("speaking", "held");
  assert.equal(place.dataset.paused, "true");
  assert.equal(place.shown, "Once upon");
  place.currentTime = 3;
  state("silent", "preparing");
  tell("bot-stopped-speaking");
  assert.deepEqual([place.cues[0].endTime, place.shown, place.dataset.paused], [2, "", "false"]);
  assert.deepEqual(transcript.events, ["Once", "upon", "(cut off)"]);
});

test("a reply that goes on after it was held loses nothing", () => {
  place.currentTime = 1;
  speak("Once upon a time.", "Once upon");
  state("speaking", "held");
  place.currentTime = 2;
  state("silent", "speaking");
  assert.equal(place.dataset.paused, "false");
  tell("bot-tts-text", { text: "a" });
  tell("bot-tts-text", { text: "time." });
  place.currentTime = 4;
  tell("bot-output", { spoken_status: "completed" });
  tell("bot-stopped-speaking");
  assert.deepEqual(cues(), ["Once upon a time."]);
  assert.equal(place.cues[0].endTime, 4);
  assert.deepEqual(transcript.events, ["Once", "upon", "a", "time."]);
});

test("words wait for their sound, and a lost connection takes those that did not sound", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  delay = 80;
  speak("Hello, you.");
  tell("bot-stopped-speaking");
  tell("server-message", { type: "visavis.turn", record: { interrupted: true, heard_text: "Hello," } });
  assert.deepEqual(transcript.events, []);
  t.mock.timers.tick(81);
  assert.deepEqual(transcript.events, ["Hello,", "you.", "(Hello,)"]);
  speak("Never heard.");
  conversation.end();
  t.mock.timers.tick(1000);
  assert.deepEqual(transcript.events, ["Hello,", "you.", "(Hello,)"]);
});

test("another stream has cues of its own", () => {
  speak("Hello.");
  captions.restart();
  assert.deepEqual(place.cues, []);
});

// ── the user's words ─────────────────────────────────────────────────────────────────────────────

test("a partial grows until the final words take its place, whatever they are", () => {
  tell("user-transcription", { text: "where", final: false });
  tell("user-transcription", { text: "where are you", final: false });
  assert.equal(transcript.partial, "where are you");
  assert.deepEqual(transcript.events, []);
  tell("user-transcription", { text: "Wear a yew?", final: true });
  assert.equal(transcript.partial, null);
  assert.deepEqual(transcript.events, ["you: Wear a yew?"]);
});

test("a partial that leads to nothing goes, and one that waits for its final words stays", () => {
  const partial = () => tell("user-transcription", { text: "mm", final: false });
  partial();
  state("silent", "preparing");
  assert.equal(transcript.partial, "mm");
  state("silent", "idle");
  assert.equal(transcript.partial, null);
  partial();
  state("silent", "speaking");
  assert.equal(transcript.partial, null);
  partial();
  tell("user-transcription", { text: "", final: true });
  assert.equal(transcript.partial, null);
  partial();
  state("silent", "held");
  tell("user-started-speaking");
  assert.equal(transcript.partial, "mm", "whoever goes on, goes on with the same line");
  assert.deepEqual(transcript.events, []);
});

test("what a page does not know is let pass", () => {
  tell("of-a-later-version", { text: "?" });
  tell("server-message", { type: "visavis.of_a_later_version" });
  tell("server-message", { type: "visavis.turn" });
  tell("server-message", { type: "visavis.turn", record: { interrupted: false, of_a_later_version: 1 } });
  tell("server-message", {});
  assert.deepEqual([transcript.events, place.shown], [[], ""]);
});
