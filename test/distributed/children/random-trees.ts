// Random trees of tensors, the same for the same seed on every rank, and which part of them a rank has, by loops over indices.

import type { DType } from '../../../src/ir/dtype.ts';
import { random } from './reference.ts';

/** All that safetensors has, with the bytes of an element. */
export const storedDTypes: Readonly<Record<StoredDType, number>> = {
  bool: 1,
  i8: 1,
  u8: 1,
  i16: 2,
  u16: 2,
  i32: 4,
  u32: 4,
  i64: 8,
  u64: 8,
  f16: 2,
  bf16: 2,
  f32: 4,
  f64: 8,
  c64: 8,
};

export type StoredDType = Exclude<DType, 'c128'>;

export interface RandomTensor {
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

const sizes: readonly number[] = [1, 2, 3, 4, 6, 8, 12, 24];

/** Tensors by name, of every dtype, of 0 to 4 axes. */
export function randomTensors(seed: number): Map<string, RandomTensor> {
  const next = random(seed);
  const tensors = Object.entries(storedDTypes).flatMap(([name, unit], which) =>
    [0, 1].map((turn): [string, RandomTensor] => {
      const dtype = name as StoredDType;
      const shape = Array.from({ length: next() % 5 }, () => sizes[next() % 8]!);
      if (shape.length > 0 && next() % 12 === 0) shape[next() % shape.length] = 0;
      while (shape.reduce((product, size) => product * size, 1) > 6000) shape.pop();
      const data = Uint8Array.from({ length: shape.reduce((product, size) => product * size, unit) }, () =>
        dtype === 'bool' ? next() % 2 : next() % 256,
      );
      return [
        `${['layers.0', 'layers.1', 'head'][(which + turn) % 3]}.${dtype}${turn}`,
        { dtype, shape, data },
      ];
    }),
  );
  return new Map(tensors);
}

/** A mesh of so many ranks, of one to three axes. */
export function randomMesh(ranks: number, seed: number): Record<string, number> {
  const next = random(seed);
  const factors =
    ranks === 4
      ? [[4], [2, 2], [2, 1, 2], [1, 4]]
      : ranks === 6
        ? [[6], [2, 3], [3, 2]]
        : [[ranks], [1, ranks]];
  const chosen = factors[next() % factors.length]!;
  return Object.fromEntries(chosen.map((size, i) => [['data', 'model', 'third'][i]!, size]));
}

/** A spec that fits: each mesh axis splits an axis of the tensor, or none. */
export function randomSpec(
  mesh: Readonly<Record<string, number>>,
  shape: readonly number[],
  seed: number,
): (string | string[] | null)[] {
  const next = random(seed);
  const spec: string[][] = shape.map(() => []);
  for (const [name, size] of Object.entries(mesh)) {
    const axis = next() % (shape.length + 1);
    const parts = (spec[axis] ?? []).reduce((product, other) => product * mesh[other]!, size);
    if (axis < shape.length && shape[axis]! % parts === 0) spec[axis]!.push(name);
  }
  return spec.map((names) => (names.length === 0 ? null : names.length === 1 ? names[0]! : names));
}

/** The part of a tensor that a rank has. */
export function partOfTensor(
  { dtype, shape, data }: RandomTensor,
  mesh: Readonly<Record<string, number>>,
  spec: readonly (string | readonly string[] | null)[],
  rank: number,
): RandomTensor {
  const names = Object.keys(mesh);
  const placeOf = (name: string): number => {
    const after = names.slice(names.indexOf(name) + 1).reduce((product, other) => product * mesh[other]!, 1);
    return Math.floor(rank / after) % mesh[name]!;
  };
  const from = shape.map(() => 0);
  const to = [...shape];
  for (const [axis, entry] of spec.entries())
    for (const name of entry === null ? [] : [entry].flat()) {
      const size = (to[axis]! - from[axis]!) / mesh[name]!;
      from[axis]! += placeOf(name) * size;
      to[axis] = from[axis]! + size;
    }
  return {
    dtype,
    shape: shape.map((_, axis) => to[axis]! - from[axis]!),
    data: box(shape, data, storedDTypes[dtype], from, to),
  };
}

/** The bytes of the elements whose indices lie from `from` up to `to`. */
export function box(
  shape: readonly number[],
  data: Uint8Array,
  unit: number,
  from: readonly number[],
  to: readonly number[],
): Uint8Array {
  const bytes: number[] = [];
  const elements = shape.reduce((product, size) => product * size, 1);
  for (let element = 0; element < elements; element++) {
    let rest = element;
    const index = shape.map(() => 0);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis] = rest % shape[axis]!;
      rest = Math.floor(rest / shape[axis]!);
    }
    if (index.every((at, axis) => at >= from[axis]! && at < to[axis]!))
      bytes.push(...data.subarray(element * unit, (element + 1) * unit));
  }
  return Uint8Array.from(bytes);
}
