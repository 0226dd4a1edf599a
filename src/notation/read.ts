// Reading a tensor at index expressions. Sums of up to two indices an axis are views: slices, steps,
// and windows; anything else is a gather at computed positions.

import * as ir from '../ir/build.ts';
import { isInteger } from '../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../ir/graph.ts';
import { record } from '../tensor/record.ts';
import { at } from '../tensor/ops/shape/indexing.ts';
import { broadcastTo } from '../tensor/ops/shape/view.ts';
import { clamp } from '../tensor/ops/elementwise/elementwise.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { affineOf, reach, type AffineIndex } from './affine.ts';
import { tensorOf } from './functions.ts';
import type { TensorAccess, Resolved, Variable } from './resolve.ts';
import { failAt, type SourceText } from './syntax.ts';
import { aligned, allOver, type NotationValue } from './value.ts';

type SizeOf = (variable: Variable) => number;

/** The value of x at the indices of the access; `evaluate` gives those that are no sums. */
export function readAccess(
  source: SourceText,
  x: Tensor,
  access: TensorAccess,
  sizeOf: SizeOf,
  evaluate: (index: Resolved) => NotationValue,
): NotationValue {
  const sums = access.indices.map(affineOf);
  const views = sums.filter((sum): sum is AffineIndex => sum !== undefined && isView(sum, sizeOf));
  const variables = views.flatMap(({ terms }) => [...terms.keys()]);
  if (views.length === sums.length && new Set(variables).size === variables.length)
    return readView(x, views, sizeOf);
  return gather(source, x, access, evaluate);
}

/** Whether a view can read an axis at this sum: at most two indices, two of them forwards. */
function isView({ terms }: AffineIndex, sizeOf: SizeOf): boolean {
  const factors = [...terms.values()];
  if (factors.length < 2) return true;
  return factors.length === 2 && factors.every((factor) => factor > 0) && [...terms.keys()].every(sizeOf);
}

/** A run of an axis, `step` apart. */
interface Run {
  readonly start: number;
  readonly count: number;
  readonly step: number;
}

function readView(x: Tensor, sums: readonly AffineIndex[], sizeOf: SizeOf): NotationValue {
  const spans = sums.map((sum): readonly [number, number] => reach(sum, sizeOf) ?? [0, -1]);
  // What lies outside is 0; whoever reads there is guarded by a condition, or was refused.
  const low = spans.map(([first]) => Math.max(0, -first));
  const high = spans.map(([, last], axis) => Math.max(0, last - x.shape[axis]! + 1));
  const over: Variable[] = [];
  const windows: Variable[] = [];
  const tensor = record([x], (b, [node]) => {
    const padded = pad(b, node!, low, high);
    const runs = sums.map((sum, axis) => runOf(sum, spans[axis]!, low[axis]!, sizeOf));
    let part = ir.slice(
      b,
      padded,
      runs.map(({ start }) => start),
      runs.map(({ count }) => count),
      runs.map(({ step }) => step),
    );
    const kept: number[] = [];
    sums.forEach(({ terms }, axis) => {
      const [outer, inner] = [...terms];
      if (outer === undefined) return;
      over.push(outer[0]);
      kept.push(axis);
      if (inner === undefined) return;
      windows.push(inner[0]);
      part = b.add('window', [part], {
        axis,
        size: sizeOf(inner[0]),
        stride: outer[1],
        dilation: inner[1],
      }) as Node;
    });
    const shape = dims(part);
    return ir.reshape(b, part, [...kept.map((axis) => shape[axis]!), ...shape.slice(sums.length)]);
  });
  return { kind: 'tensor', tensor, over: [...over, ...windows] };
}

function pad(b: GraphBuilder, x: Node, low: readonly number[], high: readonly number[]): Node {
  if ([...low, ...high].every((count) => count === 0)) return x;
  return b.add('pad', [x], { low, high, interior: low.map(() => 0), value: 0 }) as Node;
}

/** The elements that a sum reads: all between the first and the last where windows are taken of them. */
function runOf(
  { terms, constant }: AffineIndex,
  [first, last]: readonly [number, number],
  low: number,
  sizeOf: SizeOf,
): Run {
  const [term, another] = [...terms];
  if (last < first) return { start: 0, count: 0, step: 1 };
  if (another !== undefined) return { start: first + low, count: last - first + 1, step: 1 };
  if (term === undefined) return { start: constant + low, count: 1, step: 1 };
  const count = sizeOf(term[0]);
  return { start: constant + low, count, step: count === 1 ? 1 : term[1] };
}

function gather(
  source: SourceText,
  x: Tensor,
  access: TensorAccess,
  evaluate: (index: Resolved) => NotationValue,
): NotationValue {
  const values = access.indices.map(evaluate);
  const over = allOver(values);
  const places = values.map((value, axis) => {
    const place = tensorOf(aligned(value, over));
    const isNumber = value.kind === 'number' && Number.isInteger(value.value);
    if (!isNumber && !isInteger(place.dtype)) {
      const problem = `an index is a whole number, and this is ${place.dtype}`;
      failAt(source, access.indices[axis]!.at, 'E_DTYPE', `${problem}\n  try: i32(…)`);
    }
    const whole = isNumber ? place.cast('i32') : place;
    return access.isGuarded ? clamp(whole, 0, Math.max(0, x.shape[axis]! - 1)) : whole;
  });
  // One place decides the shape of all.
  const [first, ...rest] = places;
  const shape = over.map((_, axis) => Math.max(...places.map((place) => place.shape[axis] ?? 1)));
  return {
    kind: 'tensor',
    tensor: at(x, ...(first === undefined ? [] : [broadcastTo(first, shape), ...rest])),
    over,
  };
}
