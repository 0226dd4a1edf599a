// Elements of one and two bytes are written where they lie: neighbours that share a word with what is written, by other
// invocations at the same time, keep their values.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { explainFor } from '../../src/explain/explain.ts';
import { cudaTarget, gpuTarget, softwareTarget, wasmTarget } from '../../src/schedule/target.ts';
import { everyDevice } from '../support/devices.ts';

const dtypes = ['f16', 'bf16', 'i8', 'u8', 'i16', 'bool'] as const;
const [rows, columns, changed] = [37, 5, 7];
const at = (value: number): sn.Tensor => sn.tensor(Int32Array.of(value), { shape: [] });

/** Small whole numbers, which every dtype but bool holds. */
const numbers = (count: number, from: number): number[] =>
  Array.from({ length: count }, (_, i) => (from + 5 * i) % 13);

const written = sn.compile(
  (cache: sn.Tensor, fresh: sn.Tensor, row: sn.Tensor) => sn.dynamicUpdateSlice(cache, fresh, [row, 0]),
  { donate: [0] },
);
const added = sn.compile(
  (sums: sn.Tensor, places: sn.Tensor, more: sn.Tensor) => sn.scatterAdd(sums, 0, places, more),
  { donate: [0] },
);

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test.each(dtypes)('rows of %s', async (dtype) => {
    const of = (values: readonly number[]): number[] =>
      dtype === 'bool' ? values.map((value) => Number(value % 2 > 0)) : [...values];
    const want = of(numbers(rows * columns, 1));
    let cache = sn.cast(sn.tensor(want, { shape: [rows, columns] }), dtype);
    for (const row of [0, 3, rows - changed]) {
      const fresh = of(numbers(changed * columns, row + 2));
      cache = written(cache, sn.cast(sn.tensor(fresh, { shape: [changed, columns] }), dtype), at(row));
      want.splice(row * columns, fresh.length, ...fresh);
    }
    expect(Array.from(await sn.toFloat(cache).data())).toEqual(want);
  });

  test.each(['f16', 'i8'] as const)('sums of %s', async (dtype) => {
    const before = numbers(rows, 3);
    const places = Array.from({ length: 20 }, (_, i) => (i * i) % rows);
    const more = numbers(places.length, 1);
    const sums = sn.cast(sn.tensor(before, { shape: [rows] }), dtype);
    const found = added(
      sums,
      sn.tensor(Int32Array.from(places)),
      sn.cast(sn.tensor(more, { shape: [more.length] }), dtype),
    );
    const want = before.map((value, place) =>
      places.reduce((sum, other, i) => (other === place ? sum + more[i]! : sum), value),
    );
    expect(Array.from(await sn.toFloat(found).data())).toEqual(want);
  });
});

test.each([gpuTarget, softwareTarget, cudaTarget, wasmTarget])(
  'only what changes is moved on $name',
  (target) => {
    const cache = sn.zeros([4096, 64], { dtype: 'f16' });
    const { kernels } = explainFor(target, written, cache, sn.zeros([1, 64], { dtype: 'f16' }), at(5));
    const [{ bytes }] = kernels as [(typeof kernels)[number]];
    expect(kernels.length).toBe(1);
    // Two bytes an element, which are read and written.
    expect(bytes).toBeLessThan(4 * 64 + 64);
  },
);
