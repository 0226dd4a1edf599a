// Shapes and movements: the same elements under other shapes, in other orders, in parts and joined.

import { SinterError } from '../../errors.ts';
import * as sn from '../../operations/index.ts';
import { sizeOf } from '../../ir/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Rows } from '../call.ts';
import { knownSizes, type Value } from '../value.ts';
import { hosted, row } from './row.ts';

function shapeOf(call: Call): Value {
  const { shape } = call.value(0);
  const end = call.attributes.int('end');
  return knownSizes(shape.slice(call.attributes.int('start', 0), end));
}

function reshape(call: Call): Tensor {
  const x = call.tensor(0);
  const given = call.ints('shape', 1)!;
  const keepsZero = call.attributes.int('allowzero', 0) === 0;
  const shape = given.map((dim, axis) => {
    if (dim !== 0 || !keepsZero) return dim;
    return (
      x.shape[axis] ??
      call.fail(
        `size ${axis} is 0, which is the input's own without allowzero, and [${x.shape.join()}] has none`,
      )
    );
  });
  if (!shape.includes(-1) || x.size > 0) return sn.reshape(x, shape);
  const rest = sizeOf(shape.filter((dim) => dim !== -1));
  return sn.reshape(
    x,
    shape.map((dim) => (dim === -1 ? (rest === 0 ? 0 : x.size / rest) : dim)),
  );
}

function flatten(call: Call): Tensor {
  const x = call.tensor(0);
  const given = call.attributes.int('axis', 1);
  const axis = given < 0 ? given + x.rank : given;
  return sn.reshape(x, [sizeOf(x.shape.slice(0, axis)), sizeOf(x.shape.slice(axis))]);
}

function squeeze(call: Call): Tensor {
  const x = call.tensor(0);
  const axes = call.ints('axes', 1);
  if (axes === undefined) return sn.squeeze(x);
  const gone = call.axes(axes, x.rank);
  const long = gone.find((axis) => (x.shape[axis] ?? 1) !== 1);
  if (long !== undefined) call.fail(`axis ${long} has ${x.shape[long]} elements: expected 1`);
  return sn.reshape(
    x,
    x.shape.filter((_, axis) => !gone.includes(axis)),
  );
}

function unsqueeze(call: Call): Tensor {
  const x = call.tensor(0);
  const given = call.ints('axes', 1)!;
  const rank = x.rank + given.length;
  const axes = call.axes(given, rank);
  if (new Set(axes).size !== axes.length) call.fail(`axes [${given.join()}] name an axis twice`);
  const rest = [...x.shape];
  const shape = Array.from({ length: rank }, (_, axis) => (axes.includes(axis) ? 1 : rest.shift()!));
  return sn.reshape(x, shape);
}

function transpose(call: Call): Tensor {
  const x = call.tensor(0);
  return sn.permute(x, call.attributes.ints('perm') ?? x.shape.map((_, axis) => x.rank - 1 - axis));
}

function expand(call: Call): Tensor {
  const x = call.tensor(0);
  const given = call.numbers(1)!;
  const rank = Math.max(x.rank, given.length);
  // Both ways: sizes of 1 in the wanted shape keep what is there.
  const shape = Array.from({ length: rank }, (_, i) => {
    const own = x.shape[i - (rank - x.rank)] ?? 1;
    const wanted = given[i - (rank - given.length)] ?? 1;
    return wanted === 1 ? own : wanted;
  });
  return sn.expand(x, shape);
}

/** Parts along axes; ends far outside stand for "to the end", also backwards. */
function slice(call: Call): Tensor {
  const x = call.tensor(0);
  const [starts, ends] = [call.ints('starts', 1)!, call.ints('ends', 2)!];
  const axes = call.axes(call.ints('axes', 3) ?? starts.map((_, axis) => axis), x.rank);
  const steps = call.numbers(4) ?? starts.map(() => 1);
  return axes.reduce((out, axis, i) => {
    const size = x.shape[axis]!;
    const [step, first, last] = [steps[i], starts[i], ends[i]];
    if (!step || first === undefined || last === undefined)
      call.fail(`from ${first} to ${last} in steps of ${step}`);
    const absolute = (place: number): number => (place < 0 ? place + size : place);
    if (step > 0) {
      const start = Math.min(size, Math.max(0, absolute(first)));
      const stop = Math.min(size, Math.max(0, absolute(last)));
      return sn.slice(out, axis, start, Math.max(start, stop), step);
    }
    // Backwards: what comes is turned, then counted from the other side. Opset 10 has one number
    // for both far ends.
    const isOpen = call.opset === 10 && last >= 2 ** 31 - 1;
    const start = Math.min(size - 1, Math.max(0, absolute(first)));
    const stop = isOpen ? -1 : Math.min(size - 1, Math.max(-1, absolute(last)));
    if (start <= stop) return sn.slice(out, axis, 0, 0);
    return sn.slice(sn.flip(out, axis), axis, size - 1 - start, size - 1 - stop, -step);
  }, x);
}

function concat(call: Call): Tensor {
  const list = call.tensors();
  return list.length === 1 ? list[0]! : sn.cat(list, call.attributes.int('axis', 1));
}

function split(call: Call): Tensor[] {
  const x = call.tensor(0);
  const axis = call.axis(call.attributes.int('axis', 0), x.rank);
  const given = call.ints('split', 1);
  if (given !== undefined) {
    call.spend(given.length);
    return sn.split(x, given, axis);
  }
  const parts = call.attributes.int('num_outputs', call.outputs.length);
  if (!(parts >= 1)) call.fail(`parts x into ${parts}`);
  call.spend(parts);
  const size = Math.ceil(x.shape[axis]! / parts);
  const sizes = Array.from({ length: parts }, (_, i) =>
    Math.max(0, Math.min(size, x.shape[axis]! - i * size)),
  );
  return sn.split(x, sizes, axis);
}

const padModes = { constant: 'constant', reflect: 'reflect', edge: 'replicate', wrap: 'circular' } as const;

/** What constant padding is filled with. */
function padding(call: Call): number | undefined {
  const given = call.host(2)?.data[0];
  if (typeof given !== 'bigint' || Number.isSafeInteger(Number(given))) return call.number(2);
  throw new SinterError('E_UNSUPPORTED', `padding with ${given}, which is no exact number, is not supported`);
}

function pad(call: Call): Tensor {
  const x = call.tensor(0);
  const given = call.ints('pads', 1) ?? call.ints('paddings', 1) ?? [];
  const axes = call.axes(call.numbers(3) ?? x.shape.map((_, axis) => axis), x.rank);
  const pairs = x.shape.map((): [number, number] => [0, 0]);
  axes.forEach((axis, i) => (pairs[axis] = [given[i]!, given[i + axes.length]!]));
  const mode = padModes[call.attributes.string('mode', 'constant') as keyof typeof padModes];
  if (mode === undefined) call.fail(`no padding mode ${call.attributes.string('mode', '')}`);
  const value = call.attributes.float('value') ?? padding(call) ?? 0;
  if (mode !== 'constant' || x.dtype !== 'bool')
    return sn.pad(x, pairs, mode === 'constant' ? { value } : { mode });
  return sn.cast(sn.pad(sn.cast(x, 'i32'), pairs, { value }), 'bool');
}

function tile(call: Call): Tensor {
  const x = call.tensor(0);
  const repeats = call.numbers(1)!;
  if (call.opset >= 6) return sn.tile(x, repeats);
  const [times, axis] = [repeats[0]!, call.number(2)!];
  return sn.tile(
    x,
    x.shape.map((_, i) => (i === axis ? times : 1)),
  );
}

function depthToSpace(call: Call): Tensor {
  const x = call.tensor(0);
  const [n, c, h, w] = x.shape as [number, number, number, number];
  const size = call.attributes.int('blocksize', 1);
  const depth = c / size ** 2;
  if (!Number.isInteger(depth)) call.fail(`${c} channels are no multiple of blocks of ${size} by ${size}`);
  const isColumns = call.attributes.string('mode', 'DCR') === 'CRD';
  const blocks = sn.reshape(x, isColumns ? [n, depth, size, size, h, w] : [n, size, size, depth, h, w]);
  const order = isColumns ? [0, 1, 4, 2, 5, 3] : [0, 3, 4, 1, 5, 2];
  return sn.reshape(sn.permute(blocks, order), [n, depth, h * size, w * size]);
}

function spaceToDepth(call: Call): Tensor {
  const x = call.tensor(0);
  const [n, c, h, w] = x.shape as [number, number, number, number];
  const size = call.attributes.int('blocksize', 1);
  if (h % size !== 0 || w % size !== 0)
    call.fail(`an image of ${h} by ${w} has no blocks of ${size} by ${size}`);
  const blocks = sn.reshape(x, [n, c, h / size, size, w / size, size]);
  const mode = call.attributes.string('mode', 'DCR');
  if (mode !== 'DCR' && mode !== 'CRD') call.fail(`no mode ${mode}`);
  const order = mode === 'CRD' ? [0, 1, 3, 5, 2, 4] : [0, 3, 5, 1, 2, 4];
  return sn.reshape(sn.permute(blocks, order), [n, c * size ** 2, h / size, w / size]);
}

/** Cut or padded around the middle. */
function centerCropPad(call: Call): Tensor {
  const x = call.tensor(0);
  const wanted = call.numbers(1)!;
  const axes = call.axes(call.attributes.ints('axes') ?? x.shape.map((_, axis) => axis), x.rank);
  return axes.reduce((out, axis, i) => {
    const [size, target] = [x.shape[axis]!, wanted[i]!];
    if (target <= size) return sn.narrow(out, axis, Math.floor((size - target) / 2), target);
    const before = Math.floor((target - size) / 2);
    const pairs = x.shape.map((_, k): [number, number] =>
      k === axis ? [before, target - size - before] : [0, 0],
    );
    return sn.pad(out, pairs);
  }, x);
}

function trilu(call: Call): Tensor {
  const x = call.tensor(0);
  const diagonal = call.number(1) ?? 0;
  const part = call.attributes.int('upper', 1) === 1 ? sn.triu : sn.tril;
  if (x.dtype !== 'bool') return part(x, diagonal);
  return sn.cast(part(sn.cast(x, 'i32'), diagonal), 'bool');
}

/** The first `lengths` elements of each sequence of the batch in reverse. */
function reverseSequence(call: Call): Tensor {
  const x = call.tensor(0);
  const [time, batch] = [call.attributes.int('time_axis', 0), call.attributes.int('batch_axis', 1)];
  const along = (axis: number, values: Tensor): Tensor =>
    sn.reshape(
      values,
      x.shape.map((dim, i) => (i === axis ? dim : 1)),
    );
  const place = along(time, sn.arange(x.shape[time]!));
  const length = along(batch, sn.cast(call.tensor(1), 'i32'));
  const source = sn.where(sn.lt(place, length), sn.sub(sn.sub(length, 1), place), place);
  return sn.gather(x, time, sn.expand(source, x.shape));
}

export const shape: Rows = {
  CenterCropPad: hosted([18], [1], centerCropPad),
  Concat: row([1, 4, 11, 13], concat),
  DepthToSpace: row([1, 11, 13], depthToSpace),
  Expand: hosted([8, 13], [1], expand),
  Flatten: row([1, 9, 11, 13, 21, 23, 24, 25], flatten),
  Pad: hosted([1, 2, 11, 13, 18, 19, 21, 23, 24, 25], [1, 2, 3], pad),
  Reshape: hosted([1, 5, 13, 14, 19, 21, 23, 24, 25], [1], reshape),
  ReverseSequence: row([10], reverseSequence),
  Shape: row([1, 13, 15, 19, 21, 23, 24, 25], shapeOf, { sizes: true }),
  Size: row([1, 13, 19, 21, 23, 24, 25], (call) => knownSizes([call.value(0).size], []), { sizes: true }),
  Slice: hosted([1, 10, 11, 13], [1, 2, 3, 4], slice),
  SpaceToDepth: row([1, 13, 28], spaceToDepth),
  Split: hosted([1, 2, 11, 13, 18], [1], split),
  Squeeze: hosted([1, 11, 13, 21, 23, 24, 25], [1], squeeze),
  Tile: hosted([1, 6, 13], [1, 2], tile),
  Transpose: row([1, 13, 21, 23, 24, 25], transpose),
  Trilu: hosted([14], [1], trilu),
  Unsqueeze: hosted([1, 11, 13, 21, 23, 24, 25], [1], unsqueeze),
};
