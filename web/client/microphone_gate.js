/** When our microphone is heard: never while muted, and with push-to-talk only while a button is held. */

/** What is still sent after the button was let go: a finger is quicker than the last consonant. */
const TAIL_MS = 100;

/** Events: `talking`, detail whether the button counts as held; its tail is part of that. */
export class MicrophoneGate extends EventTarget {
  #track = null;
  #muted = false;
  #pushToTalk = false;
  #talking = false;
  #tail = null;

  get track() {
    return this.#track;
  }

  /** Opened or shut before anyone can send it. */
  set track(track) {
    this.#track = track;
    if (track === null) this.#fallSilent();
    this.#apply();
  }

  get muted() {
    return this.#muted;
  }

  set muted(muted) {
    this.#muted = muted;
    if (muted) this.#fallSilent();
    this.#apply();
  }

  get pushToTalk() {
    return this.#pushToTalk;
  }

  set pushToTalk(on) {
    this.#pushToTalk = on;
    if (!on) this.#fallSilent();
    this.#apply();
  }

  /** The button is held. Means nothing without push-to-talk, without a microphone, or while muted. */
  press() {
    if (!this.#pushToTalk || this.#track === null || this.#muted) return;
    this.#cancelTail();
    if (this.#talking) return;
    this.#talking = true;
    this.#apply();
    this.#emit();
  }

  /** The button was let go. */
  release() {
    if (this.#talking) this.#tail ??= setTimeout(() => this.#fallSilent(), TAIL_MS);
  }

  /** Nobody is there to talk to: the button counts as let go, and nobody is told. */
  reset() {
    this.#cancelTail();
    this.#talking = false;
    this.#apply();
  }

  #fallSilent() {
    if (!this.#talking) return;
    this.reset();
    this.#emit();
  }

  #cancelTail() {
    clearTimeout(this.#tail);
    this.#tail = null;
  }

  #apply() {
    if (this.#track) this.#track.enabled = !this.#muted && (!this.#pushToTalk || this.#talking);
  }

  #emit() {
    this.dispatchEvent(new CustomEvent("talking", { detail: this.#talking }));
  }
}
