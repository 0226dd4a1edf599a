// Bundles tell labels and indices that are outside, on every target and wherever the integers come from.

import * as path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { BundleOptions } from '../../src/aot/bundle.ts';
import type { EntryPoint } from '../../src/aot/entry.ts';
import type { OpenPoint } from '../../src/aot/sizes.ts';
import type { BundleTarget } from '../../src/bundle-runtime/manifest.ts';
import type { Inputs } from '../../src/bundle-runtime/runtime.ts';
import {
  arange,
  cat,
  crossEntropy,
  embedding,
  ones,
  scan,
  tensor,
  vmap,
  zeros,
  type Tensor,
} from '../../src/index.ts';
import { built, written } from './bundles.ts';
import { usePlaces, type Load } from './places.ts';

const { places } = usePlaces();
const targets: readonly BundleTarget[] = ['cuda', 'webgpu', 'wasm'];

async function loaderOf(
  points: readonly (EntryPoint | OpenPoint)[],
  options: Partial<BundleOptions> = {},
): Promise<Load> {
  const folder = written(await built(points, { targets, ...options }));
  return ((await import(path.join(folder, 'index.js'))) as { load: Load }).load;
}

/** An entry by its name. */
function entryOf(model: object, name: string): (inputs: Inputs) => Promise<unknown> {
  return (model as Record<string, (inputs: Inputs) => Promise<unknown>>)[name]!;
}

const integers = (shape: readonly number[], dtype: 'i32' | 'i64' | 'u8' = 'i32'): Tensor =>
  zeros([...shape], { dtype });
const rows = tensor([1, 2, 3, 4, 5, 6], { shape: [3, 2] });

/** Functions, each with integers inside, and with some outside and what is said of them. */
const cases: Readonly<
  Record<
    string,
    {
      readonly fn: unknown;
      readonly inputs: readonly unknown[];
      readonly good: Inputs;
      readonly bad: Inputs;
      readonly says: string;
    }
  >
> = {
  labels: {
    fn: (scores: Tensor, labels: Tensor) => crossEntropy(scores, labels),
    inputs: [zeros([2, 3]), integers([2])],
    good: { scores: new Float32Array(6), labels: [2, 0] },
    bad: { scores: new Float32Array(6), labels: [2, 7] },
    says: 'labels: crossEntropy: label 7 is outside the 3 classes of f32[2,3]: 0 to 2 are inside',
  },
  embedded: {
    fn: (at: Tensor) => embedding(at, rows),
    inputs: [integers([2], 'i64')],
    good: { at: [2, 0] },
    bad: { at: [1, 2 ** 40] },
    says: 'embedded: embedding: index 1099511627776 is outside the 3 rows of f32[3,2]: 0 to 2 are inside',
  },
  bytes: {
    fn: (at: Tensor) => rows.gather(0, at),
    inputs: [integers([1, 2], 'u8')],
    good: { at: [2, 0] },
    bad: { at: [2, 200] },
    says: 'bytes: gather: index 200 is outside axis 0 of f32[3,2]: 0 to 2 are inside',
  },
  computed: {
    fn: (at: Tensor) => embedding(at.mul(2).sub(3), rows),
    inputs: [integers([2])],
    good: { at: [2, 2] },
    bad: { at: [2, 1] },
    says: 'computed: embedding: index -1 is outside the 3 rows of f32[3,2]: 0 to 2 are inside',
  },
  mapped: {
    fn: (at: Tensor) => vmap((one: Tensor) => embedding(one, rows))(at),
    inputs: [integers([2, 2])],
    good: { at: [2, 0, 1, 1] },
    bad: { at: [2, 0, 1, 3] },
    says: 'mapped: embedding: index 3 is outside the 3 rows of f32[3,2]: 0 to 2 are inside',
  },
  repeated: {
    fn: (at: Tensor) =>
      scan((sum: Tensor, one: Tensor) => [sum.add(embedding(one, rows)), sum], zeros([2]), at)[0],
    inputs: [integers([3])],
    good: { at: [0, 2, 1] },
    bad: { at: [0, 3, 1] },
    says: 'repeated: embedding: index 3 is outside the 3 rows of f32[3,2]: 0 to 2 are inside',
  },
};

describe('a bundle tells integers outside', () => {
  const points = Object.entries(cases).map(([name, { fn, inputs }]) => ({ name, fn: fn as never, inputs }));
  let checked: Promise<Load> | undefined;
  let open: Promise<Load> | undefined;

  test.each(Object.keys(places))('on %s', async (place) => {
    const model = await (await (checked ??= loaderOf(points)))(places[place]!());
    for (const [name, { good, bad, says }] of Object.entries(cases)) {
      const call = entryOf(model, name);
      await call(good);
      await expect(call(bad), name).rejects.toMatchObject({ code: 'E_INDEX', message: says });
      // The next call is judged by itself.
      await call(good);
    }
    model.dispose();
  });

  test('unless it is built without checks', async () => {
    const model = await (await (open ??= loaderOf(points, { checks: false, targets: ['wasm'] })))({});
    for (const [name, { bad }] of Object.entries(cases)) await entryOf(model, name)(bad);
    model.dispose();
    const without = await built(points, { checks: false, targets: ['wasm'] });
    expect(JSON.stringify(without.manifest)).not.toContain('"checks"');
  });
});

test('what is always inside is not checked', async () => {
  const fn = (x: Tensor): Tensor => embedding(x.argmax(1), rows).add(embedding(arange(2), rows));
  const { manifest } = await built([{ name: 'run', fn: fn as never, inputs: [zeros([2, 3])] }], {
    targets: ['wasm'],
  });
  expect(JSON.stringify(manifest)).not.toContain('"checks"');
});

test('a train step that labels are outside of says so', async () => {
  const fn = ({ w }: { w: Tensor }, labels: Tensor): unknown => {
    const loss = crossEntropy(w.expand([2, 3]), labels);
    return { state: { w: w.sub(0.1) }, loss };
  };
  const load = await loaderOf([{ name: 'train', fn: fn as never, inputs: [integers([2])] }], {
    state: { w: ones([3]) },
    targets: ['wasm'],
  });
  const model = await load({});
  const train = entryOf(model, 'train');
  await expect(train({ labels: [0, 3] })).rejects.toMatchObject({ code: 'E_INDEX' });
  await train({ labels: [0, 2] });
  model.dispose();
});

test('elements that a function holds are checked too', async () => {
  const fn = (x: Tensor): Tensor => x.add(embedding(tensor([1, 3], { dtype: 'i32' }), rows));
  const load = await loaderOf([{ name: 'run', fn: fn as never, inputs: [zeros([2, 2])] }], {
    targets: ['wasm'],
  });
  const model = await load({});
  await expect(model.run({ x: new Float32Array(4) })).rejects.toMatchObject({ code: 'E_INDEX' });
  model.dispose();
});

describe('where sizes are left open', () => {
  /** Positions in a sequence whose length is open: limits follow from it. */
  const point: OpenPoint = {
    name: 'run',
    sizes: [{}],
    ranges: new Map([['n', { min: 2, max: 64, multipleOf: 1 }]]),
    at: ({ n }) => ({
      name: 'run',
      fn: ((x: Tensor, at: Tensor) => cat([x.mul(2), x]).gather(0, at)) as never,
      inputs: [zeros([n!]), integers([2])],
    }),
  };

  test.each(Object.keys(places))('limits are those of the call, on %s', async (place) => {
    const model = await (await (opened ??= loaderOf([point])))(places[place]!());
    for (const n of [2, 3, 17, 64]) {
      const x = Float32Array.from({ length: n }, (_, i) => i);
      expect(await model.run({ x, at: [0, 2 * n - 1] })).toEqual({ output: Float32Array.of(0, n - 1) });
      await expect(model.run({ x, at: [0, 2 * n] })).rejects.toMatchObject({
        code: 'E_INDEX',
        message: `run: gather: index ${2 * n} is outside what the call has: 0 to ${2 * n - 1} are inside`,
      });
    }
    model.dispose();
  });
  let opened: Promise<Load> | undefined;

  test('indices are checked at all sizes where they are proven to be right at some', async () => {
    // 0, 1, 2, … 5, 5, …: inside where there are six rows or more.
    const proven: OpenPoint = {
      name: 'run',
      sizes: [{}],
      ranges: new Map(['rows', 'n'].map((name) => [name, { min: 2, max: 20, multipleOf: 1 }])),
      at: ({ rows, n }) => ({
        name: 'run',
        fn: ((x: Tensor, y: Tensor) => y.add(x.indexSelect(0, arange(y.shape[0]!).clamp(0, 5)))) as never,
        inputs: [zeros([rows!]), zeros([n!])],
      }),
    };
    const model = await (await loaderOf([proven]))(places['wasm']!());
    const line = (n: number): Float32Array<ArrayBuffer> => Float32Array.from({ length: n }, (_, i) => i);
    const call = (rows: number, n: number): Promise<unknown> =>
      model.run({ x: line(rows), y: new Float32Array(n) });
    expect(await call(6, 8)).toEqual({ output: Float32Array.of(0, 1, 2, 3, 4, 5, 5, 5) });
    expect(await call(3, 3)).toEqual({ output: Float32Array.of(0, 1, 2) });
    await expect(call(3, 4)).rejects.toMatchObject({
      code: 'E_INDEX',
      message: expect.stringContaining('index 3'),
    });
    model.dispose();
  });
});
