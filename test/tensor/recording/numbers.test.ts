// A number beside a tensor of 16-bit floats is rounded to the tensor's dtype, as PyTorch's is after promotion: on every device,
// compiled in, as a run-time scalar (from the second value on in a loop) and as an argument of a compiled function.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  close,
  compile,
  div,
  full,
  mul,
  pad,
  setDevice,
  tensor,
  where,
  type Tensor,
} from '../../../src/index.ts';
import { everyDevice } from '../../support/devices.ts';

type Operation = (x: Tensor, s: Tensor | number) => Tensor;

const operations: Readonly<Record<string, Operation>> = {
  add: (x, s) => x.add(s),
  sub: (x, s) => x.sub(s),
  mul: (x, s) => x.mul(s),
  div: (x, s) => x.div(s),
  eq: (x, s) => x.eq(s),
  lt: (x, s) => x.lt(s),
  ge: (x, s) => x.ge(s),
  maximum: (x, s) => x.maximum(s),
  where: (x, s) => where(x.gt(0.5), x, s),
};

// Values that neither type holds: near them, below their least, above the largest half, and between two floats of 32 bits.
const numbers = [0.1, 1 / 3, 1 + 2 ** -11 + 2 ** -40, 1.5 * 2 ** -24, 1e-9, 65519.9, 0.1, -0, Infinity];
const elements = [0.1, 1 / 3, 1, 3, -7, 65504, 2 ** -14, -0];

/** The elements, with one zero: shader compilers may ignore its sign, and `max(0, -0)` may be either. */
async function read(x: Tensor): Promise<number[]> {
  return Array.from((await x.data()) as ArrayLike<number>, (value) => value + 0);
}

afterAll(async () => {
  await close();
  setDevice(undefined);
});

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => setDevice(device));

  describe.each(['f16', 'bf16'] as const)('%s', (dtype) => {
    test.each(Object.entries(operations))('%s rounds the number beside it', async (_, operation) => {
      const x = tensor(elements, { dtype });
      const compiled = compile((t: Tensor, s: Tensor) => operation(t, s)) as unknown as Operation;
      for (const value of numbers) {
        const held = tensor([value], { dtype });
        const expected = await read(operation(x, held));
        expect(await read(operation(x, value)), `${value} recorded`).toEqual(expected);
        expect(await read(compiled(x, value)), `${value} as an argument`).toEqual(expected);
        const within = compile((t: Tensor) => operation(t, value));
        expect(await read(within(x)), `${value} compiled in`).toEqual(expected);
      }
    });

    test('a tensor equals the number that it was made of', async () => {
      for (const value of [0.1, 0.2, 0.1, 1 + 2 ** -11 + 2 ** -40]) {
        expect(await read(tensor([value], { dtype }).eq(value)), String(value)).toEqual([1]);
        expect(await read(tensor([value], { dtype }).ne(value)), String(value)).toEqual([0]);
      }
    });
  });

  test('padding and fills hold what the dtype can', async () => {
    for (const dtype of ['f16', 'bf16'] as const) {
      for (const value of [0.1, -65520, 1e-45]) {
        const [held] = await read(tensor([value], { dtype }));
        const padded = pad(tensor([1], { dtype }), [[1, 0]], { value });
        expect(await read(padded), `${value}`).toEqual([held, 1]);
        expect(await read(padded.sub(tensor([held!, 1], { dtype }))), `${value}`).toEqual([held! - held!, 0]);
        expect(await read(full([1], value, { dtype }).eq(value)), `${value}`).toEqual([1]);
      }
    }
    for (const value of [300, 0.5, -129])
      expect(() => pad(tensor([1], { dtype: 'i8' }), [[1, 0]], { value })).toThrow(
        `${value} is not a value of i8`,
      );
  });

  // Shader compilers fold 0·x and 0/x to 0 where they see the zero.
  test.each(['f32', 'f16', 'bf16'] as const)('zero beside %s hides no NaN', async (dtype) => {
    const x = tensor([0, -0, 1, -3, Infinity, -Infinity, NaN], { dtype });
    const finite = [0, 0, 0, 0, NaN, NaN, NaN];
    for (const zero of [0, -0]) {
      expect(await read(x.mul(zero)), 'x · 0').toEqual(finite);
      expect(await read(mul(zero, x)), '0 · x').toEqual(finite);
      expect(await read(x.mul(zero).add(1)), 'x · 0 + 1').toEqual([1, 1, 1, 1, NaN, NaN, NaN]);
      expect(await read(div(zero, x)), '0 / x').toEqual([NaN, NaN, 0, 0, 0, 0, NaN]);
      expect(await read(x.div(1 / zero)), 'x / ∞').toEqual(finite);
      expect(await read(x.div(zero).abs()), 'x / 0').toEqual([NaN, NaN, ...new Array(4).fill(Infinity), NaN]);
    }
  });

  // Figures of PyTorch 1.13: torch.tensor([3., .1, 7.], dtype=torch.half) * 0.1 and so on.
  test('products and sums are those of PyTorch, however often and with whatever between', async () => {
    const x = tensor([3, 0.1, 7], { dtype: 'f16' });
    for (const value of [0.1, 0.1, 0.2, 0.1]) {
      if (value === 0.2) await x.mul(0.2).data();
      else {
        expect(await x.mul(value).array()).toEqual([0.2998046875, 0.0099945068359375, 0.69970703125]);
        expect(await x.add(value).array()).toEqual([3.099609375, 0.199951171875, 7.1015625]);
      }
    }
    const y = tensor([3, 0.1, 7], { dtype: 'bf16' });
    expect(await y.mul(0.1).array()).toEqual([0.30078125, 0.010009765625, 0.69921875]);
    expect(await y.sub(0.1).array()).toEqual([2.90625, 0, 6.90625]);
  });
});
