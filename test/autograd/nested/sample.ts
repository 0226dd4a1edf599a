// What nested derivatives are tried on: a function of tensors, and the point at which it is differentiated. Points are special:
// zeros, ones, equal elements, one tensor used twice. A point can be handed to the function as memory, of which nothing is known,
// or be made inside of it by `full`, of which everything is known; derivatives must be the same.

import { ruleFor } from '../../../src/autograd/rules.ts';
import { isFloat } from '../../../src/ir/dtype.ts';
import { topological, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { sizeOf, stridesOf, type FixedShape } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { hostValue } from '../../../src/tensor/host-function.ts';
import { full } from '../../../src/tensor/ops/creation/creation.ts';
import { expand, reshape } from '../../../src/tensor/ops/shape/view.ts';
import { fromHost } from '../../../src/tensor/record.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { traceFunction } from '../../../src/tensor/derivative/transform.ts';

export type Random = () => number;

export interface Sample {
  readonly name: string;
  /** Floats are f64. */
  readonly inputs: readonly HostArray[];
  /** The inputs that derivatives are taken with respect to: at least one. */
  readonly wrt: readonly number[];
  /** One or more results, of which those of a float dtype are differentiated. */
  readonly call: (inputs: readonly Tensor[]) => readonly Tensor[];
  /** Whether the derivative is a choice, so that differences of the function say nothing of it. */
  readonly chosen?: boolean;
  /**
   * Whether something inside may have no derivative where the whole has one: NaN from (−1)^x times 0, or a jump that cancels, as of
   * `where(x ≠ 0, x, 0)` at 0.
   */
  readonly mayBeUndefined?: boolean;
}

const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)]!;

/** Values at which rules are special: one value everywhere, one among others, a few values many times, or any. */
export function specialPoint(shape: FixedShape, random: Random): HostArray {
  const size = sizeOf(shape);
  const any = (): number => Math.round(random() * 64) / 16 - 2 + 1 / 128;
  const all = pick(random, [0, 1, 0, 1, -1, 0.5, 2]);
  const kind = Math.floor(random() * 6);
  const data = Array.from({ length: size }, (_, i) => {
    if (kind < 3) return all;
    if (kind === 3) return i === size - 1 ? any() : all;
    return kind === 4 ? pick(random, [0, 1, -1, all]) : any();
  });
  return hostArray('f64', shape, data);
}

/** The one value of all elements, if they have one. */
function uniformValue({ dtype, data }: HostArray): number | undefined {
  if (!isFloat(dtype) || data.length === 0) return undefined;
  const first = Number(data[0]);
  return data.every((x: number | bigint) => Object.is(Number(x), first)) ? first : undefined;
}

/** How the tensors of a point come about. */
export type Making = 'memory' | 'full' | 'expanded';

/** Whether a point has something that could be known of it. */
export function canBeKnown(points: readonly HostArray[]): boolean {
  return points.some((point) => uniformValue(point) !== undefined);
}

function made(tensor: Tensor, point: HostArray, making: Making): Tensor {
  const value = making === 'memory' ? undefined : uniformValue(point);
  if (value === undefined) return tensor;
  const { dtype, shape } = point;
  if (making === 'full') return full(shape, value, { dtype });
  return expand(
    reshape(
      full([1], value, { dtype }),
      shape.map(() => 1),
    ),
    shape,
  );
}

/** A function of tensors as one of arrays. */
export interface OnArrays {
  (at: readonly HostArray[]): HostArray[];
  /** Everything on the way that moves in jumps: which way selections went, what was rounded, which operand is the greatest. */
  readonly branches: (at: readonly HostArray[]) => string;
}

const extremes: ReadonlySet<string> = new Set(['min', 'max']);

/** Which operands, or elements, attain the minimum or maximum that a node gives: more than one at a tie. */
function attaining({ op, attrs }: Node, arrays: readonly HostArray[]): boolean[] {
  const result = arrays.at(-1)!;
  return arrays.slice(0, -1).flatMap(({ shape, data }) => {
    // A reduction's axes have one place each in its result; everything else has a result for each element.
    const axes = op === 'reduce' && 'axes' in attrs ? attrs.axes : [];
    const places = shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
    const strides = stridesOf(places).map((stride, axis) => (axes.includes(axis) ? 0 : stride));
    const steps = stridesOf(shape);
    return Array.from(data as ArrayLike<number>, (value, i) => {
      const place = shape.reduce(
        (sum, size, axis) => sum + (Math.floor(i / steps[axis]!) % size) * strides[axis]!,
        0,
      );
      return value === result.data[place];
    });
  });
}

/** A function as one of arrays like these; a point made inside leaves its parameters unread. */
export function onArrays(
  fn: (inputs: readonly Tensor[]) => readonly Tensor[],
  points: readonly HostArray[],
  making: Making = 'memory',
): OnArrays {
  const tensors = points.map(({ data, dtype, shape }) => fromHost(data, shape, dtype));
  const inside = (...args: Tensor[]): readonly Tensor[] =>
    fn(args.map((arg, i) => made(arg, points[i]!, making)));
  const { graph, inputs, results } = traceFunction(inside as never, tensors);
  const valueOf = inputs.map((input) => {
    const { origin } = input;
    if (origin.kind === 'argument') return (at: readonly HostArray[]) => at[origin.leaf]!;
    // Tables that an operation makes, such as the places that `combinations` chooses.
    const captured = hostValue(input, []);
    if (captured === undefined) throw new Error('a sample captures a tensor that is not in memory');
    return () => captured;
  });
  const values = (at: readonly HostArray[]): HostArray[] => valueOf.map((value) => value(at));
  const parameters = (at: readonly HostArray[]): HostArray[] => values(at).slice(0, graph.parameters.length);
  const discrete = topological(graph.outputs).filter(
    (node) => !isFloat(node.dtype) || (node.inputs.length > 0 && ruleFor(node) === 'flat'),
  );
  const choices = topological(graph.outputs).filter(
    ({ op, dtype, attrs }) =>
      isFloat(dtype) &&
      (extremes.has(op) ||
        ((op === 'reduce' || op === 'scan') && 'monoid' in attrs && extremes.has(attrs.monoid))),
  );
  const evaluated = (at: readonly HostArray[]): HostArray[] => {
    const outputs = interpret(graph, parameters(at));
    return results.map((result) => {
      if (result.kind === 'static') throw new Error('a sample gives tensors only');
      return result.kind === 'output' ? outputs[result.index]! : values(at)[result.index]!;
    });
  };
  const branches = (at: readonly HostArray[]): string => {
    const jumping = interpret({ ...graph, outputs: discrete }, parameters(at));
    const chosen = choices.map((node) => {
      const found = interpret({ ...graph, outputs: [...node.inputs, node] }, parameters(at));
      return { data: attaining(node, found) };
    });
    return [...jumping, ...chosen].map(({ data }) => data.join()).join(';');
  };
  return Object.assign(evaluated, { branches });
}

/** What a function gives at a point. */
export function evaluate(
  fn: (inputs: readonly Tensor[]) => readonly Tensor[],
  points: readonly HostArray[],
  making: Making = 'memory',
): HostArray[] {
  return onArrays(fn, points, making)(points);
}
