/**
 * Ears and a mouth for a test, beside the page's own: `ears.listen()` opens the microphone, unprocessed.
 *
 * When sound ended there, the server is told the time on the page's clock, as a client does that knows when its
 * user stopped. While `ears.answering`, a tone is played instead, and `ears.waits` says how long after the end
 * that was, in seconds between the two samples: what the same sound card then recorded is longer by its delays.
 */
{
  const TONE_AFTER = 0.3;
  const TONE_LASTS = 0.2;

  let channel = null;
  const make = RTCPeerConnection.prototype.createDataChannel;
  RTCPeerConnection.prototype.createDataChannel = function (...options) {
    channel = make.apply(this, options);
    channel.addEventListener("message", ({ data }) => data.includes('"visavis.measured"') && window.measured(data));
    return channel;
  };

  window.ears = {
    answering: false,
    waits: [],

    async listen() {
      const raw = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
      const stream = await navigator.mediaDevices.getUserMedia({ audio: raw });
      const context = new AudioContext({ sampleRate: 48_000 });
      await context.audioWorklet.addModule("/waveform/speech_ends.js");
      const gate = new AudioWorkletNode(context, "speech-ends");
      context.createMediaStreamSource(stream).connect(gate).connect(context.destination);
      gate.port.onmessage = ({ data: end }) => (this.answering ? this.answer(context, end) : tell(context, end));
      await context.resume();
    },

    answer(context, end) {
      const start = context.currentTime + TONE_AFTER;
      const tone = new OscillatorNode(context, { frequency: 1000 });
      tone.connect(new GainNode(context, { gain: 0.3 })).connect(context.destination);
      tone.start(start);
      tone.stop(start + TONE_LASTS);
      this.waits.push(start - end);
    },
  };

  function tell(context, end) {
    const { contextTime, performanceTime } = context.getOutputTimestamp();
    const at = (performance.timeOrigin + performanceTime) / 1000 + end - contextTime;
    const data = { t: "visavis.speech_end", d: { at } };
    if (channel?.readyState === "open") channel.send(JSON.stringify({ id: "0", label: "rtvi-ai", type: "client-message", data }));
  }
}
