/**
 * The states of a client and the only ways between them.
 *
 *   idle ──connect──▶ connecting ──established──▶ ready ──lose──▶ reconnecting
 *                         │                         ▲                  │
 *                        fail                       └───established────┤
 *                         ▼                                            │
 *                       failed ◀───────────────fail────────────────────┘
 *
 * `hang_up` leads to idle from anywhere; a fatal error of the server fails a ready client.
 */

export const ClientState = Object.freeze({
  IDLE: "idle",
  CONNECTING: "connecting",
  READY: "ready",
  RECONNECTING: "reconnecting",
  FAILED: "failed",
});

export const ClientEvent = Object.freeze({
  CONNECT: "connect",
  ESTABLISHED: "established",
  LOSE: "lose",
  FAIL: "fail",
  HANG_UP: "hang_up",
});

const { IDLE, CONNECTING, READY, RECONNECTING, FAILED } = ClientState;
const { CONNECT, ESTABLISHED, LOSE, FAIL, HANG_UP } = ClientEvent;

const TRANSITIONS = Object.freeze({
  [IDLE]: { [CONNECT]: CONNECTING, [HANG_UP]: IDLE },
  [CONNECTING]: { [ESTABLISHED]: READY, [FAIL]: FAILED, [HANG_UP]: IDLE },
  [READY]: { [LOSE]: RECONNECTING, [FAIL]: FAILED, [HANG_UP]: IDLE },
  [RECONNECTING]: { [ESTABLISHED]: READY, [FAIL]: FAILED, [HANG_UP]: IDLE },
  [FAILED]: { [CONNECT]: CONNECTING, [HANG_UP]: IDLE },
});

export class IllegalTransitionError extends Error {
  constructor(state, event) {
    super(`a client that is ${state} does not take ${event}; it takes ${Object.keys(TRANSITIONS[state]).join(", ")}`);
    this.name = "IllegalTransitionError";
  }
}

/**
 * @param {string} state one of ClientState
 * @param {string} event one of ClientEvent
 * @returns {string} the state that follows
 * @throws {IllegalTransitionError} when the state does not allow the event
 */
export function next(state, event) {
  const following = TRANSITIONS[state][event];
  if (following === undefined) throw new IllegalTransitionError(state, event);
  return following;
}
