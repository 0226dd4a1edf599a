// Folds over the rows of a product, where nothing else reads them, become folds of `foldWidth` columns each and
// the combination of their results. The kernel of the product then folds its own tiles, and the product is not
// stored: so the loss of a language model needs no logits in memory. Four kinds of folds are taken apart:
// those of what each element is by itself; Σ e^(x − c) for a c of the row, by the maximum of each part, which is
// what keeps the powers finite (Milakov and Gimelshein, 2018); Σ (x − max − c), in the same way, for smoothed labels;
// and the sum that picks a row's element at one place, whatever the row's other folds then do with it. Where the last part would be shorter than the others, the
// right operand gets columns of zeros, which the folds leave out.

import {
  binary,
  below,
  broadcast,
  cast,
  constant,
  fullLike,
  isZero,
  mul,
  reduce,
  reshape,
  sub,
  unary,
  where,
} from '../../ir/build.ts';
import { largestOf } from '../../ir/dtype.ts';
import {
  dims,
  rebuild,
  rewrite,
  topological,
  usersOf,
  type Graph,
  type GraphBuilder,
  type Node,
  type NodeOf,
} from '../../ir/graph.ts';
import { isElementwise, type Monoid } from '../../ir/ops.ts';
import { foldsColumns, foldWidth } from '../fusion/column-folds.ts';
import { contractExtents, spreadAlong } from '../fusion/domain.ts';
import { sharesWork } from '../machine.ts';
import type { Target } from '../target.ts';

/** Parts that a row should have at least. */
const fewestParts = 4;
/** Nodes between a product and the folds of its rows, at most. */
const mostBetween = 64;

/** A fold that is taken apart; `isRow` holds for what is made of whole rows of the product. */
type Apart = { readonly isRow: (node: Node) => boolean } & (
  | { readonly kind: 'plain' }
  | { readonly kind: 'powers' }
  /** A sum of what is left of the elements under their maximum, and of values of the row. */
  | { readonly kind: 'below maximum'; readonly isElement: (node: Node) => boolean }
  /** `isElement` holds for what is picked, of rows of the product or of what stands beside them; all else of the picked value is of the row. */
  | { readonly kind: 'pick'; readonly isElement: (node: Node) => boolean }
);

/** What changes no fold of f32. */
const neutral: Readonly<Record<Monoid, number>> = {
  sum: 0,
  prod: 1,
  min: Infinity,
  max: -Infinity,
  and: 1,
  or: 0,
};

/** So many columns, or those missing in the last part too. */
function wholeParts(width: number): number {
  return foldWidth * Math.ceil(width / foldWidth);
}

/** Takes folds over the rows of products apart. */
export function foldColumns(graph: Graph, target: Target): Graph {
  const order = topological(graph.outputs);
  if (!sharesWork(target) || !order.some(({ op }) => op === 'reduce')) return graph;
  const users = usersOf(order);
  const outputs = new Set(graph.outputs);
  const apart = new Map<NodeOf<'reduce'>, Apart>();
  for (const node of order) {
    if (node.op !== 'dot') continue;
    const width = dims(node as Node).at(-1)!;
    const { n } = contractExtents(node as Node);
    // Of several axes of columns only the last one could have more.
    if (width % foldWidth !== 0 && width !== n) continue;
    if (!foldsColumns(node, target, (n / width) * wholeParts(width))) continue;
    for (const [fold, how] of foldsOf(node, users, outputs) ?? []) apart.set(fold, how);
  }
  if (apart.size === 0) return graph;
  return rewrite(graph, (node, inputs, b) => {
    const how = node.op === 'reduce' ? apart.get(node) : undefined;
    if (node.op !== 'reduce' || how === undefined) return undefined;
    const [input] = inputs as readonly [Node];
    const { monoid } = node.attrs;
    const rows = new WholeParts(b, how.isRow);
    if (how.kind === 'plain') {
      const parts = rows.inParts(node.inputs[0]!, input, neutral[monoid]);
      return foldLast(b, monoid, foldLast(b, monoid, parts));
    }
    if (how.kind === 'powers') return sumOfPowers(b, node.inputs[0]!, input, rows);
    if (how.kind === 'below maximum') return sumBelowMaximum(b, node.inputs[0]!, input, rows, how.isElement);
    return pickedValue(b, node.inputs[0]!, input, rows, how);
  });
}

/** The folds of a product's rows, if all that reads the rows is such a fold. */
function foldsOf(
  product: NodeOf<'dot'>,
  users: ReadonlyMap<Node, readonly Node[]>,
  outputs: ReadonlySet<Node>,
): ReadonlyMap<NodeOf<'reduce'>, Apart> | undefined {
  const width = dims(product as Node).at(-1)!;
  if (width < fewestParts * foldWidth || outputs.has(product as Node)) return undefined;
  /** Nodes with whole rows, and whether their elements are made of elements of the product alone. */
  const rows = new Map<Node, boolean>([[product as Node, true]]);
  const folds = new Map<NodeOf<'reduce'>, Apart>();
  const waiting = new Set<Node>(users.get(product as Node));
  while (waiting.size > 0) {
    // Nodes come after what they are made of.
    const node = [...waiting].reduce((first, other) => (other.id < first.id ? other : first));
    waiting.delete(node);
    if (node.op === 'reduce') {
      const isBeside = (each: Node): boolean => !rows.has(each) && !needsFold(each, product, folds);
      const how = apartOf(node, rows, isBeside);
      if (how === undefined) return undefined;
      folds.set(node, how);
      continue;
    }
    const keepsRows = isElementwise(node.op) || node.op === 'reshape';
    if (!keepsRows || node.shape.at(-1) !== width || outputs.has(node) || rows.size > mostBetween)
      return undefined;
    const isElement = node.inputs.every((input) => rows.get(input) ?? !needsFold(input, product, folds));
    rows.set(node, isElement);
    for (const user of users.get(node) ?? []) waiting.add(user);
  }
  return folds;
}

/** Whether a node beside the rows is made of what is folded of them, or of too much to tell. */
function needsFold(node: Node, product: NodeOf<'dot'>, folds: ReadonlyMap<NodeOf<'reduce'>, Apart>): boolean {
  const seen = new Set<Node>([node]);
  for (const each of seen) {
    if (seen.size > mostBetween || (each.op === 'reduce' && folds.has(each))) return true;
    // What is older than the product is not made of it.
    for (const input of each.inputs) if (input.id > product.id) seen.add(input);
  }
  return false;
}

/** How a fold of rows is taken apart; undefined where it cannot be. `isBeside`: made neither of rows nor of folds. */
function apartOf(
  node: NodeOf<'reduce'>,
  rows: ReadonlyMap<Node, boolean>,
  isBeside: (node: Node) => boolean,
): Apart | undefined {
  const [input] = node.inputs as readonly [Node];
  const last = input.shape.length - 1;
  if (input.dtype !== 'f32' || node.attrs.axes.join() !== String(last)) return undefined;
  const isElement = (each: Node): boolean => rows.get(each) === true;
  const isRow = (each: Node): boolean => rows.has(each);
  if (node.attrs.monoid === 'sum') {
    const place = placeOf(input);
    // What stands beside the rows, a weight of each class, is picked like an element.
    const isPicked = (each: Node): boolean =>
      isElement(each) || (each.dtype === 'f32' && !spreadAlong(each, last) && isBeside(each));
    if (place !== undefined && isPickable(input.inputs[1]!, last, isPicked))
      return { kind: 'pick', isRow, isElement: isPicked };
    if (isBelowMaximum(input, last, isElement)) return { kind: 'below maximum', isRow, isElement };
    const power = input.op === 'exp' ? input.inputs[0]! : undefined;
    if (power?.op === 'sub' && isElement(power.inputs[0]!) && spreadAlong(power.inputs[1]!, last))
      return { kind: 'powers', isRow };
  }
  return isElement(input) ? { kind: 'plain', isRow } : undefined;
}

/** Whether a node is x − m − …, with m the maximum of x and whatever else there is of the row. */
function isBelowMaximum(node: Node, last: number, isElement: (node: Node) => boolean): boolean {
  if (node.op !== 'sub' || !spreadAlong(node.inputs[1]!, last)) return false;
  const [x, c] = node.inputs as readonly [Node, Node];
  if (!isElement(x)) return isBelowMaximum(x, last, isElement);
  let of: Node = c;
  while (of.op === 'broadcast' || of.op === 'reshape' || of.op === 'stopGradient') of = of.inputs[0]!;
  return of.op === 'reduce' && of.attrs.monoid === 'max' && of.inputs[0] === x;
}

/** t, i32 and the same along a row, where the node is where(column = t, …, 0). */
function placeOf(node: Node): Node | undefined {
  if (node.op !== 'where' || !isZero(node.inputs[2]!)) return undefined;
  const last = node.shape.length - 1;
  const [condition] = node.inputs as readonly [Node];
  if (condition.op !== 'eq') return undefined;
  const isColumn = (each: Node): boolean =>
    each.op === 'iota' && each.attrs.axis === last && each.dtype === 'i32';
  const [a, b] = condition.inputs as readonly [Node, Node];
  const place = isColumn(a) ? b : isColumn(b) ? a : undefined;
  return place !== undefined && spreadAlong(place, last) ? place : undefined;
}

/** Whether a value is made of elements of the product and of what is the same along the row. */
function isPickable(node: Node, last: number, isElement: (node: Node) => boolean): boolean {
  const seen = new Set<Node>([node]);
  for (const each of seen) {
    if (spreadAlong(each, last)) continue;
    if (isElement(each) ? each.dtype !== 'f32' : !isElementwise(each.op)) return false;
    if (isElement(each)) continue;
    for (const input of each.inputs) seen.add(input);
  }
  return true;
}

/** [rows…, columns] as [rows…, parts, columns of a part]. */
function inParts(b: GraphBuilder, x: Node): Node {
  const shape = dims(x);
  return reshape(b, x, [...shape.slice(0, -1), shape.at(-1)! / foldWidth, foldWidth]);
}

/**
 * Rows in parts. Values come as they were before the rewrite and as they are now: both are made the same way of the
 * product, as far as `isRow` holds.
 */
class WholeParts {
  readonly #b: GraphBuilder;
  readonly #isRow: (node: Node) => boolean;
  readonly #known = new Map<Node, Node>();

  constructor(b: GraphBuilder, isRow: (node: Node) => boolean) {
    this.#b = b;
    this.#isRow = isRow;
  }

  /** A value in parts, with `fill` in the columns that are missing. */
  inParts(from: Node, x: Node, fill: number): Node {
    const b = this.#b;
    const width = dims(x).at(-1)!;
    const whole = this.whole(from, x);
    const shape = dims(whole);
    if (shape.at(-1) === width) return inParts(b, whole);
    return inParts(b, below(b, whole, shape.length - 1, constant(b, width, 'i32'), fill));
  }

  /** A value with whole parts: whatever the product's other columns, of which there are none, are made of follows. */
  whole(from: Node, x: Node): Node {
    const b = this.#b;
    const shape = dims(x);
    const width = wholeParts(shape.at(-1)!);
    if (width === shape.at(-1)) return x;
    const known = this.#known.get(from);
    if (known !== undefined) return known;
    const wide = [...shape.slice(0, -1), width];
    const made = (): Node => {
      if (!this.#isRow(from)) return withColumns(b, x, wide);
      if (x.op === 'dot') {
        const { rhsBatch, rhsContract } = x.attrs;
        const free = x.inputs[1]!.shape.findLastIndex(
          (_, axis) => !rhsBatch.includes(axis) && !rhsContract.includes(axis),
        );
        return rebuild(x as Node, [x.inputs[0]!, padded(b, x.inputs[1]!, free, width)], b);
      }
      const inputs = x.inputs.map((input, i) => this.whole(from.inputs[i]!, input));
      return x.op === 'reshape' ? reshape(b, inputs[0]!, wide) : rebuild(x, inputs, b);
    };
    const whole = made();
    this.#known.set(from, whole);
    return whole;
  }
}

/** A value that is no row of the product, with more columns: of zeros, or of what is the same along all of them. */
function withColumns(b: GraphBuilder, x: Node, wide: readonly number[]): Node {
  const last = wide.length - 1;
  if (x.shape.at(-1) === wide.at(-1)) return x;
  if (x.op === 'broadcast' && spreadAlong(x, last)) return broadcast(b, x.inputs[0]!, wide);
  if (x.op === 'iota') return b.add('iota', [], { ...x.attrs, shape: wide }) as Node;
  return padded(b, x, last, wide[last]!);
}

/** So many elements along an axis, those behind the first ones zeros: so many of what is only read another way. */
function padded(b: GraphBuilder, x: Node, axis: number, size: number): Node {
  if (x.op === 'cast' || x.op === 'permute') {
    const from = x.op === 'cast' ? axis : x.attrs.order[axis]!;
    return rebuild(x, [padded(b, x.inputs[0]!, from, size)], b);
  }
  const none = x.shape.map(() => 0);
  const high = none.with(axis, size - dims(x)[axis]!);
  return b.add('pad', [x], { low: none, high, interior: none, value: 0 }) as Node;
}

function foldLast(b: GraphBuilder, monoid: Monoid, x: Node): Node {
  return reduce(b, monoid, x, [x.shape.length - 1]);
}

/** A value of each part, at every column of it; or of each row, at every part. */
function spread(b: GraphBuilder, x: Node, over: number): Node {
  const shape = dims(x);
  return broadcast(b, reshape(b, x, [...shape, 1]), [...shape, over]);
}

/** A value that is the same along rows, once for each row. */
function ofRows(b: GraphBuilder, x: Node): Node {
  const shape = dims(x).slice(0, -1);
  const source = x.op === 'broadcast' ? x.inputs[0]! : x;
  return reshape(b, broadcast(b, source, [...shape, 1]), shape);
}

/**
 * Σ e^(x − c), of each part first by its maximum m: Σ over parts of e^(m − c) · Σ e^(x − m). In the powers of x,
 * m is kept finite: a part of −∞ alone adds nothing then, and one with +∞ adds what it adds without parts.
 */
function sumOfPowers(b: GraphBuilder, from: Node, powers: Node, rows: WholeParts): Node {
  const [x, c] = powers.inputs[0]!.inputs as readonly [Node, Node];
  const { parts, max, finite } = maximaOf(b, rows.inParts(from.inputs[0]!.inputs[0]!, x, -Infinity));
  const sums = foldLast(b, 'sum', unary(b, 'exp', sub(b, parts, spread(b, finite, foldWidth))));
  const shift = spread(b, ofRows(b, c), dims(max).at(-1)!);
  return foldLast(b, 'sum', mul(b, sums, unary(b, 'exp', sub(b, max, shift))));
}

/** The maximum of each part, also kept finite. */
function maximaOf(b: GraphBuilder, parts: Node): { parts: Node; max: Node; finite: Node } {
  const max = foldLast(b, 'max', parts);
  const most = largestOf('f32');
  return { parts, max, finite: binary(b, 'min', binary(b, 'max', max, -most), most) };
}

/**
 * Σ (x − max − …), of each part first by its maximum m, kept finite: Σ over parts of Σ (x − m) + columns · (m − max − …).
 * Nothing that is added up is positive, so that what exceeds f32 would without parts too.
 */
function sumBelowMaximum(
  b: GraphBuilder,
  from: Node,
  made: Node,
  rows: WholeParts,
  isElement: (node: Node) => boolean,
): Node {
  const width = dims(made).at(-1)!;
  const shifts: Node[] = [];
  let [before, x] = [from, made];
  while (!isElement(before)) {
    shifts.unshift(x.inputs[1]!);
    [before, x] = [before.inputs[0]!, x.inputs[0]!];
  }
  const { parts, finite } = maximaOf(b, rows.inParts(before, x, -Infinity));
  const shape = dims(parts);
  const left = sub(b, parts, spread(b, finite, foldWidth));
  const wide = [...shape.slice(0, -2), shape.at(-2)! * foldWidth];
  const columnsOf = (x: Node): Node => below(b, x, wide.length - 1, constant(b, width, 'i32'));
  const kept = width % foldWidth === 0 ? left : inParts(b, columnsOf(reshape(b, left, wide)));
  const sums = foldLast(b, 'sum', kept);
  const under = shifts.reduce((so, c) => sub(b, so, spread(b, ofRows(b, c), dims(finite).at(-1)!)), finite);
  const last = shape.length - 2;
  const part = b.add('iota', [], { shape: dims(finite), axis: last, dtype: 'i32' }) as Node;
  const rest = binary(b, 'sub', fullLike(b, part, width), mul(b, part, foldWidth));
  const columns = cast(b, binary(b, 'min', rest, foldWidth), 'f32');
  return foldLast(b, 'sum', binary(b, 'add', sums, mul(b, under, columns)));
}

/**
 * Σ where(column = t, value, 0): the value of what the parts pick of the elements that it is made of, where t is
 * a column. One part has that column; a look at it needs no other.
 */
function pickedValue(
  b: GraphBuilder,
  node: Node,
  made: Node,
  rows: WholeParts,
  { isRow, isElement }: Extract<Apart, { readonly kind: 'pick' }>,
): Node {
  const [condition, value] = made.inputs as readonly [Node, Node];
  const place = ofRows(b, placeOf(made)!);
  const shape = dims(place);
  const picked = (from: Node, x: Node): Node => {
    const whole = rows.whole(from, x);
    const hit = rebuild(
      condition,
      condition.inputs.map((input) => withColumns(b, input, dims(whole))),
      b,
    );
    const sums = foldLast(b, 'sum', inParts(b, where(b, hit, whole, fullLike(b, whole, 0))));
    return gathered(sums, binary(b, 'div', place, foldWidth));
  };
  const gathered = (x: Node, at: Node): Node =>
    reshape(b, b.add('gather', [x, reshape(b, at, [...shape, 1])], { axis: shape.length }) as Node, shape);
  const known = new Map<Node, Node>();
  const visit = (from: Node, x: Node): Node => {
    const found = known.get(from);
    if (found !== undefined) return found;
    const last = x.shape.length - 1;
    const inputs = from.inputs.map((input, i) => [input, x.inputs[i]!] as const);
    const of = isElement(from)
      ? isRow(from)
        ? picked(from, x)
        : gathered(x, place)
      : spreadAlong(from, last)
        ? ofRows(b, x)
        : rebuild(
            x,
            inputs.map(([input, to]) => visit(input, to)),
            b,
          );
    known.set(from, of);
    return of;
  };
  const here = visit(node.inputs[1]!, value);
  const inside = binary(
    b,
    'and',
    binary(b, 'le', fullLike(b, place, 0), place),
    binary(b, 'lt', place, dims(made).at(-1)!),
  );
  return where(b, inside, here, fullLike(b, here, 0));
}
