/**
 * What goes over the data channel: RTVI 2.x envelopes, Pipecat's signalling messages, and pings.
 * Every message is described in messages.schema.json.
 */

export const RTVI_LABEL = "rtvi-ai";
export const RTVI_VERSION = "2.1.0";

/** Eight hexadecimal digits. `crypto.randomUUID` would need a secure context. */
function newId() {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(4));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function encode(type, data = {}, id = newId()) {
  return JSON.stringify({ id, label: RTVI_LABEL, type, data });
}

/** Tells the server that a track we send is on or off; receivers count in the order of the offer. */
export function encodeTrackStatus(receiverIndex, enabled) {
  return JSON.stringify({
    type: "signalling",
    message: { type: "trackStatus", receiver_index: receiverIndex, enabled },
  });
}

/** A keep-alive: a plain string, not JSON, as Pipecat's clients send it. */
export function encodePing(epochMs) {
  return `ping: ${epochMs}`;
}

/**
 * @param {unknown} text what the channel delivered
 * @returns {{kind: "rtvi", id: string|undefined, type: string, data: object}
 *   | {kind: "signalling", type: string} | null} null for anything that is not a message of ours
 */
export function decode(text) {
  if (typeof text !== "string") return null;
  let message;
  try {
    message = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  if (!isObject(message)) return null;
  if (message.type === "signalling") {
    const type = message.message?.type;
    return typeof type === "string" ? { kind: "signalling", type } : null;
  }
  if (message.label !== RTVI_LABEL || typeof message.type !== "string") return null;
  const data = isObject(message.data) ? message.data : {};
  return { kind: "rtvi", id: message.id, type: message.type, data };
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
