// Datasets of arrays whose first axis is of items: on the host, where an item is a view and a batch
// one copy, and of tensors, where a batch is gathered on the device.

import { showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { dtypeBytes, type DType } from '../ir/dtype.ts';
import { sizeOf } from '../ir/shape.ts';
import type { HostTensor } from '../io/host.ts';
import { expectTensor } from '../tensor/expect.ts';
import { tensor } from '../tensor/ops/creation/creation.ts';
import { indexSelect } from '../tensor/ops/shape/gather.ts';
import { select } from '../tensor/ops/shape/indexing.ts';
import type { Known } from '../tensor/inferred.ts';
import { fromBytes } from '../tensor/record.ts';
import { Tensor } from '../tensor/tensor.ts';
import { flatten, unflatten, type Tree } from '../tensor/tree.ts';
import { checkIndex, datasetOf, type Dataset } from './dataset.ts';
import type { Collated, ElementArray, ElementTensor, LeafType } from './item.ts';
import { typedDType } from './stacking.ts';

/** Arrays on the host whose first axis is of items; vectors as typed arrays. */
export type HostArrays =
  | ElementArray
  | ElementTensor
  | readonly HostArrays[]
  | { readonly [key: string]: HostArrays };

/** An item of such arrays: a row of each, of an element for a vector. */
export type RowOf<S> = S extends ElementArray | ElementTensor
  ? HostTensor<Known<LeafType<S>>>
  : { readonly [K in keyof S]: RowOf<S[K]> };

/** Whether a value is a tensor on the host, whatever its elements are in. */
function isElementTensor(value: unknown): value is ElementTensor {
  if (typeof value !== 'object' || value === null || value instanceof Tensor) return false;
  const { dtype, shape, data } = value as Record<string, unknown>;
  return arg.dtype.accepts(dtype) && Array.isArray(shape) && typedDType(data) !== undefined;
}

/** A place in a tree of arrays: the tree again, with a row of each. */
type Form =
  | { readonly kind: 'array'; readonly rows: HostTensor; readonly rowBytes: number; readonly shape: number[] }
  | {
      readonly kind: 'tree';
      readonly keys: readonly string[];
      readonly forms: readonly Form[];
      readonly isList: boolean;
    };

const op = 'fromArrays';
const takesArrays = arg.takes<(arrays: unknown) => unknown>(['the arrays', arg.inside()]);

/**
 * A dataset of arrays on the host, or a tree of them: item `i` has row `i` of each, which shares
 * memory with it. They must not change afterwards.
 */
export function fromArrays<const S extends HostArrays>(arrays: S): Dataset<RowOf<S>> {
  takesArrays(op, arrays);
  const lengths = new Map<string, number>();
  const form = formOf(arrays, '', lengths);
  const [first] = lengths;
  if (first === undefined) throw new TensorError('E_VALUE', op, 'there are no arrays');
  const other = [...lengths].find(([, length]) => length !== first[1]);
  if (other !== undefined) {
    const problem = `the arrays have different numbers of items: ${told(first)} and ${told(other)}`;
    throw new TensorError('E_SHAPE', op, problem);
  }
  const made: unknown = datasetOf<unknown>(
    op,
    first[1],
    (index) => row(form, index),
    (indices) => rows(form, indices) as Collated<unknown>,
  );
  return made as Dataset<RowOf<S>>;
}

function told([path, length]: readonly [string, number]): string {
  return `${length}${path === '' ? '' : ` at ${path}`}`;
}

function formOf(value: unknown, path: string, lengths: Map<string, number>): Form {
  const host = hostOf(value, path);
  if (host !== undefined) {
    const [length, ...shape] = host.shape;
    if (length === undefined)
      throw new TensorError('E_SHAPE', op, `an array of rank 0 has no items${at(path)}`);
    const rowBytes = dtypeBytes(host.dtype) * sizeOf(shape);
    if (host.data.length !== rowBytes * length) {
      const problem = `${host.dtype}[${host.shape.join(',')}] takes ${rowBytes * length} bytes, got ${host.data.length}${at(path)}`;
      throw new TensorError('E_SHAPE', op, problem);
    }
    lengths.set(path, length);
    return { kind: 'array', rows: host, rowBytes, shape };
  }
  if (Array.isArray(value) || arg.isPlainObject(value)) {
    const isList = Array.isArray(value);
    const entries = Object.entries(value as object);
    if (
      isList &&
      (entries.length !== value.length || entries.some(([, inner]) => typeof inner === 'number'))
    ) {
      const problem = `expects typed arrays, got ${showValue(value)}${at(path)}`;
      throw new TensorError('E_VALUE', op, problem, 'Float32Array.from(list), or fromArray(list)');
    }
    const forms = entries.map(([key, inner]) =>
      formOf(inner, isList ? `${path}[${key}]` : `${path}.${key}`, lengths),
    );
    return { kind: 'tree', keys: entries.map(([key]) => key), forms, isList };
  }
  const hint = value instanceof Tensor ? 'new TensorDataset(…), or await toHostTensor(tensor)' : undefined;
  throw new TensorError('E_VALUE', op, `expects typed arrays, got ${showValue(value)}${at(path)}`, hint);
}

function at(path: string): string {
  return path === '' ? '' : ` at ${path}`;
}

function hostOf(value: unknown, path: string): HostTensor | undefined {
  if (isElementTensor(value)) {
    const { dtype, shape, data } = value;
    if (typedDType(data, dtype) === undefined) {
      const problem = `the elements of ${dtype} are in ${showValue(data)}${at(path)}`;
      throw new TensorError('E_DTYPE', op, problem, 'the typed array of the dtype, or its bytes');
    }
    return { dtype, shape, data: bytesIn(data) };
  }
  const dtype = typedDType(value) as DType | undefined;
  if (dtype === undefined) return undefined;
  return { dtype, shape: [(value as ElementArray).length], data: bytesIn(value as ElementArray) };
}

function bytesIn({ buffer, byteOffset, byteLength }: ElementArray): Uint8Array {
  return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
}

function row(form: Form, index: number): unknown {
  if (form.kind === 'array') {
    const { rows: all, rowBytes, shape } = form;
    const data = all.data.subarray(index * rowBytes, (index + 1) * rowBytes);
    return { dtype: all.dtype, shape, data } satisfies HostTensor;
  }
  return shaped(form, (inner) => row(inner, index));
}

function rows(form: Form, indices: readonly number[]): unknown {
  if (form.kind === 'array') {
    const { rows: all, rowBytes, shape } = form;
    const data = new Uint8Array(rowBytes * indices.length);
    indices.forEach((index, i) => {
      data.set(all.data.subarray(index * rowBytes, (index + 1) * rowBytes), i * rowBytes);
    });
    return fromBytes(data, [indices.length, ...shape], all.dtype);
  }
  return shaped(form, (inner) => rows(inner, indices));
}

function shaped(form: Form & { kind: 'tree' }, make: (form: Form) => unknown): unknown {
  const made = form.forms.map(make);
  return form.isList ? made : Object.fromEntries(form.keys.map((key, i) => [key, made[i]]));
}

const takesTensors = arg.takes<(tensors: unknown) => unknown>(['the tensors', arg.inside()]);

/**
 * Tensors, or a tree of them, whose first axis is of items. A batch is gathered on the device that
 * has them: nothing is copied from the host but indices.
 */
export class TensorDataset<S> implements Dataset<S> {
  readonly length: number;
  readonly #flat: ReturnType<typeof flatten>;

  constructor(tensors: S & Tree<Tensor>) {
    takesTensors('TensorDataset', tensors);
    this.#flat = flatten(tensors, 'TensorDataset');
    const { leaves, paths } = this.#flat;
    const wrong = leaves.findIndex((leaf) => !(leaf instanceof Tensor) || leaf.rank === 0);
    if (leaves.length === 0 || wrong >= 0) {
      const leaf = leaves[wrong];
      const got = leaf instanceof Tensor ? 'a tensor of rank 0' : showValue(leaf);
      const problem = `expects tensors with an axis of items, got ${leaves.length === 0 ? 'none' : got}${at(paths[wrong] ?? '')}`;
      throw new TensorError('E_VALUE', 'TensorDataset', problem);
    }
    for (const leaf of leaves) expectTensor('TensorDataset', 'what is given', leaf);
    const lengths = (leaves as readonly Tensor[]).map(({ shape }) => shape[0] as number);
    this.length = lengths[0] as number;
    const other = lengths.findIndex((length) => length !== this.length);
    if (other >= 0) {
      const problem = `the tensors have different numbers of items: ${told([paths[0] as string, this.length])} and ${told([paths[other] as string, lengths[other] as number])}`;
      throw new TensorError('E_SHAPE', 'TensorDataset', problem);
    }
  }

  /** The rows of an item. */
  get(index: number): S {
    checkIndex('TensorDataset', index, this.length);
    return this.#each((leaf) => select(leaf, 0, index)) as S;
  }

  /** The rows of several items. */
  batch(indices: readonly number[]): Collated<S> {
    for (const index of indices) checkIndex('TensorDataset', index, this.length);
    const at = tensor(Int32Array.from(indices));
    return this.#each((leaf) => indexSelect(leaf, 0, at)) as Collated<S>;
  }

  #each(make: (leaf: Tensor) => Tensor): unknown {
    return unflatten(
      this.#flat.structure,
      this.#flat.leaves.map((leaf) => make(leaf as Tensor)),
    );
  }
}
