// The inputs of a run of a model: takes what the caller gives, checks it against the file's
// declarations, and makes tensors.

import { showValue, TensorError } from '../../errors.ts';
import { unpackBytes, type HostArray } from '../../ir/value.ts';
import { tensor as makeTensor } from '../../tensor/ops/creation/creation.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { hostBytesOf } from '../../tensor/values.ts';
import { hostType, type ElementType } from '../element.ts';
import type { ModelInput, Port } from './port.ts';
import { Value } from '../value.ts';

/** An input with its element type. */
export interface TypedInput {
  readonly type: ElementType;
  readonly tensor: Tensor;
}

/** Inputs by name, in the model's order. */
export type GivenInputs = ReadonlyMap<string, TypedInput>;

/** The tensors by name. */
export function tensorsOf(given: GivenInputs): Record<string, Tensor> {
  return Object.fromEntries([...given].map(([name, { tensor }]) => [name, tensor]));
}

/** An input as a value whose elements can be asked for when the host has them. */
export function inputValue(bound: TypedInput): Value {
  const { type, tensor } = bound;
  const array = hostOf(tensor);
  return Value.of(tensor, type, array === undefined ? undefined : () => array);
}

/** The elements of a tensor that lies on the host already. */
export function hostOf(tensor: Tensor): HostArray | undefined {
  const bytes = hostBytesOf(tensor);
  return bytes === undefined ? undefined : unpackBytes(bytes, tensor.dtype, tensor.shape);
}

/** Reads a value's elements from the device, in the type's own dtype. */
export async function read({ type, tensor }: Value): Promise<HostArray> {
  const { dtype, shape } = tensor;
  const data = await tensor.data();
  if (type !== 'int64' || dtype === 'i64') return { dtype, shape, data };
  return { dtype: 'i64', shape, data: BigInt64Array.from(data as Int32Array, BigInt) };
}

/** The shapes of inputs as text. */
export function shapesOf(given: GivenInputs): string {
  return [...given].map(([name, { type, tensor }]) => `${name}:${type}[${tensor.shape.join(',')}]`).join(' ');
}

/** Whether an input has these elements. */
export function holds({ tensor }: TypedInput, array: HostArray): boolean {
  const now = hostOf(tensor);
  return (
    now !== undefined && now.data.every((item: number | bigint, i: number) => Object.is(item, array.data[i]))
  );
}

/** Checks what was given for an input against what the file says, and makes a tensor of it. */
export function bind(port: Port, value: ModelInput): TypedInput {
  const { name, type, dtype, shape } = port;
  if (type === undefined || dtype === undefined) {
    throw new TensorError(
      'E_UNSUPPORTED',
      'onnx',
      `input '${name}' is no tensor of a type that is supported`,
    );
  }
  if (value instanceof Tensor) {
    const fits =
      shape === undefined ||
      (shape.length === value.rank &&
        shape.every((dim, i) => typeof dim === 'string' || dim === value.shape[i]));
    if (value.dtype !== hostType(type) || !fits) {
      const wanted = `${dtype}[${shape?.join(',') ?? '…'}]`;
      const problem = `input '${name}' is ${wanted}, got ${value.dtype}[${value.shape.join(',')}]`;
      throw new TensorError(fits ? 'E_DTYPE' : 'E_SHAPE', 'onnx', problem);
    }
    return { type, tensor: value };
  }
  if (typeof value !== 'object' && typeof value !== 'string') return bind(port, makeTensor(value, { dtype }));
  if (!ArrayBuffer.isView(value)) {
    throw new TensorError(
      'E_VALUE',
      'onnx',
      `input '${name}' is a tensor or a typed array, got ${showValue(value)}`,
    );
  }
  return bind(port, makeTensor(value, { dtype, shape: openShape(port, value.length) }));
}

/** The declared shape with its one open size computed from the number of elements. */
export function openShape({ name, shape }: Port, count: number): number[] {
  const open = shape?.filter((dim) => typeof dim === 'string').length ?? 2;
  const rest = shape?.reduce<number>((size, dim) => size * (typeof dim === 'string' ? 1 : dim), 1) ?? 0;
  if (open > 1 || rest === 0) {
    if (open === 0) return shape as number[];
    const problem = `the shape of input '${name}' is not told by ${count} elements`;
    throw new TensorError('E_SHAPE', 'onnx', problem, 'tensor(data, { shape: […] })');
  }
  return shape!.map((dim) => (typeof dim === 'string' ? count / rest : dim));
}
