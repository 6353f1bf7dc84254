/** Takes the server's messages to the views: who said what, what is being spoken, how things stand. */

const STAGE_FAILURES = Object.freeze(["stage_failed", "asr_failed", "llm_failed", "reply_empty", "tts_failed"]);

/** What the agent does when nothing that was said is still being considered. */
const UNDISTURBED = Object.freeze(["idle", "speaking"]);

/** Events: `state`, detail {user, agent, mood} as the server says. Messages it does not know are let pass. */
export class Conversation extends EventTarget {
  #transcript;
  #captions;
  #inStep;
  /** Whether a clause has begun to be spoken and was not said to be complete. */
  #midClause = false;
  #handlers = new Map([
    ["user-transcription", (data) => this.#hearUser(data)],
    ["bot-llm-started", () => this.#inStep.run(() => this.#beginReply())],
    ["bot-tts-text", (data) => this.#inStep.run(() => this.#speakWord(data))],
    ["bot-output", (data) => this.#inStep.run(() => this.#followClause(data))],
    ["bot-stopped-speaking", () => this.#inStep.run(() => this.#stopSpeaking())],
    ["error", (data) => this.#tellError(data)],
    ["server-message", (data) => this.#ownHandlers.get(data.type)?.(data)],
  ]);
  #ownHandlers = new Map([
    ["visavis.state", (data) => this.#follow(data)],
    ["visavis.reopened", () => this.#transcript.reopenUserText()],
    ["visavis.turn", ({ record }) => this.#endTurn(record ?? {})],
  ]);

  /**
   * @param {import("./transcript.js").Transcript} transcript
   * @param {import("./captions.js").Captions} captions
   * @param {import("./in_step.js").InStep} inStep when the words of the reply are heard
   */
  constructor(transcript, captions, inStep) {
    super();
    this.#transcript = transcript;
    this.#captions = captions;
    this.#inStep = inStep;
  }

  /** @param {{type: string, data: object}} message */
  handle({ type, data }) {
    this.#handlers.get(type)?.(data);
  }

  /** A typed message, shown at once; the server's word for it settles it. */
  addTypedText(text) {
    this.#transcript.addTypedText(text);
  }

  /** The connection is gone, and whatever was being said ends here. */
  end() {
    this.#inStep.clear();
    this.#midClause = false;
    this.#transcript.settle();
    this.#captions.finish();
  }

  #beginReply() {
    this.#midClause = false;
    this.#transcript.endReply();
    this.#captions.clear();
  }

  #followClause({ spoken_status: status }) {
    // Clauses are announced ahead, too: "new" says nothing of the one being spoken.
    if (status !== "new") this.#midClause = status === "in-progress";
    if (status === "completed") this.#captions.endClause();
  }

  #stopSpeaking() {
    this.#transcript.endReply();
    if (!this.#midClause) {
      this.#captions.finish();
      return;
    }
    // A greeting has no turn record to say that it was interrupted.
    this.#midClause = false;
    this.#transcript.cutReply();
    this.#captions.clear();
  }

  #hearUser({ text, final }) {
    if (typeof text !== "string") return;
    if (final === false) this.#transcript.showPartial(text.trim());
    else if (text.trim() === "") this.#transcript.clearPartial();
    else this.#transcript.addUserText(text);
  }

  #speakWord({ text }) {
    if (typeof text !== "string" || text.trim() === "") return;
    this.#captions.addWord(text);
    this.#transcript.addBotWord(text);
  }

  #tellError({ error, message, code, fatal }) {
    // A fatal one is told where the picture was. A failed stage is apologised for aloud, and its
    // words are for the operator.
    if (fatal === true || STAGE_FAILURES.includes(code)) return;
    this.#transcript.addNote(String(error ?? message));
  }

  #follow({ user, agent, mood }) {
    // Speech that led to no turn, a cough or a "mm-hm", gets no final transcript.
    if (user === "silent" && UNDISTURBED.includes(agent)) this.#transcript.clearPartial();
    this.#inStep.run(() => (this.#captions.paused = agent === "held"));
    this.dispatchEvent(new CustomEvent("state", { detail: { user, agent, mood } }));
  }

  #endTurn({ interrupted, heard_text: heard }) {
    if (interrupted === true && heard) this.#inStep.run(() => this.#transcript.cutReply(heard));
  }
}
