// Random programs compiled once give what they give at each size.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { checkLawAsync } from '../../support/property.ts';
import { floats } from './programs.ts';
import { randomProgram } from './random.ts';

const n = sn.dim('n', { min: 2, max: 40 });

/** How far an element is from what it should be, at most. */
function farthest(got: ArrayLike<number | bigint>, wanted: ArrayLike<number | bigint>): number {
  let far = 0;
  for (let k = 0; k < got.length; k++) {
    const [a, b] = [Number(got[k]), Number(wanted[k])];
    const apart = Object.is(a, b) ? 0 : Math.abs(a - b) / (1e-2 + Math.abs(b));
    if (!(apart <= far)) far = apart;
  }
  return far;
}

describe.each([
  ['interpreter', 20],
  ['wasm', 12],
] as const)('on %s', (device, runs) => {
  test('random programs', async () => {
    sn.setDevice(device);
    const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
    await checkLawAsync(runs, seeds, async (seed) => {
      const fn = randomProgram(seed, 10);
      const compiled = sn.compile(fn, { dims: [[n, 3], [4, n], [n]] });
      for (const size of [9, 32, 3, 40]) {
        const args = [floats(size, 3), floats(4, size), floats(size)] as const;
        const [got, wanted] = [compiled(...args), fn(...args)];
        for (const [i, result] of got.entries()) {
          expect(result.shape).toEqual(wanted[i]!.shape);
          expect(farthest(await result.data(), await wanted[i]!.data()), `at ${size}`).toBeLessThan(2e-3);
        }
      }
    });
  });

  test('random values that are pending when a compiled function is called with them', async () => {
    sn.setDevice(device);
    const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
    await checkLawAsync(runs / 4, seeds, async (seed) => {
      const fn = randomProgram(seed, 8);
      const compiled = sn.compile((all: readonly sn.Tensor[]) => all.map((x) => x.neg()));
      for (const size of [9, 32, 3, 12, 24, 40, 17, 31]) {
        const args = [floats(size, 3), floats(4, size), floats(size)] as const;
        const got = compiled(fn(...args));
        for (const [i, result] of got.entries()) {
          const found = await result.neg().data();
          const alone = await fn(...args)[i]!.data();
          expect(farthest(found, alone), `at ${size}`).toBeLessThan(2e-3);
        }
      }
    });
  });
});
