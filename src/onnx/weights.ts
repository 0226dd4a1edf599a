// Tensors in a file: TensorProto messages, in raw bytes, in fields by type, or in another file
// beside the model. Sizes are checked before anything is allocated.

import { ParseError } from '../errors.ts';
import { dtypeBytes } from '../ir/dtype.ts';
import { sizeOf } from '../ir/shape.ts';
import {
  bf16FromBits,
  emptyData,
  f16FromBits,
  unpackBytes,
  type HostArray,
  type HostData,
} from '../ir/value.ts';
import { currentBudget } from './budget.ts';
import { hostType, elementType, isNarrow, showCode, type ElementType } from './element.ts';
import { codecs, unpack } from './narrow.ts';
import type { Message } from './schema.ts';
import { carried } from './words.ts';

/** Bytes of a file beside the model. */
export type ExternalData = (location: string, tensor: string) => Uint8Array;

export interface StoredInitializer {
  readonly type: ElementType;
  readonly array: HostArray;
  /** Of text: what the elements stand for (words.ts). */
  readonly words?: readonly string[];
}

const maxElements = 2 ** 31;
/** Axes of a tensor: more than any tool writes. */
const mostAxes = 64;

/** A shape out of a file. Throws E_FORMAT at sizes that no tensor has. */
export function shapeOf(what: string, dims: readonly bigint[]): number[] {
  let size = 1n;
  const shape = dims.map((dim) => {
    if (dim < 0n || dim > BigInt(maxElements))
      throw new ParseError('E_FORMAT', what, `no axis has ${dim} elements`);
    size *= dim === 0n ? 1n : dim;
    return Number(dim);
  });
  if (dims.length > mostAxes) throw new ParseError('E_FORMAT', what, `it has ${dims.length} axes`);
  if (size > BigInt(maxElements)) throw new ParseError('E_FORMAT', what, `[${shape.join(',')}] is too large`);
  return shape;
}

/** The elements of a tensor in a file. */
export function readTensor(proto: Message<'Tensor'>, external?: ExternalData): StoredInitializer {
  const name = proto.name ?? '';
  const what = `onnx: tensor '${name}'`;
  const type = elementType(proto.dataType ?? 0);
  if (type === undefined) {
    throw new ParseError('E_FORMAT', what, `${showCode(proto.dataType ?? 0)} elements are not supported`);
  }
  const shape = shapeOf(what, proto.dims);
  const count = shape.reduce((product, dim) => product * dim, 1);
  const dtype = hostType(type);
  if (type === 'string') return readStrings(what, proto, shape, count);
  const raw = proto.dataLocation === 1 ? externalBytes(what, proto, external) : proto.rawData;
  const data = raw !== undefined ? fromRaw(what, type, raw, count) : fromFields(what, type, proto, count);
  return { type, array: { dtype, shape, data } };
}

const utf8 = new TextDecoder();

function readStrings(
  what: string,
  { stringData }: Message<'Tensor'>,
  shape: number[],
  count: number,
): StoredInitializer {
  if (stringData.length !== count)
    throw new ParseError('E_FORMAT', what, `${count} strings, and the file has ${stringData.length}`);
  const { places, words } = carried(stringData.map((bytes) => utf8.decode(bytes)));
  return { type: 'string', array: { dtype: 'i32', shape, data: places }, words };
}

/**
 * A tensor of which a file has only some elements: the others are 0. Places are flat, or have a
 * number an axis.
 */
export function readSparse(
  proto: Message<'SparseTensor'>,
  external?: ExternalData,
): StoredInitializer & { name: string } {
  const name = proto.values?.name ?? '';
  const what = `onnx: sparse tensor '${name}'`;
  if (proto.values === undefined || proto.indices === undefined) {
    throw new ParseError('E_FORMAT', what, 'its values or their places are missing');
  }
  const { type, array } = readTensor(proto.values, external);
  if (type === 'string') throw new ParseError('E_FORMAT', what, 'strings are not sparse');
  const places = readTensor(proto.indices, external);
  const shape = shapeOf(what, proto.dims);
  currentBudget().room(shape, array.dtype, what);
  const count = array.data.length;
  const perValue = places.array.shape.length === 2 ? shape.length : 1;
  if (places.type !== 'int64' || places.array.data.length !== count * perValue) {
    throw new ParseError('E_FORMAT', what, `${count} values do not have ${places.array.data.length} places`);
  }
  const sizes = perValue === 1 ? [sizeOf(shape)] : shape;
  const data = emptyData(array.dtype, sizeOf(shape));
  for (let i = 0; i < count; i++) {
    let flat = 0;
    sizes.forEach((size, axis) => {
      const place = Number(places.array.data[i * perValue + axis]);
      if (place < 0 || place >= size)
        throw new ParseError('E_FORMAT', what, `place ${place} is outside of ${size}`);
      flat = flat * size + place;
    });
    data[flat] = array.data[i]!;
  }
  return { name, type, array: { dtype: array.dtype, shape, data } };
}

function externalBytes(
  what: string,
  { externalData, name }: Message<'Tensor'>,
  external: ExternalData | undefined,
): Uint8Array {
  const entry = (key: string): string | undefined => externalData.find((item) => item.key === key)?.value;
  const location = entry('location');
  if (location === undefined)
    throw new ParseError('E_FORMAT', what, 'its data lies elsewhere, and it does not say where');
  if (external === undefined) {
    const problem = `its data lies in '${location}': give the file as externalData`;
    throw new ParseError('E_FORMAT', what, problem);
  }
  const bytes = external(location, name ?? '');
  const number = (key: string, otherwise: number): number => {
    const text = entry(key);
    const value = text === undefined ? otherwise : Number(text);
    if (Number.isSafeInteger(value) && value >= 0) return value;
    throw new ParseError('E_FORMAT', what, `${key} '${text}' is no number of bytes`);
  };
  const offset = number('offset', 0);
  const length = number('length', Math.max(0, bytes.length - offset));
  if (offset + length > bytes.length) {
    const problem = `'${location}' has ${bytes.length} bytes, not ${offset} + ${length}`;
    throw new ParseError('E_FORMAT', what, problem);
  }
  return bytes.subarray(offset, offset + length);
}

function fromRaw(what: string, type: ElementType, raw: Uint8Array, count: number): HostData {
  const dtype = hostType(type);
  const bytes = isNarrow(type) ? Math.ceil(count / codecs[type].perByte) : count * dtypeBytes(dtype);
  if (raw.length !== bytes) {
    throw new ParseError(
      'E_FORMAT',
      what,
      `${count} elements of ${type} take ${bytes} bytes, not ${raw.length}`,
    );
  }
  return isNarrow(type) ? unpack(type, raw, count) : unpackBytes(raw, dtype, [count]).data;
}

/** Which field holds the elements of a type. */
function fieldOf(type: ElementType, proto: Message<'Tensor'>): readonly (number | bigint)[] {
  switch (type) {
    case 'float':
      return proto.floatData;
    case 'double':
      return proto.doubleData;
    case 'int64':
      return proto.int64Data;
    case 'uint32':
    case 'uint64':
      return proto.uint64Data;
    default:
      return proto.int32Data;
  }
}

function fromFields(what: string, type: ElementType, proto: Message<'Tensor'>, count: number): HostData {
  const field = fieldOf(type, proto);
  const packed = isNarrow(type) ? codecs[type].perByte : 1;
  const expected = Math.ceil(count / packed);
  if (field.length !== expected) {
    throw new ParseError(
      'E_FORMAT',
      what,
      `${count} elements of ${type} take ${expected} entries, not ${field.length}`,
    );
  }
  if (isNarrow(type)) return unpack(type, Uint8Array.from(field as readonly number[]), count);
  const data = emptyData(hostType(type), count);
  const read =
    type === 'float16' ? f16FromBits : type === 'bfloat16' ? bf16FromBits : (bits: number): number => bits;
  const integer64 = type === 'int64' || type === 'uint64';
  for (let i = 0; i < count; i++) {
    const item = field[i]!;
    data[i] = integer64 ? item : read(Number(item));
  }
  return data;
}
