// W9, networks from ONNX files as workloads: those that lie beside the driver or beside this checkout. Where there are none, nothing is
// measured.

import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compile, synchronize, tensor, type Tensor } from '../index.ts';
import { device } from '../tensor/storage/device.ts';
import { realise } from '../tensor/realise/realise.ts';
import { handleOf } from '../tensor/tensor.ts';
import type { Prepared } from './bench/measure.ts';

const places = [
  resolve('../onnx/models'),
  fileURLToPath(new URL('../../../shared/onnx/models', import.meta.url)),
];

/** Networks by the workload's name. */
export function networks(): Readonly<Record<string, () => Promise<Prepared>>> {
  const folder = places.find((place) => existsSync(place));
  if (folder === undefined) return {};
  const names = ['squeezenet', 'shufflenet'];
  return Object.fromEntries(names.map((name) => [`W9-${name}`, () => network(`${folder}/${name}`)]));
}

/** A network over the input that lies beside it, compiled. */
async function network(folder: string): Promise<Prepared> {
  // The packages that read protobuf are loaded where they are wanted: they are optional.
  const [{ loadOnnx }, { readTensor }, { decode }] = await Promise.all([
    import('../onnx/index.ts'),
    import('../onnx/weights.ts'),
    import('../onnx/wire.ts'),
  ]);
  const model = await loadOnnx(`${folder}/model.onnx`);
  const { array } = readTensor(decode('Tensor', readFileSync(`${folder}/input_0.pb`)));
  const input = tensor(array.data as Float32Array, { shape: array.shape as number[] });
  const [[given], [got]] = [model.inputs, model.outputs];
  const fn = model.toFunction();
  const step = compile((x: Tensor) => fn({ [given!.name]: x })[got!.name]!);
  const open = await device();
  for (const one of [input, ...Object.values(model.parameters)]) realise(handleOf(one)).on(open);
  await synchronize();
  let last: Tensor | undefined;
  return {
    run: async () => {
      const result = step(input);
      await synchronize();
      last?.dispose();
      last = result;
    },
    output: async () => (await last!.data()) as Float32Array,
  };
}
