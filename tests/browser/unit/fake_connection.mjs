/** What the client needs of a browser's connections. */

/** As much of a data channel as the client uses. */
class FakeChannel extends EventTarget {
  readyState = "connecting";
  sent = [];

  send(text) {
    this.sent.push(text);
  }

  close() {
    this.readyState = "closed";
  }

  open() {
    this.readyState = "open";
    this.dispatchEvent(new Event("open"));
  }

  deliver(message) {
    this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(message) }));
  }
}

/** A receiver that plays, and counts nothing. */
class FakeReceiver {
  getSynchronizationSources() {
    return [{ rtpTimestamp: 7000, timestamp: 5000 }];
  }

  async getStats() {
    return new Map();
  }
}

/** As much of a peer connection as the client uses; the newest one is `FakeConnection.last`. */
export class FakeConnection extends EventTarget {
  static made = [];
  connectionState = "new";
  localDescription = { type: "offer", sdp: "v=0" };
  transceivers = [];
  channel = new FakeChannel();

  constructor() {
    super();
    FakeConnection.made.push(this);
  }

  static get last() {
    return FakeConnection.made.at(-1);
  }

  addTransceiver(trackOrKind, { direction }) {
    const track = typeof trackOrKind === "string" ? null : trackOrKind;
    const transceiver = { direction, sender: { track }, receiver: new FakeReceiver() };
    this.transceivers.push(transceiver);
    return transceiver;
  }

  createDataChannel() {
    return this.channel;
  }

  getTransceivers() {
    return this.transceivers;
  }

  getReceivers() {
    return [];
  }

  async setLocalDescription() {}

  async setRemoteDescription() {
    if (FakeConnection.answering) setTimeout(() => this.greet());
  }

  close() {
    this.connectionState = "closed";
  }

  greet() {
    if (this.channel.readyState !== "connecting") return;
    this.channel.open();
    this.channel.deliver({ id: "1", label: "rtvi-ai", type: "bot-ready", data: { version: "2.1.0" } });
  }

  fail() {
    this.connectionState = "failed";
    this.dispatchEvent(new Event("connectionstatechange"));
  }
}

/** Puts them in the place of a browser's. */
export function install() {
  globalThis.RTCPeerConnection = FakeConnection;
  globalThis.MediaStream = class {};
  FakeConnection.made = [];
  FakeConnection.answering = true;
}

/** Resolves when the client gets into a state, with what it says of it. */
export function reaches(client, state) {
  return new Promise((resolve) => {
    client.addEventListener("statechange", ({ detail }) => detail.state === state && resolve(detail));
  });
}
