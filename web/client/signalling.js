/** The HTTP half of a session: configuration, offer and answer, ICE candidates. */

import { Problem, ProblemCode } from "./problem.js";

const SERVER_FULL = "server_full";

export class Signalling {
  #baseUrl;
  #fetch;

  /**
   * @param {string|URL} baseUrl where the server's `api/` lives
   * @param {typeof globalThis.fetch} fetch
   */
  constructor(baseUrl, fetch = (...request) => globalThis.fetch(...request)) {
    this.#baseUrl = baseUrl;
    this.#fetch = fetch;
  }

  /**
   * What the server wants a client to know: `ice_servers`, `name`, `greeting`, `max_text_chars`.
   * @throws {Problem}
   */
  async config(signal = undefined) {
    return this.#json("api/config", { signal });
  }

  /**
   * @param {RTCSessionDescriptionInit} offer
   * @param {{peerId?: string|null, restart?: boolean}} [call] the id that an earlier answer gave the
   *   call, to renegotiate its connection or, with `restart`, to go on with it behind a new one. A
   *   server that no longer has it opens a new call, under another id.
   * @returns {Promise<{answer: RTCSessionDescriptionInit, peerId: string}>}
   * @throws {Problem}
   */
  async offer(offer, { peerId = null, restart = false } = {}, signal = undefined) {
    const body = { sdp: offer.sdp, type: offer.type, ...(peerId && { pc_id: peerId, restart_pc: restart }) };
    const { sdp, type, pc_id } = await this.#json("api/offer", this.#request("POST", body, signal));
    return { answer: { sdp, type }, peerId: pc_id };
  }

  /**
   * @param {string} peerId
   * @param {RTCIceCandidate[]} candidates
   * @throws {Problem}
   */
  async addCandidates(peerId, candidates, signal = undefined) {
    const body = {
      pc_id: peerId,
      candidates: candidates.map(({ candidate, sdpMid, sdpMLineIndex }) => ({
        candidate,
        sdp_mid: sdpMid,
        sdp_mline_index: sdpMLineIndex,
      })),
    };
    await this.#send("api/offer", this.#request("PATCH", body, signal));
  }

  #request(method, body, signal) {
    return { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal };
  }

  async #json(path, request) {
    const response = await this.#send(path, request);
    try {
      return await response.json();
    } catch (cause) {
      if (request.signal?.aborted) throw request.signal.reason;
      throw new Problem(ProblemCode.SERVER_ERROR, `${path}: the answer is not JSON`, { cause });
    }
  }

  async #send(path, request) {
    let response;
    try {
      response = await this.#fetch(new URL(path, this.#baseUrl), request);
    } catch (cause) {
      if (request.signal?.aborted) throw request.signal.reason;
      throw new Problem(ProblemCode.SERVER_UNREACHABLE, `${path}: ${cause.message}`, { cause });
    }
    if (!response.ok) throw await refusal(path, response);
    return response;
  }
}

/** A refused request as a Problem. A body that is not ours (a proxy's error page) counts by its status. */
async function refusal(path, response) {
  const body = await response.json().catch(() => null);
  const code = body?.error?.code;
  const detail = `${path}: ${response.status} ${code ?? ""} ${body?.error?.message ?? ""}`.trimEnd();
  if (code === SERVER_FULL) return new Problem(ProblemCode.SERVER_FULL, detail);
  if (response.status === 503) return new Problem(ProblemCode.ENGINE_DOWN, detail);
  // What a reverse proxy says when nothing listens behind it.
  if (response.status === 502 || response.status === 504) return new Problem(ProblemCode.SERVER_UNREACHABLE, detail);
  return new Problem(ProblemCode.SERVER_ERROR, detail);
}
