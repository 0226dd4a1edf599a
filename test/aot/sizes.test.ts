// Sizes left open: a program for each, chosen by what a call is given; and integers of 64 bits.

import * as fc from 'fast-check';
import * as path from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { EntryPoint } from '../../src/aot/entry.ts';
import { combinations, openEntry, type OpenPoint } from '../../src/aot/sizes.ts';
import { cat, ones, take, tensor, zeros, type Tensor } from '../../src/index.ts';
import type { BundleTarget, OpenType, Sizes } from '../../src/bundle-runtime/manifest.ts';
import type { Outputs } from '../../src/bundle-runtime/runtime.ts';
import { fits, fromBytes, toBytes } from '../../src/bundle-runtime/values.ts';
import type { ElementType } from '../../src/runtime/program.ts';
import { checkLaw } from '../support/property.ts';
import { standIn } from '../cuda/standin/standin.ts';
import { built, written } from './bundles.ts';
import { type Load, usePlaces } from './places.ts';

const { places, gpu } = usePlaces();
const found = standIn();
/** On each of the places, as far as they are there. */
function everywhere(name: string, work: (place: string) => Promise<void>): void {
  test.for(Object.keys(places))(name, async (place, { skip }) => {
    if (place === 'cuda' && !found.available) skip(found.reason);
    await work(place);
  });
}

async function loaderOf(point: EntryPoint | OpenPoint, state?: unknown): Promise<Load> {
  const targets: BundleTarget[] = ['cuda', 'webgpu', 'wasm'];
  const bundle = await built([point], { targets, ...(state !== undefined && { state }) });
  return ((await import(path.join(written(bundle), 'index.js'))) as { load: Load }).load;
}

const weights = tensor([1, 2, 3, 4, 5, 6], { shape: [3, 2] });
/** `[batch, length, 3]` times a weight, summed over the length, counted in a state. */
const open: OpenPoint = {
  name: 'run',
  sizes: combinations(
    new Map([
      ['batch', [1, 2]],
      ['length', [2, 4]],
    ]),
  ),
  at: ({ batch, length }: Sizes) => ({
    name: 'run',
    fn: (({ calls }: { calls: Tensor }, x: Tensor, mask: Tensor) => ({
      state: { calls: calls.add(1) },
      sums: x.matmul(weights).mul(mask.unsqueeze(-1)).sum(1),
    })) as never,
    inputs: [zeros([batch!, length!, 3]), zeros([batch!, length!])],
  }),
};

describe('sizes left open', () => {
  let load: Load;
  beforeAll(async () => {
    load = await loaderOf(open, { calls: zeros([1]) });
  });

  everywhere('choose the program on %s, and share the state', async (place) => {
    const model = await load(places[place]!());
    for (const [batch, length] of [
      [1, 2],
      [2, 4],
      [1, 2],
      [2, 2],
    ] as const) {
      const x = Float32Array.from({ length: batch * length * 3 }, (_, i) => i % 5);
      const shape = [batch, length];
      const mask = new Float32Array(batch * length).fill(1);
      const inputs = { x: { data: x, shape: [...shape, 3] }, mask: { data: mask, shape } };
      const { sums } = await model.run(inputs);
      const expected = tensor(x, { shape: [...shape, 3] })
        .matmul(weights)
        .sum(1);
      expect([...(sums as Float32Array)]).toEqual([...((await expected.data()) as Float32Array)]);
    }
    expect([...(await model.weight('calls'))]).toEqual([4]);
    model.dispose();
  });

  test('are told by counts of elements where one only has them', async () => {
    const model = await load(places['wasm']!());
    const call = (x: number, mask: number): Promise<Outputs> =>
      model.run({ x: new Float32Array(x), mask: new Float32Array(mask) });
    expect((await call(6, 2))['sums']).toHaveLength(2);
    expect((await call(24, 8))['sums']).toHaveLength(4);
    await expect(call(12, 4)).rejects.toMatchObject({ code: 'E_SHAPE' });
    await expect(call(12, 4)).rejects.toThrow('built for batch 1, 2; length 2, 4\n  try: { data, shape }');
    await expect(call(18, 6)).rejects.toThrow(
      'run: x is f32[batch, length, 3]: expected Float32Array, got Float32Array of 18',
    );
    const data = new Float32Array(18);
    await expect(model.run({ x: { data, shape: [3, 2, 3] }, mask: [] })).rejects.toThrow('of 18 in [3,2,3]');
    model.dispose();
  });

  test('one that was not built is named', async () => {
    const one: OpenPoint = {
      name: 'run',
      sizes: combinations(new Map([['batch', [1, 4]]])),
      at: ({ batch }) => ({
        name: 'run',
        fn: ((x: Tensor) => x.mul(2)) as never,
        inputs: [zeros([batch!, 3])],
      }),
    };
    const model = await (await loaderOf(one))(places['wasm']!());
    const found = await model.run({ x: new Float32Array(12).fill(2) });
    expect(found['output']).toEqual(new Float32Array(12).fill(4));
    const wrong = model.run({ x: new Float32Array(9) });
    await expect(wrong).rejects.toMatchObject({ code: 'E_SHAPE' });
    await expect(model.run({ x: new Float32Array(9) })).rejects.toThrow(
      'run: x is f32[batch, 3]: expected Float32Array, got Float32Array of 9, batch 3\n  built for batch 1, 4',
    );
    await expect(model.run({})).rejects.toThrow('got undefined');
    model.dispose();
  });

  test('are too many beyond a number', () => {
    const sizes = Array.from({ length: 9 }, (_, i) => i + 1);
    const dims = new Map([
      ['a', sizes],
      ['b', sizes],
    ]);
    expect(() => combinations(dims)).toThrow('81 sets of sizes (9 of a times 9 of b): expected at most 64');
  });

  test('have names that give every shape back', () => {
    const dims = fc.dictionary(
      fc.constantFrom('batch', 'length', 'width'),
      fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 }),
    );
    const extent = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constantFrom('batch', 'length', 'width'));
    checkLaw(
      200,
      fc.tuple(dims, fc.array(extent, { maxLength: 4 }), fc.integer({ min: 0, max: 2 })),
      (given) => {
        const [sizes, pattern, more] = given;
        const sets = combinations(new Map(Object.entries(sizes)));
        // Some extents are computed from sizes, and so have no name that was given.
        const shapeAt = (set: Sizes): number[] =>
          pattern.map((one) => (typeof one === 'number' ? one : 3 * (set[one] ?? 1) - more));
        const cases = sets.map((set) => ({
          sizes: set,
          traced: {
            inputs: [{ name: 'x', kind: 'tensor', dtype: 'f32', shape: shapeAt(set) } as const],
            outputs: [{ name: 'y', dtype: 'f32', shape: shapeAt(set) } as const],
          },
        }));
        const { entry, sizes: named } = openEntry('run', cases);
        for (const { shape } of [entry.inputs[0] as OpenType, entry.outputs[0]!])
          named.forEach((set, i) => {
            const found = shape.map((one) => (typeof one === 'string' ? set[one] : one));
            expect(found).toEqual(shapeAt(sets[i]!));
          });
      },
    );
  });

  test('a call fits the program of its sizes, and no other', () => {
    const sets = combinations(
      new Map([
        ['a', [1, 2, 3]],
        ['b', [2, 4]],
      ]),
    );
    const input = { name: 'x', kind: 'tensor', dtype: 'f32', shape: ['a', 3, 'b'] } as const;
    checkLaw(100, fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 5 })), ([a, b]) => {
      const value = { data: new Float32Array(3 * a * b), shape: [a, 3, b] };
      const found = sets.filter((set) => fits(input, value, set));
      expect(found).toEqual(sets.filter((set) => set['a'] === a && set['b'] === b));
      const plain = sets.filter((set) => fits(input, value.data, set));
      expect(plain).toEqual(sets.filter((set) => a * b === set['a']! * set['b']!));
    });
  });

  test('only sizes may differ', async () => {
    const point: OpenPoint = {
      name: 'run',
      sizes: [{ rank: 1 }, { rank: 2 }],
      at: ({ rank }) => ({
        name: 'run',
        fn: ((x: Tensor) => x.mul(2)) as never,
        inputs: [zeros(Array.from({ length: rank! }, () => 2))],
      }),
    };
    await expect(built([point])).rejects.toThrow(
      'run takes or returns other tensors at rank 2 than at rank 1: only sizes may differ',
    );
  });
});

describe('integers', () => {
  const rows = tensor([0, 10, 20, 30]);
  const point: EntryPoint = {
    name: 'run',
    fn: ((ids: Tensor) => ({ rows: take(rows, ids.remainder(4)), next: ids.add(1) })) as never,
    inputs: [zeros([3], { dtype: 'i64' })],
  };

  everywhere('of 64 bits go in and come out on %s', async (place) => {
    const model = await (await loaderOf(point))(places[place]!());
    for (const ids of [BigInt64Array.of(1n, 3n, 0n), Int32Array.of(1, 3, 0), [1, 3, 0], [1n, 3n, 0n]])
      expect(await model.run({ ids })).toEqual({
        rows: Float32Array.of(10, 30, 0),
        next: BigInt64Array.of(2n, 4n, 1n),
      });
    await expect(model.run({ ids: [1, 2.5, 0] })).rejects.toThrow(
      'run: ids: element 1 is 2.5, which does not fit i',
    );
    await expect(model.run({ ids: Float32Array.of(1, 2, NaN) })).rejects.toThrow('element 2 is NaN');
    await expect(model.run({ ids: [1, 2] })).rejects.toThrow('expected BigInt64Array of 3, got Array of 2');
    const large = await model.run({ ids: [0, 2 ** 31 - 1, 2 ** 40] });
    expect(large['next']).toEqual(BigInt64Array.of(1n, 2n ** 31n, 2n ** 40n + 1n));
    model.dispose();
  });

  test('come through as they are, or are refused', () => {
    const input = (dtype: ElementType): never => ({ name: 'x', kind: 'tensor', dtype, shape: [1] }) as never;
    const value = fc.oneof(fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }), fc.integer().map(BigInt));
    checkLaw(500, value, (x) => {
      for (const [dtype, low, high] of [
        ['i64', -(2n ** 63n), 2n ** 63n],
        ['u64', 0n, 2n ** 64n],
        ['i32', -(2n ** 31n), 2n ** 31n],
        ['u8', 0n, 256n],
      ] as const) {
        const take = (): bigint => {
          const bytes = toBytes('run', input(dtype), [x]);
          return BigInt(fromBytes(input(dtype), {}, bytes)[0]!);
        };
        if (x >= low && x < high) expect(take()).toBe(x);
        else expect(take).toThrow(`run: x: element 0 is ${x}, which does not fit ${dtype}`);
      }
    });
  });
});

describe('tensors without elements', () => {
  const point: EntryPoint = {
    name: 'run',
    fn: (({ none, calls }: { none: Tensor; calls: Tensor }, x: Tensor, y: Tensor) => ({
      state: { none: none.mul(2), calls: calls.add(1) },
      joined: cat([x, y, none]).mul(calls),
      same: x,
    })) as never,
    inputs: [zeros([0]), zeros([2])],
  };

  everywhere('go in, come out and are kept on %s, and nothing of no bytes is written', async (place) => {
    const written = vi.spyOn(gpu().queue, 'writeBuffer');
    onTestFinished(() => written.mockRestore());
    const model = await (await loaderOf(point, { none: zeros([0]), calls: ones([1]) }))(places[place]!());
    for (const call of [1, 2])
      expect(await model.run({ x: new Float32Array(), y: Float32Array.of(3, 4) })).toEqual({
        joined: Float32Array.of(3 * call, 4 * call),
        same: new Float32Array(),
      });
    expect([...(await model.weight('none')), ...(await model.weight('calls'))]).toEqual([3]);
    model.dispose();
    // Deno ends its process at one of them.
    const sizes = written.mock.calls.map(([, , data, , size]) => size ?? data.byteLength);
    expect(sizes.length > 0).toBe(place === 'webgpu');
    expect(sizes).not.toContain(0);
  });
});
