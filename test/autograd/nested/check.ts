// Holds the nested derivatives of a sample to three laws. (1) All ways of nesting give the same. (2) They do not depend on how the
// point was made. (3) Where the function is smooth they are its differences: along a line through the point, in f64, of the function
// alone for the first two derivatives, and of the second for the third. Where differences from either side disagree the function has
// a kink (a tie of max, relu at 0), and its derivative is a convention: PyTorch's figures are the law there, and laws 1 and 2 still.

import { isFloat } from '../../../src/ir/dtype.ts';
import { sizeOf, type FixedShape } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { add, mul } from '../../../src/tensor/ops/elementwise.ts';
import { sum } from '../../../src/tensor/ops/reduce.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { firstOrders, secondOrders, thirdOrders, type Derive, type Scalar } from './orders.ts';
import { canBeKnown, evaluate, onArrays, type Making, type Random, type Sample } from './sample.ts';

/** Which laws a sample was held to. */
export interface Held {
  /** How many derivatives were compared with differences: up to three. */
  readonly compared: number;
  /** The point was also made inside the function. */
  readonly known: boolean;
  /** The second derivative is not 0 everywhere. */
  readonly curved: boolean;
}

type Vector = readonly Float64Array[];

/** Checks a sample. Throws with the law, the way of nesting and the figures; undefined where the function has no finite value. */
export function checkNested(sample: Sample, random: Random): Held | undefined {
  const problem = posed(sample, random);
  if (problem === undefined) return undefined;
  const { points, derive } = problem;
  const makings: readonly Making[] = canBeKnown(points) ? ['memory', 'full', 'expanded'] : ['memory'];
  const all = (order: string, ways: Readonly<Record<string, Derive>>): Vector => {
    let expected: Vector | undefined;
    for (const making of makings) {
      for (const [way, by] of Object.entries(ways)) {
        const found = vectorOf(evaluate(derive(by), points, making));
        expected ??= found;
        expectSame(`${order} derivative by ${way}, point from ${making}`, found, expected);
      }
    }
    return expected!;
  };
  const found = [all('first', firstOrders), all('second', secondOrders), all('third', thirdOrders)] as const;
  return {
    compared:
      sample.chosen === true ? 0 : compareWithDifferences(problem, found, sample.mayBeUndefined === true),
    known: makings.length > 1,
    curved: found[1].some((part) => part.some((x) => x !== 0)),
  };
}

/** A scalar function of the sample, and where and along which line it is differentiated. */
interface Problem {
  /** The inputs, what weighs the results, and the direction. */
  readonly points: readonly HostArray[];
  /** A derivative as a function of tensors like `points`. */
  readonly derive: (by: Derive) => (args: readonly Tensor[]) => readonly Tensor[];
  /** The function's value at these points. */
  readonly value: (at: readonly HostArray[]) => number;
  readonly line: Vector;
  /** The points after a step along the line. */
  readonly shifted: (by: number) => HostArray[];
}

function posed(sample: Sample, random: Random): Problem | undefined {
  const { inputs, wrt } = sample;
  const weights = weightsOf(sample, random);
  const direction = directionOf(sample, random);
  // Half of the functions would be linear but for this.
  const squares = random() < 0.6;
  const points = [...inputs, ...weights, ...direction];
  const derive: Problem['derive'] = (by) => (args) => {
    const given = args.slice(0, inputs.length);
    const weighted = args.slice(inputs.length, inputs.length + weights.length);
    const f: Scalar = (xs) => {
      const at = given.map((input, i) => (wrt.includes(i) ? xs[wrt.indexOf(i)]! : input));
      const results = sample.call(at).filter(({ dtype }) => isFloat(dtype));
      const bent = (y: Tensor): Tensor => (squares ? mul(y, add(y, 1)) : y);
      return results.map((y, k) => sum(mul(bent(y), weighted[k]!))).reduce((a, b) => add(a, b));
    };
    const along = args.slice(inputs.length + weights.length);
    return by(
      f,
      wrt.map((i) => given[i]!),
      along,
    );
  };
  if (weights.length === 0) return undefined;
  const scalar = onArrays(
    derive((f, xs) => [f(xs)]),
    points,
  );
  const value = (at: readonly HostArray[]): number => Number(scalar(at)[0]!.data[0]);
  const height = value(points);
  if (!Number.isFinite(height) || Math.abs(height) > 1e6) return undefined;
  const line = vectorOf(direction);
  const shifted = (by: number): HostArray[] =>
    points.map((point, i) => {
      const k = i < inputs.length ? wrt.indexOf(i) : -1;
      if (k < 0) return point;
      const data = (point.data as Float64Array).map((x, j) => x + by * line[k]![j]!);
      return hostArray('f64', point.shape, data);
    });
  return { points, derive, value, line, shifted };
}

/** One weight for each element of each float result; ones at times, which rules know how to leave out. */
function weightsOf({ inputs, call }: Sample, random: Random): HostArray[] {
  const ones = random() < 0.4;
  return evaluate(call, inputs)
    .filter(({ dtype }) => isFloat(dtype))
    .map(({ shape }) => filled(shape, () => (ones ? 1 : 2 * random() - 1)));
}

function directionOf({ inputs, wrt }: Sample, random: Random): HostArray[] {
  const ones = random() < 0.3;
  const entry = (): number => (random() < 0.5 ? -1 : 1) * (0.3 + 0.7 * random());
  return wrt.map((i) => filled(inputs[i]!.shape, () => (ones ? 1 : entry())));
}

function filled(shape: FixedShape, make: () => number): HostArray {
  return hostArray('f64', shape, Array.from({ length: sizeOf(shape) }, make));
}

function vectorOf(arrays: readonly HostArray[]): Vector {
  return arrays.map(({ data }) => Float64Array.from(data as Float64Array));
}

function dot(a: Vector, b: Vector): number {
  let total = 0;
  a.forEach((part, k) => part.forEach((x, i) => (total += x * b[k]![i]!)));
  return total;
}

/** How many of the derivatives the function is smooth enough for; throws at one that its differences contradict. */
function compareWithDifferences(
  { points, derive, value, line, shifted }: Problem,
  [first, second, third]: readonly [Vector, Vector, Vector],
  mayBeUndefined: boolean,
): number {
  const along = (t: number): number => value(shifted(t));
  const bends = onArrays(derive(secondOrders['grad of grad']!), points);
  const bend = (t: number): number => dot(vectorOf(bends(shifted(t))), line);
  const orders = [
    ['first', first, () => slopeOf(along), 5e-3],
    ['second', second, () => bendOf(along), 5e-2],
    ['third', third, () => slopeOf(bend), 5e-2],
  ] as const;
  for (const [i, [order, derivative, differences, most]] of orders.entries()) {
    const { value: expected, apart } = differences();
    const found = dot(derivative, line);
    const size = Math.max(1, Math.abs(expected));
    if (!(apart <= most * size) || (mayBeUndefined && Number.isNaN(found))) return i;
    if (Math.abs(found - expected) <= 2 * apart + 1e-4 * size) continue;
    throw new Error(
      `${order} derivative along a line is ${found}, by differences ${expected}, ${apart} apart`,
    );
  }
  return orders.length;
}

/** A derivative of φ at 0, and how far the formulas for it are apart. */
interface Difference {
  readonly value: number;
  readonly apart: number;
}

const step = 2 ** -9;

/** φ'(0) by three formulas of second order, centred and from either side (Fornberg, 1988), each at two steps. */
function slopeOf(phi: (t: number) => number): Difference {
  return gathered((h) => [
    (phi(h) - phi(-h)) / (2 * h),
    (-3 * phi(0) + 4 * phi(h) - phi(2 * h)) / (2 * h),
    (3 * phi(0) - 4 * phi(-h) + phi(-2 * h)) / (2 * h),
  ]);
}

/** φ''(0), likewise. */
function bendOf(phi: (t: number) => number): Difference {
  return gathered((h) => [
    (phi(h) - 2 * phi(0) + phi(-h)) / (h * h),
    (2 * phi(0) - 5 * phi(h) + 4 * phi(2 * h) - phi(3 * h)) / (h * h),
    (2 * phi(0) - 5 * phi(-h) + 4 * phi(-2 * h) - phi(-3 * h)) / (h * h),
  ]);
}

/** The centred difference at the smaller step, which is the best; what is NaN is infinitely far apart. */
function gathered(
  formulas: (h: number) => readonly [centred: number, after: number, before: number],
): Difference {
  const [near, far] = [formulas(step / 2), formulas(step)];
  const all = [...near, ...far];
  const apart = Math.max(...all) - Math.min(...all);
  return { value: near[0], apart: Number.isFinite(apart) ? apart : Infinity };
}

/** The same up to the rounding of other orders of the same sums; NaN with NaN. */
function expectSame(what: string, found: Vector, expected: Vector): void {
  found.forEach((part, k) => {
    const size = Math.max(1, ...[...expected[k]!].filter(Number.isFinite).map(Math.abs));
    part.forEach((x, i) => {
      const y = expected[k]![i]!;
      if (Object.is(x, y) || x === y || Math.abs(x - y) <= 1e-7 * size) return;
      throw new Error(`${what}: of input ${k}, element ${i} is ${x}, else ${y}`);
    });
  });
}
