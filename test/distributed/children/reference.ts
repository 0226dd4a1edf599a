// What collectives give, computed in the plainest way from the blocks of all ranks by the interpreter's monoids, and
// random blocks that every rank can make for every other one.

import { combineMonoid } from '../../../src/ir/interpret/scalar.ts';
import { castArray, packBytes, unpackBytes, type HostData, type Scalar } from '../../../src/ir/value.ts';
import type { CollectiveAction, CollectiveMonoid, Communicator } from '../../../src/runtime/communicator.ts';
import type { ElementType } from '../../../src/runtime/program.ts';

export const dtypes: readonly ElementType[] = [
  ...(['bool', 'i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64'] as const),
  ...(['f16', 'bf16', 'f32', 'f64'] as const),
];

export function monoidsOf(dtype: ElementType): readonly CollectiveMonoid[] {
  return dtype === 'bool' ? ['and', 'or'] : ['sum', 'prod', 'min', 'max'];
}

/** Numbers of 32 bits from a seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/**
 * Random elements, packed. Sums and products of f32 and f64 are exact, since MPI adds in an order of its own; those of 16
 * bits round. Some floats are NaN, infinite or −0 where `special`.
 */
export function randomBlock(dtype: ElementType, count: number, seed: number, special: boolean): Uint8Array {
  const next = random(seed);
  if (!/^(b?f|bool)/.test(dtype)) {
    const data = unpackBytes(new Uint8Array(count * packBytes(emptyOne(dtype)).length), dtype, [count]).data;
    const bytes = packBytes({ dtype, shape: [count], data });
    return bytes.map(() => next() & 0xff);
  }
  const odd = [NaN, Infinity, -Infinity, -0];
  const isShort = dtype === 'f16' || dtype === 'bf16';
  const value = (): number => {
    if (dtype === 'bool') return next() & 1;
    if (special && next() % 5 === 0) return odd[next() % odd.length]!;
    return isShort ? ((next() % 4001) - 2000) / 977 : ([1, -2, 0.5, 4] as const)[next() % 4]!;
  };
  const shape = [count];
  const data =
    dtype === 'bool'
      ? Uint8Array.from({ length: count }, value)
      : Float64Array.from({ length: count }, value);
  const from = dtype === 'bool' ? 'bool' : 'f64';
  return packBytes(castArray({ dtype: from, shape, data }, dtype));
}

function emptyOne(dtype: ElementType): Parameters<typeof packBytes>[0] {
  return unpackBytes(new Uint8Array(8), dtype, [1]);
}

function valuesOf(dtype: ElementType, bytes: Uint8Array): HostData {
  const unit = packBytes(emptyOne(dtype)).length;
  return unpackBytes(bytes, dtype, [bytes.length / unit]).data;
}

function combined(monoid: CollectiveMonoid, dtype: ElementType, blocks: readonly Uint8Array[]): Uint8Array {
  const isShort = dtype === 'f16' || dtype === 'bf16';
  const inner = isShort ? 'f32' : dtype;
  const name = dtype === 'bool' ? (monoid === 'and' ? 'min' : 'max') : (monoid as 'sum');
  const { combine } = combineMonoid(name, inner);
  const [first, ...rest] = blocks.map((block) => valuesOf(dtype, block));
  const sums = Array.from(first as ArrayLike<Scalar>, (value, i) =>
    rest.reduce<Scalar>((sum, block) => combine(sum, block[i]!), value),
  );
  const data = unpackBytes(new Uint8Array(8 * sums.length), inner, [sums.length]).data.slice();
  sums.forEach((value, i) => (data[i] = value as never));
  return packBytes(castArray({ dtype: inner, shape: [sums.length], data }, dtype));
}

/** What the rank at `place` takes. */
export function expected(
  action: CollectiveAction,
  dtype: ElementType,
  blocks: readonly Uint8Array[],
  place: number,
): Uint8Array {
  const count = blocks.length;
  const part = blocks[0]!.length / count;
  const partOf = (block: Uint8Array, at: number): Uint8Array => block.slice(at * part, (at + 1) * part);
  switch (action.kind) {
    case 'allReduce':
      return combined(action.monoid, dtype, blocks);
    case 'allGather':
      return joined(blocks);
    case 'reduceScatter':
      return combined(
        action.monoid,
        dtype,
        blocks.map((block) => partOf(block, place)),
      );
    case 'allToAll':
      return joined(blocks.map((block) => partOf(block, place)));
    case 'permute': {
      const source = action.pairs.find(([, to]) => to === place)?.[0];
      return source === undefined ? new Uint8Array(blocks[0]!.length) : blocks[source]!;
    }
    case 'broadcast':
      return blocks[action.root]!;
  }
}

function joined(blocks: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(blocks));
}

/** Whether both hold the same elements: NaN is NaN, whatever its bits are. */
export function same(dtype: ElementType, a: Uint8Array, b: Uint8Array): boolean {
  if (Buffer.compare(a, b) === 0) return true;
  const [left, right] = [valuesOf(dtype, a), valuesOf(dtype, b)];
  return left.length === right.length && left.every((value: Scalar, i: number) => Object.is(value, right[i]));
}

/** Runs one collective on random blocks and compares what comes out. Gives what is wrong. */
export function trial(
  communicator: Communicator,
  action: CollectiveAction,
  dtype: ElementType,
  group: readonly number[],
  elements: number,
  seed: number,
  inPlace: boolean,
): string | undefined {
  const place = group.indexOf(communicator.rank);
  const isExact =
    'monoid' in action && (action.monoid === 'sum' || action.monoid === 'prod') && dtype.startsWith('f');
  const isParted = action.kind === 'reduceScatter' || action.kind === 'allToAll';
  const count = isParted ? elements * group.length : elements;
  const blocks = group.map((rank) => randomBlock(dtype, count, seed * 64 + rank, !isExact));
  const wanted = expected(action, dtype, blocks, place);
  const own = blocks[place]!.slice();
  const to = inPlace && own.length === wanted.length ? own : new Uint8Array(wanted.length).fill(0xa5);
  communicator.run({ action, dtype, group }, own, to);
  if (same(dtype, to, wanted)) return undefined;
  return `${JSON.stringify(action)} of ${elements} ${dtype} over ${group.join()} at rank ${communicator.rank}`;
}
