// Conversions between element types, and constants.

import { SinterError } from '../../errors.ts';
import { dtypeBytes, isFloat, type DType } from '../../ir/dtype.ts';
import { emptyData } from '../../ir/value.ts';
import * as sn from '../../tensor/ops/all.ts';
import type { Tensor } from '../../tensor/tensor.ts';
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
import { hosted, row } from './row.ts';

/**
 * The element type of a number in an attribute. Throws E_UNSUPPORTED at strings and other types
 * that are not carried.
 */
export function wantedType(code: number): ElementType {
  const type = elementType(code);
  if (type === undefined)
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

function castTo(call: Call): Value {
  // The first opsets name the type, as the format's enumeration does: FLOAT, INT64.
  const code = call.opset < 6 ? codeNamed(call.attributes.string('to', '')) : call.attributes.int('to', 0);
  return converted(call.tensor(0), wantedType(code), narrowingOf(call));
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
  if (stored !== undefined) return Value.known(stored.type, stored.array);
  const [f, fs] = [attributes.float('value_float'), attributes.floats('value_floats')];
  if (f !== undefined) return knownData('float', [], Float32Array.of(f));
  if (fs !== undefined) return knownData('float', [fs.length], Float32Array.from(fs));
  const [i, is] = [attributes.int('value_int'), attributes.ints('value_ints')];
  if (i !== undefined) return knownInts([i], []);
  if (is !== undefined) return knownInts(is);
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
  return knownData(type, [count], data);
}

export const convert: Rows = {
  BitCast: row([26], bitCast),
  Cast: row([1, 6, 9, 13, 19, 21, 23, 24, 25], castTo),
  CastLike: row([15, 19, 21, 23, 24, 25], (call) =>
    converted(call.tensor(0), call.type(1), narrowingOf(call)),
  ),
  Constant: row([1, 9, 11, 12, 13, 19, 21, 23, 24, 25], constant),
  ConstantOfShape: hosted([9, 20, 21, 23, 24, 25], [0], constantOfShape),
  EyeLike: row([9, 22], eyeLike),
  Identity: row([1, 13, 14, 16, 19, 21, 23, 24, 25], (call) => call.value(0)),
  Range: hosted([11, 27], [0, 1, 2], range),
};
