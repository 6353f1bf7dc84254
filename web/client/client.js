/**
 * A conversation with a Visavis server. No page, no permissions, no devices: it is given a
 * microphone track, hands out a media stream and messages, and reconnects when the connection is
 * lost. Whoever embeds it brings the picture and the words.
 */

import { MicrophoneGate } from "./microphone_gate.js";
import { PeerLink } from "./peer.js";
import { Problem, ProblemCode } from "./problem.js";
import { Signalling } from "./signalling.js";
import { ClientEvent, ClientState, next } from "./state.js";

const LIBRARY = Object.freeze({ library: "visavis-web", library_version: "0.1.0" });
const ATTEMPT_TIMEOUT_MS = 15_000;
/** Waits before each attempt to reconnect: about 16 s in all, then the person decides. */
const RECONNECT_DELAYS_MS = Object.freeze([250, 1000, 2000, 4000, 8000]);

/**
 * Events:
 * - `statechange`, detail {state, previous, problem: Problem|null, resumed: boolean}: `resumed` when the
 *   same conversation goes on behind a new connection
 * - `reconnecting`, detail {attempt, of}: before each attempt
 * - `stream`, detail MediaStream: the avatar's sound and picture, anew after each reconnect
 * - `message`, detail {type, data}: every RTVI message from the server
 */
export class VisavisClient extends EventTarget {
  #signalling;
  #delays;
  #state = ClientState.IDLE;
  #link = null;
  /** The server's id of the call; it outlives its connections. */
  #callId = null;
  #effort = null;
  #microphone = new MicrophoneGate();
  #config = null;
  #video = null;

  /**
   * @param {string|URL} baseUrl where the server's `api/` lives
   * @param {{fetch?: typeof globalThis.fetch, reconnectDelaysMs?: readonly number[]}} [options]
   */
  constructor(baseUrl, { fetch = undefined, reconnectDelaysMs = RECONNECT_DELAYS_MS } = {}) {
    super();
    this.#signalling = new Signalling(baseUrl, fetch);
    this.#delays = reconnectDelaysMs;
    this.#microphone.addEventListener("talking", ({ detail }) =>
      this.#link?.sendMessage("visavis.push_to_talk", { pressed: detail }),
    );
  }

  static get supported() {
    return typeof globalThis.RTCPeerConnection === "function";
  }

  get state() {
    return this.#state;
  }

  /** Holds before a call, too: it then begins muted. */
  get muted() {
    return this.#microphone.muted;
  }

  set muted(muted) {
    this.#microphone.muted = muted;
    this.#sendMicrophoneStatus();
  }

  /** Whether the microphone is heard only between `press` and `release`. */
  get pushToTalk() {
    return this.#microphone.pushToTalk;
  }

  set pushToTalk(on) {
    this.#microphone.pushToTalk = on;
  }

  get hasMicrophone() {
    return this.#microphone.track !== null;
  }

  /** How long the avatar's sound takes from its arrival to the ear, in ms; 0 until it was measured. */
  get playoutDelayMs() {
    return this.#link?.playoutDelayMs ?? 0;
  }

  /** @param {HTMLVideoElement|null} video the element that shows the avatar: what it shows is measured */
  watch(video) {
    this.#video = video;
    this.#link?.watch(video);
  }

  /** The server's configuration, fetched once. Throws Problem. */
  async config() {
    this.#config ??= await this.#signalling.config();
    return this.#config;
  }

  /**
   * Opens a session. Never rejects: how it went is the state it leads to.
   * @param {MediaStreamTrack|null} microphone null for a conversation by text; stays the caller's
   * @throws {IllegalTransitionError} unless idle or failed
   */
  async connect(microphone = null) {
    this.#go(ClientEvent.CONNECT);
    this.#microphone.track = microphone;
    this.#callId = null;
    const effort = this.#begin();
    try {
      await this.#open(effort.signal);
    } catch (error) {
      if (!effort.signal.aborted) this.#go(ClientEvent.FAIL, asProblem(error));
      return;
    }
    this.#go(ClientEvent.ESTABLISHED);
  }

  /** Hangs up, whatever was going on. */
  disconnect() {
    this.#link?.send("disconnect-bot");
    this.#drop();
    this.#go(ClientEvent.HANG_UP);
  }

  /** Says something by text. Only a ready client may. */
  sendText(content) {
    if (this.#state !== ClientState.READY) throw new Error(`a client that is ${this.#state} cannot send text`);
    this.#link.send("send-text", { content, options: { run_immediately: true, audio_response: true } });
  }

  /** With push-to-talk: the user wants to be heard from now on. */
  press() {
    if (this.#state === ClientState.READY) this.#microphone.press();
  }

  /** With push-to-talk: the user has finished; the server ends the turn at once. */
  release() {
    this.#microphone.release();
  }

  /** Cuts off what the avatar is saying. */
  interrupt() {
    this.#link?.sendMessage("visavis.interrupt");
  }

  /**
   * Switches the microphone during a conversation, or on, or off.
   * @param {MediaStreamTrack|null} microphone stays the caller's
   */
  async setMicrophone(microphone) {
    this.#microphone.track = microphone;
    await this.#link?.replaceMicrophone(microphone);
    this.#sendMicrophoneStatus();
  }

  async #open(signal) {
    const { ice_servers: iceServers = [] } = await this.config();
    signal.throwIfAborted();
    const link = new PeerLink({
      signalling: this.#signalling,
      iceServers,
      microphone: this.#microphone.track,
      about: LIBRARY,
      continues: this.#callId,
    });
    this.#link = link;
    link.watch(this.#video);
    link.addEventListener("message", ({ detail }) => this.#emit("message", detail));
    link.addEventListener("stream", ({ detail }) => this.#emit("stream", detail));
    link.addEventListener("lost", ({ detail }) => this.#lose(detail));
    const attempt = new AbortController();
    const timeout = new Problem(ProblemCode.CONNECTION_FAILED, `no session after ${ATTEMPT_TIMEOUT_MS} ms`);
    const timer = setTimeout(() => attempt.abort(timeout), ATTEMPT_TIMEOUT_MS);
    const abort = () => attempt.abort(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      await link.open(attempt.signal);
    } finally {
      // Unless somebody hung up meanwhile, or even called again: then both are no longer this attempt's.
      if (this.#link === link) {
        this.#callId = link.peerId ?? this.#callId;
        if (link.closed) this.#link = null;
      }
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    }
    this.#sendMicrophoneStatus();
  }

  #lose(problem) {
    // An error that the server calls fatal is its last word; a lost path is worth another try.
    if (problem.code === ProblemCode.SESSION_ENDED) {
      this.#drop();
      this.#go(ClientEvent.FAIL, problem);
    } else {
      this.#recover(problem);
    }
  }

  /** Tries to go on with the call; a server that no longer has it begins a new one. */
  async #recover(problem) {
    this.#go(ClientEvent.LOSE, problem);
    const effort = this.#begin();
    const lost = this.#callId;
    let last = problem;
    for (const [index, delay] of this.#delays.entries()) {
      try {
        this.#emit("reconnecting", { attempt: index + 1, of: this.#delays.length });
        await pause(delay, effort.signal);
        await this.#reopen(effort.signal);
      } catch (error) {
        if (effort.signal.aborted) return;
        last = asProblem(error);
        continue;
      }
      this.#go(ClientEvent.ESTABLISHED, null, { resumed: this.#callId === lost });
      return;
    }
    // What the server says of itself tells a person more than that the connection was lost.
    const told = [ProblemCode.SERVER_FULL, ProblemCode.ENGINE_DOWN].includes(last.code);
    this.#go(ClientEvent.FAIL, told ? last : problem);
  }

  async #reopen(signal) {
    try {
      await this.#open(signal);
    } catch (error) {
      // A call that ends at this moment is refused, and so is any by a server that cannot restart one.
      if (signal.aborted || this.#callId === null || error.code !== ProblemCode.SERVER_ERROR) throw error;
      this.#callId = null;
      await this.#open(signal);
    }
  }

  #begin() {
    this.#drop();
    this.#effort = new AbortController();
    return this.#effort;
  }

  #drop() {
    this.#effort?.abort();
    this.#link?.close();
    this.#link = null;
    this.#microphone.reset();
  }

  /** Push-to-talk has messages of its own: a button that is not held does not mute. */
  #sendMicrophoneStatus() {
    this.#link?.sendMicrophoneStatus(this.hasMicrophone && !this.muted);
  }

  #go(event, problem = null, { resumed = false } = {}) {
    const previous = this.#state;
    this.#state = next(previous, event);
    this.#emit("statechange", { state: this.#state, previous, problem, resumed });
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

function asProblem(error) {
  if (error instanceof Problem) return error;
  return new Problem(ProblemCode.CONNECTION_FAILED, error.message, { cause: error });
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
