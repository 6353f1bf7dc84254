/** How the conversation stands, in a word, a hint and a mood for the ring around the picture. */

import { ClientState } from "../client/state.js";

const LABELS = Object.freeze({
  idle: "Ready",
  listening: "Listening",
  thinking: "Thinking",
  speaking: "Speaking",
});

/**
 * @param {{state: string, asking: boolean, mood: string, muted: boolean, hasMicrophone: boolean,
 *   name: string, attempt: {attempt: number, of: number}|null}} facts
 *   `asking`: the browser is asking for the microphone; `mood`: what the server says the avatar does
 * @returns {{mood: string, label: string, hint: string}}
 */
export function status({ state, asking, mood, muted, hasMicrophone, name, attempt }) {
  if (asking) {
    return { mood: "connecting", label: "Waiting for the microphone", hint: "Your browser asks whether it may be used." };
  }
  switch (state) {
    case ClientState.CONNECTING:
      return { mood: "connecting", label: "Connecting", hint: `Calling ${name}.` };
    case ClientState.RECONNECTING:
      return {
        mood: "reconnecting",
        label: "Reconnecting",
        hint: attempt ? `The connection was lost. Attempt ${attempt.attempt} of ${attempt.of}.` : "The connection was lost.",
      };
    case ClientState.READY: {
      const known = Object.hasOwn(LABELS, mood) ? mood : "idle";
      return { mood: known, label: LABELS[known], hint: readyHint(known, muted, hasMicrophone) };
    }
    case ClientState.FAILED:
      return { mood: "offline", label: "Not connected", hint: "" };
    default:
      return { mood: "offline", label: "Not connected", hint: "Start and speak, or type below." };
  }
}

function readyHint(mood, muted, hasMicrophone) {
  if (!hasMicrophone) return "Type below. The microphone is off.";
  if (muted) return "You are muted.";
  return mood === "idle" ? "Just speak, or type below." : "";
}
