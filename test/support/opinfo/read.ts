// PyTorch's OpInfo samples as files: one safetensors file per operator, whose metadata holds the calls. Takes a folder, gives the
// cases of each operator, without making tensors.

import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { HostTensor } from '../../../src/io/host.ts';
import { readSafetensors } from '../../../src/io/safetensors.ts';

/** What samples were drawn for. */
export const sampleDTypes = ['f32', 'c64', 'i32', 'i64', 'bool', 'u8'] as const;
export type SampleDType = (typeof sampleDTypes)[number];

/** A tensor of the file. Complex ones are stored as floats with a last axis of 2 that `shape` does not count. */
export interface StoredTensor {
  readonly tensor: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Which gradient is the one of this input. */
  readonly grad?: number;
}

/** A value of a call, as the README of the samples lists them. */
export type StoredValue =
  | StoredTensor
  | { readonly tuple: readonly StoredValue[] }
  | { readonly dict: Readonly<Record<string, StoredValue>> }
  | { readonly dtype: string }
  | { readonly slice: readonly (number | null)[] }
  | { readonly ellipsis: true }
  | { readonly float: number | string }
  | { readonly int: string }
  | { readonly complex: readonly (number | string)[] }
  | readonly StoredValue[]
  | number
  | string
  | boolean
  | null;

/** Outputs that are unique only up to a sign or a phase, replaced by what is unique. */
export type Derived = 'svd' | 'svdh' | 'eigh' | 'qr' | 'eig' | 'eigvals';

export interface Case {
  /** `NAME/DTYPE/NUMBER`. */
  readonly id: string;
  readonly dtype: SampleDType;
  readonly input: StoredValue;
  readonly args: readonly StoredValue[];
  readonly kwargs: Readonly<Record<string, StoredValue>>;
  readonly outputs: readonly StoredTensor[];
  readonly derived?: Derived;
  /** The weight of each output; null where it has no gradient. */
  readonly cotangents?: readonly (StoredTensor | null)[];
  /** One per marked input, in the order of the marks; null where PyTorch gives none. */
  readonly grads?: readonly (StoredTensor | null)[];
  readonly gradNotFinite?: boolean;
}

export interface Operator {
  /** The file's name: `linalg.svd`, `div.floor_rounding`. */
  readonly name: string;
  readonly cases: readonly Case[];
  readonly tensors: ReadonlyMap<string, HostTensor>;
}

/** The names of the operators in a folder, sorted. */
export function operatorNames(folder: string): string[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.safetensors'));
  return files.map((file) => basename(file, '.safetensors')).sort();
}

/** The cases of one operator. */
export function readOperator(folder: string, name: string): Operator {
  const { metadata, tensors } = readSafetensors(readFileSync(join(folder, `${name}.safetensors`)));
  const cases = metadata['cases'];
  if (cases === undefined) throw new Error(`${name}: the file has no cases`);
  return { name, cases: JSON.parse(cases) as Case[], tensors };
}
