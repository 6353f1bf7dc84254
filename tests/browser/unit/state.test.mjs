import assert from "node:assert/strict";
import { test } from "node:test";

import { ClientEvent, ClientState, IllegalTransitionError, next } from "../../../web/client/state.js";

const { IDLE, CONNECTING, READY, RECONNECTING, FAILED } = ClientState;
const { CONNECT, ESTABLISHED, LOSE, FAIL, HANG_UP } = ClientEvent;

const ALLOWED = new Map([
  [`${IDLE} ${CONNECT}`, CONNECTING],
  [`${CONNECTING} ${ESTABLISHED}`, READY],
  [`${CONNECTING} ${FAIL}`, FAILED],
  [`${READY} ${LOSE}`, RECONNECTING],
  [`${READY} ${FAIL}`, FAILED],
  [`${RECONNECTING} ${ESTABLISHED}`, READY],
  [`${RECONNECTING} ${FAIL}`, FAILED],
  [`${FAILED} ${CONNECT}`, CONNECTING],
]);

for (const state of Object.values(ClientState)) {
  for (const event of Object.values(ClientEvent)) {
    const following = event === HANG_UP ? IDLE : ALLOWED.get(`${state} ${event}`);
    test(`${state}, ${event}: ${following ?? "illegal"}`, () => {
      if (following) assert.equal(next(state, event), following);
      else assert.throws(() => next(state, event), IllegalTransitionError);
    });
  }
}

test("an illegal transition names state and event", () => {
  assert.throws(() => next(IDLE, LOSE), /idle.*lose.*connect, hang_up/);
});

test("the enums cannot be changed", () => {
  assert.ok(Object.isFrozen(ClientState) && Object.isFrozen(ClientEvent));
});
