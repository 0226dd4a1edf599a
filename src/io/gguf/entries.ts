// Metadata as it is written: plain values find their types, and every value is checked against the
// type that it is to have, since readers such as llama.cpp take no other.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { GgufMetadata } from './metadata.ts';
import {
  numberTypes,
  valueTypes,
  type GgufEntry,
  type GgufList,
  type GgufNumberType,
  type GgufValue,
  type GgufValueType,
} from './types.ts';

/** A value to write: plain, or with its type where that matters. */
export type GgufGiven = GgufValue | readonly number[] | GgufEntry;

/** Metadata to write: values by key, or the metadata of a file that was read. */
export type GgufMetadataGiven =
  | Readonly<Record<string, GgufGiven>>
  | ReadonlyMap<string, GgufGiven>
  | GgufMetadata;

/** Keys that readers take as f32 alone, by their ends: a whole number there is no integer. */
const floatKeys =
  /\.(?:rope\.freq_base(?:_swa)?|rope\.scaling\.(?:factor|attn_factor|yarn_\w+)|attention\.layer_norm(?:_rms)?_epsilon|attention\.scale|(?:attn|final)_logit_softcapping|expert_weights_scale|logit_scale|residual_scale|embedding_scale)$/;

const integerRanges: Readonly<Partial<Record<GgufValueType, readonly [low: bigint, high: bigint]>>> = {
  u8: [0n, 2n ** 8n - 1n],
  i8: [-(2n ** 7n), 2n ** 7n - 1n],
  u16: [0n, 2n ** 16n - 1n],
  i16: [-(2n ** 15n), 2n ** 15n - 1n],
  u32: [0n, 2n ** 32n - 1n],
  i32: [-(2n ** 31n), 2n ** 31n - 1n],
  u64: [0n, 2n ** 64n - 1n],
  i64: [-(2n ** 63n), 2n ** 63n - 1n],
};

/** The entries of metadata. Throws E_VALUE where a value does not fit its type. */
export function entriesOf(op: string, given: GgufMetadataGiven): Map<string, GgufEntry> {
  const pairs =
    given instanceof GgufMetadata || given instanceof Map ? [...given.entries()] : Object.entries(given);
  return new Map(pairs.map(([key, value]) => [key, entryOf(op, key, value as GgufGiven)]));
}

function entryOf(op: string, key: string, given: GgufGiven): GgufEntry {
  if (isEntry(given)) {
    check(op, key, given.type, given.items, given.value);
    return given;
  }
  if (typeof given === 'number' && floatKeys.test(key)) return { type: 'f32', value: given };
  const entry = inferred(op, key, given);
  check(op, key, entry.type, entry.items, entry.value);
  return entry;
}

function isEntry(given: GgufGiven): given is GgufEntry {
  return arg.isPlainObject(given) && 'type' in given && 'value' in given;
}

function inferred(op: string, key: string, given: unknown): GgufEntry {
  switch (typeof given) {
    case 'string':
      return { type: 'string', value: given };
    case 'boolean':
      return { type: 'bool', value: given };
    case 'number':
    case 'bigint':
      return { type: numberType([given]), value: given };
    default: {
      if (Array.isArray(given) || ArrayBuffer.isView(given)) {
        const list = given as unknown as GgufList;
        return { type: 'array', items: itemType(op, key, list), value: list };
      }
      throw wrong(op, key, 'a number, a string, true or false, or a list of one of these', given);
    }
  }
}

/** The narrowest of the usual types that holds all numbers. */
function numberType(values: readonly (number | bigint)[]): GgufNumberType {
  if (values.some((value) => typeof value === 'number' && !Number.isSafeInteger(value))) return 'f32';
  const fits = (['u32', 'i32', 'u64', 'i64'] as const).find((type) =>
    values.every((value) => holds(type, value)),
  );
  return fits ?? 'f64';
}

function holds(type: GgufValueType, value: number | bigint): boolean {
  const range = integerRanges[type];
  if (range === undefined) return typeof value === 'number';
  if (typeof value === 'number' && !Number.isSafeInteger(value)) return false;
  return BigInt(value) >= range[0] && BigInt(value) <= range[1];
}

function itemType(op: string, key: string, list: GgufList): GgufValueType {
  const kind = valueTypes.find((type) => ArrayBuffer.isView(list) && isListOf(type, list));
  if (kind !== undefined) return kind;
  const [first] = list as readonly unknown[];
  if (first === undefined) throw wrong(op, key, 'a list whose type is told: { type, items, value }', list);
  if (typeof first === 'string') return 'string';
  if (typeof first === 'boolean') return 'bool';
  if (typeof first === 'object') return 'array';
  return numberType(list as unknown as readonly number[]);
}

function isListOf(type: GgufValueType, list: ArrayBufferView): boolean {
  return type !== 'bool' && type !== 'string' && type !== 'array' && list instanceof numberTypes[type].list;
}

/** Throws E_VALUE unless the value is one of its type. */
function check(
  op: string,
  key: string,
  type: GgufValueType,
  items: GgufValueType | undefined,
  value: unknown,
): void {
  if (!valueTypes.includes(type)) throw wrong(op, key, `of a type among ${valueTypes.join(', ')}`, type);
  if (type === 'array') {
    const list =
      Array.isArray(value) || ArrayBuffer.isView(value)
        ? (value as unknown as ArrayLike<unknown>)
        : undefined;
    if (list === undefined || items === undefined)
      throw wrong(op, key, 'a list with the type of its items', value);
    if (items === 'array') {
      for (let i = 0; i < list.length; i++)
        check(op, key, 'array', itemType(op, key, list[i] as GgufList), list[i]);
      return;
    }
    for (let i = 0; i < list.length; i++) check(op, key, items, undefined, list[i]);
    return;
  }
  const fits =
    type === 'string'
      ? typeof value === 'string'
      : type === 'bool'
        ? typeof value === 'boolean'
        : (typeof value === 'number' || typeof value === 'bigint') && holds(type, value);
  if (!fits) throw wrong(op, key, `a value of ${type}`, value);
}

function wrong(op: string, key: string, expected: string, value: unknown): TensorError {
  return new TensorError('E_VALUE', op, `the metadata ${key} must be ${expected}, got ${showValue(value)}`);
}

/** Bytes of a file's head, gathered. */
export class HeadWriter {
  readonly #parts: Uint8Array[] = [];
  size = 0;

  #push(bytes: Uint8Array): void {
    this.#parts.push(bytes);
    this.size += bytes.length;
  }

  number(type: GgufNumberType, value: number | bigint): void {
    const { bytes, write } = numberTypes[type];
    const out = new Uint8Array(bytes);
    write(new DataView(out.buffer), 0, value);
    this.#push(out);
  }

  string(text: string): void {
    const bytes = new TextEncoder().encode(text);
    this.number('u64', bytes.length);
    this.#push(bytes);
  }

  entry({ type, items, value }: GgufEntry): void {
    this.number('u32', valueTypes.indexOf(type));
    this.#value(type, items, value);
  }

  #value(type: GgufValueType, items: GgufValueType | undefined, value: unknown): void {
    if (type === 'string') this.string(value as string);
    else if (type === 'bool') this.#push(Uint8Array.of(value === true ? 1 : 0));
    else if (type === 'array') this.#list(items ?? 'u8', value as GgufList);
    else this.number(type, value as number);
  }

  #list(items: GgufValueType, list: GgufList): void {
    this.number('u32', valueTypes.indexOf(items));
    this.number('u64', list.length);
    if (ArrayBuffer.isView(list) && isListOf(items, list)) {
      this.#push(new Uint8Array(list.buffer, list.byteOffset, list.byteLength));
      return;
    }
    for (let i = 0; i < list.length; i++) {
      const item = list[i];
      this.#value(
        items,
        items === 'array' ? itemType('writeGguf', 'a list', item as unknown as GgufList) : undefined,
        item,
      );
    }
  }

  /** Zeros up to a multiple of `alignment`. */
  pad(alignment: number): void {
    this.#push(new Uint8Array((alignment - (this.size % alignment)) % alignment));
  }

  done(): Uint8Array {
    const out = new Uint8Array(this.size);
    let at = 0;
    for (const part of this.#parts) {
      out.set(part, at);
      at += part.length;
    }
    return out;
  }
}
