/** The demo page: puts the client, the devices and the views together. */

import { VisavisClient } from "./client/client.js";
import { Problem, ProblemCode } from "./client/problem.js";
import { ClientState } from "./client/state.js";
import { CaptionTrack } from "./page/caption_track.js";
import { Captions } from "./page/captions.js";
import { Composer } from "./page/composer.js";
import { Controls } from "./page/controls.js";
import { Conversation } from "./page/conversation.js";
import { InStep } from "./page/in_step.js";
import { LevelMeter } from "./page/meter.js";
import { Microphone } from "./page/microphone.js";
import { Action, notice } from "./page/notices.js";
import { Panel } from "./page/panel.js";
import { Settings } from "./page/settings.js";
import { Stage } from "./page/stage.js";
import { status } from "./page/status.js";
import { TalkButton } from "./page/talk_button.js";
import { Transcript } from "./page/transcript.js";

/** What the server has not said otherwise. */
const QUIET = Object.freeze({ agent: "idle", mood: "idle" });

class DemoPage {
  #client = new VisavisClient(document.baseURI);
  #stage = new Stage(document);
  #controls = new Controls(document);
  #talk = new TalkButton(document.querySelector("#talk"));
  #settings = new Settings(document.querySelector("#settings"), this.#stage.video);
  #composer = new Composer(document.querySelector("#composer"));
  #microphone = new Microphone(new LevelMeter(document.querySelector("#level")));
  #captions = new Captions(document.querySelector("#captions"), new CaptionTrack(this.#stage.video));
  #transcript = new Transcript(document.querySelector("#log"));
  #conversation = new Conversation(
    this.#transcript,
    this.#captions,
    new InStep(() => this.#client.playoutDelayMs),
  );
  #panel = new Panel(document);
  #announcer = document.querySelector("#announcer");

  #name = "Vis";
  #told = QUIET;
  #attempt = null;
  #unsent = null;
  /** How to do again what a problem stopped. */
  #retry = () => this.#introduce();

  async start() {
    this.#listen();
    this.#client.watch(this.#stage.video);
    this.#panel.open = new URLSearchParams(location.search).get("panel") === "1";
    this.#client.pushToTalk = this.#settings.pushToTalk;
    this.#refresh();
    if (!VisavisClient.supported) {
      this.#report(new Problem(ProblemCode.UNSUPPORTED_BROWSER));
      return;
    }
    await this.#introduce();
  }

  #listen() {
    const client = this.#client;
    client.addEventListener("statechange", ({ detail }) => this.#onState(detail));
    client.addEventListener("reconnecting", ({ detail }) => this.#update(() => (this.#attempt = detail)));
    client.addEventListener("stream", ({ detail }) => this.#onStream(detail));
    client.addEventListener("message", ({ detail }) => this.#conversation.handle(detail));
    client.addEventListener("message", ({ detail }) => this.#panel.handle(detail));
    this.#conversation.addEventListener("state", ({ detail }) => this.#update(() => (this.#told = detail)));
    this.#microphone.addEventListener("change", () => this.#refresh());
    this.#microphone.addEventListener("problem", ({ detail }) => this.#report(detail));
    this.#microphone.addEventListener("lost", () => this.#loseMicrophone());
    this.#controls.addEventListener("call", () => this.#toggleCall());
    this.#controls.addEventListener("mute", () => this.#toggleMute());
    this.#controls.addEventListener("interrupt", () => client.interrupt());
    this.#controls.addEventListener("captions", ({ detail }) => (this.#captions.shown = detail));
    this.#controls.addEventListener("settings", () => this.#settings.open());
    this.#talk.addEventListener("press", () => this.#update(() => client.press()));
    this.#talk.addEventListener("release", () => this.#update(() => client.release()));
    this.#settings.addEventListener("microphone", () => this.#microphone.track && this.#turnOnMicrophone());
    this.#settings.addEventListener("shortcut", ({ detail }) => (this.#controls.shortcut = detail));
    this.#settings.addEventListener("pushtotalk", ({ detail }) => this.#update(() => (client.pushToTalk = detail)));
    this.#composer.addEventListener("submit", ({ detail }) => this.#say(detail));
    window.addEventListener("pagehide", () => this.#hangUp());
  }

  async #introduce() {
    this.#stage.hideNotice();
    let config;
    try {
      config = await this.#client.config();
    } catch (error) {
      this.#report(error);
      return;
    }
    this.#name = config.name;
    this.#transcript.name = config.name;
    this.#composer.limit = config.max_text_chars;
    for (const element of document.querySelectorAll("[data-name]")) element.textContent = config.name;
    document.title = `${config.name} · Visavis`;
  }

  #toggleCall() {
    if (this.#microphone.asking) this.#microphone.cancel();
    else if (this.#isDown()) this.#callByVoice();
    else this.#hangUp();
  }

  async #callByVoice() {
    this.#retry = () => this.#callByVoice();
    this.#stage.hideNotice();
    const track = await this.#microphone.ask(this.#settings.microphone);
    if (track) await this.#client.connect(track);
  }

  async #callByText() {
    this.#retry = () => this.#callByText();
    this.#stage.hideNotice();
    await this.#client.connect();
  }

  #hangUp() {
    this.#client.disconnect();
  }

  /** A typed message needs no microphone: it opens a conversation by text. */
  async #say(text) {
    if (this.#isDown()) {
      this.#unsent = text;
      await this.#callByText();
      return;
    }
    this.#conversation.addTypedText(text);
    this.#client.sendText(text);
  }

  #toggleMute() {
    const client = this.#client;
    if (client.state === ClientState.READY && !this.#microphone.track) {
      client.muted = false;
      this.#turnOnMicrophone();
      return;
    }
    client.muted = !client.muted;
    this.#announce(client.muted ? "Microphone muted" : "Microphone on");
    this.#refresh();
  }

  /** During a conversation: the first microphone, or another one. */
  async #turnOnMicrophone() {
    this.#retry = () => this.#turnOnMicrophone();
    this.#stage.hideNotice();
    const track = await this.#microphone.ask(this.#settings.microphone);
    if (!track) return;
    if (this.#isDown()) this.#microphone.drop();
    else await this.#client.setMicrophone(track);
    this.#refresh();
  }

  async #loseMicrophone() {
    this.#retry = () => this.#turnOnMicrophone();
    await this.#client.setMicrophone(null);
    this.#report(new Problem(ProblemCode.MICROPHONE_LOST));
    this.#refresh();
  }

  #onStream(stream) {
    this.#captions.restart();
    this.#stage.show(stream);
  }

  #onState({ state, previous, problem, resumed }) {
    this.#attempt = null;
    this.#told = QUIET;
    if (state === ClientState.READY) this.#onReady(previous, resumed);
    if (state === ClientState.RECONNECTING) this.#onLost();
    if (this.#isDown()) this.#onDown(state, previous);
    if (problem && state === ClientState.FAILED) this.#report(problem);
    this.#refresh();
  }

  #onReady(previous, resumed) {
    this.#stage.hideNotice();
    if (!resumed) this.#panel.restart();
    if (previous === ClientState.RECONNECTING) {
      this.#transcript.addNote(resumed ? "Reconnected." : "Reconnected. A new conversation begins.");
    }
    const canSpeak = this.#microphone.track !== null && !this.#client.muted;
    this.#announce(canSpeak ? "Connected. You can speak, or type." : "Connected. You can type.");
    const text = this.#unsent;
    this.#unsent = null;
    if (text !== null) this.#say(text);
  }

  #onLost() {
    this.#conversation.end();
    this.#panel.end();
    this.#stage.clear();
    this.#announce("The connection was lost. Reconnecting.");
  }

  #onDown(state, previous) {
    this.#conversation.end();
    this.#panel.end();
    this.#microphone.drop();
    this.#stage.clear();
    if (this.#unsent !== null) this.#composer.restore(this.#unsent);
    this.#unsent = null;
    if (state === ClientState.IDLE && previous === ClientState.READY) this.#announce("Call ended");
  }

  #report(error) {
    console.error(error);
    const problem = error instanceof Problem ? error : new Problem(ProblemCode.SERVER_ERROR);
    this.#stage.showNotice(notice(problem, this.#name), (action) => this.#act(action));
  }

  #act(action) {
    if (action === Action.SETTINGS) this.#settings.open();
    if (action === Action.RETRY) this.#retry();
    if (action === Action.TYPE) this.#typeInstead();
  }

  async #typeInstead() {
    this.#stage.hideNotice();
    this.#composer.focus();
    if (this.#isDown()) await this.#callByText();
  }

  #isDown() {
    return this.#client.state === ClientState.IDLE || this.#client.state === ClientState.FAILED;
  }

  #announce(text) {
    this.#announcer.textContent = text;
  }

  #update(change) {
    change();
    this.#refresh();
  }

  #refresh() {
    const { state, muted, pushToTalk } = this.#client;
    const ready = state === ClientState.READY;
    const hasMicrophone = this.#microphone.track !== null;
    // First, because a button that goes away is let go.
    this.#talk.show({ shown: ready && pushToTalk && hasMicrophone, enabled: !muted });
    const facts = {
      state,
      asking: this.#microphone.asking,
      agent: this.#told.agent,
      mood: this.#told.mood,
      muted,
      pushToTalk,
      talking: this.#talk.pressed,
      hasMicrophone,
      name: this.#name,
      attempt: this.#attempt,
    };
    this.#controls.show(facts);
    this.#stage.status = status(facts);
    this.#composer.enabled = this.#isDown() ? !facts.asking : ready;
  }
}

await new DemoPage().start();
