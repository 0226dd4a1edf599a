// Values of a model while it is imported. One is *known* when the host holds its elements and they
// can change in no later run: shapes, axes and what is computed of them. Everything else is a
// tensor, whose elements exist when a device has run.

import { SinterError } from '../errors.ts';
import { sizeOf } from '../ir/shape.ts';
import type { HostArray, HostData } from '../ir/value.ts';
import { full } from '../tensor/ops/creation/creation.ts';
import { fromHost } from '../tensor/recording/record.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { hostType, typeOf, type ElementType } from './element.ts';

/**
 * Elements that the host has at hand although they may differ in a later run; a read of them is
 * reported to the walk that supplied them.
 */
export type Peek = () => HostArray;

export class Value {
  readonly type: ElementType;
  readonly shape: readonly number[];
  /** The elements, when they are known. */
  readonly known: HostArray | undefined;
  readonly peek: Peek | undefined;
  /**
   * The tensors of a sequence, which exists only while a model is recorded; undefined for a tensor.
   */
  readonly items: readonly Value[] | undefined;
  #tensor: Tensor | undefined;

  private constructor(
    type: ElementType,
    shape: readonly number[],
    known: HostArray | undefined,
    tensor: Tensor | undefined,
    peek: Peek | undefined,
    items?: readonly Value[],
  ) {
    this.type = type;
    this.shape = shape;
    this.known = known;
    this.#tensor = tensor;
    this.peek = peek;
    this.items = items;
  }

  static known(type: ElementType, array: HostArray): Value {
    return new Value(type, array.shape, array, undefined, undefined);
  }

  /** Known, with a tensor that stands for it in the current recording. */
  static knownAs(type: ElementType, array: HostArray, tensor: Tensor): Value {
    return new Value(type, array.shape, array, tensor, undefined);
  }

  static of(tensor: Tensor, type: ElementType = typeOf(tensor.dtype), peek?: Peek): Value {
    return new Value(type, tensor.shape, undefined, tensor, peek);
  }

  /** A sequence of tensors of one element type. */
  static sequence(items: readonly Value[], type: ElementType): Value {
    return new Value(type, [], undefined, undefined, undefined, items);
  }

  get size(): number {
    return sizeOf(this.shape);
  }

  /** The elements where the host has them, known or not. */
  host(): HostArray | undefined {
    return this.known ?? this.peek?.();
  }

  /** As a tensor of the dtype that carries the type. */
  get tensor(): Tensor {
    if (this.items !== undefined) {
      throw new SinterError('E_UNSUPPORTED', 'onnx: a sequence stands where a tensor belongs');
    }
    return (this.#tensor ??= tensorOf(this.known!));
  }
}

/** One number everywhere is a constant that the compiler sees through; anything else is data. */
function tensorOf(array: HostArray): Tensor {
  const { dtype, shape, data } = array;
  const first = data[0];
  if (first !== undefined && data.every((value: number | bigint) => Object.is(value, first))) {
    return full(shape, dtype === 'bool' ? first !== 0 : first, { dtype });
  }
  return fromHost(data, shape, dtype);
}

/** A known int64 vector, as shapes are. */
export function knownInts(values: readonly number[], shape: readonly number[] = [values.length]): Value {
  const data = BigInt64Array.from(values, BigInt);
  return Value.known('int64', { dtype: 'i64', shape, data });
}

/** Known elements of a type. */
export function knownData(type: ElementType, shape: readonly number[], data: HostData): Value {
  return Value.known(type, { dtype: hostType(type), shape, data });
}
