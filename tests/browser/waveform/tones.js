/**
 * For a test, beside the page's own: says to the server what the test knows of its user, hands on what the server
 * measured, and plays tones of which it is known when the browser means them to be heard.
 */
{
  const LASTS = 0.2;
  const LOOK_MS = 20;

  let channel = null;
  const make = RTCPeerConnection.prototype.createDataChannel;
  RTCPeerConnection.prototype.createDataChannel = function (...options) {
    channel = make.apply(this, options);
    channel.addEventListener("message", ({ data }) => data.includes('"visavis.measured"') && window.measured(data));
    return channel;
  };

  /** @param {number} at when the user's speech ended, seconds of the page's clock */
  window.speechEnded = (at) => {
    const data = { t: "visavis.speech_end", d: { at } };
    channel.send(JSON.stringify({ id: "0", label: "rtvi-ai", type: "client-message", data }));
  };

  /**
   * @param {number[]} waits seconds from one tone to the next
   * @returns {Promise<number[]>} when each is heard as the browser has it, seconds of the page's clock
   */
  window.playTones = async (waits) => {
    const context = new AudioContext();
    await context.resume();
    const gain = new GainNode(context, { gain: 0.3 });
    gain.connect(context.destination);
    let at = context.currentTime;
    const starts = waits.map((wait) => (at += wait));
    for (const start of starts) {
      const tone = new OscillatorNode(context, { frequency: 1000 });
      tone.connect(gain);
      tone.start(start);
      tone.stop(start + LASTS);
    }
    // One look at a sound device is off by milliseconds.
    const looks = [];
    const timer = setInterval(() => {
      const { contextTime, performanceTime } = context.getOutputTimestamp();
      if (contextTime > 0) looks.push((performance.timeOrigin + performanceTime) / 1000 - contextTime);
    }, LOOK_MS);
    await new Promise((done) => setTimeout(done, (at + 1 - context.currentTime) * 1000));
    clearInterval(timer);
    await context.close();
    looks.sort((a, b) => a - b);
    return starts.map((start) => start + looks[looks.length >> 1]);
  };

  /** When this is asked, seconds of the page's clock. */
  window.pageNow = () => (performance.timeOrigin + performance.now()) / 1000;
}
