import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Captions } from "../../../web/page/captions.js";
import { Conversation } from "../../../web/page/conversation.js";

/** What the captions need of a page: `cues` holds each text that stood, `shown` what stands now. */
class FakePlace {
  cues = [];
  spans = [];
  dataset = {};
  currentTime = 0;

  get shown() {
    return this.spans.map((span) => span.textContent ?? span).join("").trim();
  }

  addTextTrack() {
    return { addCue: (cue) => this.cues.push(cue) };
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

  addBotWord(word) {
    this.events.push(word);
  }

  endReply() {}

  markReply(word) {
    this.events.push(`(${word})`);
  }
}

let place;
let transcript;
let conversation;

beforeEach(() => {
  globalThis.document = { createElement: () => ({}) };
  globalThis.VTTCue = class {};
  place = new FakePlace();
  transcript = new FakeTranscript();
  conversation = new Conversation(transcript, new Captions(place, place));
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

const captions = () => place.cues.map((cue) => cue.text);

test("a reply that was cut off leaves no caption and is marked", () => {
  tell("bot-llm-started");
  speak("Hello, I am Vis.", "Hello,");
  tell("bot-output", { spoken_status: "new" });
  tell("bot-stopped-speaking");
  assert.equal(place.shown, "");
  tell("bot-llm-started");
  speak("I'm sorry.");
  assert.equal(place.shown, "I'm sorry.");
  assert.deepEqual(captions(), ["Hello,", "I'm sorry."]);
  assert.deepEqual(transcript.events, ["Hello,", "(interrupted)", "I'm", "sorry."]);
});

test("a reply that was heard out stays for a moment, unmarked, and the next one stands alone", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  tell("bot-llm-started");
  speak("Yes.");
  tell("bot-stopped-speaking");
  assert.equal(place.shown, "Yes.");
  speak("And no.");
  assert.deepEqual(captions(), ["Yes.", "And no."]);
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
  assert.deepEqual(captions(), ["Hello,", "Right."]);
});
