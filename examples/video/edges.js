// Edges of a video, frame by frame: `fromPixels` reads the frame that the video shows, a compiled
// function computes, `toCanvas` draws. Nothing is awaited but that each frame is queued.

import { compile, conv2d, mean, reshape, sqrt, square, stats, sum, tensor } from 'sinter';
import { fromPixels, toCanvas } from 'sinter/pixels';

const canvas = document.querySelector('#edges');
const times = document.querySelector('#times');

/** How steeply brightness rises to the right, and downwards (Sobel's operator). */
const slopes = tensor([
  [
    [
      [-1, 0, 1],
      [-2, 0, 2],
      [-1, 0, 1],
    ],
  ],
  [
    [
      [-1, -2, -1],
      [0, 0, 0],
      [1, 2, 1],
    ],
  ],
]);

/** [3, height, width] → [height, width]. */
const edges = compile((picture) => {
  const [, height, width] = picture.shape;
  const grey = reshape(mean(picture, 0), [1, 1, height, width]);
  const rise = conv2d(grey, slopes, undefined, { padding: 1 });
  return reshape(sqrt(sum(square(rise), 1)), [height, width]);
});

/** A square that goes round, as a stream of video. */
function patternStream() {
  const drawn = Object.assign(document.createElement('canvas'), { width: 320, height: 240 });
  const context = drawn.getContext('2d');
  const draw = () => {
    const turn = performance.now() / 700;
    context.fillStyle = '#123';
    context.fillRect(0, 0, 320, 240);
    context.fillStyle = '#fc6';
    context.fillRect(130 + 80 * Math.cos(turn), 90 + 60 * Math.sin(turn), 60, 60);
  };
  draw();
  setInterval(draw, 33);
  return drawn.captureStream(30);
}

async function show(stream) {
  const video = Object.assign(document.createElement('video'), { muted: true, srcObject: stream });
  await video.play();
  const step = async () => {
    const start = performance.now();
    const picture = await fromPixels(video);
    await toCanvas(edges(picture), canvas);
    picture.dispose();
    const { uploaded, downloaded } = stats().bytes;
    times.textContent = `${(performance.now() - start).toFixed(1)} ms a frame, ${uploaded} bytes up, ${downloaded} down`;
    video.requestVideoFrameCallback(next);
  };
  const next = () => void step().catch(tell);
  video.requestVideoFrameCallback(next);
}

function tell(error) {
  times.textContent = String(error);
}

/** What goes wrong is said on the page. */
function start(stream) {
  Promise.resolve(stream).then(show).catch(tell);
}

document.querySelector('#camera').addEventListener('click', () => {
  start(navigator.mediaDevices.getUserMedia({ video: true }));
});
document.querySelector('#pattern').addEventListener('click', () => start(patternStream()));
