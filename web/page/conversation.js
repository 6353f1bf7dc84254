/** Takes the server's messages to the views: who said what, what is being spoken, the mood. */

/** Events: `mood`, detail what the server says the avatar does. */
export class Conversation extends EventTarget {
  #transcript;
  #captions;
  #handlers = new Map([
    ["user-transcription", (data) => this.#hearUser(data)],
    ["bot-llm-started", () => this.#transcript.endReply()],
    ["bot-tts-text", (data) => this.#speakWord(data)],
    ["bot-stopped-speaking", () => this.#captions.finish()],
    ["error", (data) => this.#transcript.addNote(String(data.error ?? data.message))],
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

  /** The session is over: whatever was being said ends here. */
  end() {
    this.#transcript.endReply();
    this.#captions.clear();
  }

  #hearUser({ text, final }) {
    if (typeof text !== "string" || text.trim() === "") return;
    this.#transcript.endReply();
    this.#transcript.addUserText(text, { final: final !== false });
  }

  #speakWord({ text }) {
    if (typeof text !== "string" || text.trim() === "") return;
    this.#captions.addWord(text);
    this.#transcript.addBotWord(text);
  }

  #note(data) {
    if (data.type === "visavis.state") {
      this.dispatchEvent(new CustomEvent("mood", { detail: data.mood }));
    }
    if (data.type === "visavis.turn") this.#transcript.endReply({ interrupted: data.record?.interrupted === true });
  }
}
