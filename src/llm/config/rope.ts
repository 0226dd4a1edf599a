// The angles of rotary embeddings: a frequency for each pair of elements, and tables of cosines and
// sines for each position. They are computed once, in double precision, so that no kernel has to
// reduce large angles.

import { TensorError } from '../../errors.ts';
import type { RopeConfig, RopeScaling } from './config.ts';

/** What the frequencies of a model are, and what its cosines and sines are multiplied by. */
export interface Frequencies {
  /** Radians a position, of each of the dims / 2 pairs. */
  readonly perPair: readonly number[];
  readonly magnitude: number;
}

/**
 * The length whose frequencies a text of `length` tokens is turned with, in a model with room for `room`: texts of
 * which it is the same share their keys.
 */
export function turnedLike({ scaling }: RopeConfig, room: number, length: number): number {
  switch (scaling.kind) {
    case 'dynamic':
      return Math.max(length, scaling.original);
    case 'longrope':
      if (scaling.by === 'room') return room;
      return length > scaling.original ? room : Math.min(room, scaling.original);
    case 'none':
    case 'linear':
    case 'yarn':
    case 'llama3':
      return room;
    default:
      return scaling satisfies never;
  }
}

/**
 * The frequencies that are those of `length` tokens (`turnedLike`). `factors` divide them where a file brings some
 * (`rope_freqs`). Throws E_SHAPE where there is no factor for each pair.
 */
export function frequenciesOf(rope: RopeConfig, length: number, factors?: ArrayLike<number>): Frequencies {
  const { dims, base, scaling } = rope;
  const plain = Array.from({ length: dims / 2 }, (_, i) => base ** ((-2 * i) / dims));
  if (factors !== undefined) mustHaveAll(factors, dims);
  const perPair = plain.map((value, i) => scaled(value, i, rope, length) / (factors?.[i] ?? 1));
  return { perPair, magnitude: magnitudeOf(scaling) };
}

function mustHaveAll(factors: ArrayLike<number>, dims: number): void {
  if (factors.length === dims / 2) return;
  const problem = `there are ${factors.length} factors of rotary embeddings, and ${dims / 2} pairs`;
  throw new TensorError('E_SHAPE', 'loadModel', problem);
}

function scaled(value: number, pair: number, { scaling, base, dims }: RopeConfig, length: number): number {
  switch (scaling.kind) {
    case 'none':
      return value;
    case 'linear':
      return value / scaling.factor;
    case 'yarn': {
      const { factor, original, fast, slow } = scaling;
      // The pair that turns so many times over the original length.
      const turning = (turns: number): number =>
        (dims * Math.log(original / (turns * 2 * Math.PI))) / (2 * Math.log(base));
      const [from, to] = [turning(fast), turning(slow)];
      const [first, last] = scaling.isExact
        ? [Math.max(from, 0), Math.min(to, dims - 1)]
        : [Math.max(Math.floor(from), 0), Math.min(Math.ceil(to), dims - 1)];
      const ramp = Math.min(Math.max((pair - first) / Math.max(last - first, 0.001), 0), 1);
      return (value / factor) * ramp + value * (1 - ramp);
    }
    case 'llama3': {
      const { factor, original, low, high } = scaling;
      const turns = (original * value) / (2 * Math.PI);
      const fast = Math.min(Math.max((turns - low) / (high - low), 0), 1);
      return (value / factor) * (1 - fast) + value * fast;
    }
    case 'dynamic': {
      const { factor, original } = scaling;
      const stretch = 1 + (factor * (Math.max(length, original) - original)) / original;
      // The first pair keeps its frequency, and the last one gets that of positions divided by the stretch.
      return pair === 0 ? value : value * stretch ** ((-2 * pair) / (dims - 2));
    }
    case 'longrope': {
      const factors = length > scaling.original ? scaling.long : scaling.short;
      mustHaveAll(factors, dims);
      return value / factors[pair]!;
    }
    default:
      return scaling satisfies never;
  }
}

function magnitudeOf(scaling: RopeScaling): number {
  if (scaling.kind === 'longrope') return scaling.magnitude;
  if (scaling.kind !== 'yarn') return 1;
  return scaling.magnitude ?? (scaling.factor <= 1 ? 1 : 0.1 * Math.log(scaling.factor) + 1);
}

/**
 * Cosines, and sines with the signs of their place, of `count` positions from `from` on: [count, 2, dims] as the turned
 * elements lie, so that turning is x · cos + (x with the elements of pairs exchanged) · sin. `at` are the frequencies
 * of a position.
 */
export function ropeTable(
  { dims, layout }: RopeConfig,
  from: number,
  count: number,
  at: (position: number) => Frequencies,
): Float32Array {
  const table = new Float32Array(count * 2 * dims);
  for (let row = 0; row < count; row++) {
    const position = from + row;
    const { perPair, magnitude } = at(position);
    const cosines = row * 2 * dims;
    const sines = cosines + dims;
    for (const [i, frequency] of perPair.entries()) {
      const [a, b] = layout === 'interleaved' ? [2 * i, 2 * i + 1] : [i, i + dims / 2];
      const cos = magnitude * Math.cos(position * frequency);
      const sin = magnitude * Math.sin(position * frequency);
      table[cosines + a] = cos;
      table[cosines + b] = cos;
      table[sines + a] = -sin;
      table[sines + b] = sin;
    }
  }
  return table;
}
