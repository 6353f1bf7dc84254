/** Shows how loud the microphone is, so that a person sees that they are heard. */

/** Speech at a usual distance lies between these; dBFS of 20 ms RMS. */
const QUIET_DB = -60;
const LOUD_DB = -15;

export class LevelMeter {
  #element;
  #context = null;
  #source = null;
  #frame = 0;

  /** @param {HTMLElement} element role=meter; gets `--level` from 0 to 1 */
  constructor(element) {
    this.#element = element;
  }

  /** @param {MediaStreamTrack} track */
  attach(track) {
    this.detach();
    this.#context ??= new AudioContext();
    // Where the page began without a gesture the context waits for one; the meter then stays flat.
    this.#context.resume();
    const analyser = this.#context.createAnalyser();
    analyser.fftSize = 1024;
    this.#source = this.#context.createMediaStreamSource(new MediaStream([track]));
    this.#source.connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    const draw = () => {
      analyser.getFloatTimeDomainData(samples);
      this.#show(level(samples));
      this.#frame = requestAnimationFrame(draw);
    };
    draw();
  }

  detach() {
    cancelAnimationFrame(this.#frame);
    this.#source?.disconnect();
    this.#source = null;
    this.#context?.suspend();
    this.#show(0);
  }

  #show(level) {
    this.#element.style.setProperty("--level", level.toFixed(2));
    // Tenths are enough for whoever asks a screen reader, and change less often.
    this.#element.setAttribute("aria-valuenow", String(Math.round(level * 10) * 10));
  }
}

/**
 * @param {Float32Array} samples in [-1, 1]
 * @returns {number} 0 quiet … 1 loud
 */
export function level(samples) {
  const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
  const db = 10 * Math.log10(power + 1e-12);
  return Math.min(1, Math.max(0, (db - QUIET_DB) / (LOUD_DB - QUIET_DB)));
}
