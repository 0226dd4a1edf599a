// Labels of classes and tables from one set of values to another: strings and numbers of the host, by
// places that devices compute.

import { SinterError } from '../../../errors.ts';
import { isFloat } from '../../../ir/dtype.ts';
import { emptyData } from '../../../ir/value.ts';
import { fromHost } from '../../../tensor/record.ts';
import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call } from '../../call.ts';
import { hostType, type ElementType } from '../../element.ts';
import { Value } from '../../value.ts';
import { carried } from '../../words.ts';

export type Label = string | number | bigint;

/** Values of one type in a list. */
export interface LabelList {
  readonly type: ElementType;
  readonly list: readonly Label[];
}

/** What a table of values has at places of i32, in their shape. */
export function labelled({ type, list }: LabelList, places: Tensor): Value {
  const flat = sn.reshape(places, [places.size]);
  const at = (table: Tensor): Tensor => sn.reshape(sn.indexSelect(table, 0, flat), places.shape);
  if (type === 'string') {
    const { places: own, words } = carried(list.map(String));
    return Value.of(at(fromHost(own, [own.length], 'i32')), type, undefined, words);
  }
  return Value.of(at(vector(type, list)), type);
}

/** A list as a tensor of its type. */
function vector(type: ElementType, list: readonly Label[]): Tensor {
  const dtype = hostType(type);
  const data = emptyData(dtype, list.length);
  const isBig = dtype === 'i64' || dtype === 'u64';
  list.forEach((item, i) => (data[i] = isBig ? BigInt(item) : Number(item)));
  return fromHost(data, [list.length], dtype);
}

/**
 * The place of each element of an input in a list of keys, the last of equal ones; as many as there
 * are keys where it is none.
 */
export function placesOf(call: Call, place: number, keys: LabelList): Tensor {
  const value = call.value(place);
  const missing = keys.list.length;
  if ((value.type === 'string') !== (keys.type === 'string'))
    throw new SinterError('E_DTYPE', `keys of ${keys.type} for elements of ${value.type}`);
  if (value.type === 'string') {
    const at = new Map(keys.list.map((key, i) => [String(key), i]));
    const table = Int32Array.from(value.words ?? [], (word) => at.get(word) ?? missing);
    if (table.length === 0) return value.tensor;
    const flat = sn.reshape(value.tensor, [value.size]);
    return sn.reshape(sn.indexSelect(fromHost(table, [table.length], 'i32'), 0, flat), value.shape);
  }
  const x = value.tensor;
  const numbers = new Map(keys.list.map((key, i) => [isFloat(x.dtype) ? Number(key) : BigInt(key), i]));
  const nan = numbers.get(NaN);
  numbers.delete(NaN);
  const sorted = [...numbers].sort(([a], [b]) => (a < b ? -1 : 1));
  const list = sorted.map(([key]) => key);
  let found: Tensor = sn.full(x.shape, missing, { dtype: 'i32' });
  if (list.length > 0) {
    const table = vector(value.type, list);
    const flat = sn.reshape(x, [x.size]);
    const near = sn.clamp(sn.cast(sn.searchsorted(table, flat), 'i32'), 0, list.length - 1);
    const order = fromHost(
      Int32Array.from(sorted, ([, i]) => i),
      [list.length],
      'i32',
    );
    const isHit = sn.eq(sn.indexSelect(table, 0, near), flat);
    found = sn.reshape(sn.where(isHit, sn.indexSelect(order, 0, near), missing), x.shape);
  }
  return nan === undefined || !isFloat(x.dtype) ? found : sn.where(sn.isNan(x), nan, found);
}

/** The labels of classes of a node, in the attributes of these names; undefined where it has none. */
export function classLabels(call: Call, strings: string, ints: string): LabelList | undefined {
  const words = call.attributes.strings(strings);
  if (words !== undefined && words.length > 0) return { type: 'string', list: words };
  const numbers = call.attributes.ints(ints);
  return numbers === undefined || numbers.length === 0 ? undefined : { type: 'int64', list: numbers };
}
