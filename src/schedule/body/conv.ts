// The operands of convolutions that are computed as implicit matrix products.

import { CompilerBug } from '../../errors.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import {
  addIndex,
  andGuards,
  constantIndex,
  delinearize,
  divIndex,
  dynamicIndex,
  interval,
  linearize,
  modIndex,
  offsetIndex,
  scaleIndex,
  within,
  type Guard,
  type IndexExpr,
} from '../../ir/index-algebra/expr.ts';
import { sizeOf } from '../../ir/shape.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import type { Expr, ExprPool } from '../expression/expr.ts';
import { hasFlatTaps, isLaidTapsFirst } from '../flat-taps.ts';
import { makeAxis } from '../fusion/domain.ts';
import type { FusionGroup } from '../fusion/place.ts';
import type { FlatTaps, Image } from '../kernel.ts';

/**
 * conv as an implicit matrix product: lhs is the kernel at (channel, k), rhs the padded input at
 * (k, position).
 */
export function convOperands(
  node: Node,
  fusionGroup: FusionGroup,
  evaluator: Evaluator,
): { lhs: Expr; rhs: Expr; image: Image; flatTaps?: FlatTaps } {
  if (node.op !== 'conv') throw new CompilerBug('schedule', 'not a conv');
  const { strides, rhsDilation } = node.attrs;
  const weight = node.inputs[1]!;
  const w = dims(weight);
  const [batch, channel, ...position] = fusionGroup.members.get(node)!;
  const [inner, ...window] = delinearize(fusionGroup.axes['k']!.atom, w.slice(1));
  const lhs = evaluator.value(weight, [channel!, inner!, ...window]);
  const group = delinearize(fusionGroup.axes['batch']!.atom, [dims(node)[0]!, node.attrs.groups])[1]!;
  const from = (of: IndexExpr): IndexExpr => linearize([group, of], [node.attrs.groups, w[1]!]);
  const places = position.map((out, i) =>
    addIndex(scaleIndex(out, strides[i]!), scaleIndex(window[i]!, rhsDilation[i]!)),
  );
  const rhs = paddedInput(node, [batch!, from(inner!)], places, evaluator);
  const all = makeAxis('channel', w[1]!);
  const spatial = position.map((_, i) => {
    const [stride, reach] = [strides[i]!, (w[i + 2]! - 1) * rhsDilation[i]!];
    const size = dims(node)[i + 2]!;
    if (i < position.length - 1) return makeAxis(`place_${i}`, (size - 1) * stride + reach + 1);
    const fours = Math.ceil(size / 4) + Math.ceil(Math.floor(reach / stride) / 4);
    return makeAxis(`place_${i}`, 4 * fours * stride);
  });
  const atoms = spatial.map(({ atom }) => atom);
  const value = paddedInput(node, [batch!, from(all.atom)], atoms, evaluator);
  const image = { channel: all, spatial, value };
  if (!isLaidTapsFirst(weight) || !hasFlatTaps(node)) return { lhs, rhs, image };
  const tap = makeAxis('tap', sizeOf(w.slice(2)));
  const shape = dims(node.inputs[0]!).slice(2);
  const place = makeAxis('place', sizeOf(shape));
  return {
    lhs,
    rhs,
    image,
    flatTaps: {
      channel: all,
      tap,
      place,
      weight: evaluator.value(weight, [channel!, all.atom, ...delinearize(tap.atom, w.slice(2))]),
      input: evaluator.value(node.inputs[0]!, [batch!, all.atom, ...delinearize(place.atom, shape)]),
    },
  };
}

/**
 * A conv's input at an image, a channel and places in the padded, dilated input; only every
 * lhsDilation-th holds an element.
 */
function paddedInput(
  node: NodeOf<'conv'>,
  leading: readonly IndexExpr[],
  places: readonly IndexExpr[],
  evaluator: Evaluator,
): Expr {
  const { pool } = evaluator;
  const { padLow, lhsDilation } = node.attrs;
  const input = node.inputs[0]!;
  const x = dims(input);
  let guard: Guard | 'never' = [];
  const spatial: IndexExpr[] = [];
  for (const [i, place] of places.entries()) {
    const spread = lhsDilation[i]!;
    const index = offsetIndex(place, -padLow[i]!);
    guard = andGuards(guard, within(index, 0, (x[i + 2]! - 1) * spread));
    guard = andGuards(guard, within(modIndex(index, spread), 0, 0));
    // Line indices are clamped to the input, so that reads along a line need no further bounds.
    const isLine = i < places.length - 1;
    spatial.push(isLine ? insideAxis(pool, index, x[i + 2]!, spread) : divIndex(index, spread));
  }
  const zero = pool.constant(0, node.dtype);
  if (guard === 'never') return zero;
  const value = evaluator.value(input, [...leading, ...spatial]);
  if (guard.length === 0) return value;
  return pool.make({ kind: 'select', guard, yes: value, no: zero, dtype: node.dtype });
}

/** index / spread, kept within an axis; the index itself where its bounds show that it is. */
function insideAxis(pool: ExprPool, index: IndexExpr, size: number, spread: number): IndexExpr {
  const last = (size - 1) * spread;
  const { lo, hi } = interval(index);
  if ((lo >= 0 && hi <= last) || size === 1) return size === 1 ? constantIndex(0) : divIndex(index, spread);
  const i32 = (value: number): Expr => pool.constant(value, 'i32');
  const asked = pool.make({ kind: 'index', index, dtype: 'i32' });
  const clamped = pool.op('min', [pool.op('max', [asked, i32(0)], 'i32'), i32(last)], 'i32');
  const inside = spread === 1 ? clamped : pool.op('div', [clamped, i32(spread)], 'i32');
  for (const [atom, expr] of pool.dynamics) if (expr === inside) return atom;
  const atom = dynamicIndex(`at${pool.dynamics.size}`, 0, size - 1);
  pool.dynamics.set(atom, inside);
  return atom;
}
