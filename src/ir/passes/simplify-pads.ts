// Sums of zero-padded pieces are concatenations: what the gradients of slices leave behind. Part of
// `simplify`. A sum makes +0 of −0, so the pieces must not hold any.

import { dims, type GraphBuilder, type Node, type NodeOf } from '../graph.ts';
import { isNeverMinusZero } from './pattern.ts';
import { rule, type RewriteRule } from './rules.ts';

/** A value with zeros before and behind it along one axis. */
interface Piece {
  readonly value: Node;
  readonly axis: number;
  readonly low: number;
  readonly high: number;
}

/** Rules of sums of pads. */
export const padRules: readonly RewriteRule[] = [
  rule('join-pads', 'pad(x) + pad(y) = concat(x, y), for neighbours', 'add', (node, b) => {
    const [x, y] = [pieceOf(node.inputs[0]!), pieceOf(node.inputs[1]!)];
    if (x === undefined || y === undefined || x.axis !== y.axis) return undefined;
    const size = dims(node)[x.axis]!;
    const [first, second] = x.high >= y.high ? [x, y] : [y, x];
    if (size - first.high !== second.low) return undefined;
    const parts = [...partsOf(first), ...partsOf(second)];
    const joined = b.add('concat', parts, { axis: x.axis }) as Node;
    return padded(b, joined, x.axis, first.low, second.high);
  }),
];

function pieceOf(node: Node): Piece | undefined {
  if (node.op !== 'pad' || node.shape.some((dim) => typeof dim !== 'number')) return undefined;
  const { low, high, interior, value } = node.attrs;
  const axes = low.flatMap((count, axis) => (count !== 0 || high[axis] !== 0 ? [axis] : []));
  const [axis] = axes;
  const plain = axes.length === 1 && interior.every((gap) => gap === 0) && Object.is(Number(value), 0);
  if (axis === undefined || !plain || low[axis]! < 0 || high[axis]! < 0) return undefined;
  const inner = node.inputs[0]!;
  return isNeverMinusZero(inner) ? { value: inner, axis, low: low[axis]!, high: high[axis]! } : undefined;
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
