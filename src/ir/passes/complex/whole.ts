// Ops that treat both parts alike, on complex values as they lie in memory: they run once on both parts side
// by side, instead of once on each. An op after a product or an input can then read it without a
// rearrangement.

import { dims, type GraphBuilder, type Node } from '../../graph.ts';
import type { Attrs, Op } from '../../ops.ts';
import { isReal, scaledWhole, wholeOf, type ComplexPair } from './pair.ts';

const zeros = (count: number): number[] => new Array<number>(count).fill(0);

/** The attributes over one more axis, of size 2, behind all others; undefined where there are none. */
function widened(node: Node): Attrs | undefined {
  const rank = node.inputs[0]!.shape.length;
  switch (node.op) {
    case 'reshape':
    case 'broadcast':
      return { shape: [...node.attrs.shape, 2] };
    case 'permute':
      return { order: [...node.attrs.order, rank] };
    case 'slice': {
      const { start, size, step } = node.attrs;
      return { start: [...start, 0], size: [...size, 2], step: [...step, 1] };
    }
    case 'pad': {
      const { low, high, interior, value } = node.attrs;
      if (!Object.is(value, 0)) return undefined;
      const none = zeros(1);
      return { low: [...low, ...none], high: [...high, ...none], interior: [...interior, ...none], value };
    }
    case 'concat':
      return node.attrs;
    case 'neg':
    case 'add':
    case 'sub':
      return node.attrs;
    default:
      return undefined;
  }
}

/** The value of such a node as f32[…,2]; undefined where an operand does not lie so. */
export function onWholes(b: GraphBuilder, node: Node, operands: readonly ComplexPair[]): Node | undefined {
  if (node.op === 'mul') return product(b, operands);
  const attrs = widened(node);
  if (attrs === undefined) return undefined;
  const wholes = operands.map(wholeOf);
  if (wholes.includes(undefined)) return undefined;
  // Broadcasting aligns from the right, where the new axis stands.
  return b.add(node.op as Op, wholes as readonly Node[], attrs) as Node;
}

/** A whole by a real number. */
function product(b: GraphBuilder, [x, y]: readonly ComplexPair[]): Node | undefined {
  const [z, real] = isReal(y!) ? [x!, y!] : [y!, x!];
  const whole = wholeOf(z);
  if (whole === undefined || !isReal(real)) return undefined;
  return scaledWhole(b, whole, real.re, dims(whole));
}
