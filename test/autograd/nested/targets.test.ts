// Compositions of transforms on every target: what models are made of, in f32, by up to three transforms, gives what the interpreter
// gives. `SINTER_COMPOSED_RUNS=500` looks further than CI does.

import * as fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { sizeOf } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import * as sn from '../../../src/index.ts';
import { fromHost } from '../../../src/tensor/record.ts';
import { everyDevice } from '../../support/devices.ts';
import { checkLawAsync } from '../../support/property.ts';
import { randomNumbers } from '../differences.ts';
import { transforms, type Fn } from './transforms.ts';

type T = sn.Tensor;

interface Function {
  readonly shapes: readonly (readonly number[])[];
  readonly fn: (...xs: T[]) => T;
}

const functions: Readonly<Record<string, Function>> = {
  polynomial: { shapes: [[5]], fn: (x) => x.mul(x).add(x.mul(0.5)).tanh() },
  softmax: { shapes: [[3, 4]], fn: (x) => x.softmax(-1) },
  layerNorm: { shapes: [[2, 6], [6]], fn: (x, w) => sn.layerNorm(x, [6], w) },
  perceptron: {
    shapes: [
      [3, 4],
      [4, 2],
    ],
    fn: (x, w) => sn.gelu(x.matmul(w)),
  },
  attention: {
    shapes: [
      [1, 3, 4],
      [1, 3, 4],
      [1, 3, 4],
    ],
    fn: (q, k, v) => sn.scaledDotProductAttention(q, k, v, { isCausal: true }),
  },
  convolution: {
    shapes: [
      [1, 2, 5],
      [3, 2, 2],
    ],
    fn: (x, w) => sn.conv1d(x, w, undefined, { padding: 1 }).sigmoid(),
  },
  running: { shapes: [[2, 4]], fn: (x) => sn.cumsum(x.sin(), 1) },
  moved: {
    shapes: [[4, 2], [2]],
    fn: (x, v) =>
      sn
        .setAt(x, [1], v)
        .slice(0, 1, 4)
        .sqrt()
        .exp()
        .neg()
        .add(x.flip(0).slice(0, 0, 3)),
  },
  gathered: {
    shapes: [[4, 2]],
    fn: (x) => sn.indexSelect(x, 0, sn.tensor([3, 0, 3], { dtype: 'i32' })).cos(),
  },
  solved: {
    shapes: [[2, 2], [2]],
    fn: (a, y) => sn.linalg.solve(a.mul(0.25).add(sn.eye(2).mul(3)), y),
  },
};

/** Numbers between 0.25 and 1.25: all of these functions are smooth there. */
function point(shape: readonly number[], random: () => number): HostArray {
  return hostArray(
    'f32',
    shape,
    Array.from({ length: sizeOf(shape) }, () => 0.25 + random()),
  );
}

async function valuesOn(device: string, fn: Fn, points: readonly HostArray[]): Promise<number[]> {
  sn.setDevice(device);
  const compiled = sn.compile((xs: readonly T[]) => [...fn(xs)]);
  const results = compiled(points.map(({ data, dtype, shape }) => fromHost(data, shape, dtype)));
  const read = await Promise.all(results.map(async (y) => [...((await y.data()) as Float32Array)]));
  return read.flat();
}

const composition = fc.record({
  name: fc.constantFrom(...Object.keys(functions)),
  chosen: fc.array(fc.constantFrom(...Object.keys(transforms)), { minLength: 1, maxLength: 3 }),
  seed: fc.nat(),
});

const more = process.env['SINTER_COMPOSED_RUNS'];
const runs = (device: string): number => (more !== undefined ? Number(more) : device === 'wasm' ? 24 : 5);

describe.each(everyDevice.filter((name) => name !== 'interpreter'))('on %s', (device) => {
  afterAll(() => sn.setDevice('interpreter'));

  test('compositions are what they are on the interpreter', async () => {
    await checkLawAsync(runs(device), composition, async ({ name, chosen, seed }) => {
      const { shapes, fn } = functions[name]!;
      const random = randomNumbers(seed);
      const base: Fn = (xs) => [fn(...xs)];
      let stage = { fn: base, other: base, points: shapes.map((shape) => point(shape, random)) };
      for (const transform of chosen) stage = transforms[transform]!(stage, random) as typeof stage;
      const expected = await valuesOn('interpreter', stage.fn, stage.points);
      const found = await valuesOn(device, stage.fn, stage.points);
      expect(found.length).toBe(expected.length);
      // Where an interval of the real numbers ends each target has its own NaN, and sums of large numbers their own order.
      const scale = Math.max(1, ...expected.filter(Number.isFinite).map(Math.abs));
      if (expected.some((x) => !Number.isFinite(x)) || scale > 1e4) return;
      found.forEach((x, i) => expect(Math.abs(x - expected[i]!), `${i}`).toBeLessThan(3e-4 * scale));
    });
  });
});
