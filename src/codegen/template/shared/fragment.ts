// Fragments of matrix units: 16 × 8 sums among the 32 invocations of a subgroup, and the quads of
// neighbouring columns that the rest of a kernel is computed on. Invocation i has two columns, from
// 2·(i % 4) on, of row ⌊i / 4⌋ and of the row 8 below.

import { builtin, constant, operation, type LoopBuilder } from '../../loop/builder.ts';
import type { Value } from '../../loop/loop.ts';
import { laneOf } from '../../loop/register.ts';

/** Sizes of one multiplication of a subgroup: `mma.m16n8k16`. */
export const fragment = { m: 16, n: 8, k: 16 } as const;

/** Invocations of a subgroup. */
export const lanes = 32;

/** Whether the invocation's place in its subgroup is odd. Workgroups have a subgroup along x. */
export function isOddLane(b: LoopBuilder): Value {
  const place = operation('mod', [builtin('local', 0), constant(2)], 'i32');
  return b.let(operation('ne', [place, constant(0)], 'bool'), 'odd');
}

/**
 * Four neighbouring columns of one row, from the two of each row that an invocation and its
 * neighbour have: an even one gets the upper row's, an odd one the lower row's. The exchange undoes
 * itself.
 */
export function exchanged(b: LoopBuilder, sum: Value, isOdd: Value): Value {
  const pick = (...args: readonly Value[]): Value => ({
    kind: 'vector',
    args,
    type: 'f32',
    width: args.length === 2 ? 2 : 4,
  });
  const [x, y, z, w] = [0, 1, 2, 3].map((lane) => laneOf(sum, lane)) as [Value, Value, Value, Value];
  const given = b.let(operation('where', [isOdd, pick(x, y), pick(z, w)], 'f32'), 'given');
  const taken = b.shuffle(given, 1, 'taken');
  const [p, q] = [laneOf(taken, 0), laneOf(taken, 1)];
  return b.let(operation('where', [isOdd, pick(p, q, z, w), pick(x, y, p, q)], 'f32'), 'whole');
}

/** One of the two 16 × 8 right operands that were loaded together. */
export function pairOf(loaded: Value, half: number): Value {
  const args = [laneOf(loaded, 2 * half), laneOf(loaded, 2 * half + 1)];
  return { kind: 'vector', args, type: 'u32', width: 2 };
}
