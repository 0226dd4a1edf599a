// Files of one tensor in the ONNX format: a TensorProto message by itself, as test data of models comes.

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { packBytes } from '../ir/value.ts';
import type { DType } from '../ir/dtype.ts';
import { codeOf, typeOf } from './element.ts';
import { messages } from './schema.ts';
import { readTensor } from './weights.ts';
import { decode } from './wire.ts';

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
export function writeTensorProto({ name, dtype, shape, data }: FileTensor): Uint8Array {
  const { dims, dataType, name: label, rawData } = messages.Tensor;
  const writer = new BinaryWriter();
  for (const dim of shape) writer.tag(dims[0], WireType.Varint).int64(dim);
  writer.tag(dataType[0], WireType.Varint).int32(codeOf(typeOf(dtype)));
  writer.tag(label[0], WireType.LengthDelimited).string(name);
  writer.tag(rawData[0], WireType.LengthDelimited).bytes(data);
  return writer.finish();
}
