// What the rows of the table are made of: lists of factors, and what a process needs to know of its part.

import { add, broadcast, cast, constant, mul, sub } from '../ir/build.ts';
import { dims, type Node } from '../ir/graph.ts';
import type { Monoid } from '../ir/ops.ts';
import type { FixedShape } from '../ir/shape.ts';
import type { AxisFactors, ShardFactor, ShardLinear, ShardPlace, ShardingRule } from './rule.ts';

/** Factors of the rows of some ops are numbered by them, in the order in which they are added. */
export class FactorList {
  readonly all: ShardFactor[] = [];

  /** An axis of a new factor, of all its steps or (a divisor of its size) of the major ones. */
  axis(size: number, fold?: Monoid): AxisFactors {
    this.all.push(fold === undefined ? { size } : { size, fold });
    return [this.all.length - 1];
  }
}

/** An axis that cannot be split. */
export const unsplit: AxisFactors = [];

/** A value of which no axis can be split. */
export const wholeAxes = (node: Node): readonly AxisFactors[] => node.shape.map(() => unsplit);

/** No axis can be split: every process does all of it. */
export function wholeRule(node: Node): ShardingRule {
  return { factors: [], operands: node.inputs.map(wholeAxes), result: wholeAxes(node) };
}

/**
 * Each axis of the result, and of operands that have its shape, is a factor, by its number where there are no
 * exceptions. The axes `except` and other operands cannot be split.
 */
export function alikeRule(node: Node, except: readonly number[] = []): ShardingRule {
  const list = new FactorList();
  const shape = dims(node);
  const result = shape.map((size, axis) => (except.includes(axis) ? unsplit : list.axis(size)));
  const operands = node.inputs.map((operand) => {
    const own = dims(operand);
    const isAlike = own.length === shape.length && own.every((size, axis) => size === shape[axis]);
    return isAlike ? result : wholeAxes(operand);
  });
  return { factors: list.all, operands, result };
}

/** The shape of this process's part of a value. */
export function localShape(shape: FixedShape, axes: readonly AxisFactors[], place: ShardPlace): FixedShape {
  return shape.map((size, axis) => axes[axis]!.reduce((left, factor) => left / place.parts(factor), size));
}

/** At which of the steps of a factor that has `size` of them the part of this process begins, as `dtype`. */
export function firstStep(place: ShardPlace, factor: number, size: number, dtype: 'i32' | 'u32'): Node {
  const { b } = place;
  if (place.parts(factor) === 1) return constant(b, 0, dtype);
  return mul(b, cast(b, place.part(factor), dtype), size / place.parts(factor));
}

/**
 * Indices along an axis of `size` as indices along this process's part of it. Those of other parts lie outside of it:
 * below 0, or, of u32, so far above that no axis reaches there.
 */
export function indicesWithin(place: ShardPlace, indices: Node, factor: number, size: number): Node {
  if (place.parts(factor) === 1) return indices;
  const first = firstStep(place, factor, size, indices.dtype as 'i32' | 'u32');
  return sub(place.b, indices, broadcast(place.b, first, dims(indices)));
}

/** The places along `axis` of a value of `shape`, counted from `first` (i32, rank 0) on. */
export function placesFrom(place: ShardPlace, shape: FixedShape, axis: number, first: Node): Node {
  const { b } = place;
  return add(b, b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node, broadcast(b, first, shape));
}

/** Linear in these operands at once. */
export const together = (...operands: readonly number[]): ShardLinear => ({ kind: 'together', operands });
/** Linear in each of these operands while the others are equal on all processes. */
export const one = (...operands: readonly number[]): ShardLinear => ({ kind: 'one', operands });
