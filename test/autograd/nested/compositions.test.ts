// Transforms in any order, up to three of them, on random programs at special points: each sequence equals the one in which every
// `vmap` is a loop and every `jvp` two passes backwards; and where the outermost transform is a derivative and the function smooth,
// differences of what it is the derivative of. `SINTER_NESTED_RUNS=5000` looks further than CI does.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { sizeOf } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { seed } from '../../support/property.ts';
import { randomNumbers } from '../differences.ts';
import { slopeOf } from './check.ts';
import { onArrays, specialPoint, type OnArrays, type Random } from './sample.ts';
import { programSamples } from './samples.ts';

const runs = Number(process.env['SINTER_NESTED_RUNS'] ?? 40) * 2;

type Many = readonly Tensor[];
type Fn = (xs: Many) => Many;

/** A function, the same by other means, and where it is evaluated. */
interface Stage {
  readonly fn: Fn;
  readonly other: Fn;
  readonly points: readonly HostArray[];
}

/** Numbers for every element, from its position alone. */
function fixedNumbers({ shape }: { readonly shape: readonly number[] }, salt: number): HostArray {
  const random = randomNumbers(salt);
  return hostArray(
    'f64',
    shape,
    Array.from({ length: sizeOf(shape) }, () => 2 * random() - 1),
  );
}

/** One number of many, bent so that second derivatives are there. */
function weighed(ys: Many): Tensor {
  const parts = ys.map((y, k) =>
    y
      .mul(y.add(1))
      .mul(numbersLike(y, k + 1))
      .sum(),
  );
  return parts.reduce((a, b) => a.add(b));
}

const directionsFor = (xs: Many): Many => xs.map((x) => numbersLike(x, 0.3));

/** Numbers for every element, made by operations: what is traced captures nothing. */
function numbersLike({ shape }: Tensor, from: number): Tensor {
  return sn
    .arange(sizeOf(shape))
    .cast('f64')
    .mul(1.7)
    .add(from)
    .sin()
    .reshape([...shape]);
}

const transforms: Readonly<Record<string, (stage: Stage, random: Random) => Stage>> = {
  vmap: ({ fn, other, points }, random) => {
    const size = 1 + Math.floor(random() * 3);
    // Each input is mapped along an axis of its own, or is the same for all examples.
    const axes = points.map(({ shape }, i) =>
      i > 0 && random() < 0.3 ? null : Math.floor(random() * (shape.length + 1)),
    );
    const stackedPoints = points.map((point, i) => {
      const axis = axes[i]!;
      if (axis === null) return point;
      const examples = Array.from({ length: size }, (_, k) =>
        k === 0 ? point : specialPoint(point.shape, random),
      );
      return stackAlong(examples, axis);
    });
    const outAxis = random() < 0.5 ? 0 : -1;
    return {
      fn: (xs) => sn.vmap((...ys: Tensor[]) => fn(ys), { inAxes: axes, outAxes: outAxis })(...xs),
      other: (xs) => {
        const results = Array.from({ length: size }, (_, k) =>
          other(
            xs.map((x, i) => {
              const axis = axes[i]!;
              return axis === null ? x : x.select(axis, k);
            }),
          ),
        );
        return results[0]!.map((_, k) =>
          sn.stack(
            results.map((each) => each[k]!),
            outAxis,
          ),
        );
      },
      points: stackedPoints,
    };
  },
  grad: ({ fn, other, points }) => ({
    fn: (xs) => sn.grad((ys: Many) => weighed(fn(ys)))(xs),
    other: (xs) => {
      const { value, vjp } = sn.vjp((ys: Many) => weighed(other(ys)), xs);
      return vjp(sn.ones(value.shape, { dtype: 'f64' }))[0];
    },
    points,
  }),
  jvp: ({ fn, other, points }) => ({
    fn: (xs) => sn.jvp(fn, [xs], [directionsFor(xs)]).tangent,
    // ⟨u, J·d⟩ = ⟨Jᵀ·u, d⟩ for all u: the derivative of Jᵀ·u along d, with respect to u.
    other: (xs) => {
      const pulled = (us: Many): Many => sn.vjp(other, xs).vjp(us)[0];
      const zeros = other(xs).map((y) => sn.zeros(y.shape, { dtype: 'f64' }));
      return sn.vjp(pulled, zeros).vjp(directionsFor(xs))[0];
    },
    points,
  }),
  linearize: ({ fn, other, points }) => ({
    fn: (xs) => sn.linearize(fn, xs).jvp(directionsFor(xs)),
    other: (xs) => sn.jvp(other, [xs], [directionsFor(xs)]).tangent,
    points,
  }),
  hvp: ({ fn, other, points }) => ({
    fn: (xs) => sn.hvp((ys: Many) => weighed(fn(ys)), [xs], [directionsFor(xs)]).hvp[0] as Many,
    other: (xs) =>
      sn.vjp((ys: Many) => sn.grad((zs: Many) => weighed(other(zs)))(ys), xs).vjp(directionsFor(xs))[0],
    points,
  }),
};

/** Examples of one shape joined along a new axis. */
function stackAlong(examples: readonly HostArray[], axis: number): HostArray {
  const { shape } = examples[0]!;
  const inner = sizeOf(shape.slice(axis));
  const outer = sizeOf(shape.slice(0, axis));
  const data: number[] = [];
  for (let i = 0; i < outer; i++) {
    for (const each of examples) data.push(...(each.data as Float64Array).slice(i * inner, (i + 1) * inner));
  }
  return hostArray('f64', shape.toSpliced(axis, 0, examples.length), data);
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

function checkClose(what: string, found: number[], expected: number[]): void {
  const size = Math.max(1, ...expected.map(Math.abs));
  found.forEach((x, i) => {
    if (Math.abs(x - expected[i]!) <= 1e-7 * size) return;
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
  checkClose(names.join(' inside '), found, expected);
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

test(`${runs} random compositions of transforms on random programs`, { timeout: 3_600_000 }, () => {
  const names = fc.array(fc.constantFrom(...Object.keys(transforms)), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(programSamples, names, ({ sample, random }, chosen) => {
      if (sample === undefined || sample.chosen === true) return;
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
