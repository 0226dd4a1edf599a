// Models of the ONNX cases whose weights are filled by a formula, so that they compute something: every weight named by hydrate.json
// takes the place of the node that made a constant of it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { OnnxModel } from '../../../src/onnx/index.ts';
import { modelOf } from '../../../src/onnx/load.ts';
import type { Message } from '../../../src/onnx/schema.ts';
import { readTensor } from '../../../src/onnx/weights.ts';
import { decode } from '../../../src/onnx/wire.ts';

interface Weight {
  readonly name: string;
  readonly shape: readonly number[];
  readonly kind: string;
  readonly fan: number;
}

interface Recipe {
  readonly dropFinalSoftmax: boolean;
  readonly inputs: readonly { readonly name: string; readonly shape: readonly number[] }[];
  readonly weights: readonly Weight[];
}

/** Pseudo-random numbers that follow from a name: one round of a hash for each element. */
function generated(name: string, count: number, kind: string, fan: number): Float32Array {
  const seed = checksum(name);
  return Float32Array.from({ length: count }, (_, i) => {
    let x = (Math.imul(i, 2654435761) + seed) >>> 0;
    x = Math.imul(x ^ (x >>> 16), 0x85ebca6b) >>> 0;
    x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35) >>> 0;
    const u = ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
    if (kind === 'w') return (2 * u - 1) * Math.sqrt(6 / fan);
    return kind === 'pos' ? 0.5 + u : (2 * u - 1) * 0.1;
  });
}

/** CRC-32 of UTF-8 text; Node has it built in from 20.15 on. */
function checksum(text: string): number {
  return crc32(text);
}

/** The model of `light/NAME` under `dir` with the weights of `hydrated/NAME`, its input and the expected output. */
export function hydrated(
  dir: string,
  name: string,
): { model: OnnxModel; input: readonly [string, Float32Array]; expected: Float32Array } {
  const proto = decode('Model', new Uint8Array(readFileSync(join(dir, 'light', name, 'model.onnx'))));
  const recipe = JSON.parse(readFileSync(join(dir, 'hydrated', name, 'hydrate.json'), 'utf8')) as Recipe;
  const graph = proto.graph!;
  const weights = new Map(recipe.weights.map((weight) => [weight.name, weight]));
  const initializer = recipe.weights.map(({ name: key, shape, kind, fan }): Message<'Tensor'> => {
    const count = shape.reduce((size, dim) => size * dim, 1);
    const data = generated(key, count, kind, fan);
    return {
      dims: shape.map(BigInt),
      dataType: 1,
      floatData: [],
      int32Data: [],
      stringData: [],
      int64Data: [],
      name: key,
      rawData: new Uint8Array(data.buffer),
      doubleData: [],
      uint64Data: [],
      externalData: [],
      dataLocation: undefined,
    };
  });
  let node = graph.node.filter(({ output }) => !output.some((key) => weights.has(key)));
  let output = graph.output;
  const last = node.at(-1)!;
  if (recipe.dropFinalSoftmax && last.opType === 'Softmax') {
    node = node.slice(0, -1);
    output = [{ ...output[0]!, name: last.input[0] }];
  }
  const model = modelOf({
    ...proto,
    graph: { ...graph, node, output, initializer: [...graph.initializer, ...initializer] },
  });
  const { name: inputName, shape } = recipe.inputs[0]!;
  const count = shape.reduce((size, dim) => size * dim, 1);
  const input = generated(`input:${name}`, count, 'b', 1).map((value) => value * 10);
  const { array } = readTensor(
    decode('Tensor', new Uint8Array(readFileSync(join(dir, 'hydrated', name, 'output_0.pb')))),
  );
  return { model, input: [inputName, input], expected: array.data as Float32Array };
}
