/** Takes the server's messages to the views: who said what, what is being spoken, the mood. */

const STAGE_FAILURES = Object.freeze(["stage_failed", "asr_failed", "llm_failed", "reply_empty", "tts_failed"]);

/** Events: `mood`, detail what the server says the avatar does. */
export class Conversation extends EventTarget {
  #transcript;
  #captions;
  /** Whether a clause has begun to be spoken and was not said to be complete. */
  #midClause = false;
  #handlers = new Map([
    ["user-transcription", (data) => this.#hearUser(data)],
    ["bot-llm-started", () => this.#beginReply()],
    ["bot-tts-text", (data) => this.#speakWord(data)],
    ["bot-output", (data) => this.#followClause(data)],
    ["bot-stopped-speaking", () => this.#stopSpeaking()],
    ["error", (data) => this.#tellError(data)],
    ["server-message", (data) => this.#note(data)],
  ]);

  /**
   * @param {import("./transcript.js").Transcript} transcript
   * @param {import("./captions.js").Captions} captions
   */
  constructor(transcript, captions) {
    super();
    this.#transcript = transcript;
    this.#captions = captions;
  }

  /** @param {{type: string, data: object}} message types that a page does not show are let pass */
  handle({ type, data }) {
    this.#handlers.get(type)?.(data);
  }

  /** A typed message, shown at once; the server's word for it replaces it. */
  addTypedText(text) {
    this.#transcript.addUserText(text, { final: false });
  }

  /** Whatever was being said ends here. */
  end() {
    this.#transcript.endReply();
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
  }

  #stopSpeaking() {
    this.end();
    if (!this.#midClause) return;
    // A greeting has no turn record to say that it was interrupted.
    this.#midClause = false;
    this.#transcript.markReply("interrupted");
    this.#captions.clear();
  }

  #hearUser({ text, final }) {
    if (typeof text !== "string" || text.trim() === "") return;
    this.#transcript.addUserText(text, { final: final !== false });
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

  #note(data) {
    if (data.type === "visavis.state") this.dispatchEvent(new CustomEvent("mood", { detail: data.mood }));
    if (data.type === "visavis.turn" && data.record?.interrupted === true && data.record.heard_text) {
      this.#transcript.markReply("interrupted");
    }
  }
}
