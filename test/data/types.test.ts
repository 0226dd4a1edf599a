// What the type checker knows of the dtypes of batches, and that it is so: the types are checked by `npm run check`.

import { beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import * as data from '../../src/data/index.ts';
import * as sn from '../../src/index.ts';
import { fromHostTensor, toHostTensor, type HostTensor } from '../../src/io/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

const arrays = {
  x: new Float32Array(6),
  y: new Int32Array(6),
  pixels: new Uint8Array(6),
  half: { dtype: 'f16', shape: [6], data: new Uint16Array(6) },
  nested: [new BigInt64Array(6)],
} as const;

async function first<B>(loader: AsyncIterable<B>): Promise<B> {
  for await (const batch of loader) return batch;
  throw new Error('no batch');
}

describe('the dtypes of a batch are those of', () => {
  test('the arrays', async () => {
    const batch = await first(new data.DataLoader(data.fromArrays(arrays), { batchSize: 2 }));
    expectTypeOf(batch.x).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(batch.y).toEqualTypeOf<sn.Tensor<'i32'>>();
    expectTypeOf(batch.pixels).toEqualTypeOf<sn.Tensor<'u8'>>();
    expectTypeOf(batch.half).toEqualTypeOf<sn.Tensor<'f16'>>();
    expectTypeOf(batch.nested[0]).toEqualTypeOf<sn.Tensor<'i64'>>();
    expect(await Promise.all([batch.x.data(), batch.nested[0].data()])).toEqual([
      new Float32Array(2),
      new BigInt64Array(2),
    ]);
    expect([batch.y.dtype, batch.pixels.dtype, batch.half.dtype]).toEqual(['i32', 'u8', 'f16']);
    // @ts-expect-error: labels are no floats
    const wrong: sn.Tensor<'f32'> = batch.y;
    expect(wrong.dtype).toBe('i32');
  });

  test('the tensors, gathered or stacked', async () => {
    const [x, y] = [sn.ones([4, 2]), sn.arange(4)];
    const batch = await first(new data.DataLoader(new data.TensorDataset({ x, y }), { batchSize: 2 }));
    expectTypeOf(batch).toEqualTypeOf<{ x: sn.Tensor<'f32'>; y: typeof y }>();
    expect([batch.x.dtype, batch.y.dtype]).toEqual([x.dtype, y.dtype]);
    const stacked = data.collate([[sn.ones([2], { dtype: 'bool' }), 1] as const]);
    expectTypeOf(stacked[0]).toEqualTypeOf<sn.Tensor<'bool'>>();
    expect([stacked[0].dtype, stacked[1].dtype]).toEqual(['bool', 'f32']);
  });

  test('numbers, and what gives them a dtype', async () => {
    const batch = data.collate([
      { a: 1, b: 2n, c: true, d: data.scalar(3, 'i32'), e: data.scalar(4), f: 'x' },
    ]);
    const { a, b, c, d, e, f } = batch;
    expectTypeOf(a).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(b).toEqualTypeOf<sn.Tensor<'i64'>>();
    expectTypeOf(c).toEqualTypeOf<sn.Tensor<'bool'>>();
    expectTypeOf(d).toEqualTypeOf<sn.Tensor<'i32'>>();
    expectTypeOf(e).toEqualTypeOf<sn.Tensor<'f32'>>();
    expectTypeOf(f).toEqualTypeOf<string[]>();
    expect([a, b, c, d, e].map((x: sn.Tensor) => x.dtype)).toEqual(['f32', 'i64', 'bool', 'i32', 'f32']);
  });

  test('what every dataset of datasets hands on', async () => {
    const set = data.fromArrays({ x: arrays.x, y: arrays.y });
    const [train] = data.randomSplit(set, [4, 2]);
    const changed = data.map(
      data.repeat(data.take(data.concat(train, set), 4), 2),
      ({ x, y }) => [x, y, 1] as const,
    );
    const batch = await first(
      new data.DataLoader(data.shuffle(changed, { buffer: 2 }), { batchSize: 2, prefetch: 1 }),
    );
    expectTypeOf(batch).toEqualTypeOf<readonly [sn.Tensor<'f32'>, sn.Tensor<'i32'>, sn.Tensor<'f32'>]>();
    expect(batch.map((x: sn.Tensor) => x.dtype)).toEqual(['f32', 'i32', 'f32']);
    const pairs = await first(new data.DataLoader(data.zip(set, data.subset(set, [0, 1, 2, 3, 4, 5]))));
    expectTypeOf(pairs[1].y).toEqualTypeOf<sn.Tensor<'i32'>>();
    const kept = await data.filter(set, () => true);
    expectTypeOf((await first(new data.DataLoader(kept))).y).toEqualTypeOf<sn.Tensor<'i32'>>();
    expect(pairs[1].y.dtype).toBe('i32');
  });

  test('a collate of your own', async () => {
    const set = data.fromArray([1, 2]);
    const loader = new data.DataLoader(set, { collate: (items) => sn.tensor(Int32Array.from(items)) });
    expectTypeOf(await first(loader)).toEqualTypeOf<sn.Tensor<'i32'>>();
    expect((await first(loader)).dtype).toBe('i32');
  });
});

describe('host tensors', () => {
  test('carry their dtype in their type, where it is known', async () => {
    const host = await toHostTensor(sn.ones([2], { dtype: 'u8' }));
    expectTypeOf(host).toEqualTypeOf<HostTensor<'u8'>>();
    expectTypeOf(fromHostTensor(host)).toEqualTypeOf<sn.Tensor<'u8'>>();
    const read: HostTensor = host;
    const whole: sn.Tensor<'u8'> = fromHostTensor(read);
    expect([host.dtype, whole.dtype]).toEqual(['u8', 'u8']);
  });

  test('typed arrays of every width give their own dtype', () => {
    expectTypeOf(sn.tensor(new Uint8Array(1))).toEqualTypeOf<sn.Tensor<'u8'>>();
    expectTypeOf(sn.tensor(new Int16Array(1))).toEqualTypeOf<sn.Tensor<'i16'>>();
    expect([sn.tensor(new Uint8Array(1)).dtype, sn.tensor(new Int16Array(1)).dtype]).toEqual(['u8', 'i16']);
  });
});
