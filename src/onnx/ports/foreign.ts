// What users give and get that is no tensor of numbers: text, sequences, maps, optional values.

import { showValue, TensorError } from '../../errors.ts';
import { isPlainObject } from '../../ir/arguments.ts';
import { emptyData } from '../../ir/value.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { hostType, type ElementType } from '../element.ts';
import { bind, openShape, read } from './inputs.ts';
import type { ModelOutputs, ModelValue, Port } from './port.ts';
import { knownData, Value } from '../value.ts';
import { knownStrings, stringsOf } from '../words.ts';

function refuse(port: Port, expected: string, value: unknown): never {
  throw new TensorError('E_VALUE', 'onnx', `input '${port.name}' is ${expected}, got ${showValue(value)}`);
}

/** What was given for an input that may be no tensor, as a value of a walk. */
export function foreignValue(port: Port, given: unknown): Value {
  const { name, kind, isOptional, type } = port;
  if (given === null) {
    if (isOptional) return Value.absent(type);
    refuse(port, `${kind === 'tensor' ? 'a tensor' : `a ${kind}`}, not an optional value`, given);
  }
  if (type === undefined)
    throw new TensorError('E_UNSUPPORTED', 'onnx', `input '${name}' is of no type that is supported`);
  if (kind === 'map') return mapValue(port, type, given);
  if (kind === 'sequence') {
    if (!Array.isArray(given)) refuse(port, 'a sequence: an array of its values', given);
    const item: Port = { ...port, kind: 'tensor', isOptional: false, dtype: hostType(type) };
    return Value.sequence(
      given.map((one) => foreignValue(item, one)),
      type,
    );
  }
  if (type === 'string') return textValue(port, given);
  const bound = bind({ ...port, dtype: hostType(type) }, given as Tensor);
  return Value.of(bound.tensor, bound.type);
}

const isStrings = (given: unknown): given is readonly string[] =>
  Array.isArray(given) && given.every((item) => typeof item === 'string');

function textValue(port: Port, given: unknown): Value {
  if (typeof given === 'string') return knownStrings([given], fitting(port, openShape(port, 1), 1));
  if (isStrings(given))
    return knownStrings(given, fitting(port, openShape(port, given.length), given.length));
  if (isPlainObject(given) && isStrings(given['strings']) && Array.isArray(given['shape'])) {
    const { strings } = given as { strings: readonly string[] };
    return knownStrings(strings, fitting(port, given['shape'] as number[], strings.length));
  }
  return refuse(port, 'text: strings, or { shape, strings }', given);
}

/** A shape, when it has so many elements and is that of the port. Throws E_SHAPE else. */
function fitting(
  { name, shape: declared }: Port,
  shape: readonly number[],
  count: number,
): readonly number[] {
  const size = shape.reduce((product, dim) => product * dim, 1);
  const isDeclared =
    declared === undefined ||
    (declared.length === shape.length &&
      declared.every((dim, i) => typeof dim === 'string' || dim === shape[i]));
  if (size === count && isDeclared) return shape;
  const wanted = `[${declared?.join(',') ?? '…'}]`;
  throw new TensorError(
    'E_SHAPE',
    'onnx',
    `input '${name}' is string${wanted}, got ${count} strings of shape [${shape.join(',')}]`,
  );
}

function mapValue(port: Port, type: ElementType, given: unknown): Value {
  const entries =
    given instanceof Map
      ? [...(given as Map<unknown, unknown>)]
      : isPlainObject(given)
        ? Object.entries(given)
        : refuse(port, 'a map: a Map, or an object', given);
  const names = entries.map(([key]) => {
    if (typeof key === 'string' || typeof key === 'bigint') return key;
    if (Number.isSafeInteger(key)) return BigInt(key as number);
    return refuse(port, 'a map with strings or whole numbers for keys', key);
  });
  const values = entries.map(([, value]) => value);
  if (type === 'string') {
    if (!isStrings(values)) refuse(port, 'a map to strings', given);
    return Value.maps(knownStrings(values, [values.length]), names);
  }
  const data = emptyData(hostType(type), values.length);
  values.forEach((value, i) => {
    if (typeof value !== 'number' && typeof value !== 'bigint') refuse(port, 'a map to numbers', value);
    data[i] = typeof data[0] === 'bigint' ? BigInt(value) : Number(value);
  });
  return Value.maps(knownData(type, [values.length], data), names);
}

/** What a run computed, as users get it. */
export async function plainOf(value: Value): Promise<ModelValue> {
  const { items, keys, words } = value;
  if (value.isAbsent) return null;
  if (items !== undefined) return Promise.all(items.map(plainOf));
  if (keys === undefined && value.type !== 'string') return value.tensor;
  const array = value.known ?? (await read(Value.of(value.table, value.type)));
  if (keys === undefined) return { shape: array.shape, strings: stringsOf(words, array) };
  const elements =
    value.type === 'string'
      ? stringsOf(words, array)
      : (Array.from(array.data as ArrayLike<number>) as (number | bigint)[]);
  const { names, isOne } = keys;
  const width = names.length;
  const rows = isOne ? 1 : (array.shape[0] ?? 0);
  const maps = Array.from(
    { length: rows },
    (_, row) => new Map(names.map((name, i) => [name, elements[row * width + i]!])),
  );
  return isOne ? maps[0]! : maps;
}

/** Values by the names of their outputs. Throws E_UNSUPPORTED where one is no tensor of numbers. */
export function tensorsNamed(ports: readonly Port[], values: readonly Value[], hint: string): ModelOutputs {
  return Object.fromEntries(
    ports.map(({ name }, i) => {
      const value = values[i]!;
      if (value.isTensor && value.type !== 'string') return [name, value.tensor];
      const kind = value.isTensor ? 'text' : value.kind;
      throw new TensorError('E_UNSUPPORTED', 'onnx', `output '${name}' is ${kind}`, hint);
    }),
  );
}

/** The names of the outputs that are asked for. Throws E_VALUE at one that there is not. */
export function outputsNamed(
  ports: readonly Port[],
  asked: readonly string[] | undefined,
): ReadonlySet<string> {
  const names = new Set(ports.map(({ name }) => name));
  const unknown = asked?.find((name) => !names.has(name));
  if (unknown !== undefined)
    throw new TensorError('E_VALUE', 'onnx', `there is no output '${unknown}'`, [...names].join(', '));
  return asked === undefined ? names : new Set(asked);
}
