import assert from "node:assert/strict";
import { test } from "node:test";

import { ProblemCode } from "../../../web/client/problem.js";
import { Signalling } from "../../../web/client/signalling.js";

function answering(status, body, requests = []) {
  return async (url, request) => {
    requests.push({ url: String(url), ...request });
    return new Response(typeof body === "string" ? body : JSON.stringify(body), { status });
  };
}

function signalling(fetch) {
  return new Signalling("https://host/vis/", fetch);
}

const OFFER = { type: "offer", sdp: "v=0" };

test("an offer is posted below the page's address and answered", async () => {
  const requests = [];
  const fetch = answering(200, { type: "answer", sdp: "v=0 a", pc_id: "p1" }, requests);
  const { answer, peerId } = await signalling(fetch).offer(OFFER);
  assert.deepEqual(answer, { type: "answer", sdp: "v=0 a" });
  assert.equal(peerId, "p1");
  assert.equal(requests[0].url, "https://host/vis/api/offer");
  assert.equal(requests[0].method, "POST");
  assert.deepEqual(JSON.parse(requests[0].body), { sdp: "v=0", type: "offer" });
});

test("an offer for a connection that exists names it", async () => {
  const requests = [];
  await signalling(answering(200, { pc_id: "p1" }, requests)).offer(OFFER, { peerId: "p1" });
  assert.deepEqual(JSON.parse(requests[0].body), { sdp: "v=0", type: "offer", pc_id: "p1", restart_pc: false });
});

test("an offer that continues a call says so", async () => {
  const requests = [];
  await signalling(answering(200, { pc_id: "p1" }, requests)).offer(OFFER, { peerId: "p1", restart: true });
  assert.deepEqual(JSON.parse(requests[0].body), { sdp: "v=0", type: "offer", pc_id: "p1", restart_pc: true });
});

test("candidates are patched in the field names of Pipecat", async () => {
  const requests = [];
  const candidate = { candidate: "candidate:1 1 udp", sdpMid: "0", sdpMLineIndex: 0 };
  await signalling(answering(200, {}, requests)).addCandidates("p1", [candidate]);
  assert.equal(requests[0].method, "PATCH");
  assert.deepEqual(JSON.parse(requests[0].body), {
    pc_id: "p1",
    candidates: [{ candidate: "candidate:1 1 udp", sdp_mid: "0", sdp_mline_index: 0 }],
  });
});

const REFUSALS = [
  [503, { error: { code: "server_full", message: "m" } }, ProblemCode.SERVER_FULL],
  [503, { error: { code: "llm_unavailable", message: "m" } }, ProblemCode.ENGINE_DOWN],
  [503, "<html>", ProblemCode.ENGINE_DOWN],
  [502, "<html>", ProblemCode.SERVER_UNREACHABLE],
  [400, { error: { code: "bad_offer", message: "no audio" } }, ProblemCode.SERVER_ERROR],
  [413, { error: { code: "too_large", message: "m" } }, ProblemCode.SERVER_ERROR],
  [500, "oops", ProblemCode.SERVER_ERROR],
];

for (const [status, body, code] of REFUSALS) {
  test(`${status} ${JSON.stringify(body)} is ${code}`, async () => {
    await assert.rejects(signalling(answering(status, body)).offer(OFFER), { name: "Problem", code });
  });
}

test("a server that is not there is unreachable", async () => {
  const fetch = async () => {
    throw new TypeError("Failed to fetch");
  };
  await assert.rejects(signalling(fetch).config(), { code: ProblemCode.SERVER_UNREACHABLE });
});

test("an answer that is not JSON is the server's error", async () => {
  await assert.rejects(signalling(answering(200, "<html>")).config(), { code: ProblemCode.SERVER_ERROR });
});

test("whoever aborts gets their own reason back", async () => {
  const abort = new AbortController();
  const fetch = async (url, { signal }) => {
    abort.abort(new Error("hung up"));
    throw signal.reason;
  };
  await assert.rejects(signalling(fetch).offer(OFFER, {}, abort.signal), /hung up/);
});
