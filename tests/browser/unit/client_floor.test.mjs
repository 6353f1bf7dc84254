/** Who is heard and who is stopped: what the client tells the server of it. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { VisavisClient } from "../../../web/client/client.js";
import { ClientState } from "../../../web/client/state.js";
import { FakeConnection, install, reaches } from "./fake_connection.mjs";

beforeEach(install);

async function fetch(url) {
  if (String(url).endsWith("/api/config")) return Response.json({ ice_servers: [] });
  return Response.json({ type: "answer", sdp: "v=0", pc_id: "p1" });
}

function newClient() {
  return new VisavisClient("http://host/", { fetch, reconnectDelaysMs: [1] });
}

const sent = (type) =>
  FakeConnection.last.channel.sent.map((text) => JSON.parse(text)).filter((message) => message.type === type);

/** Our own messages, but for what is told all the time. */
const told = () =>
  sent("client-message")
    .map(({ data }) => data)
    .filter(({ t }) => !["visavis.clock", "visavis.observed"].includes(t));

test("whoever begins muted is never heard, and says so", async () => {
  const client = newClient();
  const track = { enabled: true };
  client.muted = true;
  const connecting = client.connect(track);
  assert.equal(track.enabled, false, "before there is a connection");
  await connecting;
  assert.deepEqual(sent("signalling").map(({ message }) => message.enabled), [false]);
  client.muted = false;
  assert.equal(track.enabled, true);
  assert.equal(sent("signalling").at(-1).message.enabled, true);
  client.disconnect();
});

test("the button to talk is told as it is pressed and let go, and does not mute", async (t) => {
  const client = newClient();
  const track = { enabled: true };
  client.pushToTalk = true;
  await client.connect(track);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  client.press();
  assert.equal(track.enabled, true);
  client.release();
  t.mock.timers.tick(100);
  t.mock.timers.reset();
  assert.equal(track.enabled, false);
  assert.deepEqual(told(), [
    { t: "visavis.push_to_talk", d: { pressed: true } },
    { t: "visavis.push_to_talk", d: { pressed: false } },
  ]);
  assert.deepEqual(sent("signalling").map(({ message }) => message.enabled), [true]);
  client.disconnect();
});

test("a lost connection lets go of the button", async () => {
  const client = newClient();
  const track = { enabled: true };
  client.pushToTalk = true;
  await client.connect(track);
  client.press();
  const ready = reaches(client, ClientState.READY);
  FakeConnection.last.fail();
  assert.equal(track.enabled, false);
  await ready;
  client.release();
  assert.deepEqual(told(), []);
  client.disconnect();
});

test("the avatar can be interrupted", async () => {
  const client = newClient();
  client.interrupt();
  await client.connect();
  client.interrupt();
  assert.deepEqual(told(), [{ t: "visavis.interrupt", d: {} }]);
  client.disconnect();
});

test("what is played is told while the call lasts, and not a moment longer", async (t) => {
  const client = newClient();
  await client.connect();
  t.mock.timers.enable({ apis: ["setInterval"] });
  const { channel } = FakeConnection.last;
  channel.deliver({ id: "2", label: "rtvi-ai", type: "bot-started-speaking" });
  t.mock.timers.tick(200);
  assert.deepEqual(told(), [{ t: "visavis.playout", d: { rtp_timestamp: 7000 } }]);
  // What began before the mocks can only be stopped without them.
  t.mock.timers.reset();
  client.disconnect();
  t.mock.timers.enable({ apis: ["setInterval"] });
  channel.readyState = "open";
  channel.deliver({ id: "3", label: "rtvi-ai", type: "bot-started-speaking" });
  t.mock.timers.tick(1000);
  assert.equal(told().length, 1);
});
