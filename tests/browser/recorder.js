/**
 * Looks and listens as a person would: with every frame of a video it notes how loud the sound is and
 * how much of the mouth's region is dark, as an open mouth is. The notes go to window.recorded.
 *
 * The region is that of the drawn character in its 512 x 512 picture.
 */
(selector) => {
  const MOUTH = { x: 196, y: 276, width: 120, height: 96 };
  const DARK = 60;
  const video = document.querySelector(selector);
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  context.createMediaStreamSource(video.srcObject).connect(analyser);
  const wave = new Float32Array(analyser.fftSize);
  const canvas = new OffscreenCanvas(MOUTH.width, MOUTH.height).getContext("2d", { willReadFrequently: true });
  window.recorded = [];
  const look = () => {
    canvas.drawImage(video, MOUTH.x, MOUTH.y, MOUTH.width, MOUTH.height, 0, 0, MOUTH.width, MOUTH.height);
    const { data } = canvas.getImageData(0, 0, MOUTH.width, MOUTH.height);
    let dark = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i] + data[i + 1] + data[i + 2] < 3 * DARK) dark += 1;
    analyser.getFloatTimeDomainData(wave);
    const loudness = Math.sqrt(wave.reduce((sum, value) => sum + value * value, 0) / wave.length);
    window.recorded.push({ at: performance.now(), dark: dark / (MOUTH.width * MOUTH.height), loudness });
    video.requestVideoFrameCallback(look);
  };
  video.requestVideoFrameCallback(look);
}
