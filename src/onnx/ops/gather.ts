// Reads and writes at indices that are data. Negative indices count from the end, and known ones become
// views.

import type { ScatterReduce } from '../../tensor/ops/shape/scatter.ts';
import * as sn from '../../operations/index.ts';
import { sameShape, showShape, sizeOf } from '../../ir/shape.ts';
import { unchecked, watchRange } from '../../tensor/debug.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Rows } from '../call.ts';
import { Value } from '../value.ts';
import { hosted, row } from './row.ts';

/**
 * Places in i32: those beyond are brought to its ends, which lie outside every axis, instead of
 * coming round to other places.
 */
function narrowed(index: Tensor): Tensor {
  return sn.cast(index.dtype === 'i64' ? sn.clamp(index, -(2 ** 31), 2 ** 31 - 1) : index, 'i32');
}

/**
 * Places along an axis of x in i32, counted from the front. Indices are checked as they were given, and errors
 * name these: what reads or writes at the places checks nothing.
 */
function fromFront(call: Call, index: Tensor, x: Tensor, axis: number): Tensor {
  const size = x.shape[axis]!;
  watchRange(call.op, 'index', index, 0 - size, size, `axis ${axis} of ${showShape(x.shape, x.dtype)}`);
  const narrow = narrowed(index);
  return sn.where(sn.lt(narrow, 0), sn.add(narrow, size), narrow);
}

function gather(call: Call): Tensor {
  const x = call.tensor(0);
  const axis = call.axis(call.attributes.int('axis', 0), x.rank);
  const places = call.value(1);
  const shape = [...x.shape.slice(0, axis), ...places.shape, ...x.shape.slice(axis + 1)];
  const view = viewAt(x, axis, places);
  if (view !== undefined) return sn.reshape(view, shape);
  const flat = sn.reshape(fromFront(call, places.tensor, x, axis), [places.size]);
  return sn.reshape(
    unchecked(() => sn.indexSelect(x, axis, flat)),
    shape,
  );
}

/** Known places at one distance are a slice. */
function viewAt(x: Tensor, axis: number, { known, recipe, shape }: Value): Tensor | undefined {
  // How many there are follows from sizes: more of them would be no view.
  if (recipe !== undefined && shape.length > 0) return undefined;
  if (known === undefined || known.data.length === 0 || known.data.length > 64) return undefined;
  const size = x.shape[axis]!;
  const places = Array.from(known.data as ArrayLike<number | bigint>, (place) => {
    const number = Number(place);
    return number < 0 ? number + size : number;
  });
  const step = places.length > 1 ? places[1]! - places[0]! : 1;
  const isEven = step > 0 && places.every((place, i) => place === places[0]! + i * step);
  if (!isEven || places[0]! < 0 || places.at(-1)! >= size) return undefined;
  return sn.slice(x, axis, places[0]!, places.at(-1)! + 1, step);
}

function gatherElements(call: Call): Tensor {
  const x = call.tensor(0);
  const axis = call.axis(call.attributes.int('axis', 0), x.rank);
  const place = fromFront(call, call.tensor(1), x, axis);
  return unchecked(() => sn.gather(x, axis, place));
}

/**
 * Tuples of places as one place in the axes of x that they point into, flattened, in a copy of these axes for
 * each of `lead`, which stand before them. A tuple of which one place lies outside its axis becomes a place
 * outside all: flattened as it is, it could be another tuple's.
 */
function flatPlaces(call: Call, index: Tensor, x: Tensor, first: number, lead?: Tensor): Tensor {
  const sizes = x.shape.slice(first, first + index.shape.at(-1)!);
  const places = sizes.map((_, i) => fromFront(call, sn.select(index, -1, i), x, first + i));
  const start = lead ?? sn.zeros(index.shape.slice(0, -1), { dtype: 'i32' });
  const flat = places.reduce((place, own, i) => sn.add(sn.mul(place, sizes[i]!), own), start);
  if (lead === undefined && sizes.length < 2) return flat;
  const valid = places.map((place, i) => sn.logicalAnd(sn.ge(place, 0), sn.lt(place, sizes[i]!)));
  return valid.reduce((found, own) => sn.where(own, found, -1), flat);
}

function gatherNd(call: Call): Tensor {
  const [x, index] = [call.tensor(0), call.tensor(1)];
  const batch = call.attributes.int('batch_dims', 0);
  const depth = index.shape.at(-1)!;
  const lead = x.shape.slice(0, batch);
  const [pointed, rest] = [x.shape.slice(batch, batch + depth), x.shape.slice(batch + depth)];
  if (batch + depth > x.rank || lead.some((size, axis) => index.shape[axis] !== size))
    call.fail(`indices [${index.shape.join()}] do not fit data [${x.shape.join()}], batch_dims ${batch}`);
  const [batches, points, size] = [sizeOf(lead), sizeOf(index.shape.slice(batch, -1)), sizeOf(pointed)];
  const table = sn.reshape(x, [batches * size, sizeOf(rest)]);
  const tuples = sn.reshape(index, [batches, points, depth]);
  const copies = batch === 0 ? undefined : sn.expand(sn.unsqueeze(sn.arange(batches), 1), [batches, points]);
  const place = sn.reshape(flatPlaces(call, tuples, x, batch, copies), [batches * points]);
  return sn.reshape(
    unchecked(() => sn.indexSelect(table, 0, place)),
    [...index.shape.slice(0, -1), ...rest],
  );
}

const reductions: Readonly<Record<string, ScatterReduce>> = {
  add: 'sum',
  mul: 'prod',
  max: 'amax',
  min: 'amin',
};

function write(call: Call, x: Tensor, axis: number, index: Tensor, updates: Tensor): Tensor {
  const name = call.attributes.string('reduction', 'none');
  if (name !== 'none' && call.type(0) === 'string') call.fail(`no reduction ${name} of strings`);
  if (name === 'none') return sn.scatter(x, axis, index, updates);
  const reduction = reductions[name];
  if (reduction === undefined) call.fail(`no reduction ${name}`);
  return sn.scatterReduce(x, axis, index, updates, reduction);
}

function scatterElements(call: Call): Tensor {
  const x = call.tensor(0);
  const axis = call.axis(call.attributes.int('axis', 0), x.rank);
  const place = fromFront(call, call.tensor(1), x, axis);
  return unchecked(() => write(call, x, axis, place, call.tensor(2)));
}

function scatterNd(call: Call): Tensor {
  const [x, index, updates] = [call.tensor(0), call.tensor(1), call.tensor(2)];
  const depth = index.shape.at(-1)!;
  const [pointed, rest] = [x.shape.slice(0, depth), x.shape.slice(depth)];
  const expected = [...index.shape.slice(0, -1), ...rest];
  if (depth > x.rank || !sameShape(updates.shape, expected))
    call.fail(
      `updates of indices [${index.shape.join()}] into data [${x.shape.join()}] have the shape ` +
        `[${expected.join()}], not [${updates.shape.join()}]`,
    );
  const [rows, width] = [sizeOf(index.shape.slice(0, -1)), sizeOf(rest)];
  const place = sn.expand(sn.reshape(flatPlaces(call, index, x, 0), [rows, 1]), [rows, width]);
  const table = sn.reshape(x, [sizeOf(pointed), width]);
  const news = sn.reshape(updates, [rows, width]);
  return sn.reshape(
    unchecked(() => write(call, table, 0, place, news)),
    x.shape,
  );
}

/** A cache of past elements with new ones written at each sequence's own place. */
function tensorScatter(call: Call): Tensor {
  const [past, update] = [call.tensor(0), call.tensor(1)];
  const axis = call.axis(call.attributes.int('axis', -2), past.rank);
  const size = past.shape[axis]!;
  const batch = past.shape[0]!;
  const along = (values: Tensor, at: number): Tensor =>
    sn.reshape(
      values,
      past.shape.map((_, i) => (i === at ? values.size : 1)),
    );
  const start = call.optional(2) ?? sn.zeros([batch], { dtype: 'i32' });
  const place = sn.add(along(sn.arange(update.shape[axis]!), axis), along(sn.cast(start, 'i32'), 0));
  const isCircular = call.attributes.string('mode', 'linear') === 'circular';
  const wrapped = isCircular ? sn.remainder(place, size) : place;
  return sn.scatter(past, axis, sn.expand(wrapped, update.shape), update);
}

function oneHot(call: Call): Value {
  const places = call.tensor(0);
  const depth = call.number(1)!;
  const rank = places.rank + 1;
  const axis = call.axis(call.attributes.int('axis', -1), rank);
  const values = call.tensor(2);
  const wide = narrowed(places);
  const position = sn.unsqueeze(sn.where(sn.lt(wide, 0), sn.add(wide, depth), wide), axis);
  const classes = sn.reshape(sn.arange(depth), [depth, ...new Array<number>(rank - 1 - axis).fill(1)]);
  const spread = sn.where(sn.eq(position, classes), sn.select(values, 0, 1), sn.select(values, 0, 0));
  return Value.of(spread, call.type(2));
}

export const gathering: Rows = {
  Gather: row([1, 11, 13], gather),
  GatherElements: row([11, 13], gatherElements),
  GatherND: row([11, 12, 13], gatherNd),
  OneHot: hosted([9, 11], [1], oneHot),
  Scatter: row([9, 11], scatterElements),
  ScatterElements: row([11, 13, 16, 18], scatterElements),
  ScatterND: row([11, 13, 16, 18], scatterNd),
  TensorScatter: row([24], tensorScatter),
};
