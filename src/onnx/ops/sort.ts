// Order and choice. What has as many results as the data says is worked out on the host.

import { emptyData, type HostArray, type HostData } from '../../ir/value.ts';
import { sizeOf, stridesOf } from '../../ir/shape.ts';
import * as sn from '../../operations/index.ts';
import type { Call, Rows } from '../call.ts';
import { hostType } from '../element.ts';
import { knownData, Value } from '../value.ts';
import { hosted } from './row.ts';

function topK(call: Call): Value[] {
  const x = call.tensor(0);
  const count = call.attributes.int('k') ?? call.number(1)!;
  const axis = call.axis(call.attributes.int('axis', -1), x.rank);
  const largest = call.attributes.int('largest', 1) === 1;
  const [values, places] = sn.topk(x, count, axis, { largest });
  return [Value.of(values, call.type(0)), Value.of(sn.cast(places, hostType('int64')), 'int64')];
}

/** The places of what is not 0, a row per axis. */
function nonZero(call: Call): Value {
  const { shape, data } = call.host(0)!;
  const strides = stridesOf(shape);
  const found: number[] = [];
  data.forEach((value: number | bigint, i: number) => {
    if (Number(value) !== 0) found.push(i);
  });
  const out = new BigInt64Array(shape.length * found.length);
  shape.forEach((dim, axis) => {
    found.forEach((flat, i) => {
      out[axis * found.length + i] = BigInt(Math.floor(flat / strides[axis]!) % dim);
    });
  });
  return knownData('int64', [shape.length, found.length], out);
}

/** Elements by their places. */
function picked(data: HostData, places: readonly number[], { dtype }: HostArray): HostData {
  const out = emptyData(dtype, places.length);
  places.forEach((place, i) => (out[i] = data[place]!));
  return out;
}

function compress(call: Call): Value {
  const array = call.host(0)!;
  const condition = call.numbers(1)!;
  const given = call.attributes.int('axis');
  const length = given === undefined ? array.data.length : array.shape[call.axis(given, array.shape.length)]!;
  // A longer condition chooses nothing beyond the end, as in ONNX Runtime.
  const chosen = condition.flatMap((value, i) => (value === 0 || i >= length ? [] : [i]));
  if (given === undefined) {
    return knownData(call.type(0), [chosen.length], picked(array.data, chosen, array));
  }
  const axis = call.axis(given, array.shape.length);
  const inner = sizeOf(array.shape.slice(axis + 1));
  const size = array.shape[axis]!;
  const places: number[] = [];
  for (let outer = 0; outer < sizeOf(array.shape.slice(0, axis)); outer++) {
    for (const i of chosen) for (let k = 0; k < inner; k++) places.push((outer * size + i) * inner + k);
  }
  const shape = array.shape.map((dim, i) => (i === axis ? chosen.length : dim));
  return knownData(call.type(0), shape, picked(array.data, places, array));
}

/**
 * Distinct slices along an axis (or elements), where they first stood, which each one became, and
 * how many there are.
 */
function unique(call: Call): Value[] {
  const array = call.host(0)!;
  const given = call.attributes.int('axis');
  const axis = given === undefined ? 0 : call.axis(given, array.shape.length);
  const shape = given === undefined ? [array.data.length] : array.shape;
  const inner = sizeOf(shape.slice(axis + 1));
  const size = shape[axis]!;
  const outer = sizeOf(shape.slice(0, axis));
  const placesOf = (i: number): number[] => {
    const places: number[] = [];
    for (let o = 0; o < outer; o++) for (let k = 0; k < inner; k++) places.push((o * size + i) * inner + k);
    return places;
  };
  const first: number[] = [];
  const counts: number[] = [];
  const became: number[] = [];
  const seen = new Map<string, number>();
  for (let i = 0; i < size; i++) {
    const key = placesOf(i)
      .map((place) => String(array.data[place]))
      .join(',');
    const known = seen.get(key) ?? first.length;
    if (known === first.length) {
      seen.set(key, known);
      first.push(i);
      counts.push(0);
    }
    counts[known]! += 1;
    became.push(known);
  }
  const order = first.map((_, i) => i);
  if (call.attributes.int('sorted', 1) === 1) {
    order.sort((p, q) => {
      const [a, b] = [placesOf(first[p]!), placesOf(first[q]!)];
      const at = a.findIndex((place, k) => array.data[place] !== array.data[b[k]!]);
      return at < 0 ? 0 : array.data[a[at]!]! < array.data[b[at]!]! ? -1 : 1;
    });
  }
  const rank = new Array<number>(order.length);
  order.forEach((old, now) => (rank[old] = now));
  const places: number[] = [];
  for (let o = 0; o < outer; o++) {
    for (const old of order)
      for (let k = 0; k < inner; k++) places.push((o * size + first[old]!) * inner + k);
  }
  const resultShape = shape.map((dim, i) => (i === axis ? order.length : dim));
  const ints = (values: readonly number[]): Value =>
    knownData('int64', [values.length], BigInt64Array.from(values, BigInt));
  return [
    knownData(call.type(0), resultShape, picked(array.data, places, array)),
    ints(order.map((old) => first[old]!)),
    ints(became.map((old) => rank[old]!)),
    ints(order.map((old) => counts[old]!)),
  ];
}

export const sort: Rows = {
  Compress: { ...hosted([9, 11], [0, 1], compress), counts: true },
  NonZero: { ...hosted([9, 13], [0], nonZero), counts: true },
  TopK: hosted([1, 10, 11, 24], [1], topK),
  Unique: { ...hosted([11], [0], unique), counts: true },
};
