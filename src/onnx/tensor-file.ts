// Files of one tensor in the ONNX format: a TensorProto message by itself, as test data of models
// comes.

import { packBytes } from '../ir/value.ts';
import type { DType } from '../ir/dtype.ts';
import { tensorDraft, typeOf } from './element.ts';
import { readTensor } from './weights.ts';
import { decode, encode } from './wire.ts';

/** A tensor in a file: its name there, and its elements packed in C-order. */
export interface FileTensor {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** Reads a TensorProto. Throws ParseError E_FORMAT. */
export function readTensorProto(bytes: Uint8Array): FileTensor {
  const proto = decode('Tensor', bytes);
  const { array } = readTensor(proto);
  const { dtype, shape } = array;
  return { name: proto.name ?? '', dtype, shape, data: packBytes(array) };
}

/** The bytes of a TensorProto whose elements are raw data. */
export function writeTensorProto(tensor: FileTensor): Uint8Array {
  return encode('Tensor', tensorDraft(tensor.name, typeOf(tensor.dtype), tensor.shape, tensor.data));
}
