// What goes into models and comes out of them: inputs and outputs as files declare them, and the kinds
// of values that users give and get.

import type { DType } from '../../ir/dtype.ts';
import type { HostData } from '../../ir/value.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { elementType, hostType, type ElementType } from '../element.ts';
import type { Message } from '../schema.ts';

/** An input or output: symbolic sizes are names, sizes that the file does not tell are '?'. */
export interface Port {
  readonly name: string;
  /** What goes in or comes out: of a sequence or a map, `type` is that of its elements. */
  readonly kind: 'tensor' | 'sequence' | 'map';
  /** It may have no element: null. */
  readonly isOptional: boolean;
  /** The element type in the file, `float`, `int64`, …; undefined where the file does not tell. */
  readonly type: ElementType | undefined;
  /** The dtype of the tensor that goes in or comes out; undefined for text, sequences and maps. */
  readonly dtype: DType | undefined;
  /** Undefined where the file tells not even the rank. */
  readonly shape: readonly (number | string)[] | undefined;
}

/** A tensor of strings: they stand in the order of its elements, the last axis first. */
export interface Strings {
  readonly shape: readonly number[];
  readonly strings: readonly string[];
}

/** Keys and values of a map; objects are taken as well where the keys are strings. */
export type MapInput =
  | ReadonlyMap<string | bigint | number, number | bigint | string>
  | Readonly<Record<string, number | bigint | string>>;

/** What goes in for inputs that are no tensors of numbers; null is an optional value without an element. */
export type ForeignInput =
  | Strings
  | string
  | null
  | MapInput
  | readonly (Tensor | HostData | number | bigint | boolean | Strings | string)[];

/**
 * What an input may be given as: a tensor, or elements in the declared shape (of which one size may
 * be open). Text is given as strings, sequences as arrays, maps as maps, and null is an optional value
 * without an element.
 */
export type ModelInput = Tensor | HostData | number | bigint | boolean | ForeignInput;

/** What goes in, by name. */
export type ModelInputs = Readonly<Record<string, ModelInput>>;

/** What comes out, by name. */
export type ModelOutputs = Record<string, Tensor>;

/** What comes out: a tensor, text, a sequence of these, a map, or null for no element. */
export type ModelValue =
  | Tensor
  | Strings
  | null
  | ReadonlyMap<string | bigint, number | bigint | string>
  | readonly ModelValue[];

/** Whether a port takes or gives tensors of numbers. */
export function isPlain({ kind, type }: Port): boolean {
  return kind === 'tensor' && type !== 'string';
}

/** An input or output as the file declares it. */
export function portOf({ name = '', type }: Message<'ValueInfo'>): Port {
  const outer = type?.optional === undefined ? type : type.optional.elem;
  const inner = outer?.sequence === undefined ? outer : outer.sequence.elem;
  const map = inner?.map;
  const tensor = map === undefined ? inner?.tensor : map.value?.tensor;
  const element = elementType(tensor?.elemType ?? 0);
  const shape = tensor?.shape?.dim.map(({ value, param }) =>
    value !== undefined && value >= 0n ? Number(value) : (param ?? '?'),
  );
  const kind = outer?.sequence !== undefined ? 'sequence' : map === undefined ? 'tensor' : 'map';
  const isNumbers = kind === 'tensor' && element !== undefined && element !== 'string';
  return {
    name,
    kind,
    isOptional: type?.optional !== undefined,
    type: element,
    dtype: isNumbers ? hostType(element) : undefined,
    shape: kind === 'tensor' ? shape : undefined,
  };
}
