/** The demo page: puts the client, the devices and the views together. */

import { VisavisClient } from "./client/client.js";
import { Problem, ProblemCode } from "./client/problem.js";
import { ClientState } from "./client/state.js";
import { Captions } from "./page/captions.js";
import { Composer } from "./page/composer.js";
import { Controls } from "./page/controls.js";
import { Conversation } from "./page/conversation.js";
import { openMicrophone } from "./page/devices.js";
import { LevelMeter } from "./page/meter.js";
import { Action, notice } from "./page/notices.js";
import { Settings } from "./page/settings.js";
import { Stage } from "./page/stage.js";
import { status } from "./page/status.js";
import { Transcript } from "./page/transcript.js";

class DemoPage {
  #client = new VisavisClient(document.baseURI);
  #stage = new Stage(document);
  #controls = new Controls(document);
  #settings = new Settings(document.querySelector("#settings"), this.#stage.video);
  #composer = new Composer(document.querySelector("#composer"));
  #meter = new LevelMeter(document.querySelector("#level"));
  #captions = new Captions(document.querySelector("#captions"), this.#stage.video);
  #transcript = new Transcript(document.querySelector("#log"), document.querySelector("#log-empty"));
  #conversation = new Conversation(this.#transcript, this.#captions);
  #announcer = document.querySelector("#announcer");

  #name = "Vis";
  #microphone = null;
  /** Set while the browser asks for the microphone; a person may lose patience and cancel. */
  #question = null;
  #mood = "idle";
  #attempt = null;
  #unsent = null;
  /** How to do again what a problem stopped. */
  #retry = () => this.#introduce();

  async start() {
    this.#listen();
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
    client.addEventListener("stream", ({ detail }) => this.#stage.show(detail));
    client.addEventListener("message", ({ detail }) => this.#conversation.handle(detail));
    this.#conversation.addEventListener("mood", ({ detail }) => this.#update(() => (this.#mood = detail)));
    this.#controls.addEventListener("call", () => this.#toggleCall());
    this.#controls.addEventListener("mute", () => this.#toggleMute());
    this.#controls.addEventListener("captions", ({ detail }) => (this.#captions.shown = detail));
    this.#controls.addEventListener("settings", () => this.#settings.open());
    this.#settings.addEventListener("microphone", () => this.#microphone && this.#turnOnMicrophone());
    this.#settings.addEventListener("shortcut", ({ detail }) => (this.#controls.shortcut = detail));
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
    if (this.#question) this.#cancelQuestion();
    else if (this.#isDown()) this.#callByVoice();
    else this.#hangUp();
  }

  async #callByVoice() {
    this.#retry = () => this.#callByVoice();
    this.#stage.hideNotice();
    this.#client.muted = false;
    const track = await this.#askForMicrophone();
    if (track) await this.#client.connect(track);
  }

  async #callByText() {
    this.#retry = () => this.#callByText();
    this.#stage.hideNotice();
    this.#client.muted = false;
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
    if (!this.#microphone) {
      this.#turnOnMicrophone();
      return;
    }
    this.#client.muted = !this.#client.muted;
    this.#announce(this.#client.muted ? "Microphone muted" : "Microphone on");
    this.#refresh();
  }

  /** During a conversation: the first microphone, or another one. */
  async #turnOnMicrophone() {
    this.#retry = () => this.#turnOnMicrophone();
    this.#stage.hideNotice();
    const track = await this.#askForMicrophone();
    if (!track) return;
    if (this.#isDown()) this.#dropMicrophone();
    else await this.#client.setMicrophone(track);
    this.#refresh();
  }

  /** @returns {Promise<MediaStreamTrack|null>} null where it was refused or cancelled, and reported */
  async #askForMicrophone() {
    const question = { cancelled: false };
    this.#update(() => (this.#question = question));
    let track = null;
    try {
      track = await openMicrophone(this.#settings.microphone);
    } catch (error) {
      if (!question.cancelled) this.#report(error);
    }
    if (question.cancelled) {
      track?.stop();
      return null;
    }
    this.#question = null;
    if (track) this.#adoptMicrophone(track);
    this.#refresh();
    return track;
  }

  #cancelQuestion() {
    this.#question.cancelled = true;
    this.#update(() => (this.#question = null));
  }

  #adoptMicrophone(track) {
    this.#microphone?.stop();
    this.#microphone = track;
    this.#meter.attach(track);
    this.#settings.refresh();
    track.addEventListener("ended", () => this.#loseMicrophone(track));
  }

  async #loseMicrophone(track) {
    if (track !== this.#microphone) return;
    this.#retry = () => this.#turnOnMicrophone();
    this.#dropMicrophone();
    await this.#client.setMicrophone(null);
    this.#report(new Problem(ProblemCode.MICROPHONE_LOST));
  }

  #dropMicrophone() {
    this.#meter.detach();
    this.#microphone?.stop();
    this.#microphone = null;
  }

  #onState({ state, previous, problem, resumed }) {
    this.#attempt = null;
    this.#mood = "idle";
    if (state === ClientState.READY) this.#onReady(previous, resumed);
    if (state === ClientState.RECONNECTING) this.#onLost();
    if (this.#isDown()) this.#onDown(state, previous);
    if (problem && state === ClientState.FAILED) this.#report(problem);
    this.#refresh();
  }

  #onReady(previous, resumed) {
    this.#stage.hideNotice();
    if (previous === ClientState.RECONNECTING) {
      this.#transcript.addNote(resumed ? "Reconnected." : "Reconnected. A new conversation begins.");
    }
    this.#announce(this.#microphone ? "Connected. You can speak, or type." : "Connected. You can type.");
    const text = this.#unsent;
    this.#unsent = null;
    if (text !== null) this.#say(text);
  }

  #onLost() {
    this.#conversation.end();
    this.#stage.clear();
    this.#announce("The connection was lost. Reconnecting.");
  }

  #onDown(state, previous) {
    this.#conversation.end();
    this.#dropMicrophone();
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
    const facts = {
      state: this.#client.state,
      asking: this.#question !== null,
      mood: this.#mood,
      muted: this.#client.muted,
      hasMicrophone: this.#microphone !== null,
      name: this.#name,
      attempt: this.#attempt,
    };
    this.#controls.show(facts);
    this.#stage.status = status(facts);
    this.#composer.enabled = this.#isDown() ? !facts.asking : facts.state === ClientState.READY;
  }
}

await new DemoPage().start();
