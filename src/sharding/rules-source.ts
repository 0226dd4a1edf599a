// Sharding rules of what is made from nothing, or from a few numbers: each process makes its part.

import { add, binary, broadcast, cast, constant, reshape, where } from '../ir/build.ts';
import { dims, type Node, type NodeOf } from '../ir/graph.ts';
import { sizeOf, type FixedShape } from '../ir/shape.ts';
import { alikeRule, firstStep, localShape } from './row.ts';
import type { ShardPlace, ShardingRow, ShardingRule } from './rule.ts';

function iotaLocal({ attrs }: NodeOf<'iota'>, place: ShardPlace): Node {
  const { b } = place;
  const { axis, dtype } = attrs;
  const whole = attrs.shape as FixedShape;
  const shape = whole.map((size, i) => size / place.parts(i));
  if (place.parts(axis) === 1) return b.add('iota', [], { shape, axis, dtype }) as Node;
  // Counts become other dtypes as i32 does.
  const first = broadcast(b, firstStep(place, axis, whole[axis]!, 'i32'), shape);
  return cast(b, add(b, b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node, first), dtype);
}

/** The axis that varies slowest: words of a part of it lie behind each other. */
const slowest = (shape: FixedShape): number => shape.findIndex((size) => size !== 1);

function randomRule(node: NodeOf<'randomBits'>): ShardingRule {
  const shape = dims(node as Node);
  return alikeRule(
    node as Node,
    [...shape.keys()].filter((axis) => axis !== slowest(shape)),
  );
}

/**
 * Each step of the counter is four words: a part begins at one of them. The words from there on, and of these the
 * part's, where it does not begin with the first of four.
 */
function randomLocal(node: NodeOf<'randomBits'>, words: readonly Node[], place: ShardPlace): Node {
  const { b } = place;
  const whole = dims(node as Node);
  const shape = localShape(whole, randomRule(node).result, place);
  const size = sizeOf(shape);
  if (size === sizeOf(whole)) return b.add('randomBits', words, { shape }) as Node;
  const [keyLow, keyHigh, counterLow, counterHigh] = words as [Node, Node, Node, Node];
  const first = firstStep(place, 0, sizeOf(whole), 'u32');
  const low = add(b, counterLow, binary(b, 'shr', first, 2));
  const carried = binary(b, 'lt', low, counterLow);
  const high = where(b, carried, add(b, counterHigh, constant(b, 1, 'u32')), counterHigh);
  const isAligned = size % 4 === 0;
  const count = isAligned ? size : size + 3;
  const drawn = b.add('randomBits', [keyLow, keyHigh, low, high], { shape: [count] }) as Node;
  if (isAligned) return reshape(b, drawn, shape);
  const at = b.add('iota', [], { shape: [size], axis: 0, dtype: 'u32' }) as Node;
  const own = add(b, at, broadcast(b, binary(b, 'and', first, 3), [size]));
  return reshape(b, b.add('gather', [drawn, own], { axis: 0 }) as Node, shape);
}

export const sourceRules: { readonly [K in 'iota' | 'randomBits']: ShardingRow<K> } = {
  iota: { rule: (node) => alikeRule(node as Node), local: (node, _, place) => iotaLocal(node, place) },
  randomBits: { rule: randomRule, local: randomLocal },
};
