// Files as ONNX Runtime writes them: optimised at every level, laid out in blocks of channels for one kind of CPU, with nodes that
// are refused by name. What single operators of com.microsoft give is in microsoft.ts and bytes.ts.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ort from 'onnxruntime-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setDevice, tensor } from '../../../src/index.ts';
import { loadOnnx } from '../../../src/onnx/index.ts';
import { decode } from '../../../src/onnx/wire.ts';
import { float, graph, model, modelOf, node, port, type Draft } from '../../support/onnx/file.ts';
import { attr } from './draw.ts';

const folder = mkdtempSync(join(tmpdir(), 'sinter-optimised-'));
beforeAll(() => setDevice('wasm'));
afterAll(() => {
  setDevice(undefined);
  rmSync(folder, { recursive: true, force: true });
});

const wave = (count: number, step = 1.7): number[] =>
  Array.from({ length: count }, (_, i) => Math.sin(i * step + 1) / 2);
const weight = (name: string, ...dims: number[]): Draft =>
  float(
    name,
    dims,
    wave(
      dims.reduce((a, b) => a * b, 1),
      1 + dims.length / 7,
    ),
  );

/** Convolutions with activations and a sum, a depthwise one, pools, a product, a normalisation, a Gelu of nodes. */
const network = modelOf(
  {
    inputs: [port('x', 1, [1, 3, 9, 9])],
    outputs: [{ name: 'y' }],
    initializers: [
      weight('w1', 24, 3, 3, 3),
      weight('b1', 24),
      weight('w2', 24, 24, 3, 3),
      weight('w3', 24, 1, 3, 3),
      weight('w4', 12, 24, 1, 1),
      weight('m', 12, 16),
      weight('mb', 16),
      weight('g', 16),
      float('half', [], [0.5]),
      float('one', [], [1]),
      float('root', [], [Math.SQRT2]),
    ],
    nodes: [
      node('Conv', ['x', 'w1', 'b1'], ['c1'], [attr.ints('pads', [1, 1, 1, 1])]),
      node('Relu', ['c1'], ['r1']),
      node('Conv', ['r1', 'w2'], ['c2'], [attr.ints('pads', [1, 1, 1, 1])]),
      node('Add', ['c2', 'r1'], ['s']),
      node('Relu', ['s'], ['r2']),
      node('MaxPool', ['r2'], ['p'], [attr.ints('kernel_shape', [2, 2]), attr.ints('strides', [2, 2])]),
      node('Conv', ['p', 'w3'], ['c3'], [attr.int('group', 24), attr.ints('pads', [1, 1, 1, 1])]),
      node('LeakyRelu', ['c3'], ['r3'], [attr.float('alpha', 0.2)]),
      node('Conv', ['r3', 'w4'], ['c4']),
      node('GlobalAveragePool', ['c4'], ['a']),
      node('Flatten', ['a'], ['f']),
      node('Gemm', ['f', 'm', 'mb'], ['h']),
      node('Relu', ['h'], ['hr']),
      node('LayerNormalization', ['hr', 'g', 'mb'], ['n']),
      node('Div', ['n', 'root'], ['e1']),
      node('Erf', ['e1'], ['e2']),
      node('Add', ['e2', 'one'], ['e3']),
      node('Mul', ['n', 'e3'], ['e4']),
      node('Mul', ['e4', 'half'], ['y']),
    ],
  },
  17,
);

test('a file gives the same however ONNX Runtime optimised it', async () => {
  const x = Float32Array.from(wave(243, 0.9));
  const expected = (await (await (await loadOnnx(network)).run({ x }))['y']!.data()) as Float32Array;
  const found = new Set<string>();
  for (const level of ['basic', 'extended', 'all'] as const) {
    const path = join(folder, `${level}.onnx`);
    const session = await ort.InferenceSession.create(network, {
      graphOptimizationLevel: level,
      optimizedModelFilePath: path,
      logSeverityLevel: 4,
    });
    await session.release();
    for (const { opType, domain } of decode('Model', new Uint8Array(readFileSync(path))).graph!.node)
      if (domain !== undefined && domain !== '') found.add(`${domain}::${opType}`);
    const optimised = await loadOnnx(path);
    const { y } = await optimised.run({ x });
    const data = (await y!.data()) as Float32Array;
    expected.forEach((value, i) => expect(data[i]).toBeCloseTo(value, 4));
  }
  // Which it fuses is up to its version; that it fuses is what this is about.
  expect([...found].some((op) => op.startsWith('com.microsoft::'))).toBe(true);
});

/** [outputs, inputs] of a kernel of one element, as blocks of `block` have them. */
function inBlocks(values: readonly number[], outputs: number, inputs: number, block: number): number[] {
  const out: number[] = [];
  for (let o = 0; o < outputs; o += block)
    for (let i = 0; i < inputs; i += block)
      for (let y = 0; y < block; y++)
        for (let z = 0; z < block; z++) out.push(values[(o + z) * inputs + i + y]!);
  return out;
}

test.each([8, 16] as const)(
  'blocks of %i channels are told apart by sizes, or by the user',
  async (block) => {
    const layout = 'com.microsoft.nchwc';
    const values = wave(32 * 16);
    const file = (channels: number): Uint8Array =>
      model(
        graph({
          inputs: [port('x', 1, [1, 16, 1, 2])],
          outputs: [{ name: 'y' }],
          initializers: [float('w', [32, 16, 1, 1], inBlocks(values, 32, 16, block))],
          nodes: [
            node('ReorderInput', ['x'], ['b'], [], layout),
            node('Conv', ['b', 'w'], ['c'], [attr.text('auto_pad', ''), attr.text('activation', '')], layout),
            node('ReorderOutput', ['c'], ['y'], [attr.int('channels', channels)], layout),
          ],
        }),
        17,
        [layout],
      );
    await expect(loadOnnx(file(32))).rejects.toThrow(/does not say which[^]*layoutBlock: 8/);
    const x = Float32Array.from(wave(32, 0.3));
    const told = await (await loadOnnx(file(32), { layoutBlock: block })).run({ x });
    const data = (await told['y']!.data()) as Float32Array;
    for (const place of [0, 1])
      for (const output of [0, 9, 31]) {
        const sum = Array.from({ length: 16 }, (_, i) => values[output * 16 + i]! * x[2 * i + place]!);
        expect(data[2 * output + place]).toBeCloseTo(
          sum.reduce((a, b) => a + b, 0),
          4,
        );
      }
    if (block === 8) return;
    // More than 8 channels are filled up: blocks of 16, and 20 of 32 are given.
    const { y } = await (await loadOnnx(file(20))).run({ x });
    expect([...((await y!.data()) as Float32Array)]).toEqual([...data.subarray(0, 40)]);
  },
);

test('what a node asks for and is not supported is named', async () => {
  const domain = 'com.microsoft';
  const refused = async (
    op: string,
    inputs: readonly number[][],
    attributes: readonly Draft[],
  ): Promise<string> => {
    const names = inputs.map((_, i) => `x${i}`);
    const body = graph({
      inputs: inputs.map((shape, i) => port(`x${i}`, 1, shape)),
      outputs: [{ name: 'y' }],
      nodes: [node(op, names, ['y'], attributes, domain, 'this one')],
    });
    const loaded = await loadOnnx(model(body, 17, [domain]));
    const given = Object.fromEntries(
      inputs.map((shape, i) => [`x${i}`, tensor(wave(shape.reduce((a, b) => a * b, 1))).reshape(shape)]),
    );
    return loaded.run(given).then(
      () => 'nothing',
      (error: Error) => error.message,
    );
  };
  const heads = attr.int('num_heads', 1);
  expect(
    await refused(
      'Attention',
      [
        [1, 2, 4],
        [4, 12],
      ],
      [heads, attr.int('do_rotary', 1)],
    ),
  ).toMatch(/Attention 'this one'.*attribute 'do_rotary' is not supported/);
  expect(
    await refused(
      'FusedConv',
      [
        [1, 1, 2, 2],
        [1, 1, 1, 1],
      ],
      [attr.text('activation', 'Wavy')],
    ),
  ).toMatch(/FusedConv 'this one'.*attribute 'activation': 'Wavy' is not supported/);
  expect(await refused('MultiHeadAttention', [[1, 2, 4]], [heads])).toMatch(/input 'key' is missing/);
});

test('images in blocks of channels are enlarged by repetition, and by no other rule', async () => {
  const layout = 'com.microsoft.nchwc';
  const file = (rule: string): Uint8Array => {
    const attributes = [
      attr.ints('scales', [1, 1, 2, 1]),
      attr.text('mode', 'nearest'),
      attr.text('coordinate_transformation_mode', rule),
    ];
    const inputs = [port('x', 1, [1, 16, 1, 1])];
    const parts = {
      inputs,
      outputs: [{ name: 'y' }],
      nodes: [node('Upsample', ['x'], ['y'], attributes, layout)],
    };
    return model(graph(parts), 17, [layout]);
  };
  const x = Float32Array.from(wave(16));
  const { y } = await (await loadOnnx(file('asymmetric'), { layoutBlock: 16 })).run({ x });
  expect([...(await y!.data())]).toEqual([...x].flatMap((value) => [value, value]));
  const peer = ort.InferenceSession.create(file('align_corners'), { logSeverityLevel: 4 });
  await expect(peer).rejects.toThrow(/ASYMMETRIC/);
  const other = loadOnnx(file('align_corners'), { layoutBlock: 16 }).then((loaded) => loaded.run({ x }));
  await expect(other).rejects.toThrow(/attribute 'coordinate_transformation_mode' is not supported/);
});
