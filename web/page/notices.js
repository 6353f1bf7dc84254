/** What the page says about each problem, in plain words, and the ways on it offers. */

import { ProblemCode } from "../client/problem.js";

export const Action = Object.freeze({ RETRY: "retry", TYPE: "type", SETTINGS: "settings" });

const { RETRY, TYPE, SETTINGS } = Action;

const NOTICES = Object.freeze({
  [ProblemCode.UNSUPPORTED_BROWSER]: {
    title: "This browser cannot hold a call",
    text: "A conversation needs WebRTC, which this browser lacks or has switched off. A current Chrome, Edge, Firefox or Safari will do.",
    actions: [],
  },
  [ProblemCode.INSECURE_CONTEXT]: {
    title: "The microphone needs a secure page",
    text: "Browsers give the microphone only to pages from https or from localhost, and this one came over plain http. You can type instead. Whoever runs this server can switch on TLS.",
    actions: [TYPE],
  },
  [ProblemCode.MICROPHONE_REFUSED]: {
    title: "The microphone is blocked",
    text: "Allow it for this page in the browser’s address bar, then try again. Or type: {name} answers aloud either way.",
    actions: [RETRY, TYPE],
  },
  [ProblemCode.MICROPHONE_MISSING]: {
    title: "No microphone found",
    text: "Plug one in or switch it on, then try again. Or type: {name} answers aloud either way.",
    actions: [RETRY, TYPE],
  },
  [ProblemCode.MICROPHONE_BUSY]: {
    title: "The microphone is in use",
    text: "Another program seems to hold it. Close that program and try again, choose another microphone, or type.",
    actions: [RETRY, SETTINGS, TYPE],
  },
  [ProblemCode.MICROPHONE_LOST]: {
    title: "The microphone went away",
    text: "It was unplugged or switched off. The conversation goes on: turn on a microphone again, or type.",
    actions: [RETRY, TYPE],
  },
  [ProblemCode.SERVER_UNREACHABLE]: {
    title: "The server does not answer",
    text: "It may still be starting, or it was stopped, or this device is offline.",
    actions: [RETRY],
  },
  [ProblemCode.SERVER_FULL]: {
    title: "Every seat is taken",
    text: "This server holds a fixed number of conversations at a time, and all are in use. Try again in a moment.",
    actions: [RETRY],
  },
  [ProblemCode.ENGINE_DOWN]: {
    title: "{name} cannot think right now",
    text: "The server is up, but its language model does not answer. It restarts by itself, which takes some seconds.",
    actions: [RETRY],
  },
  [ProblemCode.SERVER_ERROR]: {
    title: "The call could not start",
    text: "The server could not do what this page asked for. Its log says more.",
    actions: [RETRY],
  },
  [ProblemCode.SESSION_ENDED]: {
    title: "The call has ended",
    text: "{detail}",
    actions: [RETRY],
    retryLabel: "Call again",
  },
  [ProblemCode.CONNECTION_FAILED]: {
    title: "No connection could be made",
    text: "The server answered, but no path for sound and picture opened. A firewall or a VPN may stand in the way.",
    actions: [RETRY],
  },
  [ProblemCode.CONNECTION_LOST]: {
    title: "The connection was lost",
    text: "Reconnecting by itself did not work. You can reconnect; a new conversation starts from the beginning.",
    actions: [RETRY],
    retryLabel: "Reconnect",
  },
});

const LABELS = Object.freeze({ [RETRY]: "Try again", [TYPE]: "Continue by typing", [SETTINGS]: "Choose a microphone" });

/**
 * @param {import("../client/problem.js").Problem} problem
 * @param {string} name the avatar's name
 * @returns {{title: string, text: string, actions: {action: string, label: string}[]}}
 */
export function notice(problem, name) {
  const { title, text, actions, retryLabel } = NOTICES[problem.code];
  const filled = (words) => words.replace("{name}", () => name).replace("{detail}", () => problem.message);
  return {
    title: filled(title),
    text: filled(text),
    actions: actions.map((action) => ({
      action,
      label: action === RETRY && retryLabel ? retryLabel : LABELS[action],
    })),
  };
}
