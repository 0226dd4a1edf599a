// PyTorch's figures, stored by scripts/torch-fixtures.py under test/fixtures/torch, one file per family of operations.
// Reads a family and decodes its numbers; what Sinter computes for the same case must agree.

import { readFileSync, readdirSync } from 'node:fs';
import { dtypeKind, type DType } from '../../../src/ir/dtype.ts';

/** A tensor of a fixture. 64-bit integers are bigints, bool is 0 or 1, every other value is exact as a double. */
export interface TorchTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: Float64Array | BigInt64Array;
}

/** An option of a case, under Sinter's name for it; an infinite number is the string `inf` or `-inf`. */
export type TorchOption = number | string | boolean | null | readonly TorchOption[];

/** One call: `op(...inputs, args)` gave `outputs`. */
export interface TorchCase {
  /** Family, op and number within the family: `reduce/amax#3`. */
  readonly name: string;
  /** Sinter's public name of the operation. */
  readonly op: string;
  readonly args: Readonly<Record<string, TorchOption>>;
  readonly inputs: readonly TorchTensor[];
  readonly outputs: readonly TorchTensor[];
  /** The cotangent of `outputs[0]`, where the case has gradients. */
  readonly upstream?: TorchTensor;
  /** One per input: the gradient of sum(outputs[0] · upstream), or null where the input is no float. */
  readonly grads?: readonly (TorchTensor | null)[];
}

/** A result dtype: of promoting two types, of an operation on two tensors, on a tensor and a number, or on one tensor. */
export type TorchPromotion =
  | { readonly kind: 'types'; readonly a: DType; readonly b: DType; readonly result: DType }
  | {
      readonly kind: 'binary';
      readonly op: string;
      readonly a: DType;
      readonly b: DType;
      readonly result: DType;
    }
  | {
      readonly kind: 'number';
      readonly op: string;
      readonly a: DType;
      readonly value: number | boolean;
      readonly result: DType;
    }
  | { readonly kind: 'reduce' | 'unary'; readonly op: string; readonly a: DType; readonly result: DType };

interface StoredTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: readonly (number | string)[];
}

interface StoredCase {
  readonly op: string;
  readonly args: TorchCase['args'];
  readonly inputs: readonly StoredTensor[];
  readonly outputs: readonly StoredTensor[];
  readonly upstream?: StoredTensor;
  readonly grads?: readonly (StoredTensor | null)[];
}

const folder = new URL('../../fixtures/torch/', import.meta.url);

/** Names of the families that hold cases, sorted. */
export function torchFamilies(): string[] {
  const names = readdirSync(folder).map((file) => file.replace(/\.json$/, ''));
  return names.filter((name) => name !== 'promote').sort();
}

/** The cases of a family, or only those of one op. */
export function torchCases(family: string, op?: string): TorchCase[] {
  const stored = read(family) as readonly StoredCase[];
  const counts = new Map<string, number>();
  const cases = stored.map((one): TorchCase => {
    const count = (counts.get(one.op) ?? 0) + 1;
    counts.set(one.op, count);
    return {
      name: `${family}/${one.op}#${count}`,
      op: one.op,
      args: one.args,
      inputs: one.inputs.map(decode),
      outputs: one.outputs.map(decode),
      ...(one.upstream === undefined ? {} : { upstream: decode(one.upstream) }),
      ...(one.grads === undefined ? {} : { grads: one.grads.map((grad) => grad && decode(grad)) }),
    };
  });
  return op === undefined ? cases : cases.filter((one) => one.op === op);
}

/** PyTorch's promotion table. */
export function torchPromotions(): readonly TorchPromotion[] {
  return read('promote') as readonly TorchPromotion[];
}

function read(family: string): unknown {
  return JSON.parse(readFileSync(new URL(`${family}.json`, folder), 'utf8'));
}

function decode({ dtype, shape, data }: StoredTensor): TorchTensor {
  if (dtype === 'i64') return { dtype, shape, data: BigInt64Array.from(data, BigInt) };
  // An f32 is stored by its shortest decimal: the nearest f32 of it is the value, and holds any narrower float exactly.
  const exact = dtype === 'f64' ? asNumber : (value: number | string) => Math.fround(asNumber(value));
  return { dtype, shape, data: Float64Array.from(data, dtypeKind(dtype) === 'float' ? exact : asNumber) };
}

function asNumber(value: number | string): number {
  if (typeof value === 'number') return value;
  if (value === 'nan') return NaN;
  if (value === 'inf') return Infinity;
  if (value === '-inf') return -Infinity;
  throw new Error(`not a number: ${value}`);
}
