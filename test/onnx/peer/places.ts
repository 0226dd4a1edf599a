// Random nodes of operators at places that are data, of order and choice, and of constants.

import type { DType } from '../../../src/ir/dtype.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { attr, floats, ints, type Draw, type Family } from './draw.ts';

const types: readonly DType[] = ['f32', 'f32', 'f64', 'i32', 'i64', 'u8', 'bool'];

/** Inputs from the second on belong to the model or come with the first. */
const stored = (draw: Draw, count = 3): number[] =>
  draw.coin() ? Array.from({ length: count }, (_, i) => i + 1) : [];

const index = (draw: Draw, shape: readonly number[], size: number, dtype?: DType): HostArray =>
  draw.tensor(shape, dtype ?? draw.pick(['i32', 'i64']), { least: draw.coin() ? -size : 0, most: size - 1 });

const gather: Family = (draw) => {
  const rank = draw.int(1, 4);
  const x = draw.tensor(
    Array.from({ length: rank }, () => draw.int(1, 5)),
    draw.pick(types),
  );
  const axis = draw.axis(rank);
  const size = x.shape.at(axis)!;
  if (draw.coin()) {
    const places = index(draw, draw.anyShape(3), size);
    return {
      op: 'Gather',
      opset: draw.pick([11, 13]),
      attributes: [attr.int('axis', axis)],
      inputs: [x, places],
      stored: stored(draw),
    };
  }
  const at = axis < 0 ? axis + rank : axis;
  const places = index(
    draw,
    x.shape.map((dim, i) => (i === at ? draw.int(0, 4) : draw.int(1, dim))),
    size,
  );
  return {
    op: 'GatherElements',
    opset: draw.pick([11, 13]),
    attributes: [attr.int('axis', axis)],
    inputs: [x, places],
  };
};

/** Tuples of places into the axes after `batch`. */
function tuples(
  draw: Draw,
  shape: readonly number[],
  lead: readonly number[],
  depth: number,
  batch: number,
): HostArray {
  const rows = sizeOf(lead);
  const values = Array.from({ length: rows * depth }, (_, i) => {
    const size = shape[batch + (i % depth)]!;
    return draw.int(draw.coin() ? -size : 0, size - 1);
  });
  return ints(values, [...lead, depth]);
}

const gatherNd: Family = (draw) => {
  const rank = draw.int(1, 4);
  const x = draw.tensor(
    Array.from({ length: rank }, () => draw.int(1, 4)),
    draw.pick(types),
  );
  const opset = draw.pick([11, 12, 13]);
  const batch = opset >= 12 ? draw.int(0, rank - 1) : 0;
  const depth = draw.int(1, rank - batch);
  const lead = [...x.shape.slice(0, batch), ...draw.ints(draw.int(0, 2), 1, 3)];
  if (lead.length === batch && batch === 0 && draw.coin()) lead.push(2);
  const attributes = opset >= 12 && batch > 0 ? [attr.int('batch_dims', batch)] : [];
  return {
    op: 'GatherND',
    opset,
    attributes,
    inputs: [x, tuples(draw, x.shape, lead, depth, batch)],
    stored: stored(draw),
  };
};

const scatter: Family = (draw) => {
  const rank = draw.int(1, 3);
  const x = draw.tensor(
    Array.from({ length: rank }, () => draw.int(2, 5)),
    draw.pick(['f32', 'f64', 'i32', 'i64']),
    { least: -3, most: 3 },
  );
  const opset = draw.pick([11, 13, 16, 18]);
  const reductions = opset >= 18 ? ['add', 'mul', 'max', 'min'] : opset >= 16 ? ['add', 'mul'] : [];
  const reduction = reductions.length > 0 && draw.coin() ? draw.pick(reductions) : 'none';
  const attributes = reduction === 'none' ? [] : [attr.text('reduction', reduction)];
  const isNd = draw.coin();
  if (isNd) {
    const depth = draw.int(1, rank);
    const slots = sizeOf(x.shape.slice(0, depth));
    // Without a reduction each slot is written once.
    const flat =
      reduction === 'none'
        ? draw.shuffled(Array.from({ length: slots }, (_, i) => i)).slice(0, draw.int(1, slots))
        : draw.ints(draw.int(1, 6), 0, slots - 1);
    const strides = x.shape.slice(0, depth).map((_, i) => sizeOf(x.shape.slice(i + 1, depth)));
    const values = flat.flatMap((slot) =>
      strides.map((stride, i) => {
        const place = Math.floor(slot / stride) % x.shape[i]!;
        return draw.rarely() ? place - x.shape[i]! : place;
      }),
    );
    const updates = draw.tensor([flat.length, ...x.shape.slice(depth)], x.dtype, { least: -3, most: 3 });
    return { op: 'ScatterND', opset, attributes, inputs: [x, ints(values, [flat.length, depth]), updates] };
  }
  const axis = draw.axis(rank);
  const at = axis < 0 ? axis + rank : axis;
  const size = x.shape[at]!;
  const shape = x.shape.map((dim, i) => (i === at ? draw.int(1, size) : draw.int(1, dim)));
  const order = draw.shuffled(Array.from({ length: size }, (_, i) => i));
  const stride = sizeOf(shape.slice(at + 1));
  const places = Array.from({ length: sizeOf(shape) }, (_, i) =>
    reduction === 'none' ? order[Math.floor(i / stride) % shape[at]!]! : draw.int(-size, size - 1),
  );
  const updates = draw.tensor(shape, x.dtype, { least: -3, most: 3 });
  return {
    op: 'ScatterElements',
    opset,
    attributes: [...attributes, attr.int('axis', axis)],
    inputs: [x, ints(places, shape), updates],
  };
};

const order: Family = (draw) => {
  const rank = draw.int(1, 3);
  const x = draw.tensor(
    Array.from({ length: rank }, () => draw.int(1, 6)),
    draw.pick(['f32', 'f32', 'f64', 'i32', 'i64']),
    { least: -3, most: 3 },
  );
  const axis = draw.axis(rank);
  const count = draw.int(0, x.shape.at(axis)!);
  const opset = draw.pick([7, 10, 11]);
  if (opset < 10) {
    return {
      op: 'TopK',
      opset,
      attributes: [attr.int('axis', axis < 0 ? axis + rank : axis), attr.int('k', Math.max(1, count))],
      inputs: [draw.tensor(x.shape)],
      outputs: 2,
    };
  }
  const attributes = [
    attr.int('axis', axis),
    ...(opset >= 11 && draw.coin() ? [attr.int('largest', draw.int(0, 1))] : []),
  ];
  return {
    op: 'TopK',
    opset,
    attributes,
    inputs: [opset < 11 ? draw.tensor(x.shape) : x, ints([count])],
    outputs: 2,
    stored: stored(draw),
  };
};

const unique: Family = (draw) => {
  const rank = draw.int(1, 3);
  const x = draw.tensor(
    Array.from({ length: rank }, () => draw.int(1, 4)),
    draw.pick(['i64', 'i8', 'i64']),
    { least: -1, most: 1 },
  );
  const attributes = [
    ...(draw.coin() ? [attr.int('axis', draw.axis(rank))] : []),
    ...(draw.coin() ? [attr.int('sorted', draw.int(0, 1))] : []),
  ];
  return { op: 'Unique', opset: 11, attributes, inputs: [x], outputs: 4 };
};

const compress: Family = (draw) => {
  const rank = draw.int(1, 3);
  const x = draw.tensor(
    Array.from({ length: rank }, () => draw.int(1, 4)),
    draw.pick(types),
  );
  const isFlat = draw.coin();
  const axis = draw.axis(rank);
  const size = isFlat ? sizeOf(x.shape) : x.shape.at(axis)!;
  const condition = draw.tensor([draw.int(1, size)], 'bool');
  return {
    op: 'Compress',
    opset: draw.pick([11]),
    attributes: isFlat ? [] : [attr.int('axis', axis)],
    inputs: [x, condition],
  };
};

const oneHot: Family = (draw) => {
  const depth = draw.int(1, 5);
  const places = draw.tensor(draw.anyShape(3), draw.pick(['i64', 'i32', 'f32']), {
    least: -depth - 1,
    most: depth,
  });
  if (places.dtype === 'f32') places.data.forEach((_, i) => (places.data[i] = draw.int(-depth, depth - 1)));
  const dtype = draw.pick<DType>(['f32', 'i64', 'i32']);
  const on: HostArray = draw.tensor([2], dtype);
  const attributes = draw.coin() ? [attr.int('axis', draw.axis(places.shape.length + 1))] : [];
  const size: HostArray = draw.coin() ? ints([depth], draw.coin() ? [] : [1]) : floats([depth], [1]);
  return {
    op: 'OneHot',
    opset: draw.pick([9, 11]),
    attributes,
    inputs: [places, size, on],
    stored: draw.coin() ? [1] : [],
  };
};

const made: Family = (draw) => {
  switch (draw.int(0, 2)) {
    case 0: {
      const attributes = draw.coin()
        ? [{ name: 'value', type: 4, t: { dataType: 7, dims: [1n], int64Data: [7n] } }]
        : [];
      return {
        op: 'ConstantOfShape',
        opset: draw.pick([9, 20, 21]),
        attributes,
        inputs: [ints(draw.anyShape())],
        stored: stored(draw).map(() => 0),
      };
    }
    case 1: {
      const dtype = draw.pick<DType>(['i64', 'i32', 'f32', 'f64']);
      const scalar = (value: number): HostArray => {
        const array = draw.tensor([], dtype);
        array.data[0] = dtype === 'i64' ? BigInt(value) : value;
        return array;
      };
      const step = draw.pick([1, 2, 3, -1, -2]);
      return {
        op: 'Range',
        opset: 11,
        inputs: [scalar(draw.int(-5, 5)), scalar(draw.int(-5, 9)), scalar(step)],
      };
    }
    default: {
      const attributes = [
        ...(draw.coin() ? [attr.int('k', draw.int(-4, 4))] : []),
        ...(draw.coin() ? [attr.int('dtype', draw.pick([1, 6, 7, 11]))] : []),
      ];
      return {
        op: 'EyeLike',
        opset: draw.pick([9, 22]),
        attributes,
        inputs: [draw.tensor([draw.int(1, 4), draw.int(1, 4)], draw.pick(['f32', 'i32', 'i64']))],
      };
    }
  }
};

export const places: Readonly<Record<string, Family>> = {
  gather,
  gatherNd,
  scatter,
  order,
  unique,
  compress,
  oneHot,
  made,
};
