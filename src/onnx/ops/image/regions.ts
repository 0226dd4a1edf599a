// Regions of interest: parts of images, each brought to one size by the means or maxima of its
// cells.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { row } from '../row.ts';

/**
 * The sides of a region along one axis, an element a region: where it starts, and how long it is.
 */
interface Extent {
  readonly start: Tensor;
  readonly length: Tensor;
}

/** Where the cells of regions are sampled along one axis, [regions, cells · points]. */
interface Samples {
  /** The element at or before the place, the one behind it, and the share of that. */
  readonly low: Tensor;
  readonly high: Tensor;
  readonly share: Tensor;
  /** Close enough to the image to be other than 0. */
  readonly seen: Tensor;
  /** Part of the cell: regions of few points are filled up to the most that one has. */
  readonly used: Tensor;
  readonly points: number;
}

/** `counts` tells the points of a cell, a number a region. */
function samplesOf(
  { start, length }: Extent,
  cells: number,
  counts: Tensor,
  points: number,
  size: number,
): Samples {
  const column = (x: Tensor): Tensor => sn.unsqueeze(x, 1);
  const place = sn.arange(cells * points);
  const wide = start.dtype;
  const cell = sn.cast(sn.div(place, points, { rounding: 'trunc' }), wide);
  const point = sn.remainder(place, points);
  const width = column(sn.div(length, cells));
  const within = sn.div(sn.mul(sn.add(sn.cast(point, wide), 0.5), width), column(counts));
  const at = sn.add(sn.add(column(start), sn.mul(cell, width)), within);
  const inside = sn.clamp(at, 0, size - 1);
  const low = sn.clamp(sn.cast(sn.floor(inside), 'i32'), 0, size - 1);
  return {
    low,
    high: sn.minimum(sn.add(low, 1), size - 1),
    share: sn.sub(inside, sn.cast(low, wide)),
    seen: sn.logicalAnd(sn.ge(at, -1), sn.le(at, size)),
    used: sn.lt(sn.cast(point, wide), column(counts)),
    points,
  };
}

/** What images and regions are computed in. */
function widest(x: Tensor): 'f32' | 'f64' {
  return x.dtype === 'f64' ? 'f64' : 'f32';
}

/** Means (or maxima) of points in each cell of a grid over each region, read between elements. */
function roiAlign(call: Call): Tensor {
  const { attributes } = call;
  const x = call.tensor(0);
  const wide = widest(x);
  const rois = sn.cast(call.tensor(1), wide);
  const batches = sn.cast(call.tensor(2), 'i32');
  const cells = [attributes.int('output_height', 1), attributes.int('output_width', 1)] as const;
  const scale = attributes.float('spatial_scale', 1);
  const ratio = attributes.int('sampling_ratio', 0);
  const mode = attributes.string(
    'coordinate_transformation_mode',
    call.opset < 16 ? 'output_half_pixel' : 'half_pixel',
  );
  const isHalf = mode === 'half_pixel';
  const [, channels, ...size] = x.shape as readonly [number, number, number, number];
  const count = rois.shape[0]!;
  if (count === 0) return sn.zeros([0, channels, ...cells], { dtype: x.dtype });
  const side = (at: number): Tensor => sn.sub(sn.mul(sn.select(rois, 1, at), scale), isHalf ? 0.5 : 0);
  const lines = cells.map((number, i) => {
    const [start, end] = [side(1 - i), side(3 - i)];
    const length = sn.sub(end, start);
    // Without the shift by half an element malformed regions are one element wide.
    const extent = { start, length: isHalf ? length : sn.maximum(length, 1) };
    if (ratio > 0)
      return samplesOf(extent, number, sn.full([count], ratio, { dtype: wide }), ratio, size[i]!);
    const counts = adaptive(call.numbers(1)!, 1 - i, scale, isHalf, number, wide);
    const most = counts.reduce((a, b) => Math.max(a, b), 1);
    return samplesOf(extent, number, sn.tensor(counts, { dtype: wide }), most, size[i]!);
  });
  return sn.cast(
    pooled(x, batches, lines as [Samples, Samples], cells, attributes.string('mode', 'avg')),
    x.dtype,
  );
}

/** How many points each region's cells have along an axis when that follows from its size. */
function adaptive(
  corners: readonly number[],
  at: number,
  scale: number,
  isHalf: boolean,
  cells: number,
  wide: 'f32' | 'f64',
): number[] {
  const fround = wide === 'f64' ? (value: number) => value : Math.fround;
  const side = (value: number): number => fround(fround(value * fround(scale)) - (isHalf ? 0.5 : 0));
  return Array.from({ length: corners.length / 4 }, (_, r) => {
    const length = fround(side(corners[4 * r + at + 2]!) - side(corners[4 * r + at]!));
    return Math.max(0, Math.ceil(fround((isHalf ? length : Math.max(length, 1)) / cells)));
  });
}

/**
 * The four elements around each point, weighted, and what they come to in each cell: [regions,
 * channels, cells…].
 */
function pooled(
  x: Tensor,
  batches: Tensor,
  [vertical, horizontal]: readonly [Samples, Samples],
  [height, width]: readonly [number, number],
  mode: string,
): Tensor {
  const [n, channels, h, w] = x.shape as readonly [number, number, number, number];
  const count = batches.size;
  const table = sn.reshape(sn.permute(sn.cast(x, vertical.share.dtype), [0, 2, 3, 1]), [n * h * w, channels]);
  const rows = (line: Tensor): Tensor => sn.unsqueeze(line, 2);
  const columns = (line: Tensor): Tensor => sn.unsqueeze(line, 1);
  const both = (test: (line: Samples) => Tensor): Tensor =>
    sn.logicalAnd(rows(test(vertical)), columns(test(horizontal)));
  const image = sn.reshape(sn.mul(batches, h * w), [count, 1, 1]);
  const live = sn.cast(
    both(({ seen }) => seen),
    table.dtype,
  );
  const shape = [count, height, vertical.points, width, horizontal.points, channels];
  const corners = [0, 1, 2, 3].map((corner) => {
    const [down, right] = [corner >= 2, corner % 2 === 1];
    const y = sn.mul(rows(down ? vertical.high : vertical.low), w);
    const at = sn.add(sn.add(image, y), columns(right ? horizontal.high : horizontal.low));
    const share = sn.mul(
      rows(down ? vertical.share : sn.sub(1, vertical.share)),
      columns(right ? horizontal.share : sn.sub(1, horizontal.share)),
    );
    const read = sn.indexSelect(table, 0, sn.reshape(at, [at.size]));
    return sn.reshape(sn.mul(read, sn.reshape(sn.mul(share, live), [at.size, 1])), shape);
  });
  const used = sn.reshape(
    both((line) => line.used),
    [...shape.slice(0, 5), 1],
  );
  const total = sn.sum(sn.cast(used, table.dtype), [2, 4]);
  const isMean = mode === 'avg';
  // As the ONNX project and its users have it, a maximum is one of the weighted elements, not of
  // the points between them.
  const points = corners.reduce((a, b) => (isMean ? sn.add(a, b) : sn.maximum(a, b)));
  const chosen = sn.where(used, points, isMean ? 0 : -Infinity);
  const perCell = isMean ? sn.div(sn.sum(chosen, [2, 4]), sn.maximum(total, 1)) : sn.amax(chosen, [2, 4]);
  return sn.permute(sn.where(sn.gt(total, 0), perCell, 0), [0, 3, 1, 2]);
}

/** Halves away from zero, as the C library rounds. */
function rounded(x: Tensor): Tensor {
  return sn.cast(sn.mul(sn.sign(x), sn.floor(sn.add(sn.abs(x), 0.5))), 'i32');
}

/** Maxima of whole elements in each cell of a grid over each region; 0 where a cell has none. */
function maxRoiPool(call: Call): Tensor {
  const { attributes } = call;
  const x = call.tensor(0);
  const wide = widest(x);
  const rois = sn.cast(call.tensor(1), wide);
  const cells = attributes.ints('pooled_shape') ?? call.fail('pooled_shape is missing');
  const scale = attributes.float('spatial_scale', 1);
  const side = (at: number): Tensor => rounded(sn.mul(sn.select(rois, 1, at), scale));
  // Which elements of an axis are in which cell: [regions, cells, elements].
  const masks = cells.map((number, i) => {
    const [start, end] = [side(2 - i), side(4 - i)];
    const length = sn.maximum(sn.add(sn.sub(end, start), 1), 1);
    const width = sn.unsqueeze(sn.div(sn.cast(length, wide), number), 1);
    const cell = sn.cast(sn.arange(number), wide);
    const edge = (place: Tensor): Tensor =>
      sn.unsqueeze(sn.add(sn.cast(place, 'i32'), sn.unsqueeze(start, 1)), 2);
    const [first, last] = [
      edge(sn.floor(sn.mul(cell, width))),
      edge(sn.ceil(sn.mul(sn.add(cell, 1), width))),
    ];
    const place = sn.arange(x.shape[i + 2]!);
    return sn.logicalAnd(sn.ge(place, first), sn.lt(place, last));
  });
  const images = sn.indexSelect(x, 0, sn.cast(sn.select(rois, 1, 0), 'i32'));
  const most = (values: Tensor, mask: Tensor): Tensor => sn.amax(sn.where(mask, values, -Infinity), -1);
  const [rows, columns] = masks as [Tensor, Tensor];
  // [regions, channels, height, cells], then [regions, channels, cells, cells].
  const narrow = most(sn.unsqueeze(images, 3), sn.unsqueeze(sn.unsqueeze(columns, 1), 1));
  const result = most(sn.unsqueeze(sn.transpose(narrow, 2, 3), 2), sn.unsqueeze(sn.unsqueeze(rows, 1), 3));
  return sn.where(sn.eq(result, -Infinity), 0, result);
}

export const regions: Rows = {
  MaxRoiPool: row([1, 22], maxRoiPool),
  // A fixed number of points needs no region before it runs.
  RoiAlign: {
    since: [10, 16, 22],
    host: (attributes) => (attributes.int('sampling_ratio', 0) > 0 ? [] : [1]),
    run: roiAlign,
  },
};
