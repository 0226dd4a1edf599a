// Random nodes of operators on shapes: the same elements under other shapes, in other orders, in parts and joined.

import type { DType } from '../../../src/ir/dtype.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { attr, ints, type Draw, type Family } from './draw.ts';

const types: readonly DType[] = ['f32', 'f32', 'f64', 'i32', 'i64', 'u8', 'bool'];

const anyTensor = (draw: Draw, rank: number, most = 4): HostArray =>
  draw.tensor(draw.shape(rank, most), draw.pick(types));

/** Inputs from the second on belong to the model or come with the first. */
const stored = (draw: Draw, count = 3): number[] =>
  draw.coin() ? Array.from({ length: count }, (_, i) => i + 1) : [];

const reshape: Family = (draw) => {
  const x = anyTensor(draw, draw.int(0, 4));
  const opset = draw.pick([5, 13, 14, 19, 21]);
  const wanted = draw.shuffled(x.shape);
  if (draw.coin() && wanted.length > 1) wanted.splice(0, 2, wanted[0]! * wanted[1]!);
  if (draw.coin()) wanted.splice(draw.int(0, wanted.length), 0, 1);
  const isZero = opset >= 14 && draw.rarely();
  if (draw.coin() && wanted.length > 0 && !wanted.includes(0)) wanted[draw.int(0, wanted.length - 1)] = -1;
  const attributes = isZero && !wanted.includes(-1) ? [attr.int('allowzero', 1)] : [];
  return { op: 'Reshape', opset, attributes, inputs: [x, ints(wanted)], stored: stored(draw) };
};

const squeeze: Family = (draw) => {
  const isOut = draw.coin();
  const opset = draw.pick([7, 11, 13, 21]);
  const rank = draw.int(0, 3);
  const total = rank + (isOut ? draw.int(0, 2) : 0);
  const axes = draw.shuffled(Array.from({ length: total }, (_, i) => i)).slice(0, total - (isOut ? rank : 0));
  const negative = (list: readonly number[]): number[] =>
    list.map((axis) => (opset >= 11 && draw.coin() ? axis - total : axis));
  let shape = draw.shape(rank);
  let chosen = axes;
  if (!isOut) {
    chosen = axes.slice(0, draw.int(0, axes.length));
    shape = shape.map((dim, axis) => (chosen.includes(axis) ? 1 : dim));
  }
  const x = draw.tensor(shape, draw.pick(types));
  const list = negative(chosen);
  const op = isOut ? 'Unsqueeze' : 'Squeeze';
  if (!isOut && list.length === 0) return { op, opset, inputs: [x] };
  if (opset < 13) return { op, opset, inputs: [x], attributes: [attr.ints('axes', list)] };
  return { op, opset, inputs: [x, ints(list)], stored: stored(draw) };
};

const layout: Family = (draw) => {
  const rank = draw.int(0, 4);
  const x = anyTensor(draw, rank);
  if (draw.coin()) {
    const perm = draw.shuffled(x.shape.map((_, axis) => axis));
    const attributes = draw.rarely() ? [] : [attr.ints('perm', perm)];
    return { op: 'Transpose', opset: draw.pick([7, 13, 21]), attributes, inputs: [x] };
  }
  const opset = draw.pick([7, 9, 11, 13, 21]);
  const axis = opset >= 11 ? draw.int(-rank, rank) : draw.int(0, rank);
  return {
    op: 'Flatten',
    opset,
    attributes: draw.rarely() && rank > 0 ? [] : [attr.int('axis', axis)],
    inputs: [x],
  };
};

const expand: Family = (draw) => {
  const shape = draw.anyShape();
  const x = draw.tensor(draw.broadcast(shape), draw.pick(types));
  const wanted = draw.rarely() ? draw.broadcast(shape) : shape;
  return { op: 'Expand', opset: draw.pick([8, 13]), inputs: [x, ints(wanted)], stored: stored(draw) };
};

const slice: Family = (draw) => {
  const rank = draw.int(1, 4);
  const x = anyTensor(draw, rank, 6);
  const axes = draw.shuffled(x.shape.map((_, axis) => axis)).slice(0, draw.int(1, rank));
  const far = (): number => (draw.rarely(6) ? draw.pick([-(2 ** 31), 1000, -1000]) : draw.int(-7, 7));
  const [starts, ends] = [axes.map(far), axes.map(far)];
  const opset = draw.pick([7, 10, 11, 13]);
  const named = axes.map((axis) => (opset >= 10 && draw.coin() ? axis - rank : axis));
  if (opset < 10) {
    const attributes = [attr.ints('starts', starts), attr.ints('ends', ends), attr.ints('axes', named)];
    return { op: 'Slice', opset, attributes, inputs: [x] };
  }
  const steps = axes.map(() => draw.pick([1, 1, 2, 3, -1, -2]));
  const hasSteps = draw.coin();
  const isI32 = draw.coin();
  const kind = (list: readonly number[]): HostArray =>
    isI32 ? { dtype: 'i32', shape: [list.length], data: Int32Array.from(list) } : ints(list);
  const inputs = [x, kind(starts), kind(ends), kind(named), ...(hasSteps ? [kind(steps)] : [])];
  return { op: 'Slice', opset, inputs, stored: stored(draw, 4) };
};

const concat: Family = (draw) => {
  const rank = draw.int(1, 4);
  const shape = draw.shape(rank);
  const axis = draw.axis(rank);
  const at = axis < 0 ? axis + rank : axis;
  const dtype = draw.pick(types);
  const inputs = Array.from({ length: draw.int(1, 4) }, () =>
    draw.tensor(
      shape.map((dim, i) => (i === at ? draw.int(0, 4) : dim)),
      dtype,
    ),
  );
  const opset = draw.pick([4, 11, 13]);
  return { op: 'Concat', opset, attributes: [attr.int('axis', opset >= 11 ? axis : at)], inputs };
};

const split: Family = (draw) => {
  const rank = draw.int(1, 3);
  const opset = draw.pick([2, 11, 13, 18]);
  const at = draw.int(0, rank - 1);
  const parts = draw.int(1, 4);
  const sizes = draw.ints(parts, 0, 3);
  const isEven = draw.coin();
  const total = isEven
    ? parts * draw.int(1, 3) + (opset >= 18 && draw.rarely() ? 1 - parts : 0)
    : sizes.reduce((a, b) => a + b);
  const x = draw.tensor(
    draw.shape(rank).map((dim, i) => (i === at ? Math.max(total, 1) : dim)),
    draw.pick(['f32', 'i32', 'i64', 'f64']),
  );
  const axis = attr.int('axis', opset >= 11 && draw.coin() ? at - rank : at);
  if (isEven || total === 0)
    return {
      op: 'Split',
      opset,
      attributes: opset >= 18 ? [axis, attr.int('num_outputs', parts)] : [axis],
      inputs: [x],
      outputs: parts,
    };
  if (opset < 13)
    return { op: 'Split', opset, attributes: [axis, attr.ints('split', sizes)], inputs: [x], outputs: parts };
  return {
    op: 'Split',
    opset,
    attributes: [axis],
    inputs: [x, ints(sizes)],
    outputs: parts,
    stored: stored(draw),
  };
};

const pad: Family = (draw) => {
  const rank = draw.int(1, 4);
  const opset = draw.pick([2, 11, 13, 18, 19, 21]);
  const mode = draw.pick(
    opset >= 19 ? ['constant', 'reflect', 'edge', 'wrap'] : ['constant', 'reflect', 'edge'],
  );
  const dtype = draw.pick<DType>(opset >= 13 ? ['f32', 'f64', 'i32', 'i64', 'bool'] : ['f32']);
  const x = draw.tensor(
    Array.from({ length: rank }, () => draw.int(1, 5)),
    dtype,
  );
  const isNamed = opset >= 18 && draw.coin();
  const axes = isNamed
    ? draw.shuffled(x.shape.map((_, i) => i)).slice(0, draw.int(1, rank))
    : x.shape.map((_, i) => i);
  const least = draw.rarely() ? -1 : 0;
  const amount = (axis: number): number =>
    draw.int(mode === 'constant' ? least : least, mode === 'constant' ? 3 : Math.max(0, x.shape[axis]! - 1));
  const pads = [...axes.map(amount), ...axes.map(amount)];
  const attributes = draw.rarely() && mode === 'constant' ? [] : [attr.text('mode', mode)];
  if (opset < 11) {
    const value = draw.coin() ? [attr.float('value', 1.5)] : [];
    return { op: 'Pad', opset, attributes: [...attributes, ...value, attr.ints('pads', pads)], inputs: [x] };
  }
  const value = draw.coin() ? draw.tensor([], dtype) : undefined;
  const inputs: (HostArray | undefined)[] = [x, ints(pads), value];
  if (isNamed) inputs.push(ints(axes.map((axis) => (draw.coin() ? axis - rank : axis))));
  return { op: 'Pad', opset, attributes, inputs, stored: stored(draw) };
};

const tile: Family = (draw) => {
  const x = anyTensor(draw, draw.int(1, 4), 3);
  const repeats = draw.ints(x.shape.length, draw.rarely() ? 0 : 1, 3);
  return { op: 'Tile', opset: draw.pick([6, 13]), inputs: [x, ints(repeats)], stored: stored(draw) };
};

const blocks: Family = (draw) => {
  const size = draw.int(1, 3);
  const isOut = draw.coin();
  const [n, c, h, w] = [draw.int(1, 2), draw.int(1, 3), draw.int(1, 3), draw.int(1, 3)];
  const opset = draw.pick(isOut ? [7, 11, 13] : [7, 13]);
  const size0 = attr.int('blocksize', size);
  if (!isOut)
    return {
      op: 'SpaceToDepth',
      opset,
      attributes: [size0],
      inputs: [draw.tensor([n, c, h * size, w * size])],
    };
  const mode = opset >= 11 && draw.coin() ? [attr.text('mode', draw.pick(['CRD', 'DCR']))] : [];
  return {
    op: 'DepthToSpace',
    opset,
    attributes: [size0, ...mode],
    inputs: [draw.tensor([n, c * size * size, h, w])],
  };
};

const triangle: Family = (draw) => {
  const shape = [...draw.shape(draw.int(0, 2), 3), draw.int(0, 5), draw.int(1, 5)];
  const x = draw.tensor(shape, draw.pick(types));
  const attributes = draw.coin() ? [attr.int('upper', draw.int(0, 1))] : [];
  const inputs = draw.coin() ? [x] : [x, ints([draw.int(-6, 6)], [])];
  return { op: 'Trilu', opset: 14, attributes, inputs, stored: stored(draw) };
};

const reverse: Family = (draw) => {
  const isBatchFirst = draw.coin();
  const [time, batch] = [draw.int(1, 5), draw.int(1, 4)];
  const x = draw.tensor(
    [...(isBatchFirst ? [batch, time] : [time, batch]), ...draw.shape(draw.int(0, 2), 3)],
    draw.pick(types),
  );
  const attributes = [
    attr.int('time_axis', isBatchFirst ? 1 : 0),
    attr.int('batch_axis', isBatchFirst ? 0 : 1),
  ];
  return { op: 'ReverseSequence', opset: 10, attributes, inputs: [x, ints(draw.ints(batch, 1, time))] };
};

const shapeParts: Family = (draw) => {
  const attributes = ['start', 'end'].flatMap((name) =>
    draw.coin() ? [attr.int(name, draw.int(-6, 6))] : [],
  );
  return {
    op: 'Shape',
    opset: draw.pick([15, 19, 21]),
    attributes,
    inputs: [anyTensor(draw, draw.int(0, 5))],
  };
};

const crop: Family = (draw) => {
  const rank = draw.int(1, 4);
  const x = draw.tensor(
    Array.from({ length: rank }, () => draw.int(1, 6)),
    draw.pick(['f32', 'i32']),
  );
  const axes = draw.coin() ? draw.shuffled(x.shape.map((_, i) => i)).slice(0, draw.int(1, rank)) : undefined;
  const sizes = draw.ints(axes?.length ?? rank, 1, 7);
  const attributes =
    axes === undefined
      ? []
      : [
          attr.ints(
            'axes',
            axes.map((axis) => (draw.coin() ? axis - rank : axis)),
          ),
        ];
  return { op: 'CenterCropPad', opset: 18, attributes, inputs: [x, ints(sizes)], stored: stored(draw) };
};

export const shapes: Readonly<Record<string, Family>> = {
  reshape,
  squeeze,
  layout,
  expand,
  slice,
  concat,
  split,
  pad,
  tile,
  blocks,
  triangle,
  reverse,
  shapeParts,
  crop,
};
