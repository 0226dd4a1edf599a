// How random nodes are drawn: numbers, shapes and tensors from one source that fast-check shrinks, and short forms for attributes.

import * as fc from 'fast-check';
import type { DType } from '../../../src/ir/dtype.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import { emptyData, f16FromBits, f16ToBits, type HostArray } from '../../../src/ir/value.ts';
import type { Draft } from '../../support/onnx/file.ts';

/** One node with its inputs, as a model of one node is made of it. */
export interface NodeCase {
  readonly op: string;
  readonly opset: number;
  /** The operator's domain, where it is not the standard's; `opset` is that of the standard all the same. */
  readonly domain?: string;
  readonly attributes?: readonly Draft[];
  readonly inputs: readonly (HostArray | undefined)[];
  /** How many results are asked for; 1 unless told. */
  readonly outputs?: number;
  /** Results among these that are not asked for. */
  readonly unwanted?: readonly number[];
  /** Inputs that are part of the model and not given to it. */
  readonly stored?: readonly number[];
  /** The largest difference, as a share of the largest value. */
  readonly tolerance?: number;
}

interface Range {
  readonly least?: number;
  readonly most?: number;
}

export type Family = (draw: Draw) => NodeCase;

export class Draw {
  readonly #gen: fc.GeneratorValue;

  constructor(gen: fc.GeneratorValue) {
    this.#gen = gen;
  }

  /** A whole number of [least, most]. */
  int(least: number, most: number): number {
    return this.#gen(fc.integer, { min: least, max: most });
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)]!;
  }

  /** True once in `of` times. */
  rarely(of = 4): boolean {
    return this.int(0, of - 1) === of - 1;
  }

  coin(): boolean {
    return this.int(0, 1) === 1;
  }

  ints(count: number, least: number, most: number): number[] {
    return Array.from({ length: count }, () => this.int(least, most));
  }

  /** Sizes, now and then one that is 0. */
  shape(rank: number, most = 4): number[] {
    return Array.from({ length: rank }, () => (this.rarely(24) ? 0 : this.int(1, most)));
  }

  /** A shape of up to `most` axes. */
  anyShape(most = 4): number[] {
    return this.shape(this.int(0, most));
  }

  /** A shape that broadcasts with another: shorter, or with sizes of 1. */
  broadcast(shape: readonly number[]): number[] {
    const cut = shape.slice(this.rarely() ? this.int(0, shape.length) : 0);
    return cut.map((dim) => (this.rarely() ? 1 : dim));
  }

  /** An axis, from either end. */
  axis(rank: number): number {
    return this.int(-rank, rank - 1);
  }

  shuffled<T>(list: readonly T[]): T[] {
    const out = [...list];
    for (let i = out.length - 1; i > 0; i--) {
      const j = this.int(0, i);
      [out[i], out[j]] = [out[j]!, out[i]!];
    }
    return out;
  }

  /** Elements of a dtype: floats of [−3, 3], integers of [least, most] (those without a sign: of what is not negative). */
  tensor(shape: readonly number[], dtype: DType = 'f32', { least = -9, most = 9 }: Range = {}): HostArray {
    const data = emptyData(dtype, sizeOf(shape));
    const isUnsigned = dtype.startsWith('u');
    let state = this.int(0, 2 ** 31 - 1) | 1;
    // Elements come from a generator of their own (xorshift): shrinking each of them would take for ever.
    const next = (): number => {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return (state >>> 0) / 2 ** 32;
    };
    for (let i = 0; i < data.length; i++) {
      const from = isUnsigned ? Math.max(0, least) : least;
      const whole = from + Math.floor(next() * (most - from + 1));
      if (dtype === 'bool') data[i] = next() < 0.5 ? 1 : 0;
      else if (dtype === 'i64' || dtype === 'u64') data[i] = BigInt(whole);
      else if (dtype === 'f16') data[i] = f16FromBits(f16ToBits(6 * next() - 3));
      else data[i] = dtype === 'f32' || dtype === 'f64' ? 6 * next() - 3 : whole;
    }
    return { dtype, shape, data };
  }
}

/** Random values of what draws them. */
export function drawn<T>(make: (draw: Draw) => T): fc.Arbitrary<T> {
  return fc.gen().map((gen) => make(new Draw(gen)));
}

export const floats = (values: readonly number[], shape: readonly number[] = [values.length]): HostArray => ({
  dtype: 'f32',
  shape,
  data: Float32Array.from(values),
});

export const ints = (values: readonly number[], shape: readonly number[] = [values.length]): HostArray => ({
  dtype: 'i64',
  shape,
  data: BigInt64Array.from(values, BigInt),
});

const utf8 = new TextEncoder();

/** Attributes by kind: what is undefined is left out. */
export const attr = {
  int: (name: string, i: number): Draft => ({ name, type: 2, i: BigInt(i) }),
  float: (name: string, f: number): Draft => ({ name, type: 1, f }),
  text: (name: string, s: string): Draft => ({ name, type: 3, s: utf8.encode(s) }),
  ints: (name: string, list: readonly number[]): Draft => ({ name, type: 7, ints: list.map(BigInt) }),
  floats: (name: string, list: readonly number[]): Draft => ({ name, type: 6, floats: list }),
  texts: (name: string, list: readonly string[]): Draft => ({
    name,
    type: 8,
    strings: list.map((item) => utf8.encode(item)),
  }),
} as const;
