// Random words from a key or a counter that each example has of its own. The primitive has one key and one
// counter for a whole tensor, so this file writes Philox 4x32-10 (ir/interpret/random.ts) in arithmetic. It
// gives the same bits as the primitive does for each example alone.

import { add, binary, broadcast, constant, fullLike, mul, reshape, where } from '../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { sizeOf } from '../../ir/shape.ts';
import { lead, type BatchRule } from './rule.ts';

type Words = readonly [Node, Node, Node, Node];

const rounds = 10;

function philox(b: GraphBuilder, counter: Words, key: readonly [Node, Node]): Words {
  const word = (value: number): Node => fullLike(b, counter[0], value);
  const xor = (x: Node, y: Node): Node => binary(b, 'xor', x, y);
  let [c0, c1, c2, c3] = counter;
  let [k0, k1] = key;
  for (let round = 0; round < rounds; round++) {
    const [m0, m1] = [word(0xd2511f53), word(0xcd9e8d57)];
    const [high0, high1] = [binary(b, 'mulhi', m0, c0), binary(b, 'mulhi', m1, c2)];
    const [low0, low1] = [mul(b, m0, c0), mul(b, m1, c2)];
    [c0, c1, c2, c3] = [xor(xor(high1, c1), k0), low1, xor(xor(high0, c3), k1), low0];
    [k0, k1] = [add(b, k0, word(0x9e3779b9)), add(b, k1, word(0xbb67ae85))];
  }
  return [c0, c1, c2, c3];
}

export const randomRule: BatchRule<'randomBits'> = (batch, { attrs }, operands) => {
  const { b, size } = batch;
  const example = attrs.shape as readonly number[];
  const groups = Math.ceil(sizeOf(example) / 4);
  const shape = [size, groups];
  const spread = (i: number): Node => broadcast(b, reshape(b, lead(batch, operands[i]!), [size, 1]), shape);
  const at = b.add('iota', [], { shape, axis: 1, dtype: 'u32' }) as Node;
  const low = add(b, spread(2), at);
  const carry = binary(b, 'lt', low, at);
  const high = where(b, carry, add(b, spread(3), fullLike(b, at, 1)), spread(3));
  const none = broadcast(b, constant(b, 0, 'u32'), shape);
  const words = philox(b, [low, high, none, none], [spread(0), spread(1)]);
  const four = words.map((word) => reshape(b, word, [...shape, 1]));
  const all = reshape(b, b.add('concat', four, { axis: 2 }) as Node, [size, groups * 4]);
  return firstOf(b, all, 0, example);
};

/** For each example, so many words from `from` on, in the shape of one example. */
export function firstOf(b: GraphBuilder, words: Node, from: number, example: readonly number[]): Node {
  const [size] = dims(words) as [number, number];
  const part = { start: [0, from], size: [size, sizeOf(example)], step: [1, 1] };
  return reshape(b, b.add('slice', [words], part) as Node, [size, ...example]);
}
