// The rules of what selects: slices, pads, concatenations and `where`. They are in slots, which the chunk of selections fills,
// because a graph without any of these ops has no use for them.

import { add, reduce, slice, unary, where } from '../build.ts';
import { isFloat } from '../dtype.ts';
import { dims, rebuild, type GraphBuilder, type Node, type NodeOf } from '../graph.ts';
import { sameShape } from '../shape.ts';
import {
  constantOf,
  held,
  isConstant,
  isNeverMinusZero,
  knownShape,
  operandsOf,
  scalarOf,
  spread,
  spreadConstant,
} from './pattern.ts';
import { rule, type RewriteRule } from './rules.ts';

/** Rules of `canonicalise`. */
export const canonicalSelections: readonly RewriteRule[] = [
  rule('idle-slice', 'x[0:n] = x', 'slice', ({ inputs, attrs: { start, size, step } }, b) =>
    slice(b, inputs[0]!, start, size, step) === inputs[0] ? inputs[0] : undefined,
  ),
  rule('idle-pad', 'pad(x) by nothing = x', 'pad', ({ inputs, attrs: { low, high, interior } }) => {
    const shape = inputs[0]!.shape;
    const nothing = shape.every(
      (dim, axis) => low[axis] === 0 && high[axis] === 0 && (interior[axis] === 0 || dim === 0 || dim === 1),
    );
    return nothing ? inputs[0] : undefined;
  }),
  rule('concat-empty-part', 'concat(x, empty, y) = concat(x, y)', 'concat', (node, b) => {
    const { axis } = node.attrs;
    if (node.inputs.length === 1) return node.inputs[0];
    const filled = node.inputs.filter((input) => input.shape[axis] !== 0);
    if (filled.length === node.inputs.length) return undefined;
    return filled.length === 0 ? node.inputs[0] : rebuild(node, filled, b);
  }),
  rule('slice-slice', 'x[s::p][t::q] = x[s + t·p :: p·q]', 'slice', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'slice') return undefined;
    const [inner, outer] = [x.attrs, node.attrs];
    const start = outer.start.map((at, axis) => inner.start[axis]! + at * inner.step[axis]!);
    const step = outer.step.map((by, axis) => by * inner.step[axis]!);
    return slice(b, x.inputs[0]!, start, outer.size, step);
  }),
  rule('pad-pad', 'pad(pad(x, l, h), l′, h′) = pad(x, l + l′, h + h′)', 'pad', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'pad') return undefined;
    const [inner, outer] = [x.attrs, node.attrs];
    const value = held(outer.value, node.dtype);
    if (!Object.is(value, held(inner.value, node.dtype)) || outer.interior.some((n) => n !== 0))
      return undefined;
    return b.add('pad', x.inputs, {
      low: inner.low.map((n, axis) => n + outer.low[axis]!),
      high: inner.high.map((n, axis) => n + outer.high[axis]!),
      interior: inner.interior,
      value: outer.value,
    }) as Node;
  }),
  rule('pad-spread', 'pad(spread c, c) = spread c', 'pad', (node, b) => {
    const x = node.inputs[0]!;
    return Object.is(constantOf(x), held(node.attrs.value, node.dtype))
      ? spread(b, scalarOf(x)!, node.shape)
      : undefined;
  }),
  rule('concat-spread', 'concat(spread a, spread a) = spread a', 'concat', (node, b) => {
    const scalar = scalarOf(node.inputs[0]!);
    const same = scalar !== undefined && node.inputs.every((input) => scalarOf(input) === scalar);
    return same ? spread(b, scalar, node.shape) : undefined;
  }),
];

/** Rules of `simplify`. */
export const simplerSelections: readonly RewriteRule[] = [
  rule('where-same', 'where(p, x, x) = x', 'where', (node) => {
    const [, x, y] = operandsOf(node);
    return x === y ? x : undefined;
  }),
  rule('where-not', 'where(¬p, x, y) = where(p, y, x)', 'where', (node, b) => {
    const [p, x, y] = operandsOf(node);
    return p.op === 'not' ? where(b, p.inputs[0]!, y, x) : undefined;
  }),
  rule('where-bool', 'where(p, true, false) = p; where(p, false, true) = ¬p', 'where', (node, b) => {
    const [p, x, y] = operandsOf(node);
    if (node.dtype !== 'bool') return undefined;
    const [whenTrue, whenFalse] = [constantOf(x), constantOf(y)];
    if (whenTrue === undefined || whenFalse === undefined || whenTrue === whenFalse) return undefined;
    return whenTrue === 1 ? p : unary(b, 'not', p);
  }),
  rule('where-where', 'where(p, where(p, x, y), z) = where(p, x, z)', 'where', (node, b) => {
    const [p, x, y] = operandsOf(node);
    if (x.op === 'where' && x.inputs[0] === p) return where(b, p, x.inputs[1]!, y);
    return y.op === 'where' && y.inputs[0] === p ? where(b, p, x, y.inputs[2]!) : undefined;
  }),
  rule('sum-extremum', 'Σ where(argmax x = place, x, 0) = max x + 0', 'reduce', (node, b) => {
    const chosen = node.inputs[0]!;
    const [axis, ...others] = node.attrs.axes;
    if (node.attrs.monoid !== 'sum' || axis === undefined || others.length > 0) return undefined;
    if (chosen.op !== 'where' || !isConstant(chosen.inputs[2]!, 0)) return undefined;
    const [mask, x] = chosen.inputs as readonly [Node, Node];
    const monoid = mask.op === 'eq' ? extremumAt(mask, x, axis) : undefined;
    if (monoid === undefined) return undefined;
    const extremum = reduce(b, monoid, x, [axis]);
    return isFloat(node.dtype) ? add(b, extremum, 0) : extremum;
  }),
  rule('join-pads', 'pad(x) + pad(y) = concat(x + 0, y + 0), for neighbours', 'add', (node, b) => {
    const [x, y] = operandsOf(node);
    return joined(b, x, y) ?? joinedInSum(b, x, y) ?? joinedInSum(b, y, x);
  }),
];

/** Whether the mask selects the extremum of x along the axis, and which extremum. */
function extremumAt({ inputs }: Node, x: Node, axis: number): 'min' | 'max' | undefined {
  const isPlace = (node: Node): boolean => {
    const from = node.op === 'broadcast' ? node.inputs[0]! : node;
    const missing = node.shape.length - from.shape.length;
    return (
      from.op === 'iota' && from.attrs.axis + missing === axis && from.shape[axis - missing] === x.shape[axis]
    );
  };
  const place = inputs.find((input) => !isPlace(input));
  if (place?.op !== 'broadcast' || inputs.every((input) => input === place) || !inputs.some(isPlace))
    return undefined;
  const kept = place.inputs[0]!;
  const found = kept.op === 'reshape' ? kept.inputs[0]! : kept;
  const shape = knownShape(x);
  if (found.op !== 'argReduce' || found.inputs[0] !== x || found.attrs.axis !== axis || shape === undefined)
    return undefined;
  return sameShape(kept.shape, shape.with(axis, 1)) ? found.attrs.monoid : undefined;
}

// Sums of zero-padded pieces are concatenations: what the gradients of slices leave behind. A sum makes +0 of −0.

/** A value with zeros before and behind it along one axis. */
interface Piece {
  readonly value: Node;
  readonly axis: number;
  readonly low: number;
  readonly high: number;
}

function pieceOf(node: Node): Piece | undefined {
  if (node.op !== 'pad' || node.shape.some((dim) => typeof dim !== 'number')) return undefined;
  const { low, high, interior, value } = node.attrs;
  const axes = low.flatMap((count, axis) => (count !== 0 || high[axis] !== 0 ? [axis] : []));
  const [axis] = axes;
  const plain = axes.length === 1 && interior.every((gap) => gap === 0) && Object.is(Number(value), 0);
  if (axis === undefined || !plain || low[axis]! < 0 || high[axis]! < 0) return undefined;
  const inner = node.inputs[0]!;
  return { value: inner, axis, low: low[axis]!, high: high[axis]! };
}

/** The sum of two neighbours, padded as far as they were. */
function joined(b: GraphBuilder, one: Node, other: Node): Node | undefined {
  const [x, y] = [pieceOf(one), pieceOf(other)];
  if (x === undefined || y?.axis !== x.axis) return undefined;
  const size = dims(one)[x.axis]!;
  const [first, second] = x.high >= y.high ? [x, y] : [y, x];
  if (size - first.high !== second.low) return undefined;
  const parts = [first, second]
    .flatMap(partsOf)
    .map((part) => (isNeverMinusZero(part) ? part : add(b, part, 0)));
  return padded(b, b.add('concat', parts, { axis: x.axis }) as Node, x.axis, first.low, second.high);
}

/** The sum of a piece and a sum of pieces, of which one is its neighbour: elsewhere both are zero. */
function joinedInSum(b: GraphBuilder, sum: Node, piece: Node): Node | undefined {
  if (sum.op !== 'add') return undefined;
  const [x, y] = operandsOf(sum);
  if (pieceOf(x) === undefined || pieceOf(y) === undefined) return undefined;
  const withX = joined(b, x, piece);
  if (withX !== undefined) return add(b, withX, y);
  const withY = joined(b, y, piece);
  return withY && add(b, x, withY);
}

/** The parts of what is a concatenation along the same axis already. */
function partsOf({ value, axis }: Piece): readonly Node[] {
  return value.op === 'concat' && value.attrs.axis === axis ? value.inputs : [value];
}

function padded(b: GraphBuilder, node: Node, axis: number, low: number, high: number): Node {
  if (low === 0 && high === 0) return node;
  const none = dims(node).map(() => 0);
  const attrs: NodeOf<'pad'>['attrs'] = {
    low: none.with(axis, low),
    high: none.with(axis, high),
    interior: none,
    value: 0,
  };
  return b.add('pad', [node], attrs) as Node;
}

/** First and last element that a slice reads along an axis. */
function span({ attrs: { start, size, step } }: NodeOf<'slice'>, axis: number): readonly [number, number] {
  const last = start[axis]! + (size[axis]! - 1) * step[axis]!;
  return start[axis]! < last ? [start[axis]!, last] : [last, start[axis]!];
}

/** Rules of `removeDeadCode`. */
export const deadSelections: readonly RewriteRule[] = [
  rule('slice-concat', 'concat(x, y, z)[of x and y] = concat(x, y)[of x and y]', 'slice', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'concat' || node.shape.includes(0)) return undefined;
    const { axis } = x.attrs;
    const [first, last] = span(node, axis);
    let offset = 0;
    let skipped = 0;
    const read: Node[] = [];
    for (const part of x.inputs) {
      const end = offset + (part.shape[axis] as number);
      if (end <= first) skipped = end;
      else if (offset <= last) read.push(part);
      offset = end;
    }
    if (read.length === x.inputs.length) return undefined;
    const { start, size, step } = node.attrs;
    const moved = start.map((at, i) => (i === axis ? at - skipped : at));
    const rest = read.length === 1 ? read[0]! : (b.add('concat', read, { axis }) as Node);
    return slice(b, rest, moved, size, step);
  }),
  rule('slice-pad', 'pad(x)[within x] = x[…]; pad(x, v)[outside x] = spread v', 'slice', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'pad' || node.shape.includes(0)) return undefined;
    const from = dims(x.inputs[0]!);
    const { low, interior, value } = x.attrs;
    let inside = true;
    for (const [axis, size] of from.entries()) {
      const [first, last] = span(node, axis);
      const end = low[axis]! + size + Math.max(0, size - 1) * interior[axis]!;
      if (last < low[axis]! || first >= end) {
        return spreadConstant(b, held(value, node.dtype), node.dtype, node.shape);
      }
      inside &&= interior[axis] === 0 && first >= low[axis]! && last < end;
    }
    if (!inside) return undefined;
    const { start, size, step } = node.attrs;
    return slice(
      b,
      x.inputs[0]!,
      start.map((at, axis) => at - low[axis]!),
      size,
      step,
    );
  }),
];
