/** One WebRTC connection to the server, from the offer until it is lost or closed. */

import { ClockQuestions } from "./clock.js";
import { Observer } from "./observer.js";
import { PlayoutReporter } from "./playout.js";
import { Problem, ProblemCode } from "./problem.js";
import { decode, encode, encodePing, encodeTrackStatus, RTVI_VERSION } from "./rtvi.js";

const AUDIO_RECEIVER = 0;
const PING_INTERVAL_MS = 1000;
/** Candidates come one by one within a few ms; one request carries those of this long. */
const CANDIDATE_BATCH_MS = 50;
/** ICE calls a path disconnected after a few lost checks, and often finds it again. */
const DISCONNECT_GRACE_MS = 4000;

/**
 * Events: `message` (detail {type, data}), `stream` (detail MediaStream) and, once and only after
 * `open` resolved, `lost` (detail Problem). A link that is lost or closed is spent.
 */
export class PeerLink extends EventTarget {
  #signalling;
  #about;
  #pc;
  #channel;
  #playout;
  #observer;
  #clock = new ClockQuestions((question) => this.sendMessage("visavis.clock", question));
  #continues;
  #peerId = null;
  #candidates = [];
  #timers = { candidates: null, ping: null, grace: null };
  #lifetime = new AbortController();
  #opening = null;

  /**
   * @param {{signalling: import("./signalling.js").Signalling, iceServers: RTCIceServer[],
   *   microphone: MediaStreamTrack|null, about: object, continues?: string|null}} parts `continues` is
   *   the id of the call whose connection this one takes the place of
   */
  constructor({ signalling, iceServers, microphone, about, continues = null }) {
    super();
    this.#signalling = signalling;
    this.#about = about;
    this.#continues = continues;
    this.#pc = new RTCPeerConnection({ iceServers });
    // Audio is offered both ways even without a microphone: one can be switched on later by
    // replaceTrack, without another round of negotiation.
    const { receiver } = this.#pc.addTransceiver(microphone ?? "audio", { direction: "sendrecv" });
    this.#pc.addTransceiver("video", { direction: "recvonly" });
    this.#channel = this.#pc.createDataChannel("chat", { ordered: true });
    this.#playout = new PlayoutReporter(receiver, (report) => this.sendMessage("visavis.playout", report));
    this.#observer = new Observer({
      receiver,
      send: (observed) => this.sendMessage("visavis.observed", observed),
    });
    this.#pc.addEventListener("icecandidate", ({ candidate }) => candidate && this.#queueCandidate(candidate));
    this.#pc.addEventListener("connectionstatechange", () => this.#watchConnection());
    this.#channel.addEventListener("open", () => this.#greet());
    this.#channel.addEventListener("message", ({ data }) => this.#receive(data));
    this.#channel.addEventListener("close", () => this.#lose("the data channel closed"));
  }

  /** The id that the server answered with; null before. */
  get peerId() {
    return this.#peerId;
  }

  get closed() {
    return this.#lifetime.signal.aborted;
  }

  /** How long the avatar's sound takes from its arrival to the ear, in ms; 0 until it was measured. */
  get playoutDelayMs() {
    return this.#playout.delayMs;
  }

  /** @param {HTMLVideoElement|null} video the element that shows the avatar */
  watch(video) {
    this.#observer.watch(video);
  }

  /**
   * Negotiates and waits until the server's bot is ready.
   * @param {AbortSignal} signal its reason is what the promise rejects with
   * @throws {Problem}
   */
  async open(signal) {
    signal.throwIfAborted();
    const abort = () => this.#end(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    const ready = new Promise((resolve, reject) => {
      this.#opening = { resolve, reject };
    });
    try {
      await Promise.all([this.#negotiate(), ready]);
    } catch (error) {
      this.close();
      throw error;
    } finally {
      this.#opening = null;
      signal.removeEventListener("abort", abort);
    }
  }

  send(type, data) {
    this.#sendText(encode(type, data));
  }

  /** One of our own messages, which RTVI carries for us. */
  sendMessage(name, content = {}) {
    this.send("client-message", { t: name, d: content });
  }

  /** Tells the server whether our microphone sends anything worth listening to. */
  sendMicrophoneStatus(enabled) {
    this.#sendText(encodeTrackStatus(AUDIO_RECEIVER, enabled));
  }

  /** @param {MediaStreamTrack|null} microphone */
  async replaceMicrophone(microphone) {
    await this.#pc.getTransceivers()[AUDIO_RECEIVER].sender.replaceTrack(microphone);
  }

  close() {
    if (this.#lifetime.signal.aborted) return;
    this.#lifetime.abort();
    for (const timer of Object.values(this.#timers)) clearTimeout(timer);
    this.#playout.stop();
    this.#observer.stop();
    this.#clock.stop();
    this.#channel.close();
    this.#pc.close();
  }

  async #negotiate() {
    const { signal } = this.#lifetime;
    await this.#pc.setLocalDescription();
    // Only the first offer is for another connection than the server knows of.
    const call = this.#peerId === null ? { peerId: this.#continues, restart: true } : { peerId: this.#peerId };
    const { answer, peerId } = await this.#signalling.offer(this.#pc.localDescription, call, signal);
    this.#peerId = peerId;
    await this.#pc.setRemoteDescription(answer).catch((cause) => {
      throw new Problem(ProblemCode.SERVER_ERROR, `the answer does not fit the offer: ${cause.message}`, { cause });
    });
    const tracks = this.#pc.getReceivers().map(({ track }) => track);
    this.#emit("stream", new MediaStream(tracks));
    this.#flushCandidates();
  }

  #queueCandidate(candidate) {
    this.#candidates.push(candidate);
    this.#timers.candidates ??= setTimeout(() => {
      this.#timers.candidates = null;
      this.#flushCandidates();
    }, CANDIDATE_BATCH_MS);
  }

  #flushCandidates() {
    if (this.#peerId === null || this.#candidates.length === 0) return;
    const candidates = this.#candidates.splice(0);
    // Losing some is no failure yet: ICE may do without them, and says so itself when it cannot.
    this.#signalling.addCandidates(this.#peerId, candidates, this.#lifetime.signal).catch((error) => {
      if (!this.#lifetime.signal.aborted) console.warn("candidates were not delivered:", error);
    });
  }

  #watchConnection() {
    const state = this.#pc.connectionState;
    clearTimeout(this.#timers.grace);
    if (state === "failed") this.#lose("no network path to the server");
    if (state === "disconnected") {
      this.#timers.grace = setTimeout(() => this.#lose("the network path went silent"), DISCONNECT_GRACE_MS);
    }
  }

  #greet() {
    this.send("client-ready", { version: RTVI_VERSION, about: this.#about });
    this.#timers.ping = setInterval(() => this.#sendText(encodePing(Date.now())), PING_INTERVAL_MS);
    this.#clock.start();
    this.#observer.start();
  }

  #receive(text) {
    // What was on its way when the link closed must not set anything going.
    if (this.#lifetime.signal.aborted) return;
    const message = decode(text);
    if (message === null) {
      console.warn("not a message of ours:", text);
    } else if (message.kind === "signalling") {
      this.#obey(message.type);
    } else {
      const { type, data } = message;
      if (type === "server-message" && data.type === "visavis.clock") {
        this.#clock.answered(data);
        return;
      }
      this.#playout.observe(message);
      this.#emit("message", { type, data });
      if (type === "bot-ready") this.#opening?.resolve();
      if (type === "error" && data.fatal === true) {
        this.#end(new Problem(ProblemCode.SESSION_ENDED, String(data.error ?? data.message)));
      }
    }
  }

  #obey(type) {
    if (type === "peerLeft") this.#lose("the server hung up");
    if (type === "renegotiate") this.#negotiate().catch((error) => this.#end(error));
  }

  #sendText(text) {
    if (this.#channel.readyState === "open") this.#channel.send(text);
  }

  #lose(detail) {
    const code = this.#opening ? ProblemCode.CONNECTION_FAILED : ProblemCode.CONNECTION_LOST;
    this.#end(new Problem(code, detail));
  }

  #end(problem) {
    if (this.#lifetime.signal.aborted) return;
    const opening = this.#opening;
    this.close();
    if (opening) opening.reject(problem);
    else this.#emit("lost", problem);
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
