// Random graph nodes: Philox words from the generator (generator.ts), which advances when a draw is
// recorded, and their arithmetic. Words are a node, so a mask is made where it is used, and made
// again in the backward pass, but never stored.

import { add, binary, broadcast, cast, fullLike, mul, neg, reshape, unary, where } from '../../ir/build.ts';
import type { DType } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { sizeOf } from '../../ir/shape.ts';
import { drawCounter } from '../generator.ts';
import { iota } from './elementwise.ts';
import { sliceAxis } from './layout.ts';

/** Uniform 32-bit words. @internal */
export function words(b: GraphBuilder, shape: readonly number[]): Node {
  return b.add('randomBits', drawCounter(sizeOf(shape)), { shape });
}

/** Bits of a uniform number that each dtype holds exactly, so that rounding never gives 1. */
const digits: Readonly<Partial<Record<DType, number>>> = { f16: 11, bf16: 8 };

/** Bits of the numbers of a dtype that a draw has. @internal */
export const digitsOf = (dtype: DType): number => digits[dtype] ?? 24;

/** [0, 1) in multiples of 2⁻²⁴ (fewer bits for 16-bit floats). @internal */
export function uniformOf(b: GraphBuilder, shape: readonly number[], dtype: DType): Node {
  const kept = digitsOf(dtype);
  const whole = cast(b, binary(b, 'shr', words(b, shape), 32 - kept), dtype === 'f64' ? 'f64' : 'f32');
  return cast(b, mul(b, whole, 2 ** -kept), dtype);
}

/**
 * Uniform in (0, 1), of which logarithms are finite: as `uniformOf`, with half a step in place of 0. (Half a
 * step more for all of them would round to 1 at the end.) @internal
 */
export function openUniformOf(b: GraphBuilder, shape: readonly number[], dtype: DType): Node {
  return binary(b, 'max', uniformOf(b, shape, dtype), 2 ** -(digitsOf(dtype) + 1));
}

/** −log(−log u): with it, the largest of logarithms is a draw by their weights (Gumbel, 1954). @internal */
export function gumbelOf(b: GraphBuilder, shape: readonly number[], dtype: DType): Node {
  return neg(b, unary(b, 'log', neg(b, unary(b, 'log', openUniformOf(b, shape, dtype)))));
}

/** Box and Muller (1958): words 2k and 2k+1 give the radius and the angle of elements 2k and 2k+1. @internal */
export function normalOf(b: GraphBuilder, shape: readonly number[], dtype: DType): Node {
  const compute = dtype === 'f64' ? 'f64' : 'f32';
  const count = sizeOf(shape);
  const pairs = Math.ceil(count / 2);
  const bits = b.add('randomBits', drawCounter(count), { shape: [pairs, 2] }) as Node;
  const column = (i: number): Node => cast(b, binary(b, 'shr', sliceAxis(b, bits, 1, i, 1), 8), compute);
  // Above 0, or the logarithm would be −∞.
  const radius = unary(b, 'sqrt', mul(b, unary(b, 'log', mul(b, add(b, column(0), 1), 2 ** -24)), -2));
  const angle = mul(b, column(1), 2 * Math.PI * 2 ** -24);
  const both = [pairs, 2];
  const first = binary(b, 'eq', iota(b, both, 1), 0);
  const turn = where(
    b,
    first,
    broadcast(b, unary(b, 'cos', angle), both),
    broadcast(b, unary(b, 'sin', angle), both),
  );
  const flat = reshape(b, mul(b, broadcast(b, radius, both), turn), [pairs * 2]);
  return cast(b, reshape(b, sliceAxis(b, flat, 0, 0, count), shape), dtype);
}

/** true with probability `p`: a word below ⌊p·2³²⌋. @internal */
export function chance(
  b: GraphBuilder,
  shape: readonly number[],
  p: number,
  drawn: Node = words(b, shape),
): Node {
  return binary(b, 'lt', drawn, Math.floor(p * 2 ** 32));
}

/** The words that a seed of 32 bits gives by itself: those of a generator with it as its key, from the first on. */
function wordsOfSeed(b: GraphBuilder, shape: readonly number[], seed: number): Node {
  const [key, none] = [seed, 0].map((value) => b.add('constant', [], { value, dtype: 'u32' }) as Node);
  return b.add('randomBits', [key!, none!, none!, none!], { shape }) as Node;
}

/** The formula of `dropout` for 0 < p ≤ 1; with a seed it leaves the generator alone. @internal */
export function dropoutOf(b: GraphBuilder, x: Node, p: number, seed?: number): Node {
  const zero = fullLike(b, x, 0);
  if (p === 1) return where(b, fullLike(b, cast(b, x, 'bool'), 1), zero, x);
  const drawn = seed === undefined ? undefined : wordsOfSeed(b, dims(x), seed);
  return where(b, chance(b, dims(x), p, drawn), zero, mul(b, x, 1 / (1 - p)));
}
