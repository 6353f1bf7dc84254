/** Microphones and speakers: what there is, and why one cannot be had. */

import { Problem, ProblemCode } from "../client/problem.js";

/** getUserMedia's errors (Media Capture and Streams, 10.3) as Problems. */
const PROBLEM_BY_ERROR = Object.freeze({
  NotAllowedError: ProblemCode.MICROPHONE_REFUSED,
  SecurityError: ProblemCode.MICROPHONE_REFUSED,
  NotFoundError: ProblemCode.MICROPHONE_MISSING,
  OverconstrainedError: ProblemCode.MICROPHONE_MISSING,
  NotReadableError: ProblemCode.MICROPHONE_BUSY,
  AbortError: ProblemCode.MICROPHONE_BUSY,
});

/**
 * @param {string} deviceId empty for the browser's choice
 * @param {{isSecureContext: boolean, navigator: Navigator}} scope
 * @returns {Promise<MediaStreamTrack>}
 * @throws {Problem}
 */
export async function openMicrophone(deviceId = "", scope = globalThis) {
  const { mediaDevices } = scope.navigator;
  if (!scope.isSecureContext) throw new Problem(ProblemCode.INSECURE_CONTEXT);
  if (!mediaDevices?.getUserMedia) throw new Problem(ProblemCode.UNSUPPORTED_BROWSER, "no getUserMedia");
  const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };
  if (deviceId) audio.deviceId = { exact: deviceId };
  try {
    const stream = await mediaDevices.getUserMedia({ audio });
    return stream.getAudioTracks()[0];
  } catch (cause) {
    const code = PROBLEM_BY_ERROR[cause.name];
    if (code === undefined) throw cause;
    throw new Problem(code, `${cause.name}: ${cause.message}`, { cause });
  }
}

/**
 * Devices that have a name: browsers keep names back until a microphone was allowed once.
 * @returns {Promise<{microphones: MediaDeviceInfo[], speakers: MediaDeviceInfo[]}>}
 */
export async function listDevices(scope = globalThis) {
  const devices = (await scope.navigator.mediaDevices?.enumerateDevices()) ?? [];
  const named = devices.filter(({ label }) => label !== "");
  return {
    microphones: named.filter(({ kind }) => kind === "audioinput"),
    speakers: named.filter(({ kind }) => kind === "audiooutput"),
  };
}
