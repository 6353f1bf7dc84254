/**
 * A page around Pipecat's stock client, as its documentation writes one. What the client reports is
 * kept in window.heard.
 */
import { PipecatClient } from "@pipecat-ai/client-js";
import { SmallWebRTCTransport, WavMediaManager } from "@pipecat-ai/small-webrtc-transport";

/**
 * The transport's default media manager fetches its code from its maker's servers at run time; this
 * one is Pipecat's too and needs no network. Screen sharing is on as in the default one, so the
 * offer has the third transceiver.
 */
class OfflineMediaManager extends WavMediaManager {
  get supportsScreenShare() {
    return true;
  }
}

const heard = { states: [], user: [], words: [], outputs: [], server: [], errors: [] };
const stream = new MediaStream();
const transport = new SmallWebRTCTransport({
  webrtcRequestParams: { endpoint: "/api/offer" },
  mediaManager: new OfflineMediaManager(),
});
const client = new PipecatClient({
  transport,
  enableMic: true,
  callbacks: {
    onTransportStateChanged: (state) => heard.states.push(state),
    onUserTranscript: ({ text, final }) => final && heard.user.push(text),
    onBotTtsText: ({ text }) => heard.words.push(text),
    onBotOutput: (output) => heard.outputs.push(output),
    onServerMessage: (message) => heard.server.push(message),
    onError: (message) => heard.errors.push(message),
    onTrackStarted: (track, participant) => {
      if (participant?.local) return;
      for (const old of stream.getTracks()) if (old.kind === track.kind) stream.removeTrack(old);
      stream.addTrack(track);
      document.querySelector("#bot").srcObject = stream;
    },
  },
});
Object.assign(window, { client, transport, heard });
