// Folds, scans and sorts along axes of varying sizes: beyond the size stands what changes nothing, or
// what comes last.

import { integerRange, isComplex, isFloat, isWide, partType, type DType } from '../dtype.ts';
import type { Node } from '../graph.ts';
import { identityOf } from '../interpret/identity.ts';
import type { Monoid } from '../ops.ts';
import type { Scalar } from '../value.ts';
import type { SizedNode } from './lowering.ts';
import type { SizeRulesOf } from './rule.ts';

/** Folding an element once or often is the same. */
const isIdempotent = (monoid: Monoid): boolean => monoid !== 'sum' && monoid !== 'prod';

function identity(monoid: Monoid, dtype: DType): Scalar {
  return identityOf(monoid, isComplex(dtype) ? partType(dtype) : dtype);
}

/** The value that comes last in an order, behind all equal ones that lie before it. */
function lastOf(dtype: DType, descending: boolean): Scalar {
  if (isFloat(dtype)) return descending ? -Infinity : NaN;
  if (dtype === 'bool') return descending ? 0 : 1;
  const end = integerRange(dtype)[descending ? 0 : 1];
  return isWide(dtype) ? end : Number(end);
}

export const folds: SizeRulesOf<'reduce' | 'argReduce' | 'argSort' | 'scan'> = {
  reduce: (ctx, part, [x]) => {
    const { monoid, axes } = part.attrs as { monoid: Monoid; axes: readonly number[] };
    const value = identity(monoid, part.dtype);
    const bounded = axes.reduce((at: SizedNode, axis) => {
      const isSame = at.axes[axis]!.uniform && isIdempotent(monoid);
      return isSame ? at : ctx.boundedTo(at, axis, value);
    }, x!);
    const node = ctx.b.add('reduce', [bounded.node], { monoid, axes }) as Node;
    return { node, axes: bounded.axes.filter((_, axis) => !axes.includes(axis)) };
  },
  argReduce: (ctx, part, [x]) => {
    const { monoid, axis } = part.attrs as { monoid: 'min' | 'max'; axis: number };
    const bounded = ctx.boundedTo(ctx.prefixed(x!, axis), axis, identity(monoid, x!.node.dtype));
    const node = ctx.b.add('argReduce', [bounded.node], { monoid, axis }) as Node;
    return { node, axes: bounded.axes.filter((_, i) => i !== axis) };
  },
  argSort: (ctx, part, [x]) => {
    const { axis, descending } = part.attrs as { axis: number; descending: boolean };
    const own = ctx.prefixed(x!, axis);
    const bounded = ctx.boundedTo(own, axis, lastOf(x!.node.dtype, descending));
    const node = ctx.b.add('argSort', [bounded.node], { axis, descending }) as Node;
    return { node, axes: varied(own.axes, axis) };
  },
  scan: (ctx, part, [x]) => {
    const attrs = part.attrs as { monoid: Monoid; axis: number; reverse: boolean; exclusive: boolean };
    const own = ctx.prefixed(x!, attrs.axis);
    const bounded = attrs.reverse ? ctx.boundedTo(own, attrs.axis, identity(attrs.monoid, part.dtype)) : own;
    const node = ctx.b.add('scan', [bounded.node], attrs) as Node;
    return { node, axes: varied(own.axes, attrs.axis) };
  },
};

/** The axes of a result whose elements differ along one. */
function varied(axes: SizedNode['axes'], axis: number): SizedNode['axes'] {
  return axes.with(axis, { ...axes[axis]!, uniform: false });
}
