// Holds the nested derivatives of a sample to three laws. (1) All ways of nesting give the same. (2) They do not depend on how the
// point was made. (3) Where the function is smooth they are its differences: along a line through the point, in f64, of the function
// alone for the first two derivatives, and of the second for the third. Where differences from either side disagree the function has
// a kink (a tie of max, relu at 0), and its derivative is a convention: PyTorch's figures are the law there, and laws 1 and 2 still.

import { isFloat } from '../../../src/ir/dtype.ts';
import { sizeOf, type FixedShape } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { add, mul } from '../../../src/tensor/ops/elementwise/arithmetic.ts';
import { sum } from '../../../src/tensor/ops/reduce/reduce.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import {
  firstOrders,
  forwardOrders,
  forwardThirdOrders,
  secondOrders,
  slopes,
  thirdOrders,
  transposedOrders,
  type Derive,
  type Scalar,
} from './orders.ts';
import {
  canBeKnown,
  evaluate,
  onArrays,
  type Making,
  type OnArrays,
  type Random,
  type Sample,
} from './sample.ts';

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
  // Forwards, 0 times an infinite derivative inside is NaN where backwards nothing asks for it, as of √ of a padding.
  const isUndefined = (vector: Vector): boolean =>
    sample.mayBeUndefined === true && vector.some((part) => part.some(Number.isNaN));
  const forwards = (order: string, ways: Readonly<Record<string, Derive>>, known: Vector): void =>
    void all(order, ways, known, isUndefined);
  const all = (
    order: string,
    ways: Readonly<Record<string, Derive>>,
    known?: Vector,
    pass: (vector: Vector) => boolean = () => false,
  ): Vector => {
    let expected = known;
    for (const making of makings) {
      for (const [way, by] of Object.entries(ways)) {
        const found = vectorOf(evaluate(derive(by), points, making));
        expected ??= found;
        if (pass(found)) continue;
        expectSame(`${order} derivative by ${way}, point from ${making}`, found, expected);
      }
    }
    return expected!;
  };
  const found = [all('first', firstOrders), all('second', secondOrders), all('third', thirdOrders)] as const;
  const slope = Float64Array.of(dot(found[0], vectorOf(problem.direction)));
  // What is no number at all, as 0 times infinite, is so in its own way.
  if (Number.isFinite(slope[0])) forwards('slope', slopes, [slope]);
  const compared = sample.chosen === true ? 0 : compareWithDifferences(problem, found[0], sample, random);
  // The second derivative is symmetric where it is continuous.
  if (compared === 3) {
    all('second', transposedOrders, found[1]);
    forwards('second', forwardOrders, found[1]);
    forwards('third', forwardThirdOrders, found[2]);
  }
  const curved = found[1].some((part) => part.some((x) => x !== 0));
  return { compared, known: makings.length > 1, curved };
}

/** A scalar function of the sample, and where and along which line it is differentiated. */
interface Problem {
  /** The inputs, what weighs the results, and the direction. */
  readonly points: readonly HostArray[];
  /** A derivative as a function of tensors like `points`. */
  readonly derive: (by: Derive) => (args: readonly Tensor[]) => readonly Tensor[];
  readonly scalar: OnArrays;
  readonly direction: readonly HostArray[];
  /** The points after a step in a direction, which is theirs then. */
  readonly shifted: (direction: readonly HostArray[], by: number) => HostArray[];
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
  const height = Number(scalar(points)[0]!.data[0]);
  if (!Number.isFinite(height) || Math.abs(height) > 1e6) return undefined;
  const shifted = (along: readonly HostArray[], by: number): HostArray[] => {
    const at = points.slice(0, -along.length).map((point, i) => {
      const k = i < inputs.length ? wrt.indexOf(i) : -1;
      if (k < 0) return point;
      const line = along[k]!.data as Float64Array;
      return hostArray(
        'f64',
        point.shape,
        (point.data as Float64Array).map((x, j) => x + by * line[j]!),
      );
    });
    return [...at, ...along];
  };
  return { points, derive, scalar, direction, shifted };
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
  problem: Problem,
  first: Vector,
  { mayBeUndefined }: Sample,
  random: Random,
): number {
  const { derive, scalar, direction, points, shifted } = problem;
  const [bends, thirds] = [secondOrders['grad of grad']!, thirdOrders['grad of grad of grad']!].map((by) =>
    onArrays(derive(by), points),
  );
  const orders = (
    d: readonly HostArray[],
  ): readonly (readonly [found: number, differences: Difference, most: number])[] => {
    const line = vectorOf(d);
    const height = (t: number): number => Number(scalar(shifted(d, t))[0]!.data[0]);
    const along = (derivative: OnArrays, t: number): number => dot(vectorOf(derivative(shifted(d, t))), line);
    return [
      [dot(first, line), slopeOf(height), 1e-3],
      [along(bends!, 0), bendOf(height), 1e-2],
      [along(thirds!, 0), slopeOf((t) => along(bends!, t)), 1e-2],
    ];
  };
  const isKink = ([, { value, apart }, most]: ReturnType<typeof orders>[number]): boolean =>
    !(apart <= most * Math.max(1, Math.abs(value)));
  for (const [i, found] of orders(direction).entries()) {
    const [derivative, { value, apart }] = found;
    if (isKink(found) || (mayBeUndefined === true && Number.isNaN(derivative))) return i;
    if (Math.abs(derivative - value) <= 2 * apart + 1e-4 * Math.max(1, Math.abs(value))) continue;
    // Kinks of several elements can cancel along one line, but not along all: some like it, and some that turn elements around.
    const others = Array.from({ length: 12 }, (_, k) =>
      direction.map(({ shape, data }) =>
        hostArray(
          'f64',
          shape,
          (data as Float64Array).map((x) => x * (0.2 + random()) * (k >= 4 && random() < 0.5 ? -1 : 1)),
        ),
      ),
    );
    if (others.some((other) => isKink(orders(other)[i]!))) return i;
    // The middle one of three equal elements moves at the middle one of their speeds: every line is smooth, and slopes do not add up.
    const slopeAlong = (d: readonly HostArray[]): number => orders(d)[0]![1].value;
    const addsUp = (other: readonly HostArray[]): boolean => {
      const excess = slopeAlong(sumOf(direction, other)) - value - slopeAlong(other);
      return Math.abs(excess) <= 1e-4 * Math.max(1, Math.abs(value));
    };
    if (i === 0 && !others.every(addsUp)) return i;
    if (mayBeUndefined === true && jumps(problem)) return i;
    throw new Error(
      `derivative ${i + 1} along a line is ${derivative}, by differences ${value}, ${apart} apart`,
    );
  }
  return 3;
}

function sumOf(a: readonly HostArray[], b: readonly HostArray[]): HostArray[] {
  return a.map(({ shape, data }, k) => {
    const other = b[k]!.data as Float64Array;
    return hostArray(
      'f64',
      shape,
      (data as Float64Array).map((x, j) => x + other[j]!),
    );
  });
}

/** Whether something inside jumps at the point, so that a step to one side or to the other meets other selections. */
function jumps({ scalar, points, direction, shifted }: Problem): boolean {
  const here = scalar.branches(points);
  return [step, -step].some((by) => scalar.branches(shifted(direction, by)) !== here);
}

/** A derivative of φ at 0, and how far the formulas for it are apart. */
interface Difference {
  readonly value: number;
  readonly apart: number;
}

const step = 2 ** -9;

/** φ'(0) by three formulas of second order, centred and from either side (Fornberg, 1988), each at two steps. */
export function slopeOf(phi: (t: number) => number): Difference {
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
