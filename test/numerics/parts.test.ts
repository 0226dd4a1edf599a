// What a float is made of: laws that hold for every float, subnormal ones included, on the devices that have them.

import * as fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { frexp, grad, ldexp, nextafter, setDevice, tensor, type Tensor } from '../../src/index.ts';

const floats = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 8 });
const numbers = async (x: Tensor): Promise<number[]> => Array.from(await x.data(), Number);

describe.each(['interpreter', 'wasm'])('on %s', (device) => {
  afterAll(() => setDevice(undefined));

  test('x is its mantissa times 2 to its exponent, with the mantissa in [½, 1)', async () => {
    setDevice(device);
    await fc.assert(
      fc.asyncProperty(floats, async (values) => {
        const [mantissa, exponent] = frexp(tensor(values));
        const [m, e] = [await numbers(mantissa), await numbers(exponent)];
        values.forEach((value, i) => {
          expect(m[i]! * 2 ** e[i]!).toBe(value);
          if (value !== 0) expect(Math.abs(m[i]!)).toSatisfy((size: number) => size >= 0.5 && size < 1);
        });
        expect(await numbers(ldexp(mantissa, exponent))).toEqual(values);
      }),
      { numRuns: 30 },
    );
  });

  test('no float lies between x and the next one', async () => {
    setDevice(device);
    await fc.assert(
      fc.asyncProperty(floats, async (values) => {
        const x = tensor(values);
        const above = await numbers(nextafter(x, Infinity));
        const back = await numbers(nextafter(tensor(above), -Infinity));
        above.forEach((next, i) => expect(next).toBeGreaterThan(values[i]!));
        back.forEach((value, i) => expect(value === values[i]).toBe(true));
      }),
      { numRuns: 30 },
    );
  });

  test('the next float moves with x, but where it is y', async () => {
    setDevice(device);
    const [x, y] = [tensor([1, 2, 0, -3]), tensor([2, 2, 1, -4])];
    const [dx, dy] = grad((p: Tensor, q: Tensor) => nextafter(p, q).sum(), { argnums: [0, 1] })(x, y);
    expect(await numbers(dx!)).toEqual([1, 0, 1, 1]);
    expect(await numbers(dy!)).toEqual([0, 0, 0, 0]);
  });

  test('ldexp gives the dtype of both, in which 2 to the exponent need not fit', async () => {
    setDevice(device);
    const half = { dtype: 'f16' } as const;
    const whole = { dtype: 'i32' } as const;
    const scaled = ldexp(tensor([2 ** -10, 3], half), tensor([20, -2], whole));
    expect(scaled.dtype).toBe('f16');
    expect(await numbers(scaled)).toEqual([1024, 0.75]);
    // 2^3.75 has more digits than f16.
    const fine = ldexp(tensor([1]), tensor([3.75], half));
    expect(fine.dtype).toBe('f32');
    expect((await numbers(fine))[0]).toBeCloseTo(2 ** 3.75, 5);
    expect(ldexp(tensor([1], whole), tensor([1], whole)).dtype).toBe('f32');
  });
});
