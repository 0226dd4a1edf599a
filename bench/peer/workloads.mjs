// The workloads by the names that the driver uses, or by our own where it has none (names.json says
// which of ours each is), and W9: networks from ONNX files, where they lie beside the driver or
// beside this checkout. Each is a function that gives `run` and `output`.

import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { built } from './built.mjs';

const { compile, synchronize, tensor } = await built('dist/index.js');
const { device } = await built('dist/tensor/device.js');
const { evaluate } = await built('dist/tensor/evaluate/evaluate.js');
const { handleOf } = await built('dist/tensor/tensor.js');
const { timedWorkloads } = await built('dist/workloads/timed/workloads.js');
const { prepare } = await built('dist/cli/bench/measure.js');

const names = JSON.parse(readFileSync(new URL('names.json', import.meta.url), 'utf8'));

/**
 * W1f is W1: the others write its function as one operator there, and here it is one kernel anyway.
 */
export function workloads() {
  const timed = Object.entries(names).map(([name, ours]) => {
    const workload = timedWorkloads.find((one) => one.name === ours);
    if (workload === undefined) throw new Error(`${name} is ${ours}, and there is no such workload`);
    return [name, () => prepare(workload)];
  });
  return { ...Object.fromEntries(timed), ...networks() };
}

const places = [
  resolve('../onnx/models'),
  fileURLToPath(new URL('../../../shared/onnx/models', import.meta.url)),
];

function networks() {
  const folder = places.find((place) => existsSync(place));
  if (folder === undefined) return {};
  const known = ['squeezenet', 'shufflenet'];
  return Object.fromEntries(known.map((name) => [`W9-${name}`, () => network(`${folder}/${name}`)]));
}

/** A network over the input that lies beside it, compiled. */
async function network(folder) {
  // The packages that read protobuf are loaded where they are wanted: they are optional.
  const { loadOnnx } = await built('dist/onnx/index.js');
  const { readTensor } = await built('dist/onnx/weights.js');
  const { decode } = await built('dist/onnx/wire.js');
  const model = await loadOnnx(`${folder}/model.onnx`);
  const { array } = readTensor(decode('Tensor', readFileSync(`${folder}/input_0.pb`)));
  const input = tensor(array.data, { shape: array.shape });
  const [[given], [got]] = [model.inputs, model.outputs];
  const fn = model.toFunction();
  const step = compile((x) => fn({ [given.name]: x })[got.name]);
  const open = await device();
  for (const one of [input, ...Object.values(model.parameters)]) evaluate(handleOf(one)).on(open);
  await synchronize();
  let last;
  return {
    run: async () => {
      const result = step(input);
      await synchronize();
      last?.dispose();
      last = result;
    },
    output: async () => last.data(),
  };
}
