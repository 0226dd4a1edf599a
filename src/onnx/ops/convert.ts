// Conversions between element types, and constants.

import { SinterError } from '../../errors.ts';
import { dtypeBytes, isFloat, type DType } from '../../ir/dtype.ts';
import { emptyData, packBytes, unpackBytes } from '../../ir/value.ts';
import * as sn from '../../operations/index.ts';
import { fromHost } from '../../tensor/record.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Attributes } from '../attributes.ts';
import type { Call, Rows } from '../call.ts';
import {
  codeOf,
  elementType,
  elementTypeNamed,
  hostType,
  isNarrow,
  showCode,
  type ElementType,
} from '../element.ts';
import { narrowed, type Narrowing } from '../narrow.ts';
import { knownData, knownInts, Value } from '../value.ts';
import { knownStrings } from '../words.ts';
import { hosted, row } from './row.ts';

/**
 * The element type of a number in an attribute. Throws E_UNSUPPORTED at strings and other types
 * that are not carried.
 */
export function wantedType(code: number): ElementType {
  const type = elementType(code);
  if (type === undefined || type === 'string')
    throw new SinterError('E_UNSUPPORTED', `${showCode(code)} elements are not supported`);
  return type;
}

/** A value in another element type. */
export function converted(x: Tensor, type: ElementType, narrowing: Narrowing = { saturate: true }): Value {
  if (isNarrow(type)) return Value.of(narrowed(x, type, narrowing), type);
  return Value.of(toDType(x, hostType(type)), type);
}

/**
 * Floats that lie outside of a narrow integer's range wrap as through a wider one, as C compilers
 * do.
 */
function toDType(x: Tensor, dtype: DType): Tensor {
  const narrow = !isFloat(dtype) && dtype !== 'bool' && dtypeBytes(dtype) < 4;
  return narrow && isFloat(x.dtype) ? sn.cast(sn.cast(x, 'i32'), dtype) : sn.cast(x, dtype);
}

function narrowingOf(call: Call): Narrowing {
  return {
    saturate: call.attributes.int('saturate', 1) !== 0,
    roundMode: call.attributes.string('round_mode', 'up'),
  };
}

/** Whether a cast is to strings, whose code in the format is 8. */
function isToText(attributes: Attributes): boolean {
  return attributes.get('to')?.i === 8n || attributes.get('to')?.s !== undefined;
}

function castTo(call: Call): Value {
  // The first opsets name the type, as the format's enumeration does: FLOAT, INT64.
  const code = call.opset < 6 ? codeNamed(call.attributes.string('to', '')) : call.attributes.int('to', 0);
  if (code === codeOf('string')) return toText(call);
  return castOf(call, wantedType(code));
}

function castLike(call: Call): Value {
  const type = call.type(1);
  return type === 'string' ? toText(call) : castOf(call, type);
}

function castOf(call: Call, type: ElementType): Value {
  if (call.type(0) === 'string') return fromText(call, type);
  return converted(call.tensor(0), type, narrowingOf(call));
}

/** Numbers as text: whole ones without a point, others with as many digits as tell them apart. */
function toText(call: Call): Value {
  const value = call.value(0);
  if (value.type === 'string') return value;
  const { data, shape } = call.host(0)!;
  const show = (item: number | bigint): string => {
    if (typeof item === 'bigint') return String(item);
    if (value.type === 'bool') return item === 0 ? 'False' : 'True';
    if (!isFloat(hostType(value.type))) return String(item);
    if (Number.isNaN(item)) return 'NaN';
    if (!Number.isFinite(item)) return item > 0 ? 'INF' : '-INF';
    return shortest(item, hostType(value.type));
  };
  return knownStrings(Array.from(data as ArrayLike<number | bigint>, show), shape);
}

/** The shortest decimal that reads as the same number of the dtype. */
function shortest(item: number, dtype: DType): string {
  if (dtype === 'f64') return String(item);
  const round = (x: number): number => {
    const array = { dtype, shape: [1], data: Float32Array.of(x) } as const;
    return Number(unpackBytes(packBytes(array), dtype, [1]).data[0]);
  };
  for (let digits = 1; digits < 10; digits++) {
    const text = item.toPrecision(digits);
    if (round(Number(text)) === item) return String(Number(text));
  }
  return String(item);
}

/** Text as numbers. */
function fromText(call: Call, type: ElementType): Value {
  const strings = call.strings(0);
  const { shape } = call.value(0);
  const dtype = hostType(type);
  const isWhole = !isFloat(dtype);
  const data = emptyData(dtype, strings.length);
  strings.forEach((given, i) => {
    const text = given.trim();
    if (isWhole && /^[+-]?\d+$/.test(text)) {
      data[i] = data instanceof BigInt64Array || data instanceof BigUint64Array ? BigInt(text) : Number(text);
      return;
    }
    const number = floatOf(text);
    if (number === undefined) call.fail(`'${given}' is no number`);
    data[i] =
      data instanceof BigInt64Array || data instanceof BigUint64Array ? BigInt(Math.trunc(number)) : number;
  });
  if (isNarrow(type)) return converted(fromHost(data, shape, dtype), type, narrowingOf(call));
  return knownData(type, shape, data);
}

function floatOf(text: string): number | undefined {
  const infinite = /^([+-]?)inf(?:inity)?$/i.exec(text);
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity;
  if (/^[+-]?nan$/i.test(text)) return NaN;
  const number = Number(text);
  return text === '' || Number.isNaN(number) ? undefined : number;
}

function codeNamed(name: string): number {
  const type = elementTypeNamed(name.toLowerCase());
  if (type === undefined) throw new SinterError('E_UNSUPPORTED', `${name} elements are not supported`);
  return codeOf(type);
}

/** The same bits under another type of the same width. */
function bitCast(call: Call): Value {
  const type = wantedType(call.attributes.int('to', 0));
  const x = call.tensor(0);
  if (type === call.type(0)) return call.value(0);
  if (x.dtype === 'bool') return Value.of(sn.cast(sn.cast(x, 'u8'), hostType(type)), type);
  if (type === 'bool') return Value.of(sn.ne(x, 0), type);
  return Value.of(sn.bitcast(x, hostType(type)), type);
}

function constant(call: Call): Value {
  const { attributes } = call;
  const stored = attributes.tensor('value') ?? attributes.sparse('sparse_value');
  if (stored !== undefined) return Value.known(stored.type, stored.array, stored.words);
  const [f, fs] = [attributes.float('value_float'), attributes.floats('value_floats')];
  if (f !== undefined) return knownData('float', [], Float32Array.of(f));
  if (fs !== undefined) return knownData('float', [fs.length], Float32Array.from(fs));
  const [i, is] = [attributes.int('value_int'), attributes.ints('value_ints')];
  if (i !== undefined) return knownInts([i], []);
  if (is !== undefined) return knownInts(is);
  if (attributes.has('value_string')) return knownStrings([attributes.string('value_string', '')], []);
  const strings = attributes.strings('value_strings');
  if (strings !== undefined) return knownStrings(strings, [strings.length]);
  throw new SinterError('E_UNSUPPORTED', `constants of ${attributes.names().join(', ')} are not supported`);
}

function constantOfShape(call: Call): Value {
  const shape = call.numbers(0)!;
  const stored = call.attributes.tensor('value');
  const type = stored?.type ?? 'float';
  const value = stored?.array.data[0] ?? 0;
  const dtype = hostType(type);
  return Value.of(sn.full(shape, dtype === 'bool' ? value !== 0 : value, { dtype }), type);
}

function eyeLike(call: Call): Value {
  const [rows, columns] = call.value(0).shape;
  const code = call.attributes.int('dtype');
  const type = code === undefined ? call.type(0) : wantedType(code);
  const offset = call.attributes.int('k', 0);
  const diagonal = sn.eq(
    sn.unsqueeze(sn.add(sn.arange(rows!), offset), 1),
    sn.unsqueeze(sn.arange(columns!), 0),
  );
  return Value.of(sn.cast(diagonal, hostType(type)), type);
}

/** Start, end and step decide the size, so they are numbers. */
function range(call: Call): Value {
  const type = call.type(0);
  const [start, limit, step] = [0, 1, 2].map((place) => call.host(place)!.data[0]!);
  const steps = Math.ceil((Number(limit) - Number(start)) / Number(step));
  const count = call.count(steps < 0 ? 0 : steps);
  const data = emptyData(hostType(type), count);
  for (let i = 0; i < count; i++) {
    data[i] =
      typeof start === 'bigint' ? start + BigInt(i) * (step as bigint) : Number(start) + i * Number(step);
  }
  const dtype = hostType(type);
  const record = (): Tensor => {
    const wide = dtypeBytes(dtype) >= 4 ? dtype : isFloat(dtype) ? 'f32' : 'i32';
    const counted = sn.arange(0, count, 1, { dtype: wide });
    return sn.cast(sn.add(sn.mul(counted, Number(step)), Number(start)), dtype);
  };
  return Value.following(type, { dtype, shape: [count], data }, { of: [], record });
}

export const convert: Rows = {
  BitCast: row([26], bitCast),
  Cast: row([1, 6, 9, 13, 19, 21, 23, 24, 25], castTo, {
    text: true,
    host: (attributes, [x]) => (x?.type === 'string' || isToText(attributes) ? [0] : []),
  }),
  CastLike: row([15, 19, 21, 23, 24, 25], castLike, {
    text: true,
    host: (_, [x, like]) => (x?.type === 'string' || like?.type === 'string' ? [0] : []),
  }),
  Constant: row([1, 9, 11, 12, 13, 19, 21, 23, 24, 25], constant, { text: true }),
  ConstantOfShape: hosted([9, 20, 21, 23, 24, 25], [0], constantOfShape),
  EyeLike: row([9, 22], eyeLike),
  Identity: row([1, 13, 14, 16, 19, 21, 23, 24, 25], (call) => call.value(0), {
    text: true,
  }),
  Range: hosted([11, 27], [0, 1, 2], range),
};
