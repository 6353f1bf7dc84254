/** Takes the server's messages to the views: who said what, what is being spoken, the mood. */

const STAGE_FAILURES = Object.freeze(["stage_failed", "asr_failed", "llm_failed", "reply_empty", "tts_failed"]);

/** Events: `mood`, detail what the server says the avatar does. */
export class Conversation extends EventTarget {
  #transcript;
  #captions;
  #handlers = new Map([
    ["user-transcription", (data) => this.#hearUser(data)],
    ["bot-llm-started", () => this.#transcript.endReply()],
    ["bot-tts-text", (data) => this.#speakWord(data)],
    ["bot-stopped-speaking", () => this.end()],
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
