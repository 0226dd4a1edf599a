// ONNX models of 64-bit integers, of open sizes and of shapes that are inputs, built by the command line for every target.

import { writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice, tensor } from '../../src/index.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import type { Inputs, LoadOptions, Outputs } from '../../src/bundle-runtime/runtime.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { sinter } from '../support/cli.ts';
import { attribute, float, int64, modelOf, node, port } from '../support/onnx/file.ts';
import { removeFolders, temporary } from './bundles.ts';

interface Loaded {
  run(inputs: Inputs): Promise<Outputs>;
  dispose(): void;
}

let gpu: GPUDevice;
beforeAll(async () => {
  gpu = await (await softwareAdapter()).requestDevice();
});
afterAll(() => {
  gpu.destroy();
  removeFolders();
  setDevice(undefined);
});

const places: Readonly<Record<string, () => LoadOptions>> = {
  wasm: () => ({ target: 'wasm', threads: 1 }),
  webgpu: () => ({ target: 'webgpu', device: gpu }),
};

/** Embeds ids, adds positions, scores against the embedding, and picks the best; counts what the mask lets through. */
const text = modelOf({
  inputs: [port('ids', 7, ['batch', 'length']), port('mask', 7, ['batch', 'length'])],
  outputs: [
    port('scores', 1, ['batch', 'length', 5]),
    port('best', 7, ['batch', 'length']),
    port('count', 7, ['batch']),
  ],
  initializers: [
    float(
      'table',
      [5, 3],
      Array.from({ length: 15 }, (_, i) => Math.sin(3 * i)),
    ),
    int64('axes', [1], [1n]),
    int64('one', [], [1n]),
  ],
  nodes: [
    node('Gather', ['table', 'ids'], ['rows']),
    node('Transpose', ['table'], ['columns'], [attribute('perm', [1, 0])]),
    node('MatMul', ['rows', 'columns'], ['scores']),
    node('ArgMax', ['scores'], ['best'], [attribute('axis', -1), attribute('keepdims', 0)]),
    node('Mul', ['mask', 'one'], ['ones']),
    node('ReduceSum', ['ones', 'axes'], ['count'], [attribute('keepdims', 0)]),
  ],
});

const reshaping = modelOf({
  inputs: [port('x', 1, ['n']), port('shape', 7, [2])],
  outputs: [port('y', 1, ['a', 'b'])],
  nodes: [node('Reshape', ['x', 'shape'], ['turned']), node('Neg', ['turned'], ['y'])],
});

function file(bytes: Uint8Array): string {
  const at = path.join(temporary(), 'model.onnx');
  writeFileSync(at, bytes);
  return at;
}

describe('a text model', () => {
  let load: (options: LoadOptions) => Promise<Loaded>;
  beforeAll(async () => {
    const out = temporary();
    const { code, err } = await sinter(
      'build',
      file(text),
      '--out',
      out,
      '--dim',
      'batch=1,2',
      '--dim',
      'length=2..12:2',
    );
    expect([code, err]).toEqual([0, '']);
    ({ load } = (await import(path.join(out, 'index.js'))) as { load: typeof load });
  });

  test.each(Object.keys(places))('gives on %s what it gives in Sinter', async (place) => {
    setDevice('wasm');
    const loaded = await loadOnnx(text);
    const bundle = await load(places[place]!());
    for (const [batch, length] of [
      [1, 2],
      [2, 4],
      [2, 2],
      [2, 12],
    ] as const) {
      const count = batch * length;
      const ids = BigInt64Array.from({ length: count }, (_, i) => BigInt((2 * i) % 5));
      const mask = BigInt64Array.from({ length: count }, (_, i) => BigInt(i % 3));
      const shape = [batch, length];
      const found = await bundle.run({ ids: { data: ids, shape }, mask: { data: mask, shape } });
      const { tensor } = await import('../../src/index.ts');
      const expected = await loaded.run({ ids: tensor(ids, { shape }), mask: tensor(mask, { shape }) });
      expect(found['best']).toEqual(BigInt64Array.from((await expected['best']!.data()) as BigInt64Array));
      expect(found['count']).toEqual(BigInt64Array.from((await expected['count']!.data()) as BigInt64Array));
      const scores = [...((await expected['scores']!.data()) as Float32Array)];
      scores.forEach((score, i) => expect((found['scores'] as Float32Array)[i]).toBeCloseTo(score, 5));
    }
    const most = { data: Int32Array.of(2 ** 31 - 1, 2 ** 31 - 1), shape: [1, 2] };
    const sum = await bundle.run({ ids: [0, 0], mask: most });
    expect(sum['count']).toEqual(BigInt64Array.of(2n ** 32n - 2n));
    await expect(bundle.run({ ids: [0, 0, 0], mask: [1, 1, 1] })).rejects.toMatchObject({ code: 'E_SHAPE' });
    bundle.dispose();
  });
});

test('shapes that are inputs are fixed when the model is built', async () => {
  const out = temporary();
  const from = file(reshaping);
  const asked = await sinter('build', from, '--out', out, '--dim', 'n=6');
  expect(asked.code).toBe(2);
  expect(asked.err).toContain("depend on the input 'shape'\n  try: --fix shape=1,2,3");
  const { code, err } = await sinter('build', from, '--out', out, '--dim', 'n=4,6', '--fix', 'shape=2,-1');
  expect([code, err]).toEqual([0, '']);
  const { load } = (await import(path.join(out, 'index.js'))) as {
    load: (options: object) => Promise<Loaded>;
  };
  const bundle = await load({ target: 'wasm' });
  expect(await bundle.run({ x: Float32Array.of(1, 2, 3, 4) })).toEqual({
    y: Float32Array.of(-1, -2, -3, -4),
  });
  expect((await bundle.run({ x: new Float32Array(6) }))['y']).toHaveLength(6);
  bundle.dispose();
});

test.each<[string[], string]>([
  [['--fix', 'size=1'], "has no input 'size': it has x, shape"],
  [['--fix', 'shape'], "expects NAME=1,2,3, got 'shape'"],
  [['--fix', 'shape=a'], "expects numbers for shape, got 'a'"],
  [['--dim', 'm=1'], "has a size called 'm': open are n"],
  [['--dim', 'n=1,x'], "expects NAME=SIZE, got 'x'"],
  [['--dim', '1'], "expects NAME=SIZE, got '1'"],
  [['--dim', 'n=4..1'], "expects NAME=SIZE, got 'n=4..1'"],
  [['--dim', 'n=1..1000000000'], 'expects NAME=SIZE'],
  [['--dim', 'n=1..100,200', '--fix', 'shape=1,-1'], '101 sets of sizes (101 of n): expected at most 64'],
  [['--dim', 'n=1..2000,3000'], 'n has more than 1024 sizes\n  try: a range'],
  [['--dim', 'n=1..100', '--fix', 'shape=2,-1'], 'run cannot be recorded at n '],
  [['--fix', 'shape=2,-1'], 'the input x has open sizes: n\n  try: --dim n=1'],
])('%j is refused with what to do', async (args, words) => {
  const { code, err } = await sinter('build', file(reshaping), '--out', temporary(), ...args);
  expect(code).toBeGreaterThan(0);
  expect(err).toContain(words);
});

/** A picture in the sizes of another one, and in scales, by every way to find places. */
function resizing(): { readonly bytes: Uint8Array; readonly names: readonly string[] } {
  const nearest = [
    ['nearest', 'asymmetric', 'floor'],
    ['nearest', 'half_pixel', 'round_prefer_floor'],
    ['nearest', 'align_corners', 'round_prefer_ceil'],
  ] as const;
  const weighted = [
    ['linear', 'half_pixel', 'floor'],
    ['linear', 'align_corners', 'floor'],
    ['cubic', 'pytorch_half_pixel', 'floor'],
  ] as const;
  const scales = { twice: [2, 0.5], more: [1.5, 3] };
  const sized = weighted.map((way) => ['sizes', way] as const);
  const scaled = [
    ...[...nearest, ...weighted].map((way) => ['twice', way] as const),
    ...[...nearest, weighted[0]].map((way) => ['more', way] as const),
  ];
  const all = [...sized, ...scaled].map((one, i) => [`y${i}`, ...one] as const);
  const bytes = modelOf({
    inputs: [port('x', 1, [1, 2, 'h', 'w']), port('like', 1, [1, 2, 'p', 9])],
    outputs: all.map(([name]) => port(name, 1, [1, 2, `${name}h`, `${name}w`])),
    initializers: Object.entries(scales).map(([name, list]) => float(name, [4], [1, 1, ...list])),
    nodes: [
      node('Shape', ['like'], ['sizes']),
      ...all.map(([name, by, [mode, coordinates, nearest]]) =>
        node(
          'Resize',
          by === 'sizes' ? ['x', '', '', 'sizes'] : ['x', '', by],
          [name],
          [
            attribute('mode', mode),
            attribute('coordinate_transformation_mode', coordinates),
            attribute('nearest_mode', nearest),
          ],
        ),
      ),
    ],
  });
  return { bytes, names: all.map(([name]) => name) };
}

test('pictures are resized to and from open sizes as to and from known ones', async () => {
  const { bytes, names } = resizing();
  const out = temporary();
  const dims = ['h=4..96', 'w=4..96', 'p=4..96'].flatMap((dim) => ['--dim', dim]);
  const built = await sinter(
    'build',
    file(bytes),
    '--out',
    out,
    '--target',
    'wasm,webgpu',
    '--software',
    ...dims,
  );
  expect([built.code, built.err]).toEqual([0, '']);
  const { load } = (await import(path.join(out, 'index.js'))) as {
    load(options: LoadOptions): Promise<Loaded>;
  };
  const known = await loadOnnx(bytes);
  const bundles = await Promise.all(Object.values(places).map((place) => load(place())));
  // Sizes that are equal, ends of the ranges, and some between.
  for (const [h, w, p] of [
    [8, 6, 16],
    [96, 4, 4],
    [7, 9, 7],
    [5, 11, 13],
  ] as const) {
    const of = (height: number, width: number): HostArray & { readonly data: Float32Array<ArrayBuffer> } => ({
      dtype: 'f32',
      shape: [1, 2, height, width],
      data: Float32Array.from({ length: 2 * height * width }, (_, i) => ((i * 37) % 23) / 8 - 1),
    });
    const given = { x: of(h, w), like: of(p, 9) };
    const tensors = Object.entries(given).map(([name, { data, shape }]) => [name, tensor(data, { shape })]);
    const expected = await known.run(Object.fromEntries(tensors));
    for (const bundle of bundles) {
      const found = await bundle.run(given);
      for (const name of names) {
        const [a, b] = [found[name] as Float32Array, await expected[name]!.data()];
        expect(a.length, name).toBe(b.length);
        const worst = Math.max(...a.map((value, i) => Math.abs(value - Number(b[i]))));
        expect(worst, `${name} at ${[h, w, p].join(', ')}`).toBeLessThan(2e-5);
      }
    }
  }
  for (const bundle of bundles) bundle.dispose();
});
