// Sorts become kernels by the length of a line. A short one stays one node: a workgroup sorts it in
// shared memory (or, where barriers are expensive, finds the places of its keys by counting
// comparisons). A long one becomes a least-significant-digit radix sort: for each digit of 8 bits
// the ranks of keys within blocks, a scan over the counts of all blocks, and one permutation of
// memory. The number of kernels depends on sizes and dtypes only, never on the keys.

import { add, binary, cast, full, neg, permute, reshape, slice, unary, where } from '../../ir/build.ts';
import { lowered } from '../../ir/dtype.ts';
import { dims, rewrite, type Graph, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { sizeOf } from '../../ir/shape.ts';
import { blocksToFill, sharesWork } from '../machine.ts';
import type { Target } from '../target.ts';

/** Bits of a digit: 256 counts a block. */
const digitBits = 8;
/**
 * On targets where workgroups do not sort, positions are counted by comparing all pairs of keys in
 * lines up to this length, or longer if the comparisons take less time than a dozen launches.
 */
const longestCounted = 128;
const mostCompared = 2 ** 17;

/** Rewrites all sorts to ascending sorts of u32 keys that one kernel can do. */
export function splitSorts(graph: Graph, target: Target): Graph {
  return rewrite(graph, (node, inputs, b) => {
    if (node.op !== 'argSort' || sizeOf(dims(node as Node)) === 0) return undefined;
    const { axis, descending } = node.attrs;
    const shape = dims(node as Node);
    const [x] = inputs as [Node];
    const source = node.inputs[0]!;
    // The inverse of a permutation: each position goes to its rank.
    if (source.op === 'argSort' && source.attrs.axis === axis && !descending)
      return permuteScatter(b, iota(b, shape, axis), x, axis);
    const rest = shape.flatMap((_, i) => (i === axis ? [] : [i]));
    const length = shape[axis]!;
    const moved = permute(b, x, [...rest, axis]);
    const lines = reshape(b, moved, [sizeOf(shape) / length, length]);
    const order = reshape(b, orderOfWords(b, ascendingKeys(b, lines, descending), target), dims(moved));
    return permute(
      b,
      order,
      shape.map((_, i) => (i === axis ? rest.length : rest.indexOf(i))),
    );
  });
}

/** Kernels that sorting lines of keys below 2^bits takes, and roughly the bytes they move. */
export function sortKernels(
  lines: number,
  length: number,
  bits: number,
  target: Target,
): { readonly kernels: number; readonly traffic: number } {
  const keys = lines * length;
  if (length <= 1) return { kernels: 0, traffic: 0 };
  if (isShort(lines, length, target)) return { kernels: 1, traffic: 8 * keys };
  const passes = Math.ceil(bits / digitBits);
  return { kernels: 5 * passes, traffic: 28 * passes * keys };
}

/** Whether one kernel sorts the lines. */
function isShort(lines: number, length: number, target: Target): boolean {
  // In workgroup memory: a key and a position for each element, rounded up to a power of two.
  if (sharesWork(target)) return 8 * 2 ** Math.ceil(Math.log2(length)) <= target.limits.workgroupBytes;
  return length <= longestCounted || lines * length * length <= mostCompared;
}

/**
 * i32 positions that put each line of u32 keys [lines, n], all below 2^bits, in ascending order.
 */
export function orderOfKeys(b: GraphBuilder, keys: Node, bits: number, target: Target): Node {
  const [lines, length] = dims(keys) as [number, number];
  if (length <= 1) return full(b, dims(keys), 0, 'i32');
  return isShort(lines, length, target)
    ? (b.add('argSort', [keys], { axis: 1, descending: false }) as Node)
    : radixOrder(b, keys, bits, target);
}

/**
 * Of keys in several words, the low ones are sorted first: sorting is stable, so their order
 * survives where high ones are equal.
 */
function orderOfWords(b: GraphBuilder, words: readonly Key[], target: Target): Node {
  const gathered = (from: Node, order: Node): Node => b.add('gather', [from, order], { axis: 1 }) as Node;
  let order: Node | undefined;
  for (const { keys, bits } of words) {
    const next = orderOfKeys(b, order === undefined ? keys : gathered(keys, order), bits, target);
    order = order === undefined ? next : gathered(order, next);
  }
  return order!;
}

/** A word of keys, below 2^bits. */
interface Key {
  readonly keys: Node;
  readonly bits: number;
}

/**
 * Words of u32 keys in the order of the elements, the lowest first: floats by their bits (a sign
 * flips the order of all others), −0 level with 0, NaN above everything; descending keys are
 * complements, so that equal elements keep their order. Integer arithmetic only: comparisons of
 * denormals are not the same on every device.
 */
function ascendingKeys(b: GraphBuilder, x: Node, descending: boolean): readonly Key[] {
  const turned = (keys: Node): Node => (descending ? unary(b, 'not', keys) : keys);
  const dtype = lowered(x.dtype);
  switch (dtype) {
    case 'bool':
      return [{ keys: cast(b, descending ? unary(b, 'not', x) : x, 'u32'), bits: 1 }];
    case 'u32':
      return [{ keys: turned(x), bits: 32 }];
    case 'u8':
    case 'u16':
      return ascendingKeys(b, cast(b, x, 'u32'), descending);
    case 'i32':
      return [{ keys: turned(unsignedKeys(b, x)), bits: 32 }];
    case 'i8':
    case 'i16':
      return ascendingKeys(b, cast(b, x, 'i32'), descending);
    case 'u64':
      return [x, binary(b, 'shr', x, 32)].map((word) => ({ keys: turned(cast(b, word, 'u32')), bits: 32 }));
    case 'i64':
      return ascendingKeys(b, unsignedKeys(b, x), descending);
    case 'f64':
      return ascendingKeys(b, floatKeys(b, x), descending);
    case 'f16':
    case 'bf16':
    case 'f32': {
      const keys = turned(floatKeys(b, cast(b, x, 'f32')));
      // The low bits of widened 16-bit floats are 0 (or 1, in complements): they do not distinguish
      // keys.
      const idle = x.dtype === 'bf16' ? 16 : x.dtype === 'f16' ? 13 : 0;
      return [{ keys: idle === 0 ? keys : binary(b, 'shr', keys, idle), bits: 32 - idle }];
    }
    default:
      return dtype satisfies never;
  }
}

/**
 * The magnitude's bits, negated below zero: two's complement has one zero, as wanted. NaN is the
 * greatest integer.
 */
function floatKeys(b: GraphBuilder, x: Node): Node {
  const long = x.dtype === 'f64';
  const dtype = long ? 'i64' : 'i32';
  const all = (value: number | bigint): Node => full(b, dims(x), value, dtype);
  const [magnitudeMask, infinity] = long
    ? ([2n ** 63n - 1n, 0x7ff0_0000_0000_0000n] as const)
    : ([0x7fffffff, 0x7f800000] as const);
  const bits = b.add('bitcast', [x], { dtype }) as Node;
  const size = binary(b, 'and', bits, all(magnitudeMask));
  const signed = where(b, binary(b, 'lt', bits, all(long ? 0n : 0)), neg(b, size), size);
  const isNan = binary(b, 'lt', all(infinity), size);
  return unsignedKeys(b, where(b, isNan, all(magnitudeMask), signed));
}

/** Signed integers in order as unsigned ones. */
function unsignedKeys(b: GraphBuilder, x: Node): Node {
  const dtype = x.dtype === 'i64' ? 'u64' : 'u32';
  const sign = full(b, dims(x), dtype === 'u64' ? 2n ** 63n : 0x80000000, dtype);
  return binary(b, 'xor', b.add('bitcast', [x], { dtype }) as Node, sign);
}

/**
 * Least significant digit first (Knuth 5.2.5): each pass is stable, so the order of lower digits
 * survives. A key goes to the start of its digit in its block (the exclusive sum of counts, digits
 * before blocks) plus its rank there.
 */
function radixOrder(b: GraphBuilder, keys: Node, bits: number, target: Target): Node {
  const [lines, length] = dims(keys) as [number, number];
  const block = blockLength(lines, length, target);
  const blocks = Math.ceil(length / block);
  const blockNumber = upTo(b, iota(b, [lines, blocks, block], 1), length);
  const passes = Math.ceil(bits / digitBits);
  const width = Math.ceil(bits / passes);
  let order = iota(b, dims(keys), 1);
  for (let shift = 0; shift < bits; shift += width) {
    const digits = 2 ** Math.min(width, bits - shift);
    const ranked = b.add('radixRank', [keys], { shift, digits, block }) as Node;
    const counts = slice(b, ranked, [0, 0, 0], [lines, blocks, digits]);
    const cells = reshape(b, permute(b, counts, [0, 2, 1]), [lines, digits * blocks]);
    const starts = b.add('scan', [cells], {
      monoid: 'sum',
      axis: 1,
      reverse: false,
      exclusive: true,
    }) as Node;
    const ranks = upTo(b, slice(b, ranked, [0, 0, digits], [lines, blocks, block]), length);
    const digit = cast(b, binary(b, 'and', binary(b, 'shr', keys, shift), digits - 1), 'i32');
    const cell = add(b, binary(b, 'mul', digit, blocks), blockNumber);
    const places = add(b, b.add('gather', [starts, cell], { axis: 1 }) as Node, ranks);
    order = permuteScatter(b, order, places, 1);
    if (shift + width < bits) keys = permuteScatter(b, keys, places, 1);
  }
  return order;
}

/** Keys of a block: a few thousand for a workgroup, or an invocation's share of all keys. */
function blockLength(lines: number, length: number, target: Target): number {
  const [least, most] = sharesWork(target) ? [1024, 4096] : [512, 65_536];
  const share = Math.min(most, Math.max(least, lines * (length / blocksToFill(target))));
  return 2 ** Math.ceil(Math.log2(Math.min(share, length)));
}

/** Blocks of a line joined again, without what lies past its end. */
function upTo(b: GraphBuilder, blocks: Node, length: number): Node {
  const [lines, count, block] = dims(blocks) as [number, number, number];
  return slice(b, reshape(b, blocks, [lines, count * block]), [0, 0], [lines, length]);
}

function iota(b: GraphBuilder, shape: readonly number[], axis: number): Node {
  return b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node;
}

function permuteScatter(b: GraphBuilder, values: Node, places: Node, axis: number): Node {
  return b.add('permuteScatter', [values, places], { axis }) as Node;
}
