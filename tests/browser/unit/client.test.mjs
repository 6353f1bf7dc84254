import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { VisavisClient } from "../../../web/client/client.js";
import { ProblemCode } from "../../../web/client/problem.js";
import { ClientState } from "../../../web/client/state.js";
import { FakeConnection, install, reaches } from "./fake_connection.mjs";

let offers;
let refusal;
/** What each offer said of the call it is for, "p1 restart" or "new". */
let asked;
/** Whether the server still has a call that is to go on; null when it refuses to say. */
let remembers;

async function fetch(url, request) {
  if (String(url).endsWith("/api/config")) return Response.json({ ice_servers: [] });
  offers += 1;
  const { pc_id: id, restart_pc: restart } = JSON.parse(request.body);
  asked.push(id ? `${id} ${restart ? "restart" : "renegotiate"}` : "new");
  if (refusal) return Response.json({ error: { code: refusal } }, { status: 503 });
  if (id && remembers === null) return Response.json({ error: { code: "bad_offer" } }, { status: 400 });
  return Response.json({ type: "answer", sdp: "v=0", pc_id: id && remembers ? id : `p${offers}` });
}

beforeEach(() => {
  install();
  offers = 0;
  refusal = null;
  asked = [];
  remembers = true;
});

function newClient() {
  const client = new VisavisClient("http://host/", { fetch, reconnectDelaysMs: [1, 1, 1] });
  client.states = [];
  client.addEventListener("statechange", ({ detail }) => client.states.push(detail.state));
  return client;
}

test("a session: offer, client-ready, bot-ready", async () => {
  const client = newClient();
  const track = { enabled: true };
  await client.connect(track);
  assert.deepEqual(client.states, [ClientState.CONNECTING, ClientState.READY]);
  const { transceivers, channel } = FakeConnection.last;
  assert.deepEqual(transceivers.map(({ direction }) => direction), ["sendrecv", "recvonly"]);
  assert.equal(transceivers[0].sender.track, track);
  assert.equal(JSON.parse(channel.sent[0]).type, "client-ready");
  client.disconnect();
  assert.equal(JSON.parse(channel.sent.at(-1)).type, "disconnect-bot");
  assert.equal(FakeConnection.last.connectionState, "closed");
});

test("a lost connection is made again for the same call and the same microphone", async () => {
  const client = newClient();
  const track = { enabled: true };
  await client.connect(track);
  client.muted = true;
  const ready = reaches(client, ClientState.READY);
  FakeConnection.last.fail();
  assert.equal(client.state, ClientState.RECONNECTING);
  assert.equal((await ready).resumed, true);
  assert.deepEqual(asked, ["new", "p1 restart"]);
  assert.equal(FakeConnection.made.length, 2);
  assert.equal(FakeConnection.last.transceivers[0].sender.track, track);
  assert.equal(JSON.parse(FakeConnection.last.channel.sent.at(-1)).message.enabled, false);
  client.disconnect();
});

for (const [memory, offered] of [
  [false, ["new", "p1 restart"]],
  [null, ["new", "p1 restart", "new"]],
]) {
  test(`a server that ${memory === null ? "refuses" : "forgot"} the call begins a new one`, async () => {
    const client = newClient();
    await client.connect();
    remembers = memory;
    const ready = reaches(client, ClientState.READY);
    FakeConnection.last.fail();
    assert.equal((await ready).resumed, false);
    assert.deepEqual(asked, offered);
    client.disconnect();
  });
}

test("a call after a call is a new one", async () => {
  const client = newClient();
  await client.connect();
  client.disconnect();
  await client.connect();
  assert.deepEqual(asked, ["new", "new"]);
  client.disconnect();
});

test("a call that went on is renegotiated as itself", async () => {
  const client = newClient();
  await client.connect();
  const ready = reaches(client, ClientState.READY);
  FakeConnection.last.fail();
  await ready;
  FakeConnection.last.channel.deliver({ type: "signalling", message: { type: "renegotiate" } });
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(asked.at(-1), "p1 renegotiate");
  client.disconnect();
});

test("a server that hangs up counts as lost", async () => {
  const client = newClient();
  await client.connect();
  const ready = reaches(client, ClientState.READY);
  FakeConnection.last.channel.deliver({ type: "signalling", message: { type: "peerLeft" } });
  await ready;
  assert.equal(offers, 2);
  client.disconnect();
});

test("a server that asks for it gets a new offer on the same connection", async () => {
  const client = newClient();
  await client.connect();
  FakeConnection.last.channel.deliver({ type: "signalling", message: { type: "renegotiate" } });
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(offers, 2);
  assert.equal(FakeConnection.made.length, 1);
  assert.equal(client.state, ClientState.READY);
  client.disconnect();
});

test("attempts to reconnect are counted, announced and bounded", async () => {
  const client = newClient();
  const attempts = [];
  client.addEventListener("reconnecting", ({ detail }) => attempts.push(`${detail.attempt}/${detail.of}`));
  await client.connect();
  refusal = "bad_gateway";
  const failed = reaches(client, ClientState.FAILED);
  FakeConnection.last.fail();
  const { problem } = await failed;
  assert.deepEqual(attempts, ["1/3", "2/3", "3/3"]);
  assert.equal(offers, 4);
  assert.equal(problem.code, ProblemCode.ENGINE_DOWN);
});

test("hanging up ends an attempt to connect, and nothing comes after it", async () => {
  FakeConnection.answering = false;
  const client = newClient();
  const connecting = client.connect();
  await new Promise((resolve) => setTimeout(resolve));
  client.disconnect();
  await connecting;
  assert.deepEqual(client.states, [ClientState.CONNECTING, ClientState.IDLE]);
  assert.equal(FakeConnection.last.connectionState, "closed");
});

test("a call right after one that was given up belongs to nobody else", async () => {
  const client = newClient();
  await client.config(); // so that both attempts reach the connection in the same pass
  const given = client.connect();
  await Promise.resolve();
  client.disconnect();
  await Promise.all([given, client.connect()]);
  assert.equal(client.state, ClientState.READY);
  client.sendText("Hello");
  assert.match(FakeConnection.last.channel.sent.at(-1), /send-text/);
  client.disconnect();
  assert.ok(FakeConnection.made.every(({ connectionState }) => connectionState === "closed"));
});

test("hanging up ends reconnecting", async () => {
  const client = newClient();
  await client.connect();
  FakeConnection.last.fail();
  client.disconnect();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(client.state, ClientState.IDLE);
  assert.equal(offers, 1);
});

test("a network path that never opens is a failed connection", async () => {
  FakeConnection.answering = false;
  const client = newClient();
  const failed = reaches(client, ClientState.FAILED);
  client.connect();
  await new Promise((resolve) => setTimeout(resolve));
  FakeConnection.last.fail();
  assert.equal((await failed).problem.code, ProblemCode.CONNECTION_FAILED);
});

test("an error that the server calls fatal is its last word", async () => {
  const client = newClient();
  await client.connect();
  const failed = reaches(client, ClientState.FAILED);
  const data = { error: "Nobody spoke.", fatal: true };
  FakeConnection.last.channel.deliver({ id: "2", label: "rtvi-ai", type: "error", data });
  const { problem } = await failed;
  assert.deepEqual([problem.code, problem.message], [ProblemCode.SESSION_ENDED, "Nobody spoke."]);
  assert.equal(offers, 1);
});

test("a refused offer tells why", async () => {
  refusal = "server_full";
  const client = newClient();
  const failed = reaches(client, ClientState.FAILED);
  await client.connect();
  assert.equal((await failed).problem.code, ProblemCode.SERVER_FULL);
});

test("text goes out only while connected", async () => {
  const client = newClient();
  assert.throws(() => client.sendText("hi"), /idle/);
  await client.connect();
  client.sendText("hi");
  const { type, data } = JSON.parse(FakeConnection.last.channel.sent.at(-1));
  assert.deepEqual([type, data.content], ["send-text", "hi"]);
  client.disconnect();
});

test("a client that is connected does not connect", async () => {
  const client = newClient();
  await client.connect();
  await assert.rejects(client.connect(), { name: "IllegalTransitionError" });
  client.disconnect();
});
