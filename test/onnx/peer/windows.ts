// Random nodes of operators on windows: convolutions, poolings, and what goes with them.

import type { DType } from '../../../src/ir/dtype.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import type { Draft } from '../../support/onnx/file.ts';
import { attr, ints, type Draw, type Family } from './draw.ts';

interface Window {
  readonly kernel: number[];
  readonly spatial: number[];
  readonly attributes: Draft[];
}

/** Windows that fit into images of their own sizes. */
function windowOf(draw: Draw, axes: number, { dilated = true, padded = true } = {}): Window {
  const kernel = draw.ints(axes, 1, 3);
  const strides = draw.ints(axes, 1, 3);
  const dilations = dilated && draw.coin() ? draw.ints(axes, 1, 2) : kernel.map(() => 1);
  const spatial = kernel.map((size, i) => (size - 1) * dilations[i]! + 1 + draw.int(0, 4));
  const attributes: Draft[] = [];
  if (draw.coin()) attributes.push(attr.ints('strides', strides));
  if (dilations.some((n) => n > 1)) attributes.push(attr.ints('dilations', dilations));
  if (padded && draw.coin()) {
    // Not wider than the window: elsewhere nothing of the image would be seen.
    const most = (i: number): number => Math.max(0, Math.min(2, kernel[i % axes]! - 1));
    attributes.push(
      attr.ints(
        'pads',
        Array.from({ length: 2 * axes }, (_, i) => draw.int(0, most(i))),
      ),
    );
  } else if (draw.coin() && dilations.every((n) => n === 1)) {
    // Where windows leave gaps, ONNX Runtime's LpPool cuts off the front of the image.
    const hasGaps = strides.some((n, i) => n > kernel[i]!);
    attributes.push(
      attr.text(
        'auto_pad',
        draw.pick(hasGaps ? ['VALID', 'NOTSET'] : ['SAME_UPPER', 'SAME_LOWER', 'VALID', 'NOTSET']),
      ),
    );
  }
  return { kernel, spatial, attributes };
}

const conv: Family = (draw) => {
  const { kernel, spatial, attributes } = windowOf(draw, draw.int(1, 3));
  const [groups, per, outs] = [draw.int(1, 3), draw.int(1, 2), draw.int(1, 2)];
  const x = draw.tensor([draw.int(1, 2), groups * per, ...spatial]);
  const w = draw.tensor([groups * outs, per, ...kernel]);
  const inputs = draw.coin() ? [x, w] : [x, w, draw.tensor([groups * outs])];
  const named = [
    ...attributes,
    attr.int('group', groups),
    ...(draw.coin() ? [attr.ints('kernel_shape', kernel)] : []),
  ];
  return { op: 'Conv', opset: draw.pick([7, 11, 22]), attributes: named, inputs };
};

const transposed: Family = (draw) => {
  const axes = draw.int(1, 3);
  const kernel = draw.ints(axes, 1, 3);
  const strides = draw.ints(axes, 1, 3);
  const dilations = draw.coin() ? draw.ints(axes, 1, 2) : kernel.map(() => 1);
  const spatial = draw.ints(axes, 1, 4);
  const [groups, per, outs] = [draw.int(1, 2), draw.int(1, 2), draw.int(1, 2)];
  const attributes = [
    attr.int('group', groups),
    attr.ints('strides', strides),
    attr.ints('dilations', dilations),
  ];
  const reach = kernel.map((size, i) => (size - 1) * dilations[i]!);
  const extra = strides.map((n, i) => (draw.coin() ? draw.int(0, Math.max(n, dilations[i]!) - 1) : 0));
  switch (draw.int(0, 3)) {
    case 0:
      attributes.push(
        attr.ints('pads', [
          ...reach.map((n) => draw.int(0, Math.floor(n / 2))),
          ...reach.map((n) => draw.int(0, Math.floor(n / 2))),
        ]),
      );
      attributes.push(attr.ints('output_padding', extra));
      break;
    case 1: {
      // Where windows leave gaps, ONNX Runtime gives less than the size times the stride, which the definition has.
      const hasGaps = strides.some((n, i) => n > reach[i]! + 1);
      attributes.push(
        attr.text('auto_pad', hasGaps ? 'VALID' : draw.pick(['SAME_UPPER', 'SAME_LOWER', 'VALID'])),
      );
      break;
    }
    case 2: {
      const full = spatial.map((size, i) => (size - 1) * strides[i]! + reach[i]! + 1);
      attributes.push(
        attr.ints(
          'output_shape',
          full.map((n, i) => Math.max(1, n - draw.int(0, reach[i]!))),
        ),
      );
      if (draw.coin())
        attributes.push(attr.text('auto_pad', draw.pick(['SAME_UPPER', 'SAME_LOWER', 'NOTSET'])));
      break;
    }
    default:
  }
  const x = draw.tensor([draw.int(1, 2), groups * per, ...spatial]);
  const w = draw.tensor([groups * per, outs, ...kernel]);
  const inputs = draw.coin() ? [x, w] : [x, w, draw.tensor([groups * outs])];
  return { op: 'ConvTranspose', opset: draw.pick([7, 11, 22]), attributes, inputs };
};

const pool: Family = (draw) => {
  const op = draw.pick(['MaxPool', 'AveragePool', 'LpPool', 'MaxPool', 'AveragePool']);
  const opset = draw.pick(
    op === 'MaxPool' ? [7, 8, 10, 11, 12, 22] : op === 'AveragePool' ? [7, 10, 11, 19, 22] : [7, 11, 18, 22],
  );
  const hasDilations = op === 'MaxPool' ? opset >= 10 : op === 'AveragePool' ? opset >= 19 : opset >= 18;
  const { kernel, spatial, attributes } = windowOf(draw, draw.int(1, 3), { dilated: hasDilations });
  const isCeiled = op === 'LpPool' ? opset >= 18 : opset >= 10;
  const isSame = attributes.some(({ name }) => name === 'auto_pad');
  if (isCeiled && !isSame && draw.coin()) attributes.push(attr.int('ceil_mode', draw.int(0, 1)));
  if (op === 'AveragePool' && draw.coin()) attributes.push(attr.int('count_include_pad', draw.int(0, 1)));
  if (op === 'LpPool' && draw.coin()) attributes.push(attr.int('p', draw.int(1, 3)));
  const outputs = op === 'MaxPool' && opset >= 8 && draw.coin() ? 2 : 1;
  if (outputs === 2 && draw.coin()) attributes.push(attr.int('storage_order', draw.int(0, 1)));
  const dtype = op === 'MaxPool' && opset >= 12 ? draw.pick<DType>(['f32', 'u8', 'i8', 'f64']) : 'f32';
  const x = draw.tensor([draw.int(1, 2), draw.int(1, 3), ...spatial], dtype);
  return { op, opset, attributes: [...attributes, attr.ints('kernel_shape', kernel)], inputs: [x], outputs };
};

const globalPool: Family = (draw) => {
  const op = draw.pick(['GlobalAveragePool', 'GlobalMaxPool', 'GlobalLpPool']);
  const attributes = op === 'GlobalLpPool' && draw.coin() ? [attr.int('p', draw.int(1, 3))] : [];
  const x = draw.tensor([draw.int(1, 3), draw.int(1, 3), ...draw.ints(draw.int(1, 3), 1, 5)]);
  return { op, opset: draw.pick(op === 'GlobalLpPool' ? [2, 22] : [1, 22]), attributes, inputs: [x] };
};

/** Places of a real pooling, put back. */
const unpool: Family = (draw) => {
  const [h, w] = [draw.int(1, 3), draw.int(1, 3)];
  const size = draw.int(2, 3);
  const [n, c] = [draw.int(1, 2), draw.int(1, 2)];
  const [height, width] = [h * size, w * size];
  const places: number[] = [];
  for (let plane = 0; plane < n * c; plane++)
    for (let i = 0; i < h; i++)
      for (let j = 0; j < w; j++)
        places.push(
          (plane * height + i * size + draw.int(0, size - 1)) * width + j * size + draw.int(0, size - 1),
        );
  const attributes = [attr.ints('kernel_shape', [size, size]), attr.ints('strides', [size, size])];
  return {
    op: 'MaxUnpool',
    opset: draw.pick([9, 11, 22]),
    attributes,
    inputs: [draw.tensor([n, c, h, w]), ints(places, [n, c, h, w])],
  };
};

const columns: Family = (draw) => {
  // ONNX Runtime's own steps through the image are wrong where it has not two axes.
  const { kernel, spatial, attributes } = windowOf(draw, 2, { padded: false });
  const read = (name: string): number[] =>
    (attributes.find((item) => item['name'] === name)?.['ints'] as bigint[] | undefined)?.map(Number) ??
    kernel.map(() => 1);
  const plain = attributes.filter(({ name }) => name !== 'auto_pad');
  const pads = draw.coin() ? draw.ints(2 * kernel.length, 0, 1) : kernel.flatMap(() => [0, 0]);
  const [strides, dilations] = [read('strides'), read('dilations')];
  const counts = spatial.map(
    (size, i) =>
      Math.floor(
        (size + pads[i]! + pads[i + kernel.length]! - dilations[i]! * (kernel[i]! - 1) - 1) / strides[i]!,
      ) + 1,
  );
  const x = draw.tensor([draw.int(1, 2), draw.int(1, 2) * sizeOf(kernel), sizeOf(counts)]);
  return {
    op: 'Col2Im',
    opset: 18,
    attributes: [...plain, attr.ints('pads', pads)],
    inputs: [x, ints(spatial), ints(kernel)],
    stored: [1, 2],
  };
};

const deform: Family = (draw) => {
  const { kernel, spatial, attributes } = windowOf(draw, 2);
  const named = attributes.filter(({ name }) => name !== 'auto_pad');
  const read = (name: string): number[] | undefined =>
    (named.find((item) => item['name'] === name)?.['ints'] as bigint[] | undefined)?.map(Number);
  const [strides, dilations, pads] = [
    read('strides') ?? [1, 1],
    read('dilations') ?? [1, 1],
    read('pads') ?? [0, 0, 0, 0],
  ];
  const out = spatial.map(
    (size, i) =>
      Math.floor((size + pads[i]! + pads[i + 2]! - dilations[i]! * (kernel[i]! - 1) - 1) / strides[i]!) + 1,
  );
  const [n, groups, offsets] = [draw.int(1, 2), draw.int(1, 2), draw.int(1, 2)];
  const channels = groups * offsets * draw.int(1, 2);
  const x = draw.tensor([n, channels, ...spatial]);
  const w = draw.tensor([groups * draw.int(1, 2), channels / groups, ...kernel]);
  const offset = draw.tensor([n, offsets * sizeOf(kernel) * 2, ...out]);
  const bias = draw.coin() ? draw.tensor([w.shape[0]!]) : undefined;
  const mask = draw.coin() ? draw.tensor([n, offsets * sizeOf(kernel), ...out]) : undefined;
  return {
    op: 'DeformConv',
    opset: draw.pick([19, 22]),
    attributes: [...named, attr.int('group', groups), attr.int('offset_group', offsets)],
    inputs: [x, w, offset, bias, mask],
    tolerance: 1e-3,
  };
};

export const windows: Readonly<Record<string, Family>> = {
  conv,
  transposed,
  pool,
  globalPool,
  unpool,
  columns,
  deform,
};
