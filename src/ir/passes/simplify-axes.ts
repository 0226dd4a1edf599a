// The identities of folds (reduce, scan, argReduce): axes of size 1, axes that only repeat, and
// folds of folds. Part of `simplify`. A float sum starts from 0, so a sum of one element x is x +
// 0: it differs from x at −0.

import { add, broadcast, reduce, reshape } from '../build.ts';
import { isFloat } from '../dtype.ts';
import { dims, type Node } from '../graph.ts';
import type { Monoid } from '../ops.ts';
import { identityOf } from '../interpret/identity.ts';
import type { FixedShape } from '../shape.ts';
import { knownShape, spreadConstant } from './pattern.ts';
import { rule, type RewriteRule } from './rules.ts';

const idempotentMonoids: ReadonlySet<Monoid> = new Set<Monoid>(['min', 'max', 'and', 'or']);

/** Rules of reduce, scan and argReduce. */
export const axisRules: readonly RewriteRule[] = [
  rule('reduce-unit-axes', 'reduce over size-1 axes = reshape', 'reduce', (node, b) => {
    const x = node.inputs[0]!;
    const { monoid, axes } = node.attrs;
    const from = knownShape(x);
    if (from === undefined || !(axes.length === 0 || axes.some((axis) => from[axis] === 1))) return undefined;
    const rest = axes.filter((axis) => from[axis] !== 1);
    const dropped = axes.filter((axis) => from[axis] === 1);
    const kept = reshape(b, x, without(from, dropped));
    if (rest.length > 0) return reduce(b, monoid, kept, renumber(rest, dropped));
    return monoid === 'sum' && isFloat(node.dtype) ? add(b, kept, 0) : kept;
  }),
  rule('reduce-broadcast', 'reduce over repetitions = once, for min, max, and, or', 'reduce', (node, b) => {
    const x = node.inputs[0]!;
    const { monoid, axes } = node.attrs;
    const shape = knownShape(x);
    if (x.op !== 'broadcast' || shape === undefined || !idempotentMonoids.has(monoid)) return undefined;
    const from = dims(x.inputs[0]!);
    const missing = shape.length - from.length;
    const repeated = axes.filter((axis) => (from[axis - missing] ?? 1) === 1 && shape[axis] !== 0);
    if (repeated.length === 0) return undefined;
    const once = reshape(
      b,
      x.inputs[0]!,
      without(
        from,
        repeated.map((axis) => axis - missing),
      ),
    );
    const rest = axes.filter((axis) => !repeated.includes(axis));
    return reduce(b, monoid, broadcast(b, once, without(shape, repeated)), renumber(rest, repeated));
  }),
  rule('reduce-reduce', 'Σ Σ x = Σ x, for integers, min, max, and, or', 'reduce', (node, b) => {
    const x = node.inputs[0]!;
    const { monoid, axes } = node.attrs;
    if (x.op !== 'reduce' || x.attrs.monoid !== monoid) return undefined;
    if (isFloat(node.dtype) && !idempotentMonoids.has(monoid)) return undefined;
    const inner = x.attrs.axes;
    const kept = x.inputs[0]!.shape.map((_, axis) => axis).filter((axis) => !inner.includes(axis));
    const all = [...inner, ...axes.map((axis) => kept[axis]!)].sort((p, q) => p - q);
    return reduce(b, monoid, x.inputs[0]!, all);
  }),
  rule('scan-one', 'scan over a size-1 axis = x, or the identity when exclusive', 'scan', (node, b) => {
    const x = node.inputs[0]!;
    const { monoid, axis, exclusive } = node.attrs;
    if (node.shape[axis] !== 1) return undefined;
    if (exclusive) return spreadConstant(b, identityOf(monoid, node.dtype), node.dtype, node.shape);
    if (monoid !== 'sum' || !isFloat(node.dtype)) return x;
    return b.add('add', [x, spreadConstant(b, 0, node.dtype, node.shape)], {}) as Node;
  }),
  rule('arg-reduce-one', 'argReduce over a size-1 axis = 0', 'argReduce', (node, b) =>
    node.inputs[0]!.shape[node.attrs.axis] === 1 ? spreadConstant(b, 0, node.dtype, node.shape) : undefined,
  ),
];

function without(shape: FixedShape, axes: readonly number[]): number[] {
  return shape.filter((_, axis) => !axes.includes(axis));
}

/** Axis numbers after other axes are gone. */
function renumber(axes: readonly number[], gone: readonly number[]): number[] {
  return axes.map((axis) => axis - gone.filter((other) => other < axis).length);
}
