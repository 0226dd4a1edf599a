// Inputs of 64 bits on a device that has none: token ids and weights as files have them can be cast, compared and read at, with the
// results of the other devices; what does not fit is an error, and so is arithmetic in 64 bits.

import * as fc from 'fast-check';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { seed } from '../../support/property.ts';

const DEVICE = 'webgpu:software';
beforeEach(() => sn.setDevice(DEVICE));
afterEach(() => sn.setDevice(DEVICE));
afterAll(() => sn.close());

const long = (...values: readonly (number | bigint)[]): sn.Tensor => sn.tensor(values.map(BigInt));
const unsigned = (...values: readonly bigint[]): sn.Tensor => sn.tensor(BigUint64Array.from(values));
const double = (...values: readonly number[]): sn.Tensor => sn.tensor(Float64Array.from(values));
const table = (): sn.Tensor => sn.arange(12).reshape([4, 3]).cast('f32');

/** Four decimals of a loss: devices differ in the last bits of exponentials and logarithms. */
const decimals = (loss: sn.Tensor): sn.Tensor => loss.mul(1e4).round();

/** What it gives on the device is what it gives on the interpreter. */
async function expectAsElsewhere(make: () => sn.Tensor | Promise<sn.Tensor>): Promise<void> {
  const found = await (await make()).array();
  sn.setDevice('interpreter');
  expect(found).toEqual(await (await make()).array());
}

const uses: Readonly<Record<string, () => sn.Tensor | Promise<sn.Tensor>>> = {
  take: () => table().take(long(1, 3, 0, 11, 10)),
  'rows by indexSelect': () => table().indexSelect(0, long(3, 3, 0)),
  'rows by at': () => table().at(long(2, 0)),
  gather: () => table().gather(1, long(2, 0, 1, 1).reshape([4, 1])),
  embedding: () => sn.embedding(long(3, 1, 1, 0).reshape([2, 2]), table()),
  oneHot: () => sn.oneHot(long(1, 3, 0), 4),
  crossEntropy: () => decimals(sn.crossEntropy(table().div(10), long(0, 2, 1, 1))),
  'crossEntropy with classes to ignore': () =>
    decimals(sn.crossEntropy(table().div(10), long(0, 2, -100, 1), { ignoreIndex: -100 })),
  scatter: () => table().scatter(0, long(0, 3, 1).reshape([1, 3]), sn.ones([1, 3])),
  'comparison with a number': () => long(1, 2, 3).eq(2),
  'comparison with another': () => long(1, 2, 3).lt(long(2, 2, 2)),
  'cast to i32, which keeps the low bits': () => long(1, 2n ** 32n + 7n, -(2n ** 63n)).cast('i32'),
  'cast to f32, rounded once': () => long(2n ** 53n + 1n, 2n ** 62n + 2n ** 38n + 1n, -5).cast('f32'),
  'casts to two dtypes': () => {
    const ids = long(1, 2, 300);
    return ids.cast('f32').add(ids.cast('i32'));
  },
  'cast to a small integer': () => long(1, 2, 300).cast('u8'),
  'cast behind views': () =>
    long(1, 2, 3, 4, 5, 6).reshape([2, 3]).permute([1, 0]).slice(0, 1, 3).cast('f32'),
  'cast behind a join': () => sn.cat([long(1, 2), long(3)]).cast('i32'),
  'u64 as indices': () => table().indexSelect(0, unsigned(3n, 0n)),
  'f64 cast to f32': () => double(0.1, 1e300, -0, NaN, 16777217).cast('f32'),
  'f64 cast to f16, rounded once': () => double(1 + 2 ** -11, 1 + 2 ** -11 + 2 ** -40).cast('f16'),
  'f64 cast to i32': () => double(2.9, -2.9, 3e9, NaN).cast('i32'),
  'a function that was compiled': () =>
    sn.compile((x: sn.Tensor, ids: sn.Tensor) => x.indexSelect(0, ids).mul(2))(table(), long(1, 0)),
};

describe('what works on WebGPU as elsewhere', () => {
  test.each(Object.entries(uses))('%s', (_, make) => expectAsElsewhere(make));

  test('gradients to what was read', async () => {
    await expectAsElsewhere(() => {
      const x = table().add(0).requiresGrad_();
      x.indexSelect(0, long(1, 3, 1))
        .square()
        .sum()
        .backward();
      return x.grad!;
    });
  });

  test('random ids, moved about, cast and compared', async () => {
    const ids = fc.array(fc.bigInt(-(2n ** 31n), 2n ** 31n - 1n), { minLength: 6, maxLength: 6 });
    const dice = fc.array(fc.nat(5), { maxLength: 4 });
    console.log(`random inputs from SINTER_SEED=${seed}`);
    const law = fc.asyncProperty(
      ids,
      dice,
      fc.constantFrom('i32', 'f32', 'u8', 'bool'),
      async (values, kinds, to) => {
        sn.setDevice(DEVICE);
        await expectAsElsewhere(() => {
          let x = long(...values);
          for (const kind of kinds) {
            if (kind === 0) x = x.reshape([2, 3]).permute([1, 0]).reshape([6]);
            else if (kind === 1) x = x.flip(0);
            else if (kind === 2) x = sn.cat([x.slice(0, 2, 6), x.slice(0, 0, 2)]);
            else if (kind === 3) x = sn.where(x.lt(0), long(5), x);
            else if (kind === 4) x = x.clamp(-100, 2_000_000_000);
            else x = sn.maximum(x, x.flip(0));
          }
          return x.cast(to);
        });
      },
    );
    await fc.assert(law, { numRuns: 40, seed });
  });
});

describe('what does not', () => {
  test('values that do not fit where they are read at or compared: the error names value and place', async () => {
    const ids = sn.tensor([
      [1n, 2n],
      [3n, 2n ** 32n + 1n],
    ]);
    for (const make of [() => sn.embedding(ids, table()), () => ids.eq(1), () => table().take(ids)]) {
      const error: unknown = await make()
        .data()
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(sn.DeviceError);
      expect((error as sn.DeviceError).code).toBe('E_VALUE');
      expect((error as sn.DeviceError).message).toBe(
        `${DEVICE}: a tensor i64[2,2] is read as i32, for the device has no integers of 64 bits, and 4294967297 at [1,1] does not fit
  try: setDevice('wasm'), which has every dtype`,
      );
    }
    // And what comes after works.
    expect(await table().sum().item()).toBe(66);
  });

  test.each([
    ['sums', () => long(1, 2).add(1)],
    ['products', () => double(1, 2).mul(2)],
    ['results', () => sn.ones([2]).cast('i64')],
    ['functions of doubles', () => double(1, 2).exp().cast('f32')],
  ])('%s of 64 bits are refused', async (_, make) => {
    await expect(make().data()).rejects.toThrow(/is not supported on wgsl:software/);
  });
});

describe('indices of 64 bits everywhere', () => {
  test('are errors on the interpreter, with all their digits', async () => {
    sn.setDevice('interpreter');
    await expect(
      table()
        .take(long(2n ** 32n, 1))
        .array(),
    ).rejects.toThrow('index 4294967296 is outside');
    const ids = unsigned(2n ** 63n, 2n);
    await expect(table().indexSelect(0, ids).array()).rejects.toThrow(`index ${2n ** 63n} is outside`);
  });

  test('do not come round to the first rows elsewhere', async () => {
    sn.setDevice('wasm:1');
    const ids = long(2n ** 32n, 2n ** 32n + 1n, -(2n ** 63n), 1);
    expect(await table().take(ids).array()).toEqual([0, 0, 0, 1]);
    expect(await sn.oneHot(ids, 2).sum(1).array()).toEqual([0, 0, 0, 1]);
    expect(
      await table()
        .indexSelect(0, unsigned(2n ** 63n, 2n))
        .array(),
    ).toEqual([
      [0, 0, 0],
      [6, 7, 8],
    ]);
  });
});
