/** How the conversation stands, in a word, a hint and a mood for the ring around the picture. */

import { ClientState } from "../client/state.js";

const LABELS = Object.freeze({
  idle: "Ready",
  listening: "Listening",
  thinking: "Thinking",
  speaking: "Speaking",
});

/**
 * @param {{state: string, asking: boolean, mood: string, muted: boolean, pushToTalk: boolean,
 *   talking: boolean, hasMicrophone: boolean, name: string,
 *   attempt: {attempt: number, of: number}|null}} facts
 *   `asking`: the browser is asking for the microphone; `mood`: what the server says the avatar does;
 *   `talking`: the button to talk is held
 * @returns {{mood: string, label: string, hint: string}}
 */
export function status(facts) {
  const { state, asking, mood, muted, name, attempt } = facts;
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
      return { mood: known, label: LABELS[known], hint: readyHint(known, facts) };
    }
    case ClientState.FAILED:
      return { mood: "offline", label: "Not connected", hint: "" };
    default:
      return { mood: "offline", label: "Not connected", hint: muted ? "You begin muted." : "Start and speak, or type below." };
  }
}

function readyHint(mood, { muted, pushToTalk, talking, hasMicrophone }) {
  if (!hasMicrophone) return "Type below. The microphone is off.";
  if (muted) return "You are muted.";
  if (talking) return "Let go when you have finished.";
  if (mood !== "idle") return "";
  return pushToTalk ? "Hold the button to talk, or type below." : "Just speak, or type below.";
}
