// log Σ_{j≤i} e^{x_j} along an axis by linear work. No single shift is stable, since each element
// has its own largest predecessor; but log-sums combine by an associative rule, so they are scanned
// as any monoid is (Blelloch, 1990): short blocks on their own, then the blocks' totals by the same
// function, then each block continued from the total before it.

import type { CustomRule } from '../../autograd/custom.ts';
import {
  add,
  binary,
  broadcast,
  full,
  fullLike,
  neg,
  reduceKeep,
  reshape,
  sub,
  unary,
  where,
} from '../../ir/build.ts';
import { times } from '../../autograd/cotangent.ts';
import { largestOf } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { padConstant, sliceAxis } from './layout.ts';
import { iota, isFinite, isInf, negativeAbs, shiftOf, sigmoid, spreadTo, withRule } from './elementwise.ts';

/**
 * Elements of a block: so many steps each element takes, and by so much shorter is the row of
 * totals.
 */
const BLOCK = 32;

/**
 * log Σ_{j≤i} e^{x_j} for floats of at least f32 with at least one axis. Its derivative at +∞ is
 * NaN, as e^(∞ − ∞) is.
 */
export function runningLogSum(b: GraphBuilder, x: Node, axis: number): Node {
  return scanned(b, withRule(b, x, [x], infinityRule), axis);
}

const infinityRule: CustomRule = (b, [x], _value, g) => {
  const most = binary(b, 'and', isInf(b, x!), binary(b, 'lt', fullLike(b, x!, 0), x!));
  return [where(b, most, fullLike(b, g, NaN), g)];
};

/**
 * The scan itself. Inside, +∞ shares its derivative evenly: a total that is +∞ must not give NaN to
 * the finite ones of its block.
 */
function scanned(b: GraphBuilder, x: Node, axis: number): Node {
  const shape = dims(x);
  const size = shape[axis]!;
  if (size <= 2 * BLOCK) return withinBlock(b, x, axis);
  const blocks = Math.ceil(size / BLOCK);
  const along = (...sizes: readonly number[]): number[] => shape.toSpliced(axis, 1, ...sizes);
  const padded = padAxis(b, x, axis, 0, blocks * BLOCK - size);
  const rows = withinBlock(b, reshape(b, padded, along(blocks, BLOCK)), axis + 1);
  const totals = reshape(b, sliceAxis(b, rows, axis + 1, BLOCK - 1, 1), along(blocks));
  const earlier = sliceAxis(b, scanned(b, totals, axis), axis, 0, blocks - 1);
  const before = reshape(b, padAxis(b, earlier, axis, 1, 0), along(blocks, 1));
  const joined = logAddExp(b, broadcast(b, before, along(blocks, BLOCK)), rows);
  return sliceAxis(b, reshape(b, joined, along(blocks * BLOCK)), axis, 0, size);
}

/** `low` and `high` elements that count for nothing at the ends of an axis. */
function padAxis(b: GraphBuilder, x: Node, axis: number, low: number, high: number): Node {
  const only = (count: number): number[] => dims(x).map((_, i) => (i === axis ? count : 0));
  return padConstant(b, x, only(low), only(high), -Infinity);
}

/**
 * Element i is the log-sum of row i of a triangle, which is read from x and never stored: as many
 * steps as the square of the axis.
 */
function withinBlock(b: GraphBuilder, x: Node, axis: number): Node {
  const shape = dims(x);
  const size = shape[axis]!;
  const row = [...shape.slice(0, axis), 1, ...shape.slice(axis)];
  const square = [...shape.slice(0, axis), size, ...shape.slice(axis)];
  const spread = broadcast(b, reshape(b, x, row), square);
  const seen = binary(b, 'le', iota(b, square, axis + 1), iota(b, square, axis));
  const triangle = where(b, seen, spread, full(b, square, -Infinity, x.dtype));
  return reshape(b, logSum(b, triangle, axis + 1), shape);
}

/** log Σ eˣ over an axis, kept with size 1. */
function logSum(b: GraphBuilder, x: Node, axis: number): Node {
  const most = shiftOf(b, x, [axis]);
  const none = fullLike(b, most, 0);
  const beyond = where(b, binary(b, 'lt', none, most), fullLike(b, most, largestOf(x.dtype)), none);
  const shift = spreadTo(b, where(b, isFinite(b, most), most, beyond), x);
  const powers = unary(b, 'exp', sub(b, binary(b, 'min', x, largestOf(x.dtype)), shift));
  const total = reduceKeep(b, 'sum', withRule(b, powers, [x], powerRule), [axis]);
  const back = where(b, binary(b, 'lt', most, -largestOf(x.dtype)), none, most);
  return add(b, unary(b, 'log', total), back);
}

/** d e^(x − m) = e^(x − m)·dx for a shift m that has no part in the result; 1 at x = m = ∞. */
const powerRule: CustomRule = (b, _args, value, g) => [times(b, g, value)];

/** log(eˣ + eʸ) = max(x, y) + log1p(e^−|x − y|); equal infinities differ by 0. */
function logAddExp(b: GraphBuilder, x: Node, y: Node): Node {
  const decay = unary(b, 'exp', negativeAbs(b, difference(b, x, y)));
  return withRule(b, add(b, binary(b, 'max', x, y), unary(b, 'log1p', decay)), [x, y], logAddExpRule);
}

function difference(b: GraphBuilder, x: Node, y: Node): Node {
  const same = binary(b, 'and', binary(b, 'eq', x, y), unary(b, 'not', isFinite(b, x)));
  return where(b, same, fullLike(b, x, 0), sub(b, x, y));
}

/** d log(eˣ + eʸ) = σ(x − y)·dx + σ(y − x)·dy */
const logAddExpRule: CustomRule = (b, [x, y], _value, g) => {
  const d = difference(b, x!, y!);
  return [times(b, g, sigmoid(b, d)), times(b, g, sigmoid(b, neg(b, d)))];
};
