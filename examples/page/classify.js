// Loads the bundle of an image classifier and runs it on pictures. The bundle lies in `bundle/` beside this page; the page's address may
// say where it runs (`?target=wasm&threads=2`) and where the names of classes are, one a line (`?labels=labels.txt`).

import { load } from './bundle/index.js';

const options = new URLSearchParams(location.search);
const [canvas, file, drop] = ['canvas', 'input', 'label.picture'].map((what) => document.querySelector(what));
const [bar, list, times] = ['progress', 'ol', '#times'].map((what) => document.querySelector(what));
const preparation = document.querySelector('#preparation');

/** How a channel's value from 0 to 255 goes in: networks differ by what they were trained on. */
const prepare = {
  rgb: (value, channel) => (value / 255 - [0.485, 0.456, 0.406][channel]) / [0.229, 0.224, 0.225][channel],
  bgr: (value) => value - 128,
};

/** The picture on the canvas as f32[1, 3, height, width]. */
function pixels({ width, height }) {
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
  const plane = width * height;
  const order = preparation.value;
  return Float32Array.from({ length: 3 * plane }, (_, i) => {
    const channel = Math.floor(i / plane);
    const value = data[4 * (i % plane) + (order === 'rgb' ? channel : 2 - channel)];
    return prepare[order](value, channel);
  });
}

/** The middle of a picture, as large as the canvas. */
async function draw(blob) {
  const picture = await createImageBitmap(blob);
  const scale = Math.max(canvas.width / picture.width, canvas.height / picture.height);
  const [width, height] = [picture.width * scale, picture.height * scale];
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.drawImage(picture, (canvas.width - width) / 2, (canvas.height - height) / 2, width, height);
}

/** Scores as shares of one, by softmax where the network has not done that itself. */
function shares(scores) {
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  if (scores.every((score) => score >= 0) && Math.abs(sum(scores) - 1) < 1e-3) return scores;
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  return powers.map((power) => power / sum(powers));
}

/** Shows the five likeliest classes, likeliest first. */
function show(scores, labels) {
  const likeliest = [...scores.keys()].sort((a, b) => scores[b] - scores[a]).slice(0, 5);
  const parts = shares(scores);
  const rows = likeliest.map((index) => {
    const row = document.createElement('li');
    const [name, percent] = [labels[index] ?? `class ${index}`, `${(100 * parts[index]).toFixed(1)} %`];
    row.style.setProperty('--share', percent.replace(' ', ''));
    row.append(
      ...[name, percent].map((textContent) => Object.assign(document.createElement('span'), { textContent })),
    );
    return row;
  });
  list.replaceChildren(...rows);
}

async function start() {
  // What it is called with stands in the bundle.
  const { entries } = await (await fetch('./bundle/program.json')).json();
  if (entries.run === undefined)
    throw new Error('the bundle has no call `run`: build one of an ONNX classifier');
  const [input, output] = [entries.run.inputs[0].name, entries.run.outputs[0].name];
  const [height, width] = entries.run.inputs[0].shape.slice(-2);
  Object.assign(canvas, { width, height });
  const labels = options.has('labels') ? (await (await fetch(options.get('labels'))).text()).split('\n') : [];
  const model = await load({
    ...(options.has('target') && { target: options.get('target') }),
    ...(options.has('threads') && { threads: Number(options.get('threads')) }),
    onProgress({ loadedBytes, totalBytes, compiledKernels, totalKernels }) {
      bar.max = 2;
      bar.value = loadedBytes / totalBytes + compiledKernels / totalKernels;
    },
  });
  const loaded = performance.now();
  bar.hidden = true;
  times.textContent = `${model.description}, loaded ${loaded.toFixed(0)} ms after the page was opened`;

  /** Runs the model on f32[1, 3, height, width], shows what it says, and gives the scores. */
  async function classify(image) {
    const began = performance.now();
    const scores = (await model.run({ [input]: image }))[output];
    times.textContent = `${model.description}, loaded ${loaded.toFixed(0)} ms after the page was opened
      ${(performance.now() - began).toFixed(1)} ms for this picture`;
    show(scores, labels);
    return scores;
  }
  const take = async (blob) => {
    await draw(blob);
    await classify(pixels(canvas));
  };
  let current;
  const choose = (blob) => {
    current = blob ?? current;
    if (current) take(current).catch(complain);
  };
  file.addEventListener('change', () => choose(file.files[0]));
  preparation.addEventListener('change', () => choose());
  drop.addEventListener('drop', (event) => choose(event.dataTransfer.files[0]));
  return { model, classify };
}

function complain(error) {
  document.querySelector('#problem').textContent = `${error.code ?? error.name}: ${error.message}`;
}

for (const [kind, over] of [
  ['dragover', true],
  ['dragleave', false],
  ['drop', false],
])
  drop.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.toggle('over', over);
  });

/** For the console: `(await classifier).model`. */
globalThis.classifier = start();
globalThis.classifier.catch(complain);
