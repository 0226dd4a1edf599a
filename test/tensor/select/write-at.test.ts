// Writing where `at` reads: random indices of every kind against loops over the positions that `at` reads of a table of positions.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import type { Index } from '../../../src/tensor/ops/shape/indexing.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { everyDevice } from '../../support/devices.ts';
import { holds, read } from '../ops/support.ts';

/** Each with what an element becomes where a value meets it. */
const modes = {
  setAt: [sn.setAt, (_: number, value: number) => value],
  addAt: [sn.addAt, (x: number, value: number) => x + value],
  mulAt: [sn.mulAt, (x: number, value: number) => x * value],
  minAt: [sn.minAt, Math.min],
  maxAt: [sn.maxAt, Math.max],
} as const;
type Name = keyof typeof modes;

/** An entry by numbers, so that a counterexample prints. */
type Entry =
  | { readonly kind: 'number' | 'list' | 'tensor'; readonly at: readonly number[] }
  | { readonly kind: 'range'; readonly start: number; readonly stop: number; readonly step: number }
  | { readonly kind: 'all' | 'new' };

const entryOf = (size: number): fc.Arbitrary<Entry> => {
  const place = fc.integer({ min: -size, max: size - 1 });
  const places = fc.array(place, { minLength: 3, maxLength: 3 });
  return fc.oneof(
    fc.record({ kind: fc.constant('number' as const), at: fc.tuple(place) }),
    fc.record({ kind: fc.constantFrom('list' as const, 'tensor' as const), at: places }),
    fc.record({
      kind: fc.constant('range' as const),
      start: fc.integer({ min: -size - 1, max: size }),
      stop: fc.integer({ min: -size - 1, max: size }),
      step: fc.constantFrom(1, 2, 3, -1, -2),
    }),
    fc.constant({ kind: 'all' as const }),
  );
};

interface Case {
  readonly shape: readonly number[];
  readonly entries: readonly Entry[];
  readonly name: Name;
  readonly isSpread: boolean;
}

const cases: fc.Arbitrary<Case> = fc
  .array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 })
  .chain((shape) =>
    fc.record({
      shape: fc.constant(shape),
      entries: fc
        .integer({ min: 0, max: shape.length })
        .chain((count) => fc.tuple(...shape.slice(0, count).map(entryOf)))
        .chain((entries) =>
          fc.boolean().map((isNew): Entry[] => (isNew ? [{ kind: 'new' }, ...entries] : [...entries])),
        ),
      name: fc.constantFrom(...(Object.keys(modes) as Name[])),
      isSpread: fc.boolean(),
    }),
  );

function indexOf(entry: Entry): Index {
  switch (entry.kind) {
    case 'number':
      return entry.at[0]!;
    case 'list':
      return entry.at;
    case 'tensor':
      return sn.tensor([...entry.at], { dtype: 'i32' });
    case 'range':
      return { start: entry.start, stop: entry.stop, step: entry.step };
    case 'all':
      return ':';
    case 'new':
      return null;
  }
}

const ramp = (size: number, from = 0): number[] => Array.from({ length: size }, (_, i) => i + from);

async function check({ shape, entries, name, isSpread }: Case): Promise<void> {
  const size = shape.reduce((product, dim) => product * dim, 1);
  const indices = entries.map(indexOf);
  const places = sn.tensor(ramp(size), { shape, dtype: 'i32' }).at(...indices);
  const numbers = ramp(places.size, 2);
  const value = isSpread ? sn.tensor(3) : sn.tensor(numbers, { shape: places.shape, dtype: 'f32' });
  const x = sn.tensor(
    ramp(size).map((i) => (i * 7) % 5),
    { shape, dtype: 'f32' },
  );
  const expected = await read(x);
  const [write, fold] = modes[name];
  (await read(places)).forEach((place, i) => {
    expected[place] = fold(expected[place]!, isSpread ? 3 : numbers[i]!);
  });
  expect(await read(write(x, indices, value))).toEqual(expected);
}

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice('interpreter'));
  test('random indices write where at reads', async () => {
    await holds(device === 'interpreter' ? 300 : device === 'wasm' ? 60 : 8, cases, check);
  });
});

describe('what is written', () => {
  const x = (): Tensor => sn.arange(0, 6, 1, { dtype: 'f32' }).reshape([2, 3]);

  test('a mask, a number, and values for the axes behind it', async () => {
    const mask = sn.tensor([true, false]);
    expect(await sn.setAt(x(), [mask], 9).array()).toEqual([
      [9, 9, 9],
      [3, 4, 5],
    ]);
    expect(await sn.addAt(x(), [mask], sn.tensor([10, 20, 30])).array()).toEqual([
      [10, 21, 32],
      [3, 4, 5],
    ]);
    expect(await read(sn.maxAt(x(), [x().gt(3)], 4.5))).toEqual([0, 1, 2, 3, 4.5, 5]);
  });

  test('bool is or and and; complex numbers are added and multiplied; integers stay exact', async () => {
    const flags = sn.tensor([true, false]);
    expect(await flags.addAt([1], true).array()).toEqual([true, true]);
    expect(await sn.mulAt(flags, [':'], sn.tensor([false, true])).array()).toEqual([false, false]);
    const z = sn.complex(sn.tensor([1, 2]), sn.tensor([3, 4]));
    expect(await z.addAt([1], 1).array()).toEqual([
      { re: 1, im: 3 },
      { re: 3, im: 4 },
    ]);
    expect(await sn.mulAt(z, [0], z.at(1)).array()).toEqual([
      { re: -10, im: 10 },
      { re: 2, im: 4 },
    ]);
    const large = sn.tensor([2n ** 60n, 1n], { dtype: 'i64' });
    expect(await large.addAt([[0, 0]], sn.tensor([1n, 1n], { dtype: 'i64' })).data()).toEqual(
      BigInt64Array.of(2n ** 60n + 2n, 1n),
    );
  });

  test('gradients go to the value where it stands, and to x elsewhere', async () => {
    const [dx, dv] = sn.grad(
      (a: Tensor, v: Tensor) =>
        sn
          .setAt(a, [{ step: 2 }, 1], v)
          .mul(sn.arange(1, 7, 1, { dtype: 'f32' }).reshape([2, 3]))
          .sum(),
      { argnums: [0, 1] },
    )(x(), sn.tensor([7]));
    expect(await read(dx)).toEqual([1, 0, 3, 4, 5, 6]);
    expect(await read(dv)).toEqual([2]);
    const products = sn.grad((v: Tensor) => sn.mulAt(x(), [[0, 1], 2], v).sum())(sn.tensor([2, 3]));
    expect(await read(products)).toEqual([2, 5]);
  });

  test('a slice is written in one kernel, without a scatter', () => {
    const explained = sn.explain(sn.setAt(sn.ones([8, 8]).cumsum(0), [{ start: 2, stop: 6 }, 3], 5));
    expect(explained.toText()).not.toContain('scatter');
  });
});

describe('what is refused', () => {
  const x = sn.ones([2, 3]);
  test.each([
    [
      'a value that does not broadcast',
      () => x.setAt([0], sn.ones([2])),
      /setAt: the values must broadcast to \[3\]/,
    ],
    ['a position outside', () => x.addAt([2], 1), /addAt: index 2 is outside axis 0/],
    ['too many indices', () => sn.mulAt(x, [0, 0, 0], 1), /mulAt: 3 indices for/],
    ['a value of another dtype', () => x.setAt([0], sn.ones([3], { dtype: 'i32' })), /setAt/],
    ['a mask beside others', () => x.setAt([0, sn.tensor([true, true, false])], 1), /setAt: a mask selects/],
    ['a mask of another shape', () => x.setAt([sn.tensor([true])], 1), /setAt: the mask must cover/],
    [
      'an order of complex numbers',
      () => sn.maxAt(sn.complex(x, x), [0], 1),
      /maxAt: complex numbers have no order/,
    ],
  ])('%s', (_, call, message) => expect(call).toThrow(message));
});
