/**
 * Everything that can stand between a person and a conversation, each by one stable code.
 *
 * The client throws and reports Problems; what a page says about them is the page's business.
 */

export const ProblemCode = Object.freeze({
  UNSUPPORTED_BROWSER: "unsupported_browser",
  INSECURE_CONTEXT: "insecure_context",
  MICROPHONE_REFUSED: "microphone_refused",
  MICROPHONE_MISSING: "microphone_missing",
  MICROPHONE_BUSY: "microphone_busy",
  MICROPHONE_LOST: "microphone_lost",
  SERVER_UNREACHABLE: "server_unreachable",
  SERVER_FULL: "server_full",
  ENGINE_DOWN: "engine_down",
  SERVER_ERROR: "server_error",
  SESSION_ENDED: "session_ended",
  CONNECTION_FAILED: "connection_failed",
  CONNECTION_LOST: "connection_lost",
});

export class Problem extends Error {
  /**
   * @param {string} code one of ProblemCode
   * @param {string} detail for developers; only that of SESSION_ENDED is meant for a person
   * @param {{cause?: unknown}} [options]
   */
  constructor(code, detail = code, options = undefined) {
    super(detail, options);
    this.name = "Problem";
    this.code = code;
  }
}
