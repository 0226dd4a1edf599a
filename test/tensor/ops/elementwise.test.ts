// Elementwise operations where PyTorch's figures do not reach: NaN, ties, integer powers, large arguments, 16-bit rounding.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/operations/index.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { read } from './support.ts';

beforeAll(() => setDevice('interpreter'));

const of = (...values: number[]): Tensor => sn.tensor(values);
const gradient = async (f: (x: Tensor) => Tensor, ...values: number[]): Promise<number[]> => {
  const x = of(...values).requiresGrad_();
  sn.sum(f(x)).backward();
  return read(x.grad!);
};

describe('NaN propagates', () => {
  test.each<readonly [string, (x: Tensor) => Tensor]>([
    ['relu', sn.relu],
    ['relu6', sn.relu6],
    ['hardtanh', (x) => sn.hardtanh(x)],
    ['hardsigmoid', sn.hardsigmoid],
    ['leakyRelu', (x) => sn.leakyRelu(x)],
    ['elu', (x) => sn.elu(x)],
    ['celu', (x) => sn.celu(x, 2)],
    ['selu', sn.selu],
    ['sigmoid', sn.sigmoid],
    ['softplus', (x) => sn.softplus(x)],
    ['clamp', (x) => sn.clamp(x, -1, 1)],
    ['clamp below', (x) => sn.clamp(x, undefined, 1)],
    ['maximum', (x) => sn.maximum(x, 0)],
    ['minimum', (x) => sn.minimum(0, x)],
    ['amax', (x) => sn.amax(x)],
    ['prelu', (x) => sn.prelu(x, of(0.1))],
    ['asinh', sn.asinh],
    ['acosh', sn.acosh],
    ['lerp', (x) => sn.lerp(x, 1, 0.2)],
  ])('through %s', async (_, f) => {
    expect((await read(f(of(1, NaN)))).some(Number.isNaN)).toBe(true);
  });
});

describe('derivatives at kinks', () => {
  test.each<readonly [string, (x: Tensor) => Tensor, number[], number[]]>([
    ['relu at 0 is 0', sn.relu, [-1, 0, 1], [0, 0, 1]],
    ['elu at 0 is alpha', (x) => sn.elu(x, 3), [0, 1], [3, 1]],
    ['leakyRelu at 0 is the slope', (x) => sn.leakyRelu(x, 0.25), [0, 1], [0.25, 1]],
    ['clamp passes at both ends', (x) => sn.clamp(x, -1, 1), [-2, -1, 0, 1, 2, NaN], [0, 1, 1, 1, 0, 0]],
    ['hardtanh stops at both ends', (x) => sn.hardtanh(x), [-1, 0, 1], [0, 1, 0]],
    ['sigmoid at 0 is a quarter', sn.sigmoid, [0], [0.25]],
    ['softplus at 0 is a half', (x) => sn.softplus(x), [0], [0.5]],
    ['asinh at 0 is 1', sn.asinh, [0, -0], [1, 1]],
    ['norm at 0 is 0', (x) => sn.norm(x), [0, 0], [0, 0]],
    ['sigmoid far out is 0, not NaN', sn.sigmoid, [-200, 200, -Infinity, Infinity], [0, 0, 0, 0]],
    ['softplus above its threshold', (x) => sn.softplus(x, { beta: 2, threshold: 1 }), [0, 0.6], [0.5, 1]],
    ['softplus far out', (x) => sn.softplus(x), [-200, 200], [0, 1]],
    ['maximum shares ties', (x) => sn.maximum(x, of(1, 1, 1)), [0, 1, 2], [0, 0.5, 1]],
  ])('%s', async (_, f, at, expected) => {
    expect(await gradient(f, ...at)).toEqual(expected);
  });
});

test('softplus with a threshold is x where beta·x is greater, and as without one elsewhere', async () => {
  const x = sn.tensor([-3, 0.5, 0.51, 40, NaN, Infinity], { dtype: 'f64' });
  const at = [...(await sn.softplus(x, { beta: 2, threshold: 1 }).data())];
  const plain = [...(await sn.softplus(x, { beta: 2 }).data())];
  expect(at).toEqual([plain[0], plain[1], 0.51, 40, NaN, Infinity]);
  expect(plain[2]).toBeGreaterThan(0.6);
});

describe('powers', () => {
  test('of integers stay integer and wrap', async () => {
    const x = sn.tensor([2, -3, 7, 0], { dtype: 'i32' });
    expect(await read(sn.pow(x, 5))).toEqual([32, -243, 16807, 0]);
    expect(await read(sn.pow(x, 0))).toEqual([1, 1, 1, 1]);
    const wrapped = [2n, -3n, 7n, 0n].map((n) => Number(BigInt.asIntN(32, n ** 31n)));
    expect(await read(sn.pow(x, 31))).toEqual(wrapped);
  });

  test('of integer tensors by integer tensors go bit by bit, below 0 only ±1 remain', async () => {
    const x = sn.tensor([2, 3, -1, -1, 1, 5, 0], { dtype: 'i32' });
    const e = sn.tensor([10, 4, -3, -2, -7, -1, 0], { dtype: 'i32' });
    expect(await read(sn.pow(x, e))).toEqual([1024, 81, -1, 1, 1, 0, 1]);
    const u = sn.pow(sn.tensor([3], { dtype: 'u8' }), sn.tensor([5], { dtype: 'u8' }));
    expect(await read(u)).toEqual([243]);
  });

  test('of a number by a tensor', async () => {
    expect(await read(sn.pow(2, of(3, -1)))).toEqual([8, 0.5]);
  });
});

describe('large and small arguments', () => {
  test('inverse hyperbolic functions neither overflow nor cancel', async () => {
    const close = async (
      f: (x: Tensor) => Tensor,
      g: (x: number) => number,
      ...at: number[]
    ): Promise<void> => {
      const found = await read(f(of(...at)));
      at.forEach((x, i) => expect(found[i]! / g(Math.fround(x))).toBeCloseTo(1, 5));
    };
    await close(sn.asinh, Math.asinh, 1e-6, -1e-3, 3, -1e5, 1e20, -3e38);
    await close(sn.acosh, Math.acosh, 1.001, 2, 1e8, 1e20, 3e38);
    await close(sn.atanh, Math.atanh, 1e-6, -0.5, 0.999);
    expect(await read(sn.asinh(of(Infinity, -Infinity, 0)))).toEqual([Infinity, -Infinity, 0]);
    expect(await read(sn.acosh(of(1, Infinity, 0.5)))).toEqual([0, Infinity, NaN]);
  });

  test('1 // 0.1 is 9, as the exact quotient says', async () => {
    expect(await read(sn.floorDivide(of(1, -7, 7), of(0.1, 2, -2)))).toEqual([9, -4, -4]);
    expect(await read(sn.div(of(-7, 7), 2, { rounding: 'trunc' }))).toEqual([-3, 3]);
    const whole = sn.tensor([-7, 7], { dtype: 'i32' });
    expect(await read(sn.div(whole, 2, { rounding: 'trunc' }))).toEqual([-3, 3]);
    expect(await read(sn.div(whole, 2, { rounding: 'floor' }))).toEqual([-4, 3]);
  });

  test('alpha of ±1 is plain addition and subtraction', async () => {
    const [x, y] = [of(0.1, 1e20), of(0.7, -1)];
    expect(await read(sn.addScaled(x, y, 1))).toEqual(await read(sn.add(x, y)));
    expect(await read(sn.addScaled(x, y, -1))).toEqual(await read(sn.sub(x, y)));
    expect(await read(sn.sub(x, y, { alpha: 2 }))).toEqual(await read(sn.addScaled(x, y, -2)));
    expect(await read(sn.add(sn.arange(3), sn.arange(3), { alpha: 3 }))).toEqual([0, 4, 8]);
    expect(() => sn.add(sn.arange(3), 1, { alpha: 0.5 })).toThrow(/add: alpha 0.5 must be whole/);
  });

  test('lerp is exact at both ends', async () => {
    expect(await read(sn.lerp(of(0.1, 0.1), of(1e8, 1e8), of(0, 1)))).toEqual([Math.fround(0.1), 1e8]);
  });

  test('nanToNum replaces what is not finite', async () => {
    const x = of(NaN, Infinity, -Infinity, 2);
    expect(await read(sn.nanToNum(x))).toEqual([0, 3.4028234663852886e38, -3.4028234663852886e38, 2]);
    expect(await read(sn.nanToNum(x, { nan: 1, posinf: 5, neginf: -5 }))).toEqual([1, 5, -5, 2]);
  });
});

describe('16-bit floats', () => {
  test('composed functions round once', async () => {
    const x = sn.tensor([-3, -0.7, 0.3, 2.9], { dtype: 'bf16' });
    const wide = sn.cast(x, 'f32');
    for (const f of [sn.gelu, sn.silu, sn.mish, sn.softplus, sn.logSigmoid, sn.elu, sn.erfc] as ((
      x: Tensor,
    ) => Tensor)[]) {
      expect(await read(f(x))).toEqual(await read(sn.cast(f(wide), 'bf16')));
    }
  });

  test('composed functions of several operands round once', async () => {
    const [x, y, w] = [
      [-60_000, 300, 1.7, 0.3],
      [60_000, -310, 2.3, 5.1],
      [0.5, 0.3, 0.7, 0.001],
    ].map((list) => sn.tensor(list, { dtype: 'f16' })) as [Tensor, Tensor, Tensor];
    const calls: ((a: Tensor, b: Tensor, c: Tensor) => Tensor)[] = [
      (a, b, c) => sn.lerp(a, b, c),
      (a, b, c) => sn.addcmul(c, a, b, { value: 1e-5 }),
      (a, b, c) => sn.addcdiv(a, b, c, { value: 0.01 }),
    ];
    for (const f of calls) {
      const wide = f(sn.cast(x, 'f32'), sn.cast(y, 'f32'), sn.cast(w, 'f32'));
      expect(f(x, y, w).dtype).toBe('f16');
      expect(await read(f(x, y, w))).toEqual(await read(sn.cast(wide, 'f16')));
    }
  });
});

describe('bool', () => {
  test('adds as or, multiplies as and, orders false below true', async () => {
    const [x, y] = [sn.tensor([false, false, true, true]), sn.tensor([false, true, false, true])];
    expect(await read(sn.add(x, y))).toEqual([0, 1, 1, 1]);
    expect(await read(sn.mul(x, y))).toEqual([0, 0, 0, 1]);
    expect(await read(sn.maximum(x, y))).toEqual([0, 1, 1, 1]);
    expect(await read(sn.lt(x, y))).toEqual([0, 1, 0, 0]);
    expect(await read(sn.ge(x, y))).toEqual([1, 0, 1, 1]);
    expect(await read(sn.amax(x))).toEqual([1]);
    expect(await read(sn.argmax(y))).toEqual([1]);
  });
});

test('divisors of the least integer of a dtype are above 0', async () => {
  const [least, others] = [sn.tensor([-128, 6, -128, -128], { dtype: 'i8' }), [6, -128, 0, 96]];
  const found = sn.gcd(least, sn.tensor(others, { dtype: 'i8' }));
  expect(await read(found)).toEqual([2, 2, -128, 32]);
  const wide = sn.gcd(sn.tensor([-(2 ** 31)], { dtype: 'i32' }), sn.tensor([6], { dtype: 'i32' }));
  expect(await read(wide)).toEqual([2]);
});

test('bitcast reads the bits', async () => {
  expect(await read(sn.bitcast(of(1, -0), 'u32'))).toEqual([0x3f800000, 0x80000000]);
  const x = sn.tensor([1]);
  expect(sn.cast(x, 'f32')).toBe(x);
});
