// Sizes left open within ranges: one program for all of them, whose scalars are formulas that were
// found when the bundle was built.

import * as fc from 'fast-check';
import * as path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { Formulas, showFormula } from '../../src/aot/formula.ts';
import type { OpenPoint } from '../../src/aot/sizes.ts';
import type { BundleTarget, Formula, Sizes } from '../../src/bundle-runtime/manifest.ts';
import type { Outputs } from '../../src/bundle-runtime/runtime.ts';
import { valueOf } from '../../src/bundle-runtime/sizes.ts';
import {
  arange,
  avgPool2d,
  cat,
  pad,
  rand,
  randn,
  tensor,
  whileLoop,
  zeros,
  type Tensor,
} from '../../src/index.ts';
import { standIn } from '../cuda/standin/standin.ts';
import { checkLaw } from '../support/property.ts';
import { built, written } from './bundles.ts';
import { type Load, usePlaces } from './places.ts';

const { places } = usePlaces();
const found = standIn();

type Given = Readonly<Record<string, readonly [min: number, max: number, multipleOf?: number]>>;

/** A function of one tensor, or of several, with sizes in ranges. */
function pointOf(
  fn: (...args: never[]) => unknown,
  ranges: Given,
  inputs: (sizes: Sizes) => readonly unknown[],
): OpenPoint {
  return {
    name: 'run',
    sizes: [{}],
    ranges: new Map(
      Object.entries(ranges).map(([name, [min, max, multipleOf = 1]]) => [name, { min, max, multipleOf }]),
    ),
    at: (sizes) => ({ name: 'run', fn, inputs: inputs(sizes) }),
  };
}

const weights = tensor(
  Array.from({ length: 64 }, (_, i) => Math.sin(i)),
  { shape: [8, 8] },
);

/** Attention with a mask, a scale that follows from the length, and views at places that do. */
function attend(x: Tensor, mask: Tensor): Record<string, Tensor> {
  const [, length] = x.shape as readonly [number, number, number];
  const q = x.matmul(weights);
  const scores = q.matmul(q.transpose(-1, -2)).mul(1 / Math.sqrt(length));
  const y = scores.add(mask.unsqueeze(1)).softmax(-1).matmul(x);
  return { y, mean: y.mean(1), flat: y.reshape([-1]), last: x.slice(1, length - 1, length) };
}

/** With a state that each call changes. */
const counted = ({ calls }: { calls: Tensor }, x: Tensor, mask: Tensor): unknown => ({
  state: { calls: calls.add(1) },
  ...attend(x, mask),
});

async function loaderOf(point: OpenPoint, state?: unknown): Promise<{ load: Load; count: number }> {
  const targets: BundleTarget[] = ['cuda', 'webgpu', 'wasm'];
  const bundle = await built([point], { targets, ...(state !== undefined && { state }) });
  expect(bundle.notes).toEqual([]);
  const { load } = (await import(path.join(written(bundle), 'index.js'))) as { load: Load };
  return { load, count: bundle.manifest.entries['run']!.programs.wasm!.length };
}

describe('sizes within ranges', () => {
  let load: Load;
  let count: number;
  beforeAll(async () => {
    const point = pointOf(counted as never, { batch: [1, 3], length: [2, 130] }, ({ batch, length }) => [
      zeros([batch!, length!, 8]),
      zeros([batch!, length!]),
    ]);
    ({ load, count } = await loaderOf(point, { calls: zeros([1]) }));
  });

  test.for(Object.keys(places))('have one program for all on %s', async (place, { skip }) => {
    if (place === 'cuda' && !found.available) skip(found.reason);
    // Up to an eighth, and all; the same for batches of one and the shortest length, where fewer views move anything.
    expect(count).toBeLessThanOrEqual(6);
    const model = await load(places[place]!());
    const sizes = [
      [1, 2],
      [3, 130],
      [2, 5],
      [1, 31],
      [3, 77],
      [2, 130],
    ] as const;
    for (const [batch, length] of sizes) {
      const [x, mask] = [randn([batch, length, 8]), randn([batch, length])];
      const given = { data: (await x.data()) as Float32Array<ArrayBuffer>, shape: x.shape };
      const results = await model.run({ x: given, mask: (await mask.data()) as Float32Array<ArrayBuffer> });
      for (const [name, expected] of Object.entries(attend(x, mask))) {
        const values = (await expected.data()) as Float32Array;
        expect(results[name]).toHaveLength(values.length);
        values.forEach((value, i) => expect((results[name] as Float32Array)[i]).toBeCloseTo(value, 4));
      }
    }
    expect([...(await model.weight('calls'))]).toEqual([sizes.length]);
    model.dispose();
  });

  test('refuse those outside by name', async () => {
    const model = await load(places['wasm']!());
    const call = (shape: readonly number[], mask: number): Promise<Outputs> => {
      const data = new Float32Array(shape.reduce((size, extent) => size * extent, 1));
      return model.run({ x: { data, shape }, mask: new Float32Array(mask) });
    };
    const range = 'built for batch 1 to 3; length 2 to 130';
    await expect(call([1, 131, 8], 131)).rejects.toMatchObject({ code: 'E_SHAPE' });
    await expect(call([1, 131, 8], 131)).rejects.toThrow(`run: length is 131 in x: ${range}`);
    await expect(call([4, 2, 8], 8)).rejects.toThrow(`run: batch is 4 in x: ${range}`);
    await expect(call([2, 3, 8], 5)).rejects.toThrow('mask is f32[batch, length]');
    await expect(call([2, 3, 7], 6)).rejects.toThrow('x is f32[batch, length, 8]');
    const flat = model.run({ x: new Float32Array(48), mask: new Float32Array(6) });
    await expect(flat).rejects.toThrow(
      `run: the inputs do not determine batch: ${range}\n  try: { data, shape }`,
    );
    // Shapes may come from texts: they are the numbers that these say, or refused.
    const texts = (shape: unknown): Promise<Outputs> => call(shape as number[], 6);
    expect((await texts(['2', '3', '8']))['y']).toHaveLength(48);
    const x = { data: new Float32Array(48), shape: '2,3,8' as never };
    await expect(model.run({ x, mask: new Float32Array(6) })).rejects.toMatchObject({ code: 'E_SHAPE' });
    model.dispose();
  });

  test('are told by counts, and draw what they draw alone', async () => {
    const fn = (x: Tensor): Record<string, Tensor> => {
      const [n] = x.shape as readonly [number];
      return {
        noisy: x.add(rand([n])).sub(rand([n])),
        pooled: avgPool2d(x.reshape([1, 1, 1, n]), [1, 3], { stride: [1, 2] }).reshape([-1]),
        scaled: x.mul(Math.log(n)).sum(),
      };
    };
    const { load: loadDrawing } = await loaderOf(pointOf(fn, { n: [4, 400, 4] }, ({ n }) => [zeros([n!])]));
    const model = await loadDrawing(places['wasm']!());
    for (const n of [4, 12, 60, 400]) {
      const x = Float32Array.from({ length: n }, (_, i) => i % 7);
      const results = await model.run({ x });
      const expected = fn(tensor(x));
      for (const name of ['pooled', 'scaled']) {
        const values = (await expected[name]!.data()) as Float32Array;
        expect(results[name]).toHaveLength(values.length);
        values.forEach((value, i) =>
          expect((results[name] as Float32Array)[i]! / (value || 1)).toBeCloseTo(value && 1, 5),
        );
      }
      const noise = (results['noisy'] as Float32Array).map((value, i) => value - x[i]!);
      expect(new Set(noise).size).toBeGreaterThan(n / 2);
    }
    await expect(model.run({ x: new Float32Array(10) })).rejects.toThrow(
      'run: n is 10 in x: built for n 4 to 400, a multiple of 4',
    );
    model.dispose();
  });

  test('may be held by a limit, which most sizes are above', async () => {
    const table = tensor(Float32Array.from({ length: 100 }, (_, i) => i));
    const fn = (x: Tensor): Tensor => {
      const held = Math.min(x.shape[0]!, 64);
      return x.mul(1 / held).add(table.slice(0, 0, held).sum());
    };
    const { load: loadHeld, count: programs } = await loaderOf(
      pointOf(fn, { n: [1, 2000] }, ({ n }) => [zeros([n!])]),
    );
    expect(programs).toBeLessThanOrEqual(5);
    const model = await loadHeld(places['wasm']!());
    for (const n of [1, 2, 63, 64, 65, 700, 2000]) {
      const held = Math.min(n, 64);
      const { output } = await model.run({ x: new Float32Array(n).fill(held) });
      expect(output).toEqual(new Float32Array(n).fill(1 + (held * (held - 1)) / 2));
    }
    model.dispose();
  });

  const one = ({ n }: Sizes): readonly unknown[] => [zeros([n!])];

  test('give outputs what follows from whole parts, also where the smallest have programs of their own', async () => {
    const fn = (x: Tensor): Tensor => {
      const [rows, columns] = x.shape.map((size) => Math.floor(size / 3)) as [number, number];
      const at = arange(rows).unsqueeze(1).add(arange(columns)).reshape([-1]);
      return cat([x.shape[0] === 5 ? at.exp() : at, x.sum().reshape([1])]);
    };
    const { load: loadTokens } = await loaderOf(
      pointOf(fn, { h: [5, 40], w: [6, 50] }, ({ h, w }) => [zeros([h!, w!])]),
    );
    const model = await loadTokens(places['wasm']!());
    for (const [h, w] of [
      [5, 7],
      [6, 6],
      [40, 50],
      [17, 31],
    ] as const) {
      const { output } = await model.run({ x: { data: new Float32Array(h * w).fill(1), shape: [h, w] } });
      const columns = Math.floor(w / 3);
      const places = Array.from({ length: Math.floor(h / 3) * columns }, (_, i) => {
        const at = Math.floor(i / columns) + (i % columns);
        return h === 5 ? Math.exp(at) : at;
      });
      expect(output).toHaveLength(places.length + 1);
      [...places, h * w].forEach((value, i) => expect((output as Float32Array)[i]).toBeCloseTo(value, 3));
    }
    model.dispose();
  });

  test('may be numbers that the function has for itself', async () => {
    // Equal nodes are one, so recordings at 3, 4 and 5 have fewer nodes than those at other sizes.
    const line = (size: number): Tensor => arange(size).mul(arange(size)).sum();
    const fn = (x: Tensor): Tensor => x.add(line(x.shape[0]!)).add(line(3)).add(line(4)).add(line(5));
    const { load: loadOwn } = await loaderOf(pointOf(fn, { n: [1, 6] }, one));
    const model = await loadOwn(places['wasm']!());
    for (let n = 1; n <= 6; n++) {
      const { output } = await model.run({ x: new Float32Array(n).fill(2) });
      const squares = ((n - 1) * n * (2 * n - 1)) / 6;
      expect(output).toEqual(new Float32Array(n).fill(2 + squares + 5 + 14 + 30));
    }
    model.dispose();
  });

  const table = tensor(Float32Array.from({ length: 32 }, (_, i) => i));
  test.each<[string, Given, (x: Tensor) => Tensor, (readonly number[])[]]>([
    [
      'follow from whole parts that few sizes tell apart',
      { h: [32, 192] },
      (x) => x.slice(0, 0, x.shape[0]!, 48).cumsum(0),
      [32, 48, 49, 61, 72, 96, 97, 115, 144, 145, 192].map((h) => [h]),
    ],
    [
      'be whole parts that the first sizes and the last do not tell from others',
      { n: [1, 300] },
      (x) => x.mul(Math.floor(x.shape[0]! / 40)),
      Array.from({ length: 300 }, (_, i) => [i + 1]),
    ],
    [
      'be whole parts that are even at most of the sizes that are tried',
      { n: [32, 300] },
      (x) => x.mul(Math.floor(x.shape[0]! / 48)),
      Array.from({ length: 269 }, (_, i) => [i + 32]),
    ],
    [
      'fill what is padded to a multiple, which some sizes are',
      { n: [1, 100] },
      (x) => {
        const [n] = x.shape as readonly [number];
        return pad(x, [[0, (8 - (n % 8)) % 8]], { value: 2 })
          .reshape([-1, 8])
          .sum(1);
      },
      [1, 7, 8, 9, 16, 63, 64, 99, 100].map((n) => [n]),
    ],
    [
      'begin views where a limit holds a number, which is a size elsewhere',
      { n: [1, 18], m: [1, 18] },
      (x) => {
        const held = Math.min(x.shape[0]!, 16);
        const around = table.slice(0, 16 - held, 16 + held);
        return around.mul(held).sum().add(x.sum(1).mul(x.shape[0]!));
      },
      [1, 2, 9, 15, 16, 17, 18].flatMap((n) => [1, 5, 16, 18].map((m) => [n, m])),
    ],
    [
      'have a program of their own where several are smallest together',
      { n: [2, 18], m: [2, 18] },
      (x) => (x.shape.every((size) => size === 2) ? x.neg() : x.mul(x.shape[0]!)),
      [2, 3, 18].flatMap((n) => [2, 3, 18].map((m) => [n, m])),
    ],
    [
      // A constant of the body is recorded before the others where it is the size, by which the mean divides.
      'be a constant of the body of a loop',
      { n: [1, 200] },
      (x) => {
        const grow = (y: Tensor): Tensor => y.mul(1.5).add(x.mean(0).abs().add(0.25));
        return whileLoop((y: Tensor) => y.sum().lt(50), grow, zeros([1]));
      },
      [1, 2, 49, 50, 51, 149, 200].map((n) => [n]),
    ],
  ])('may %s', async (_, ranges, fn, all) => {
    const names = Object.keys(ranges);
    const point = pointOf(fn, ranges, (sizes) => [zeros(names.map((name) => sizes[name]!))]);
    const { load: loadFound } = await loaderOf(point);
    const model = await loadFound(places['wasm']!());
    for (const shape of all) {
      const data = Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => (i % 7) - 2);
      const { output } = await model.run({ x: { data, shape } });
      expect(output).toEqual(await fn(tensor(data, { shape })).data());
    }
    model.dispose();
  });

  test.each<[string, (x: Tensor) => unknown, string]>([
    ['a condition', (x) => (x.shape[0]! % 7 === 3 ? x.mul(2) : x.exp()), 'run does something else at n'],
    ['a limit', (x) => x.mul(x.shape[0]! > 700 ? 3 : 2), 'has a number of constant f32[]'],
    [
      'elements',
      (x) => x.mul(tensor(Float32Array.from(x.shape[0]! % 2 ? [1] : [2]))),
      'makes a tensor of elements',
    ],
    ['an arbitrary number', (x) => x.mul(Math.cos(x.shape[0]!)), 'no formula known here gives of n'],
  ])('%s that follows from a size is refused', async (_, fn, words) => {
    await expect(built([pointOf(fn as never, { n: [2, 1000] }, one)], { targets: ['wasm'] })).rejects.toThrow(
      words,
    );
  });

  test('few sizes have a program each where one cannot be', async () => {
    const fn = (x: Tensor): Tensor => x.mul(Math.cos(x.shape[0]!));
    const bundle = await built([pointOf(fn as never, { n: [2, 20] }, one)], { targets: ['wasm'] });
    expect(bundle.notes).toEqual([expect.stringContaining(': 19 programs, one for each set of sizes')]);
    const { load: loadEach } = (await import(path.join(written(bundle), 'index.js'))) as { load: Load };
    const model = await loadEach(places['wasm']!());
    const { output } = await model.run({ x: Float32Array.of(1, 1, 1) });
    expect((output as Float32Array)[0]).toBeCloseTo(Math.cos(3), 6);
    model.dispose();
  });
});

test('formulas give back what made the numbers', () => {
  const small = fc.integer({ min: -9, max: 9 });
  const factor = fc.integer({ min: 1, max: 9 });
  const formula: fc.Arbitrary<Formula> = fc.oneof(
    fc
      .tuple(small, small, small, small)
      .map(([a, b, c, d]): Formula => [
        '+',
        ['*', a, ['*', 'm', 'n']],
        ['+', ['*', b, 'm'], ['+', ['*', c, 'n'], d]],
      ]),
    fc
      .tuple(factor, small, fc.integer({ min: 2, max: 32 }))
      .map(([a, b, c]): Formula => ['floor', ['/', ['+', ['*', a, 'n'], b], c]]),
    fc
      .tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 60, max: 400 }))
      .map(([a, b]): Formula => ['min', ['*', a, 'm'], b]),
    factor.map((a): Formula => ['/', 1, ['sqrt', ['*', a, 'n']]]),
    factor.map((a): Formula => ['fround', ['/', a, ['+', 'n', a]]]),
    fc
      .tuple(small, fc.integer({ min: 2, max: 1000 }))
      .map(([a, c]): Formula => ['fround', ['/', ['+', 'n', a], c]]),
    fc
      .tuple(small, fc.integer({ min: 2, max: 32 }))
      .map(([a, c]): Formula => ['+', 'n', ['*', -c, ['floor', ['/', ['+', 'n', a], c]]]]),
    factor.map((a): Formula => ['*', a, ['log', 'n']]),
  );
  const random = (seed: number) => (): number => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const draw = random(7);
  const size = (): number => 2 + Math.floor(draw() * 500);
  const samples = Array.from({ length: 40 }, (_, i) => ({
    m: i < 20 ? i + 2 : size(),
    n: i % 4 < 2 ? i + 2 : size(),
  }));
  checkLaw(150, formula, (made) => {
    const values = samples.map((sizes) => valueOf(made, sizes));
    const again = new Formulas(['m', 'n'], samples).find(values);
    expect(again, showFormula(made)).toBeDefined();
    for (const sizes of samples) expect(valueOf(again!, sizes)).toBe(valueOf(made, sizes));
  });
});

test('products and sums of numbers that have formulas have one', () => {
  const samples = Array.from({ length: 30 }, (_, i) => ({ h: 2 + ((i * 37) % 61), w: 2 + ((i * 53) % 59) }));
  const formulas = new Formulas(['h', 'w'], samples);
  // Rows and columns of a picture behind strides, and how many elements it has at two scales.
  const rows = samples.map(({ h }) => Math.ceil(h / 4));
  const columns = samples.map(({ w }) => Math.ceil(w / 4));
  const elements = rows.map((row, i) => row * columns[i]!);
  const all = elements.map((count, i) => count + samples[i]!.h * samples[i]!.w);
  expect(formulas.find(elements)).toBeUndefined();
  for (const values of [rows, columns, elements, samples.map(({ h, w }) => h * w), all]) {
    const found = formulas.find(values);
    expect(found).toBeDefined();
    expect(samples.map((sizes) => valueOf(found!, sizes))).toEqual(values);
  }
  expect(valueOf(formulas.find(all)!, { h: 101, w: 7 })).toBe(26 * 2 + 101 * 7);
});

test('sums of products of whole parts have a formula', () => {
  const samples = Array.from({ length: 40 }, (_, i) => ({
    b: 1 + (i % 5),
    h: 8 + ((i * 37) % 61),
    w: 8 + ((i * 53) % 59),
  }));
  const tokens: Formula = [
    '*',
    'b',
    ['+', ['*', ['floor', ['/', ['+', 'h', -3], 4]], ['floor', ['/', 'w', 8]]], 1],
  ];
  const formulas = new Formulas(['b', 'h', 'w'], samples);
  for (const part of [
    ['floor', ['/', ['+', 'h', -3], 4]],
    ['floor', ['/', 'w', 8]],
  ] as const)
    expect(formulas.find(samples.map((sizes) => valueOf(part, sizes)))).toBeDefined();
  // Rows at one scale less those at another.
  const coarse: Formula = ['floor', ['/', 'h', 32]];
  const less: Formula = ['+', coarse, ['*', -1, ['floor', ['/', ['+', 'h', -3], 4]]]];
  expect(formulas.find(samples.map((sizes) => valueOf(coarse, sizes)))).toBeDefined();
  for (const formula of [tokens, less]) {
    const found = formulas.find(samples.map((sizes) => valueOf(formula, sizes)));
    expect(found).toBeDefined();
    const sizes = { b: 3, h: 101, w: 90 };
    expect(valueOf(found!, sizes)).toBe(valueOf(formula, sizes));
  }
});
