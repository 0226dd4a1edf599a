// Transforms in any order, up to three of them, on random programs at special points: each sequence equals the one in which every
// `vmap` and every `scan` is a loop and every `jvp` two passes backwards; and where the outermost transform is a derivative and the function smooth,
// differences of what it is the derivative of. `SINTER_NESTED_RUNS=5000` looks further than CI does.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { sizeOf } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { seed } from '../../support/property.ts';
import { randomNumbers } from '../differences.ts';
import { slopeOf } from './check.ts';
import { onArrays, type OnArrays, type Random } from './sample.ts';
import { programSamples } from './samples.ts';
import { orderOf, transforms, weighed, type Fn, type Many, type Stage } from './transforms.ts';

const runs = Number(process.env['SINTER_NESTED_RUNS'] ?? 40) * 5;

/** Numbers for every element, from its position alone. */
function fixedNumbers({ shape }: { readonly shape: readonly number[] }, salt: number): HostArray {
  const random = randomNumbers(salt);
  return hostArray(
    'f64',
    shape,
    Array.from({ length: sizeOf(shape) }, () => 2 * random() - 1),
  );
}

/** Inputs of the program that stay, in the trace at hand. */
let others: Many = [];

/** A function of arrays like `points`; the inputs that stay come along. */
function evaluated(fn: Fn, points: readonly HostArray[], rest: readonly HostArray[]): OnArrays {
  const whole = onArrays(
    (xs) => {
      others = xs.slice(points.length);
      return fn(xs.slice(0, points.length));
    },
    [...points, ...rest],
  );
  const run = (at: readonly HostArray[]): HostArray[] => whole([...at, ...rest]);
  return Object.assign(run, { branches: (at: readonly HostArray[]) => whole.branches([...at, ...rest]) });
}

const numbersOf = (arrays: readonly HostArray[]): number[] =>
  arrays.flatMap(({ data }) => [...(data as Float64Array)]);

/** Each derivative beyond the second multiplies what is rounded by the size of another power of 1/x. */
function checkClose(what: string, order: number, found: number[], expected: number[]): void {
  const room = 1e-7 * 100 ** Math.max(0, order - 2) * Math.max(1, ...expected.map(Math.abs));
  found.forEach((x, i) => {
    if (Math.abs(x - expected[i]!) <= room) return;
    throw new Error(`${what}: element ${i} is ${x}, else ${expected[i]}`);
  });
}

const tally = { compared: 0, differences: 0, byName: {} as Record<string, number> };

function checkComposition(
  stage: Stage,
  names: readonly string[],
  random: Random,
  rest: readonly HostArray[],
): void {
  let at = stage;
  let inside = stage;
  for (const name of names) {
    inside = at;
    at = transforms[name]!(at, random);
  }
  const found = numbersOf(evaluated(at.fn, at.points, rest)(at.points));
  const expected = numbersOf(evaluated(at.other, at.points, rest)(at.points));
  expect(found.length).toBe(expected.length);
  // Where 0 meets ∞ inside, each way has its own NaN.
  if (![...found, ...expected].every((x) => Number.isFinite(x) && Math.abs(x) < 1e8)) return;
  checkClose(names.join(' inside '), orderOf(names), found, expected);
  tally.compared += 1;
  for (const name of names) tally.byName[name] = (tally.byName[name] ?? 0) + 1;
  if (names.at(-1) === 'grad') checkDifferences(at, inside, random, found, rest);
}

/** The gradient along a line, by differences of the function that it is of. */
function checkDifferences(
  at: Stage,
  inside: Stage,
  random: Random,
  gradient: readonly number[],
  rest: readonly HostArray[],
): void {
  const scalar = evaluated((xs) => [weighed(inside.fn(xs))], at.points, rest);
  const line = at.points.map((point) => fixedNumbers(point, Math.floor(random() * 1e6)));
  const moved = (by: number): HostArray[] =>
    at.points.map((point, i) => {
      const d = line[i]!.data as Float64Array;
      return hostArray(
        'f64',
        point.shape,
        (point.data as Float64Array).map((x, k) => x + by * d[k]!),
      );
    });
  const { value, apart } = slopeOf((t) => Number(scalar(moved(t))[0]!.data[0]));
  // A kink, or a jump.
  if (!(apart <= 1e-3 * Math.max(1, Math.abs(value)))) return;
  const slope = numbersOf(line).reduce((sum, d, i) => sum + d * gradient[i]!, 0);
  if (Math.abs(slope - value) > 2 * apart + 1e-4 * Math.max(1, Math.abs(value))) {
    if (scalar.branches(moved(2 ** -9)) !== scalar.branches(moved(-(2 ** -9)))) return;
    throw new Error(`a gradient along a line is ${slope}, by differences ${value}, ${apart} apart`);
  }
  tally.differences += 1;
}

test(`${runs} random compositions of transforms on random programs`, () => {
  const names = fc.array(fc.constantFrom(...Object.keys(transforms)), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(programSamples, names, ({ sample, random, ops }, chosen) => {
      if (sample === undefined || sample.chosen === true) return;
      // The second derivative of 0^p by both is infinite: each way has its own finite part of it.
      if (ops.includes('pow') && orderOf(chosen) > 1) return;
      const { inputs, wrt, call } = sample;
      const fn: Fn = (xs) => {
        const given = inputs.map((_, i) => (wrt.includes(i) ? xs[wrt.indexOf(i)]! : others[i]!));
        return call(given);
      };
      const points = wrt.map((i) => inputs[i]!);
      if (onArrays(call, inputs)(inputs).length === 0) return;
      try {
        checkComposition({ fn, other: fn, points }, chosen, random, inputs);
      } catch (error) {
        throw new Error(
          `${chosen.join(' inside ')}: ${error instanceof Error ? error.message : String(error)}`,
          {
            cause: error,
          },
        );
      }
    }),
    { numRuns: runs, seed },
  );
  console.log(`seed ${seed}: ${JSON.stringify(tally)}`);
  expect(tally.compared).toBeGreaterThan(runs / 4);
  expect(tally.differences).toBeGreaterThan(runs / 40);
});
