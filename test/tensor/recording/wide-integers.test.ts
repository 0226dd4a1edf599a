// Integers of 64 bits on a device without them: pairs of words there give what the interpreter gives, to the bit, for every
// operation that integers have, at the ends of their ranges too; and doubles, which it lacks, may be cast and nothing else.

import * as fc from 'fast-check';
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
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
  sn.setDevice(DEVICE);
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
  'u64 as indices': () => table().indexSelect(0, unsigned(3n, 0n)),
  'sums that add as they come': () =>
    sn
      .zeros([3], { dtype: 'i64' })
      .scatterAdd(0, long(0, 2, 0, 0), long(2n ** 32n - 1n, 5, 2n ** 32n - 1n, -7), {
        deterministic: false,
      }),
  'positions of the first of equal ones': () => sn.argsort(long(5, 2n ** 40n, 5, -(2n ** 40n)), 0),
  'a long sum': () =>
    sn
      .arange(30_000)
      .cast('i64')
      .mul(long(2n ** 40n + 3n))
      .sum(),
  'a long running sum': () =>
    sn
      .arange(9000)
      .cast('i64')
      .mul(long(2n ** 50n))
      .cumsum(0)
      .slice(0, 8990, 9000),
  // A loop over positions with a division of every lane after another.
  'remainders of a running sum': () => {
    const of = [
      long(3, -7, 2n ** 40n, -1, 5, 2n ** 33n + 1n, 11, -(2n ** 62n)),
      long(5, 3, -9, 7, 2, 4, -3, 6),
    ];
    const sums = long(2n ** 60n, -5, 2n ** 50n, 7, 2n ** 62n, -1, 3, 2n ** 61n).cumsum(0);
    return [0, 1, 0, 1].reduce((x, i) => sn.remainder(x, of[i]!).add(x), sums);
  },
  'casts of a running sum from f32 and back': () => {
    const step = long(1, -2, 3, 2n ** 40n, -5, 6, -7, 8);
    const sums = sn.arange(8).cast('f32').mul(0.75).cumsum(0);
    return [0, 1, 2, 3].reduce(
      (x) => x.cast('u64').cast('f32').add(x.cast('i64').add(step).cast('f32')),
      sums,
    );
  },
  'a long sort': () => sn.arange(3000).cast('i64').mul(long(0x1e3779b97f4a7c15n)).sort()[0],
  'a product of matrices': () => {
    const x = sn.arange(36).cast('i64').mul(long(0x1e3779b97f4a7c15n)).reshape([6, 6]);
    return x.matmul(x.transpose(0, 1));
  },
  'random integers': () => {
    sn.manualSeed(7);
    return sn.randint(0, 1000, [50], { dtype: 'i64' });
  },
  'a function that was compiled': () =>
    sn.compile((x: sn.Tensor, ids: sn.Tensor) => x.indexSelect(0, ids.remainder(4)).mul(2))(
      table(),
      long(5, 2n ** 40n),
    ),
  'f64 cast to f32': () => double(0.1, 1e300, -0, NaN, 16777217).cast('f32'),
  'f64 cast to f16, rounded once': () => double(1 + 2 ** -11, 1 + 2 ** -11 + 2 ** -40).cast('f16'),
  'f64 cast to i32': () => double(2.9, -2.9, 3e9, NaN).cast('i32'),
  'f64 cast to i64': () => double(2.9, -2.9, 3e9, NaN, 2 ** 53 + 2).cast('i64'),
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

  test('elements are bigints, of eight bytes each', async () => {
    const x = long(1, 2n ** 40n).add(1);
    expect(await x.data()).toEqual(BigInt64Array.of(2n, 2n ** 40n + 1n));
    expect(await x.sum().item()).toBe(2n ** 40n + 3n);
    expect(
      await unsigned(2n ** 64n - 1n)
        .mul(unsigned(3n))
        .data(),
    ).toEqual(BigUint64Array.of(2n ** 64n - 3n));
  });
});

const ofTwo: readonly ((x: sn.Tensor, y: sn.Tensor) => sn.Tensor)[] = [
  sn.add,
  sn.sub,
  sn.mul,
  sn.floorDivide,
  sn.remainder,
  sn.fmod,
  sn.maximum,
  sn.minimum,
  sn.bitwiseAnd,
  sn.bitwiseOr,
  sn.bitwiseXor,
  (x, y) => sn.bitwiseLeftShift(x, sn.bitwiseAnd(y, 63)),
  (x, y) => sn.bitwiseRightShift(x, sn.bitwiseAnd(y, 63)),
  (x, y) => sn.where(sn.lt(x, y), x, sn.sub(y, x)),
  (x, y) => sn.where(sn.eq(sn.sign(x), sn.sign(y)), y, x),
];
const ofOne: readonly ((x: sn.Tensor) => sn.Tensor)[] = [
  sn.neg,
  sn.abs,
  sn.sign,
  sn.bitwiseNot,
  (x) => sn.cumsum(x, 0),
  (x) => sn.cumprod(x, 0),
  (x) => sn.sort(x)[0]!,
  (x) => sn.flip(x, 0),
  (x) => sn.gather(x, 0, sn.argsort(x, 0)),
  (x) => sn.mul(x.reshape([2, 4]).sum(0, { keepdim: true }), x.reshape([2, 4])).reshape([8]),
];
const ends: readonly ((x: sn.Tensor) => sn.Tensor)[] = [
  (x) => x,
  sn.sum,
  sn.prod,
  (x) => sn.max(x),
  (x) => sn.min(x),
  (x) => sn.argmax(x),
  (x) => sn.argmin(x),
  sn.any,
  sn.all,
  ...(['f32', 'f16', 'i32', 'u32', 'u8', 'i16', 'bool', 'i64', 'u64'] as const).map(
    (dtype) => (x: sn.Tensor) => sn.cast(x, dtype),
  ),
];

/** Integers of all lengths, and those at the ends of 32 and 64 bits. */
const integer = fc.oneof(
  fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
  fc.bigInt(-300n, 300n),
  fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, -1n, 0n, 2n ** 32n, 2n ** 32n - 1n, 2n ** 31n, -(2n ** 31n)),
);
const eight = fc.array(integer, { minLength: 8, maxLength: 8 });

test('random programs of integers of 64 bits', async () => {
  console.log(`random programs from SINTER_SEED=${seed}`);
  const step = fc.oneof(
    fc.record({ two: fc.nat(ofTwo.length - 1), with: eight }),
    fc.record({ one: fc.nat(ofOne.length - 1) }),
  );
  const law = fc.asyncProperty(
    fc.constantFrom('i64', 'u64'),
    eight,
    fc.array(step, { maxLength: 5 }),
    fc.array(fc.nat(ends.length - 1), { minLength: 1, maxLength: 2 }),
    async (dtype, first, steps, last) => {
      const make = (values: readonly bigint[]): sn.Tensor =>
        sn.tensor([...values], { dtype: 'i64' }).cast(dtype);
      for (const end of last)
        await expectAsElsewhere(() => {
          let x = make(first);
          for (const each of steps)
            x = 'one' in each ? ofOne[each.one]!(x) : ofTwo[each.two]!(x, make(each.with));
          return ends[end]!(x);
        });
    },
  );
  await fc.assert(law, { numRuns: 25, seed });
});

test.each([
  ['products', () => double(1, 2).mul(2)],
  ['results', () => sn.ones([2]).cast('f64')],
  ['functions', () => double(1, 2).exp().cast('f32')],
])('%s of doubles are refused', async (_, make) => {
  await expect(make().data()).rejects.toThrow(/is not supported on wgsl:software/);
});

describe('indices of 64 bits everywhere', () => {
  test.each(['interpreter', 'wasm:1', DEVICE])('are errors on %s, with all their digits', async (device) => {
    sn.setDevice(device);
    await expect(
      table()
        .take(long(2n ** 32n, 1))
        .array(),
    ).rejects.toThrow('index 4294967296 is outside');
    const ids = unsigned(2n ** 63n, 2n);
    await expect(table().indexSelect(0, ids).array()).rejects.toThrow(`index ${2n ** 63n} is outside`);
  });

  test.each(['wasm:1', DEVICE])('do not come round to the first rows on %s', async (device) => {
    sn.setDevice(device);
    sn.setChecks(false);
    onTestFinished(() => sn.setChecks(true));
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
