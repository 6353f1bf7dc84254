import assert from "node:assert/strict";
import { test } from "node:test";

import { decode, encode, encodePing, encodeTrackStatus } from "../../../web/client/rtvi.js";

test("an envelope has an id, the label, a type and data", () => {
  const { id, ...rest } = JSON.parse(encode("send-text", { content: "hi" }));
  assert.match(id, /^[0-9a-f]{8}$/);
  assert.deepEqual(rest, { label: "rtvi-ai", type: "send-text", data: { content: "hi" } });
});

test("ids differ from message to message", () => {
  const ids = new Set(Array.from({ length: 50 }, () => JSON.parse(encode("x")).id));
  assert.equal(ids.size, 50);
});

test("what is encoded is decoded", () => {
  const message = decode(encode("bot-tts-text", { text: "word" }, "7"));
  assert.deepEqual(message, { kind: "rtvi", id: "7", type: "bot-tts-text", data: { text: "word" } });
});

test("missing data is an empty object", () => {
  for (const data of ["", ',"data":null', ',"data":[1]', ',"data":"x"']) {
    const message = decode(`{"label":"rtvi-ai","type":"bot-ready"${data}}`);
    assert.deepEqual(message.data, {});
  }
});

test("signalling is told apart", () => {
  const text = JSON.stringify({ type: "signalling", message: { type: "peerLeft" } });
  assert.deepEqual(decode(text), { kind: "signalling", type: "peerLeft" });
});

test("what is not ours is null, never an exception", () => {
  const foreign = [
    "", "{", "null", "3", "[]", '"text"', "pong",
    '{"label":"other","type":"x"}', '{"label":"rtvi-ai"}', '{"label":"rtvi-ai","type":3}',
    '{"type":"signalling"}', '{"type":"signalling","message":{"type":1}}',
  ];
  for (const text of [...foreign, undefined, new ArrayBuffer(2)]) assert.equal(decode(text), null);
});

test("pings and track status look as Pipecat's clients send them", () => {
  assert.equal(encodePing(12), "ping: 12");
  assert.deepEqual(JSON.parse(encodeTrackStatus(0, false)), {
    type: "signalling",
    message: { type: "trackStatus", receiver_index: 0, enabled: false },
  });
});
