// Datasets and what is made of them: every combination gives the items that its definition says.

import * as fc from 'fast-check';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { manualSeed, setDevice, tensor, type Tensor } from '../../src/index.ts';
import type { HostTensor } from '../../src/io/index.ts';
import * as data from '../../src/data/index.ts';

setDevice('interpreter');

async function all<T>(source: data.Dataset<T> | data.Stream<T>): Promise<T[]> {
  const items: T[] = [];
  if ('get' in source) for (let i = 0; i < source.length; i++) items.push(await source.get(i));
  else for await (const item of source) items.push(item);
  return items;
}

const numbers = fc.array(fc.integer(), { maxLength: 20 });
const streamOf = (items: readonly number[]): data.Stream<number> =>
  data.stream(async function* () {
    yield* items;
  });

describe('of a dataset and of a stream alike', () => {
  const both = (
    law: (
      make: (items: readonly number[]) => data.Dataset<number>,
      items: number[],
      other: number[],
    ) => Promise<void>,
  ): Promise<void> =>
    fc.assert(
      fc.asyncProperty(numbers, numbers, async (items, other) => {
        await law((list) => data.fromArray(list), items, other);
        await law(streamOf as never, items, other);
      }),
      { numRuns: 30 },
    );

  test('concat is the items of one after those of the other', () =>
    both(async (make, a, b) => {
      expect(await all(data.concat(make(a), make(b), make(a)))).toEqual([...a, ...b, ...a]);
    }));

  test('map, filter and take are those of arrays', () =>
    both(async (make, a) => {
      expect(await all(data.map(make(a), (x) => -x))).toEqual(a.map((x) => -x));
      expect(await all(data.map(make(a), async (x) => [x]))).toEqual(a.map((x) => [x]));
      expect(await all(await data.filter(make(a), (x) => x % 2 === 0))).toEqual(a.filter((x) => x % 2 === 0));
      for (const count of [0, 1, 5, 100])
        expect(await all(data.take(make(a), count))).toEqual(a.slice(0, count));
    }));

  test('repeat is the items several times', () =>
    both(async (make, a) => {
      for (const times of [0, 1, 3])
        expect(await all(data.repeat(make(a), times))).toEqual(Array.from({ length: times }, () => a).flat());
    }));

  test('zip is pairs', () =>
    both(async (make, a) => {
      const b = a.map(String);
      const pairs: [number, string][] = await all(data.zip(make(a), data.fromArray(b)));
      expect(pairs).toEqual(a.map((x, i) => [x, b[i]]));
    }));
});

test('a stream cut short is ended', async () => {
  let isEnded = false;
  const counting = data.stream(function* () {
    try {
      for (let i = 0; ; i++) yield i;
    } finally {
      isEnded = true;
    }
  });
  expect(await all(data.take(data.zip(counting, counting), 2))).toEqual([
    [0, 0],
    [1, 1],
  ]);
  expect(isEnded).toBe(true);
});

test('subset takes items by their indices', async () => {
  const letters = data.fromArray([...'abcde']);
  expect(await all(data.subset(letters, [4, 0, 0]))).toEqual(['e', 'a', 'a']);
  expect(() => data.subset(letters, [5])).toThrow(/subset: there is no item 5: the dataset has 5/);
});

describe('randomSplit', () => {
  test('puts each item into one part, of the length asked for', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(9), { minLength: 1, maxLength: 4 }),
        fc.nat(),
        async (lengths, seed) => {
          const length = lengths.reduce((a, b) => a + b, 0);
          const whole = data.fromArray(Array.from({ length }, (_, i) => i));
          const parts = data.randomSplit(whole, lengths, { seed });
          expect(parts.map((part) => part.length)).toEqual(lengths);
          const items = (await Promise.all(parts.map((part) => all(part)))).flat();
          expect(items.sort((a, b) => a - b)).toEqual(await all(whole));
          const again = data.randomSplit(whole, lengths, { seed });
          expect(await all(data.concat(...again))).toEqual(await all(data.concat(...parts)));
        },
      ),
      { numRuns: 40 },
    ));

  test('gives shares what they come to, and what is left to the first', () => {
    const ten = data.fromArray([...'abcdefghij']);
    const [train, test] = data.randomSplit(ten, [0.75, 0.25]);
    expect([train.length, test.length]).toEqual([8, 2]);
    expect(data.randomSplit(ten, [0.33, 0.33, 0.34]).map(({ length }) => length)).toEqual([4, 3, 3]);
    expect(() => data.randomSplit(ten, [5, 6])).toThrow(/add up to 11: expected lengths that add up to 10/);
    expect(() => data.randomSplit(ten, [0.5, 0.4])).toThrow(/shares that add up to 1/);
  });
});

describe('arrays', () => {
  const pairs = data.fromArrays({
    x: { dtype: 'f32', shape: [3, 2], data: new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6).buffer) },
    y: Int16Array.of(7, 8, 9),
  });

  test('give rows that share their memory, batches that keep their dtype', async () => {
    expect(pairs.length).toBe(3);
    const item = await pairs.get(1);
    expect(item.x).toEqual({ dtype: 'f32', shape: [2], data: new Uint8Array(Float32Array.of(3, 4).buffer) });
    expect(item.y).toMatchObject({ dtype: 'i16', shape: [] });
    const batch = await pairs.batch!([2, 0, 2]);
    expect(await batch.x.array()).toEqual([
      [5, 6],
      [1, 2],
      [5, 6],
    ]);
    expect([batch.y.dtype, await batch.y.array()]).toEqual(['i16', [9, 7, 9]]);
  });

  test('make the same batch of items collated as of rows copied', async () => {
    const rows = data.collate([await pairs.get(2), await pairs.get(0)]);
    const copied = await pairs.batch!([2, 0]);
    expect(await rows.x.array()).toEqual(await copied.x.array());
    expect([rows.y.dtype, await rows.y.array()]).toEqual([copied.y.dtype, await copied.y.array()]);
  });

  test('have their elements in the typed array of their dtype, or in bytes', async () => {
    const x = Float32Array.of(1, 2, 3, 4, 5, 6);
    const set = data.fromArrays({
      x: { dtype: 'f32', shape: [3, 2], data: x },
      ok: { dtype: 'bool', shape: [3], data: Uint8Array.of(1, 0, 1) },
      half: { dtype: 'f16', shape: [3], data: Uint16Array.of(0x3c00, 0x4000, 0xc000) },
      z: { dtype: 'c64', shape: [3], data: x },
      nested: [{ dtype: 'i64', shape: [3, 1], data: BigInt64Array.of(7n, 8n, 9n) }],
    });
    expectTypeOf(set).toEqualTypeOf<
      data.Dataset<{
        readonly x: HostTensor<'f32'>;
        readonly ok: HostTensor<'bool'>;
        readonly half: HostTensor<'f16'>;
        readonly z: HostTensor<'c64'>;
        readonly nested: readonly [HostTensor<'i64'>];
      }>
    >();
    expectTypeOf(set.batch!([0]))
      .resolves.toHaveProperty('x')
      .toEqualTypeOf<Tensor<'f32'>>();
    const item = await set.get(1);
    expect(item.x).toEqual({ dtype: 'f32', shape: [2], data: new Uint8Array(x.buffer, 8, 8) });
    expect(item.x.data.buffer).toBe(x.buffer);
    const batch = await set.batch!([2, 0]);
    expect(await batch.x.array()).toEqual([[5, 6], [1, 2]]); // prettier-ignore
    expect(await batch.ok.array()).toEqual([true, true]);
    expect(await batch.half.array()).toEqual([-2, 1]);
    expect(await batch.z.array()).toEqual([{ re: 5, im: 6 }, { re: 1, im: 2 }]); // prettier-ignore
    expect(await batch.nested[0].array()).toEqual([[9n], [7n]]);
    // Items of one's own are stacked alike.
    const own = [0, 1].map(
      (i) => ({ dtype: 'f32', shape: [2], data: x.subarray(2 * i, 2 * i + 2) }) as const,
    );
    expectTypeOf(data.collate(own)).toEqualTypeOf<Tensor<'f32'>>();
    expect(await data.collate(own).array()).toEqual([[1, 2], [3, 4]]); // prettier-ignore
    expect(() => data.fromArrays({ x: { dtype: 'f32', shape: [1], data: Float64Array.of(1) } })).toThrow(
      /fromArrays: the elements of f32 are in a Float64Array at \.x[^]*or its bytes/,
    );
  });

  test('of different lengths are refused, and what is no array', () => {
    expect(() => data.fromArrays([new Float32Array(2), new Float32Array(3)])).toThrow(
      /fromArrays: the arrays have different numbers of items: 2 at \[0\] and 3 at \[1\]/,
    );
    expect(() => data.fromArrays({ x: [1, 2, 3] } as never)).toThrow(
      /expects typed arrays, got \[1,2,3\] at \.x[^]*Float32Array\.from/,
    );
    expect(() => pairs.get(3)).toThrow(/there is no item 3: the dataset has 3/);
  });
});

describe('TensorDataset', () => {
  const x = tensor([
    [1, 2],
    [3, 4],
    [5, 6],
  ]);
  const y = tensor([7, 8, 9], { dtype: 'i32' });
  const set = new data.TensorDataset({ x, y });

  test('gives rows and gathers batches', async () => {
    const item = set.get(1);
    expect([await item.x.array(), await item.y.array()]).toEqual([[3, 4], 8]);
    const batch = set.batch([2, 0, 2]);
    expect([await batch.x.array(), await batch.y.array()]).toEqual([
      [
        [5, 6],
        [1, 2],
        [5, 6],
      ],
      [9, 7, 9],
    ]);
  });

  test('refuses tensors of other lengths, and of none', () => {
    expect(() => new data.TensorDataset([x, tensor([1, 2])])).toThrow(
      /different numbers of items: 3 at \[0\] and 2 at \[1\]/,
    );
    expect(() => new data.TensorDataset({ x, z: tensor(1) })).toThrow(/a tensor of rank 0 at \.z/);
  });
});

describe('collate', () => {
  test('stacks by place and keeps what is no number', async () => {
    const batch = data.collate([
      {
        a: 1,
        b: [true, 2n],
        c: Uint8Array.of(1, 2),
        d: tensor([1]),
        e: 'x',
        f: null,
        g: data.scalar(3, 'i8'),
      },
      {
        a: 2.5,
        b: [false, 3n],
        c: Uint8Array.of(3, 4),
        d: tensor([2]),
        e: 'y',
        f: null,
        g: data.scalar(4, 'i8'),
      },
    ]);
    expect([batch.a.dtype, await batch.a.array()]).toEqual(['f32', [1, 2.5]]);
    const [flags, wide] = [batch.b[0]!, batch.b[1]!];
    expect([flags.dtype, await flags.array(), wide.dtype, await wide.array()]).toEqual([
      'bool',
      [true, false],
      'i64',
      [2n, 3n],
    ]);
    expect([batch.c.dtype, await batch.c.array()]).toEqual([
      'u8',
      [
        [1, 2],
        [3, 4],
      ],
    ]);
    expect(await batch.d.array()).toEqual([[1], [2]]);
    expect([batch.e, batch.f]).toEqual([
      ['x', 'y'],
      [null, null],
    ]);
    expect([batch.g.dtype, await batch.g.array()]).toEqual(['i8', [3, 4]]);
  });

  test('says where items do not fit together', () => {
    const refused =
      (...items: readonly unknown[]): (() => unknown) =>
      () =>
        data.collate(items);
    expect(refused({ x: new Float32Array(2) }, { x: new Float32Array(3) })).toThrow(
      /collate: items 0 and 1 have different shapes at \.x: \[2\] and \[3\]/,
    );
    expect(refused({ x: [1, 2] }, { x: [1] })).toThrow(/lists of 2 and 1 at \.x/);
    expect(refused({ x: 1 }, { y: 1 })).toThrow(/different keys: \{x\} and \{y\}/);
    expect(refused([1, 'a'], [1, 2])).toThrow(/item 0 has string at \[1\], item 1 has number/);
    expect(refused({ x: 1 }, { x: null })).toThrow(/item 0 has number at \.x, item 1 has null/);
    expect(refused(new Float32Array(1), new Float64Array(1))).toThrow(
      /typed array of f32, item 1 has typed array of f64/,
    );
  });
});

test('an iterator that has begun is no stream', () => {
  const begun = [1, 2][Symbol.iterator]();
  expect(() => data.take(begun as never, 1)).toThrow(
    /take: the dataset is an iterator, which can be run through once[^]*stream\(\(\) => …\)/,
  );
});

test('a stream is shuffled within its buffer, by its seed, anew at each iteration', async () => {
  const items = Array.from({ length: 50 }, (_, i) => i);
  const shuffled = data.shuffle(items, { buffer: 8, seed: 5 });
  const [first, second] = [await all(shuffled), await all(shuffled)];
  expect(first).not.toEqual(items);
  expect(second).not.toEqual(first);
  expect(first.toSorted((a, b) => a - b)).toEqual(items);
  first.forEach((item, i) => expect(item - i).toBeLessThan(8));
  expect(await all(data.shuffle(items, { buffer: 8, seed: 5 }))).toEqual(first);
  manualSeed(1);
  const drawn = await all(data.shuffle(items));
  manualSeed(1);
  expect(await all(data.shuffle(items))).toEqual(drawn);
});
