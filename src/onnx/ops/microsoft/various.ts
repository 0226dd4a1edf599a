// What else com.microsoft has: inverses, parts of images, operators that the standard took over later
// under the same name.

import { CompilerBug } from '../../../errors.ts';
import * as sn from '../../../operations/index.ts';
import { inverse } from '../../../tensor/ops/linalg/solve.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Row, Rows } from '../../call.ts';
import { gathering } from '../gather.ts';
import { resample } from '../image/resample.ts';
import { hosted, row } from '../row.ts';
import { shape } from '../shape.ts';

/** Parts of images in one size: corners of boxes are shares of the image, and corners of the result. */
function cropAndResize(call: Call): Tensor {
  const { attributes } = call;
  const [x, boxes] = [call.tensor(0), sn.cast(call.tensor(1), 'f32')];
  const images = sn.cast(call.tensor(2), 'i32');
  const [height, width] = call.numbers(3) as [number, number];
  const mode = attributes.string('mode', 'bilinear');
  if (mode !== 'bilinear' && mode !== 'nearest') call.fail(`attribute 'mode': '${mode}' is not supported`);
  const outside = attributes.float('extrapolation_value', 0);
  const [, channels, rows, columns] = x.shape as readonly [number, number, number, number];
  const count = boxes.shape[0]!;
  const side = (from: number, to: number, size: number, wanted: number): Tensor => {
    const [start, end] = [from, to].map((at) => sn.unsqueeze(sn.select(boxes, 1, at), 1)) as [Tensor, Tensor];
    if (wanted === 1) return sn.mul(sn.mul(sn.add(start, end), 0.5), size - 1);
    const step = sn.div(sn.mul(sn.sub(end, start), size - 1), wanted - 1);
    return sn.add(sn.mul(start, size - 1), sn.mul(sn.cast(sn.arange(wanted), 'f32'), step));
  };
  const [ys, xs] = [side(0, 2, rows, height), side(1, 3, columns, width)];
  const own = sn.reshape(sn.indexSelect(x, 0, images), [count, channels, rows * columns]);
  const at = (y: Tensor, z: Tensor): Tensor => {
    const places = sn.add(sn.mul(sn.unsqueeze(y, 2), columns), sn.unsqueeze(z, 1));
    const flat = sn.expand(sn.reshape(places, [count, 1, height * width]), [count, channels, height * width]);
    return sn.reshape(sn.gather(own, 2, flat), [count, channels, height, width]);
  };
  const whole = (t: Tensor, size: number): Tensor => sn.clamp(sn.cast(t, 'i32'), 0, size - 1);
  const inside = (t: Tensor, size: number): Tensor => sn.logicalAnd(sn.ge(t, 0), sn.le(t, size - 1));
  let out: Tensor;
  if (mode === 'nearest')
    out = at(whole(sn.floor(sn.add(ys, 0.5)), rows), whole(sn.floor(sn.add(xs, 0.5)), columns));
  else {
    const [top, left] = [sn.floor(ys), sn.floor(xs)];
    const [dy, dx] = [
      sn.reshape(sn.sub(ys, top), [count, 1, height, 1]),
      sn.reshape(sn.sub(xs, left), [count, 1, 1, width]),
    ];
    const [y0, y1] = [whole(top, rows), whole(sn.ceil(ys), rows)];
    const [x0, x1] = [whole(left, columns), whole(sn.ceil(xs), columns)];
    const upper = sn.lerp(at(y0, x0), at(y0, x1), dx);
    out = sn.lerp(upper, sn.lerp(at(y1, x0), at(y1, x1), dx), dy);
  }
  const seen = sn.logicalAnd(
    sn.reshape(inside(ys, rows), [count, 1, height, 1]),
    sn.reshape(inside(xs, columns), [count, 1, 1, width]),
  );
  return sn.where(seen, out, outside);
}

function complexProduct(isConjugate: boolean): (call: Call) => Tensor {
  return (call) => {
    const [x, y] = [call.tensor(0), call.tensor(1)];
    const part = (t: Tensor, at: number): Tensor => sn.select(t, -1, at);
    const [a, b, c, d] = [part(x, 0), part(x, 1), part(y, 0), part(y, 1)];
    const sign = isConjugate ? 1 : -1;
    const real = sn.add(sn.mul(a, c), sn.mul(sn.mul(b, d), sign));
    return sn.stack([real, sn.sub(sn.mul(b, c), sn.mul(sn.mul(a, d), sign))], -1);
  };
}

/** Distances of all pairs of rows. */
function distances(call: Call): Tensor {
  const metric = call.attributes.string('metric', 'sqeuclidean');
  if (metric !== 'euclidean' && metric !== 'sqeuclidean')
    call.fail(`attribute 'metric': '${metric}' is not supported`);
  const difference = sn.sub(sn.unsqueeze(call.tensor(0), 1), sn.unsqueeze(call.tensor(1), 0));
  const squares = sn.sum(sn.square(difference), 2);
  return metric === 'euclidean' ? sn.sqrt(squares) : squares;
}

/** Whether all elements are finite, or none is infinite, or none is NaN. */
function allFinite(call: Call): Tensor {
  const [isInf, isNan] = ['isinf_only', 'isnan_only'].map((name) => call.attributes.int(name, 0) !== 0);
  if (isInf && isNan) call.fail("attributes 'isinf_only' and 'isnan_only' exclude each other");
  const fits = (x: Tensor): Tensor => {
    if (isInf) return sn.logicalNot(sn.isInf(x));
    return isNan ? sn.logicalNot(sn.isNan(x)) : sn.isFinite(x);
  };
  const flags = call.tensors().map((x) => sn.all(fits(x)));
  return flags.reduce((x, y) => sn.logicalAnd(x, y));
}

/** What the standard has had since some opset, from the first one on. */
function first(rows: Rows, op: string): Row {
  const found = rows[op];
  if (found === undefined) throw new CompilerBug('onnx', `there is no row ${op}`);
  return { ...found, since: [1] };
}

export const various: Rows = {
  CDist: row([1], distances),
  ComplexMul: row([1], complexProduct(false)),
  ComplexMulConj: row([1], complexProduct(true)),
  CropAndResize: hosted([1], [3], cropAndResize),
  ExpandDims: hosted([1], [1], (call) => sn.unsqueeze(call.tensor(0), call.needed(1))),
  GatherND: first(gathering, 'GatherND'),
  GridSample: first(resample, 'GridSample'),
  Inverse: row([1], (call) => inverse(call.tensor(0))),
  IsAllFinite: row([1], allFinite),
  TorchEmbedding: row([1], (call) => {
    const [table, places] = [call.tensor(0), call.tensor(1)];
    const rows = sn.indexSelect(table, 0, sn.reshape(places, [places.size]));
    return sn.reshape(rows, [...places.shape, table.shape[1]!]);
  }),
  Trilu: first(shape, 'Trilu'),
};
