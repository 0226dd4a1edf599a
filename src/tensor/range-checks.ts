// The range that integers of an operation must lie in: labels among the classes, indices on an axis. If the
// host has the elements, it looks at them. If only the device has them, a reduction to one number
// (`outmost`) finds the one that is furthest outside.

import { IndexError, userLocation } from '../errors.ts';
import { dtypeBytes, dtypeKind, isInteger, isWide, type DType, integerRange } from '../ir/dtype.ts';
import { binary, broadcast, cast, constant, reduce, where } from '../ir/build.ts';
import type { GraphBuilder, Node, NodeOf } from '../ir/graph.ts';
import { viewOf } from '../ir/value.ts';
import { storageOf } from './handle/leaf.ts';
import type { StoredValue } from './storage/storage.ts';
import type { IntegerRange } from './handle/number.ts';

/**
 * The error of an integer that is outside. `place`: where the operation was recorded; `example`:
 * which one of many it is of.
 */
export function outside(
  { op, what, start, end, where: all }: IntegerRange,
  found: number | bigint,
  place: string = userLocation(),
  example = '',
): IndexError {
  const allowed = end === start + 1 ? `only ${start} is inside` : `${start} to ${end - 1} are inside`;
  return new IndexError(
    op,
    `${example}${what} ${found} is outside ${all}`,
    found,
    [start, end - 1],
    `${allowed}; setChecks(false) reads 0 outside, and writes nothing there`,
    place,
  );
}

/**
 * What a node has its elements from: the value behind changes of shape, and of the dtype where each
 * integer stays what it is.
 */
export function elementsOf(node: Node): Node {
  let at = node;
  while (isSame(at)) at = at.inputs[0]!;
  return at;
}

function isSame({ op, dtype, inputs }: Node): boolean {
  if (op === 'reshape' || op === 'permute' || op === 'broadcast' || op === 'stopGradient') return true;
  return op === 'cast' && holds(dtype, inputs[0]!.dtype);
}

/** Whether a dtype of integers has all those of another. */
function holds(wide: DType, narrow: DType): boolean {
  if (!isInteger(wide) || !isInteger(narrow)) return false;
  const isGreater = dtypeBytes(wide) > dtypeBytes(narrow);
  return isUnsigned(wide) === isUnsigned(narrow)
    ? isGreater || wide === narrow
    : isGreater && isUnsigned(narrow);
}

const isUnsigned = (dtype: DType): boolean => dtypeKind(dtype) === 'uint';

/** Least and greatest element of large values, which are often looked at again. */
const extremesOf = new WeakMap<StoredValue, Extremes>();
const large = 1024;

type Extremes = readonly [least: number | bigint, greatest: number | bigint];

/** The storage of a node, where its elements can be seen without waiting. */
export function visible(node: Node): StoredValue | undefined {
  const storage = storageOf(node);
  return storage?.seen === undefined ? undefined : storage;
}

/** What is wrong with a visible value, if something is. */
export function look(storage: StoredValue, range: IntegerRange, place?: string): IndexError | undefined {
  const isKept = range.ignored === undefined && storage.bytes > large;
  const known = isKept ? extremesOf.get(storage) : undefined;
  const [low, high] = known ?? extremes(storage, range.ignored);
  if (isKept && known === undefined) extremesOf.set(storage, [low, high]);
  if (low < range.start) return outside(range, low, place);
  return high >= range.end ? outside(range, high, place) : undefined;
}

/** Nothing is below the one and above the other where every element is ignored. */
function extremes({ seen, dtype, bytes }: StoredValue, ignored: number | undefined): Extremes {
  const packed = seen!.subarray(0, bytes);
  if (isWide(dtype)) return wideExtremes(packed, dtype, ignored);
  const all = viewOf(packed, dtype) as ArrayLike<number>;
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < all.length; i++) {
    const value = all[i]!;
    if (value === ignored) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** By the nearest doubles, which keep the order, and with all digits in the end. */
function wideExtremes(packed: Uint8Array, dtype: 'i64' | 'u64', ignored: number | undefined): Extremes {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const exact = (at: number): bigint =>
    dtype === 'i64' ? view.getBigInt64(at, true) : view.getBigUint64(at, true);
  let [low, high] = [Infinity, -Infinity];
  let [lowAt, highAt] = [-1, -1];
  for (let at = 0; at < packed.length; at += 8) {
    const upper = dtype === 'i64' ? view.getInt32(at + 4, true) : view.getUint32(at + 4, true);
    const value = upper * 2 ** 32 + view.getUint32(at, true);
    if (value === ignored) continue;
    if (value < low) [low, lowAt] = [value, at];
    if (value > high) [high, highAt] = [value, at];
  }
  return lowAt < 0 ? [low, high] : [exact(lowAt), exact(highAt)];
}

/**
 * How far the outmost integer lies from the start of the range, of one node, counted upwards modulo
 * 2³² (of wide integers 2⁶⁴): what is inside lies nearer than all that is outside. u32[1] or u64[1].
 */
export function outmost(b: GraphBuilder, node: Node, range: IntegerRange): Node {
  const dtype = isWide(node.dtype) ? node.dtype : isUnsigned(node.dtype) ? 'u32' : 'i32';
  const like = (value: number): Node => {
    const number = isWide(dtype) ? BigInt(value) : value;
    return broadcast(b, constant(b, number, dtype), node.shape as number[]);
  };
  const first = firstOf(range, dtype);
  const all = cast(b, node, dtype);
  const isIgnored = (ignored: number): Node => binary(b, 'eq', all, like(ignored));
  const { ignored } = range;
  const canBe = ignored !== undefined && (ignored >= 0 || !isUnsigned(dtype));
  const counted = canBe ? where(b, isIgnored(ignored), like(first), all) : all;
  const far = first === 0 ? counted : binary(b, 'sub', counted, like(first));
  const unsigned = isWide(dtype) ? 'u64' : 'u32';
  const distance = dtype === unsigned ? far : (b.add('bitcast', [far], { dtype: unsigned }) as Node);
  return reduce(
    b,
    'max',
    distance,
    node.shape.map((_, axis) => axis),
  );
}

/** Unsigned integers are never below 0. */
function firstOf({ start }: IntegerRange, dtype: DType): number {
  return isUnsigned(dtype) ? Math.max(start, 0) : start;
}

/** The integer of `outmost`, where it is outside. `dtype` is that of the node. */
export function outsiderAt(
  distance: number | bigint,
  range: IntegerRange,
  dtype: DType,
): number | bigint | undefined {
  const first = firstOf(range, dtype);
  const far = BigInt(distance);
  if (far < BigInt(range.end - first)) return undefined;
  const bits = isWide(dtype) ? 64 : 32;
  const found = far + BigInt(first);
  const value = isUnsigned(dtype) ? BigInt.asUintN(bits, found) : BigInt.asIntN(bits, found);
  return isWide(dtype) ? value : Number(value);
}

// What integers of a recorded value lie between, as far as the operations that made it tell (interval
// analysis): a position that `argmax`, `arange` or `clip` gave needs no check.

/** Both ends are included; beyond 2⁵³ they are rounded outwards. */
export interface Bounds {
  readonly low: number;
  readonly high: number;
}

/** Operations are looked through so far. */
const deepest = 16;

/** What the elements of an integer or bool node lie between; what nothing is known of, within its dtype. */
export function boundsOf(node: Node): Bounds {
  return boundsWithin(node, deepest, new Map());
}

function boundsWithin(node: Node, depth: number, seen: Map<Node, Bounds>): Bounds {
  const all = limitsOf(node.dtype);
  if (depth === 0 || all.high === Infinity) return all;
  const before = seen.get(node);
  if (before !== undefined) return before;
  const found = boundsFrom(node, (input) => boundsWithin(input, depth - 1, seen)) ?? all;
  // What leaves its dtype wraps around.
  const bounds = found.low >= all.low && found.high <= all.high ? found : all;
  seen.set(node, bounds);
  return bounds;
}

/** The rule of each operation that has one, by the bounds of its operands. */
function boundsFrom(node: Node, within: (node: Node) => Bounds): Bounds | undefined {
  const of = (input: number): Bounds => within(node.inputs[input]!);
  switch (node.op) {
    case 'constant': {
      const value = Number((node as NodeOf<'constant'>).attrs.value);
      return { low: value, high: value };
    }
    case 'iota': {
      const { shape, axis } = (node as NodeOf<'iota'>).attrs;
      return { low: 0, high: Math.max(0, Number(shape[axis]) - 1) };
    }
    case 'argReduce':
    case 'argSort': {
      const { axis } = (node as NodeOf<'argReduce' | 'argSort'>).attrs;
      return { low: 0, high: Math.max(0, Number(node.inputs[0]!.shape[axis]) - 1) };
    }
    case 'slice':
      return ofPieces(node as NodeOf<'slice'>, within) ?? of(0);
    case 'reshape':
    case 'permute':
    case 'broadcast':
    case 'cast':
    case 'stopGradient':
      return of(0);
    case 'concat':
      return node.inputs.map((_, i) => of(i)).reduce(joined);
    case 'where':
      return joined(chosen(node, 1, within), chosen(node, 2, within));
    // What lies outside of the axis reads 0.
    case 'gather':
      return joined(of(0), { low: 0, high: 0 });
    case 'add': {
      const [a, b] = [of(0), of(1)];
      return { low: a.low + b.low, high: a.high + b.high };
    }
    case 'sub': {
      const [a, b] = [of(0), of(1)];
      return { low: a.low - b.high, high: a.high - b.low };
    }
    case 'mul': {
      const [a, b] = [of(0), of(1)];
      const ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high];
      return { low: Math.min(...ends), high: Math.max(...ends) };
    }
    case 'min': {
      const [a, b] = [of(0), of(1)];
      return { low: Math.min(a.low, b.low), high: Math.min(a.high, b.high) };
    }
    case 'max': {
      const [a, b] = [of(0), of(1)];
      return { low: Math.max(a.low, b.low), high: Math.max(a.high, b.high) };
    }
    default:
      return undefined;
  }
}

/** The bounds of a slice of pieces that stand behind one another: of those that it reaches into. */
function ofPieces({ attrs, inputs }: NodeOf<'slice'>, within: (node: Node) => Bounds): Bounds | undefined {
  const [from] = inputs as readonly [Node];
  const joint = (from.op === 'reshape' ? from.inputs[0]! : from) as NodeOf<'concat'>;
  if (joint.op !== 'concat') return undefined;
  // Sizes in front of the pieces may be others.
  const inner = joint.shape.slice(joint.attrs.axis);
  const axis = from.shape.length - inner.length;
  const [start, size, step] = [attrs.start[axis]!, attrs.size[axis]!, attrs.step[axis]!];
  if (size === 0 || inner.some((extent, i) => extent !== from.shape[axis + i])) return undefined;
  const ends = [start, start + (size - 1) * step];
  let end = 0;
  const reached = joint.inputs.filter((piece) => {
    const begin = end;
    end += Number(piece.shape[joint.attrs.axis]);
    return end > Math.min(...ends) && begin <= Math.max(...ends);
  });
  return reached.map(within).reduce(joined);
}

/** The bounds of what `where` gives where its condition holds (1) or does not (2): `clamp` compares what it gives. */
function chosen(node: Node, input: 1 | 2, within: (node: Node) => Bounds): Bounds {
  const { low, high } = within(node.inputs[input]!);
  const [condition] = node.inputs as readonly [Node];
  if (condition.op !== 'lt' && condition.op !== 'le') return { low, high };
  const [left, right] = condition.inputs as readonly [Node, Node];
  const value = node.inputs[input]!;
  const isLess = input === 1;
  // Equality belongs to one of the two.
  const gap = (condition.op === 'lt') === isLess ? 1 : 0;
  if (value === left)
    return isLess
      ? { low, high: Math.min(high, within(right).high - gap) }
      : { low: Math.max(low, within(right).low + gap), high };
  if (value === right)
    return isLess
      ? { low: Math.max(low, within(left).low + gap), high }
      : { low, high: Math.min(high, within(left).high - gap) };
  return { low, high };
}

function joined(a: Bounds, b: Bounds): Bounds {
  return { low: Math.min(a.low, b.low), high: Math.max(a.high, b.high) };
}

function limitsOf(dtype: DType): Bounds {
  if (!isInteger(dtype) && dtype !== 'bool') return { low: -Infinity, high: Infinity };
  const [low, high] = integerRange(dtype);
  return { low: Number(low), high: Number(high) };
}
