// Values of a model while it is imported. One is *known* when the host holds its elements and they
// can change in no later run: shapes, axes and what is computed of them. Everything else is a
// tensor, whose elements exist when a device has run.

import { SinterError } from '../errors.ts';
import { sizeOf } from '../ir/shape.ts';
import type { HostArray, HostData } from '../ir/value.ts';
import { full } from '../tensor/ops/creation/creation.ts';
import { cat } from '../tensor/ops/shape/join.ts';
import { isTrial } from '../tensor/sizes/trial.ts';
import { fromHost } from '../tensor/record.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { hostType, typeOf, type ElementType } from './element.ts';

/**
 * Elements that the host has at hand although they may differ in a later run; a read of them is
 * reported to the walk that supplied them.
 */
export type Peek = () => HostArray;

/**
 * How operations give a known value that follows from sizes, where a recording has to hold at other sizes
 * as well: of other values, all known.
 */
export interface Recipe {
  readonly of: readonly (Value | undefined)[];
  readonly record: (of: readonly (Value | undefined)[]) => Tensor;
}

/** What a value is beyond a tensor of numbers. */
interface Beyond {
  /** Of a known value that follows from sizes. */
  readonly recipe?: Recipe;
  /** Of elements of text: what each place in the carrier stands for, distinct and in order. */
  readonly words?: readonly string[];
  /** The values of a sequence. */
  readonly items?: readonly Value[];
  /** The keys of maps, whose values are the columns of a table with a row a map. */
  readonly keys?: Keys;
  /** An optional value without an element. */
  readonly isAbsent?: true;
}

/** The keys of maps: of one, or of a sequence of them. */
export interface Keys {
  readonly names: readonly (string | bigint)[];
  readonly isOne: boolean;
}

export class Value {
  readonly type: ElementType;
  readonly shape: readonly number[];
  /** The elements, when they are known. */
  readonly known: HostArray | undefined;
  readonly peek: Peek | undefined;
  /** Of text: the strings, by the places that the elements hold. */
  readonly words: readonly string[] | undefined;
  /**
   * The values of a sequence, which exists only while a model is recorded; undefined for a tensor.
   */
  readonly items: readonly Value[] | undefined;
  /** Of maps: their keys; the elements are a table of their values. */
  readonly keys: Keys | undefined;
  readonly isAbsent: boolean;
  /** Of a known value that is another at other sizes: the operations that give it. */
  readonly recipe: Recipe | undefined;
  #tensor: Tensor | undefined;

  private constructor(
    type: ElementType,
    shape: readonly number[],
    known: HostArray | undefined,
    tensor: Tensor | undefined,
    peek: Peek | undefined,
    { words, items, keys, recipe, isAbsent = false }: Omit<Beyond, 'isAbsent'> & { isAbsent?: boolean } = {},
  ) {
    this.type = type;
    this.shape = shape;
    this.known = known;
    this.#tensor = tensor;
    this.peek = peek;
    this.words = words;
    this.items = items;
    this.keys = keys;
    this.isAbsent = isAbsent;
    this.recipe = recipe;
  }

  static known(type: ElementType, array: HostArray, words?: readonly string[]): Value {
    return new Value(type, array.shape, array, undefined, undefined, withWords(words));
  }

  /** Known at these sizes; where a recording has to hold at others, operations give its tensor. */
  static following(type: ElementType, array: HostArray, recipe: Recipe): Value {
    return new Value(type, array.shape, array, undefined, undefined, isTrial() ? { recipe } : {});
  }

  /** Known, with a tensor that stands for it in the current recording. */
  static knownAs(type: ElementType, array: HostArray, tensor: Tensor, words?: readonly string[]): Value {
    return new Value(type, array.shape, array, tensor, undefined, withWords(words));
  }

  static of(
    tensor: Tensor,
    type: ElementType = typeOf(tensor.dtype),
    peek?: Peek,
    words?: readonly string[],
  ): Value {
    return new Value(type, tensor.shape, undefined, tensor, peek, withWords(words));
  }

  /** A sequence of values of one element type. */
  static sequence(items: readonly Value[], type: ElementType): Value {
    return new Value(type, [], undefined, undefined, undefined, { items });
  }

  /** Maps with the columns of a table for their values; a vector for one map. */
  static maps(table: Value, names: Keys['names']): Value {
    const keys = { names, isOne: table.shape.length === 1 };
    return new Value(table.type, table.shape, table.known, table.#tensor, table.peek, { keys });
  }

  /** An optional value that has no element. */
  static absent(type: ElementType = 'float'): Value {
    return new Value(type, [], undefined, undefined, undefined, { isAbsent: true });
  }

  /** The same elements, which stand for these strings. */
  worded(words: readonly string[]): Value {
    return new Value(this.type, this.shape, this.known, this.#tensor, this.peek, { words });
  }

  get size(): number {
    return sizeOf(this.shape);
  }

  /** Whether it is one tensor, of whatever elements. */
  get isTensor(): boolean {
    return this.items === undefined && this.keys === undefined && !this.isAbsent;
  }

  /** What kind of value it is, for messages. */
  get kind(): string {
    if (this.isAbsent) return 'an optional value without an element';
    if (this.items !== undefined) return 'a sequence';
    return this.keys === undefined ? 'a tensor' : 'a map';
  }

  /** The elements where the host has them, known or not. */
  host(): HostArray | undefined {
    return this.known ?? this.peek?.();
  }

  /** As a tensor of the dtype that carries the type. */
  get tensor(): Tensor {
    if (!this.isTensor)
      throw new SinterError('E_UNSUPPORTED', `onnx: ${this.kind} stands where a tensor belongs`);
    return this.table;
  }

  /** The tensor of a value that has one: of maps the table of their values. */
  get table(): Tensor {
    return (this.#tensor ??= this.recipe?.record(this.recipe.of) ?? tensorOf(this.known!));
  }

  /** A known value without its tensor, for a recording of its own; `copies` has those made already. */
  apart(copies: Map<Value, Value>): Value {
    const made = copies.get(this);
    if (made !== undefined) return made;
    const { recipe } = this;
    const beyond = {
      ...withWords(this.words),
      ...(recipe && { recipe: { ...recipe, of: recipe.of.map((value) => value?.apart(copies)) } }),
    };
    const copy = new Value(this.type, this.shape, this.known, undefined, undefined, beyond);
    copies.set(this, copy);
    return copy;
  }

  /** The tensors that it is made of, in order. */
  get leaves(): readonly Tensor[] {
    if (this.isAbsent) return [];
    return this.items === undefined ? [this.table] : this.items.flatMap(({ leaves }) => leaves);
  }

  /** The same kind of value made of other tensors, which are taken from the front of the list. */
  withLeaves(tensors: Tensor[]): Value {
    const { type, items, words, keys } = this;
    if (this.isAbsent) return this;
    if (items !== undefined)
      return Value.sequence(
        items.map((item) => item.withLeaves(tensors)),
        type,
      );
    const tensor = tensors.shift();
    if (tensor === undefined)
      throw new SinterError('E_BUG', 'onnx: a value has more tensors than were given');
    return new Value(type, tensor.shape, undefined, tensor, undefined, {
      ...withWords(words),
      ...(keys === undefined ? {} : { keys }),
    });
  }
}

function withWords(words: readonly string[] | undefined): Beyond {
  return words === undefined ? {} : { words };
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

/** A known int64 vector of sizes, whose elements are numbers of a recording. */
export function knownSizes(sizes: readonly number[], shape: readonly number[] = [sizes.length]): Value {
  const value = knownInts(sizes, shape);
  const record = (): Tensor => numbersOf(value.known!);
  return sizes.length === 0 ? value : Value.following(value.type, value.known!, { of: [], record });
}

/** A number, or a list of them, each a constant of the recording. */
export function numbersOf({ dtype, shape, data }: HostArray): Tensor {
  const numbers = Array.from(data as ArrayLike<number | bigint>, (value) =>
    full(shape.length === 0 ? [] : [1], dtype === 'bool' ? Boolean(value) : value, { dtype }),
  );
  return numbers.length === 1 ? numbers[0]! : cat(numbers);
}
