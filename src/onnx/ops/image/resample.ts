// Images in other sizes, and read at places between their elements. A size is changed axis by axis:
// which elements an output element reads, and with which weights, is worked out here, on the host, and by operations
// where sizes are left open (open-axis.ts).

import { SinterError } from '../../../errors.ts';
import { integerRange, isFloat, type DType } from '../../../ir/dtype.ts';
import { sizeOf } from '../../../ir/shape.ts';
import * as sn from '../../../operations/index.ts';
import { sampleAt } from '../../../tensor/ops/image/sample.ts';
import { isTrial } from '../../../tensor/sizes/trial.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import { currentBudget } from '../../budget.ts';
import type { Call, Rows } from '../../call.ts';
import { hosted, row } from '../row.ts';
import { openAxis, type ResizedAxis, type ResizeStyle } from './open-axis.ts';

/** The place in the input that an output element stands for. */
function placeOf(
  i: number,
  { size, count, scale, roi }: ResizedAxis,
  { coordinates, hasFractions, isWide }: Pick<ResizeStyle, 'coordinates' | 'hasFractions' | 'isWide'>,
): number {
  // Scales are floats of the file, and halves that they lead to decide which element is the
  // nearest: in floats too.
  const fround = isWide ? (value: number) => value : Math.fround;
  const centre = fround(fround((i + 0.5) / scale) - 0.5);
  // Sizes that they stand for come out whole.
  const product = scale * size;
  const whole = Math.abs(product - Math.round(product)) < 1e-6 ? Math.round(product) : product;
  switch (coordinates) {
    case 'half_pixel':
      return centre;
    case 'pytorch_half_pixel':
      return count > 1 ? centre : 0;
    case 'half_pixel_symmetric':
      return fround((size / 2) * (1 - count / whole) + centre);
    case 'tf_half_pixel_for_nn':
      return fround((i + 0.5) / scale);
    case 'align_corners': {
      const last = (hasFractions ? whole : count) - 1;
      return last === 0 ? 0 : (i * (size - 1)) / last;
    }
    case 'asymmetric':
      return fround(i / scale);
    case 'tf_crop_and_resize': {
      const [start, end] = roi;
      if (count === 1) return fround(fround(0.5 * fround(start + end)) * (size - 1));
      const reach = fround(fround(end - start) * (size - 1));
      return fround(fround(start * (size - 1)) + fround(fround(i * reach) / (count - 1)));
    }
    default:
      throw new SinterError('E_UNSUPPORTED', `no coordinate transformation '${coordinates}'`);
  }
}

/**
 * `simple` is what Resize did before it had modes (opset 10): down to the element behind, up from
 * the one before.
 */
function nearestTo(place: number, mode: string, scale: number): number {
  switch (mode) {
    case 'floor':
      return Math.floor(place);
    case 'ceil':
      return Math.ceil(place);
    case 'simple':
      return scale < 1 ? Math.ceil(place) : Math.floor(place);
    case 'round_prefer_ceil':
      return Math.floor(place + 0.5);
    default:
      return Math.ceil(place - 0.5);
  }
}

function cubicKernel(x: number, a: number): number {
  const size = Math.abs(x);
  if (size <= 1) return (a + 2) * size ** 3 - (a + 3) * size ** 2 + 1;
  return size < 2 ? a * size ** 3 - 5 * a * size ** 2 + 8 * a * size - 4 * a : 0;
}

/**
 * The elements around a place and their weights; a smaller output spreads the kernel when it is
 * smoothed.
 */
function tapsAt(
  place: number,
  { size, scale }: ResizedAxis,
  style: ResizeStyle,
): [index: number, weight: number][] {
  const base = Math.floor(place);
  const spread = style.antialias ? Math.min(scale, 1) : 1;
  const radius = style.mode === 'cubic' ? 2 : 1;
  const first = Math.floor(-radius / spread) + 1;
  const kernel = (x: number): number =>
    style.mode === 'cubic' ? cubicKernel(x, style.cubic) : Math.max(0, 1 - Math.abs(x));
  const taps: [number, number][] = [];
  for (let k = first; k <= 1 - first; k++) {
    const index = base + k;
    const isOutside = index < 0 || index >= size;
    const weight = style.excludesOutside && isOutside ? 0 : kernel((index - place) * spread);
    taps.push([Math.min(size - 1, Math.max(0, index)), weight]);
  }
  const total = taps.reduce((sum, [, weight]) => sum + weight, 0);
  return taps.map(([index, weight]) => [index, weight / total]);
}

/** One axis of x resized. */
function resizeAxis(x: Tensor, axis: number, how: ResizedAxis, style: ResizeStyle, outside: number): Tensor {
  // Each place has neighbours, with weights.
  currentBudget().list(64 * how.count, 'Resize');
  const places = Array.from({ length: how.count }, (_, i) => placeOf(i, how, style));
  const along = (values: readonly number[]): Tensor =>
    sn.tensor(style.isWide ? Float64Array.from(values) : Float32Array.from(values), {
      dtype: x.dtype,
      shape: x.shape.map((_, i) => (i === axis ? values.length : 1)),
    });
  if (how.count === 0) return sn.narrow(x, axis, 0, 0);
  const take = (indices: readonly number[]): Tensor =>
    sn.indexSelect(x, axis, sn.tensor(Int32Array.from(indices)));
  let out: Tensor;
  if (style.mode === 'nearest') {
    out = take(
      places.map((place) => Math.min(how.size - 1, Math.max(0, nearestTo(place, style.nearest, how.scale)))),
    );
  } else {
    const taps = places.map((place) => tapsAt(place, how, style));
    out = taps[0]!
      .map((_, k) => sn.mul(take(taps.map((list) => list[k]![0])), along(taps.map((list) => list[k]![1]))))
      .reduce((p, q) => sn.add(p, q));
  }
  if (style.coordinates !== 'tf_crop_and_resize') return out;
  const isOutside = places.map((place) => (place < 0 || place > how.size - 1 ? 1 : 0));
  return isOutside.includes(1) ? sn.where(sn.gt(along(isOutside), 0), outside, out) : out;
}

function styleOf(call: Call, dtype: DType): ResizeStyle {
  const { attributes } = call;
  const isOld = call.op === 'Upsample' || call.opset < 11;
  const mode = attributes.string('mode', 'nearest');
  return {
    mode: mode === 'bilinear' || mode === 'trilinear' ? 'linear' : mode,
    coordinates: isOld ? 'asymmetric' : attributes.string('coordinate_transformation_mode', 'half_pixel'),
    nearest: isOld ? 'simple' : attributes.string('nearest_mode', 'round_prefer_floor'),
    cubic: attributes.float('cubic_coeff_a', -0.75),
    excludesOutside: attributes.int('exclude_outside', 0) === 1,
    antialias: attributes.int('antialias', 0) === 1,
    isWide: dtype === 'f64' && mode !== 'nearest',
    // Opset 19 says so; before that, other runtimes and what exporters mean agree on whole sizes.
    hasFractions: call.opset >= 19,
  };
}

/** Opset 1 has two numbers for images of four axes. */
function planeScales({ attributes }: Call): number[] | undefined {
  const [height, width] = [attributes.float('height_scale'), attributes.float('width_scale')];
  return height === undefined || width === undefined ? undefined : [1, 1, height, width];
}

/** Floats brought into the range of a type of integers. */
function within(x: Tensor, dtype: DType): Tensor {
  const [low, high] = integerRange(dtype);
  return sn.clamp(x, Number(low), Number(high));
}

function resize(call: Call): Tensor {
  const { attributes } = call;
  const x = call.tensor(0);
  const isOld = call.op === 'Upsample' || call.opset < 11;
  const axes = call.axes(attributes.ints('axes') ?? x.shape.map((_, axis) => axis), x.rank);
  const given = (place: number): number[] | undefined => {
    const numbers = call.numbers(place);
    return numbers === undefined || numbers.length === 0 ? undefined : numbers;
  };
  const scales = isOld ? (attributes.floats('scales') ?? planeScales(call) ?? given(1)) : given(2);
  const sizes = isOld ? undefined : given(3);
  const roi = isOld ? undefined : given(1);
  if (scales === undefined && sizes === undefined) call.fail('neither scales nor sizes are given');
  const style = styleOf(call, x.dtype);
  const lists: readonly (readonly [string, readonly number[] | undefined, number])[] = [
    ['scales', scales, axes.length],
    ['sizes', sizes, axes.length],
    ['roi', style.coordinates === 'tf_crop_and_resize' ? roi : undefined, 2 * axes.length],
  ];
  for (const [name, list, count] of lists) {
    if (list !== undefined && list.length !== count)
      call.fail(`${name} has ${list.length} numbers: expected ${count}`);
  }
  const strange = (sizes ?? scales!).find((value) => !(value >= 0 && Number.isFinite(value)));
  if (strange !== undefined) call.fail(`no axis is resized by ${strange}`);
  let ratios = sizes === undefined ? scales! : sizes.map((size, i) => size / x.shape[axes[i]!]!);
  let counts = axes.map((axis, i) => sizes?.[i] ?? Math.floor(Math.fround(x.shape[axis]! * ratios[i]!)));
  const policy = attributes.string('keep_aspect_ratio_policy', 'stretch');
  if (sizes !== undefined && policy !== 'stretch') {
    const common = (policy === 'not_larger' ? Math.min : Math.max)(...ratios);
    ratios = ratios.map(() => common);
    counts = axes.map((axis) => Math.floor(common * x.shape[axis]! + 0.5));
  }
  // Weighted sums are worked out in floats. Whole numbers are cut off, but those that are smoothed are
  // rounded after each axis, the last one first, as libraries of images do.
  const isWeighted = style.mode !== 'nearest' && x.dtype !== 'f64';
  const isWhole = isWeighted && !isFloat(x.dtype) && x.dtype !== 'bool';
  const isRounded = isWhole && style.antialias;
  const outside = attributes.float('extrapolation_value', 0);
  const order = axes.map((_, i) => i);
  const resized = (isRounded ? order.toReversed() : order).reduce(
    (out, i) => {
      const axis = axes[i]!;
      const how: ResizedAxis = {
        size: x.shape[axis]!,
        count: counts[i]!,
        scale: ratios[i]!,
        isOfSizes: sizes !== undefined && policy === 'stretch',
        roi: [roi?.[i] ?? 0, roi?.[i + axes.length] ?? 1],
      };
      const isCropped = style.coordinates === 'tf_crop_and_resize' && (how.roi[0] !== 0 || how.roi[1] !== 1);
      // An image may have the wanted size already at one of the sizes that a recording stands for.
      const isOpen = isTrial() && how.isOfSizes && axis > 1;
      if (how.scale === 1 && !isCropped && !isOpen) return out;
      const recorded = isTrial() && !isRounded ? openAxis(out, axis, how, style) : undefined;
      const result = recorded ?? resizeAxis(out, axis, how, style, outside);
      return isRounded ? within(sn.floor(sn.add(result, 0.5)), x.dtype) : result;
    },
    isWeighted ? sn.cast(x, 'f32') : x,
  );
  // Cubic weights reach beyond the range of the elements.
  return sn.cast(isWhole ? within(resized, x.dtype) : resized, x.dtype);
}

function gridSample(call: Call): Tensor {
  const { attributes } = call;
  const mode = attributes.string('mode', call.opset >= 20 ? 'linear' : 'bilinear').replace(/^bi/, '');
  const paddingMode = attributes.string('padding_mode', 'zeros');
  const [x, grid] = [call.tensor(0), call.tensor(1)];
  const wide = isFloat(x.dtype) ? x : sn.cast(x, grid.dtype);
  const read = sn.gridSample(wide, grid, {
    mode: mode as 'linear',
    paddingMode: paddingMode as 'zeros',
    alignCorners: attributes.int('align_corners', 0) === 1,
  });
  return sn.cast(read, x.dtype);
}

/** A convolution whose taps are moved by offsets that are data, each weighted by a mask. */
function deformConv(call: Call): Tensor {
  const { attributes } = call;
  const [x, weight, offset] = [call.tensor(0), call.tensor(1), call.tensor(2)];
  const [bias, mask] = [call.optional(3), call.optional(4)];
  const [n, c] = x.shape as readonly [number, number];
  const kernel = attributes.ints('kernel_shape') ?? weight.shape.slice(2);
  const axes = kernel.length;
  const ones = kernel.map(() => 1);
  const [strides, dilations] = [attributes.ints('strides') ?? ones, attributes.ints('dilations') ?? ones];
  const pads = attributes.ints('pads') ?? kernel.flatMap(() => [0, 0]);
  const [groups, offsets] = [attributes.int('group', 1), attributes.int('offset_group', 1)];
  const out = offset.shape.slice(2);
  const taps = sizeOf(kernel);
  const points = sizeOf(out);
  // [n·offsets, taps, axes, out…]
  const moved = sn.reshape(offset, [n * offsets, taps, axes, ...out]);
  const places = kernel.map((_, axis) => {
    const shape = [...kernel, ...out];
    const along = (at: number, values: Tensor): Tensor =>
      sn.reshape(
        values,
        shape.map((dim, i) => (i === at ? dim : 1)),
      );
    const tap = along(
      axis,
      sn.mul(sn.arange(kernel[axis]!, undefined, 1, { dtype: 'f32' }), dilations[axis]!),
    );
    const start = along(
      axes + axis,
      sn.mul(sn.arange(out[axis]!, undefined, 1, { dtype: 'f32' }), strides[axis]!),
    );
    const fixed = sn.reshape(sn.expand(sn.sub(sn.add(tap, start), pads[axis]!), shape), [taps, ...out]);
    return sn.reshape(sn.add(sn.select(moved, 2, axis), fixed), [n * offsets, taps * points]);
  });
  const images = sn.reshape(x, [n * offsets, c / offsets, ...x.shape.slice(2)]);
  let read = sn.reshape(sampleAt(images, places), [n, offsets, c / offsets, taps, points]);
  if (mask !== undefined) read = sn.mul(read, sn.reshape(mask, [n, offsets, 1, taps, points]));
  const columns = sn.reshape(read, [n, groups, (c / groups) * taps, points]);
  const outputs = weight.shape[0]!;
  const matrix = sn.reshape(weight, [1, groups, outputs / groups, (c / groups) * taps]);
  const result = sn.reshape(sn.matmul(matrix, columns), [n, outputs, ...out]);
  return bias === undefined ? result : sn.add(result, sn.reshape(bias, [outputs, ...out.map(() => 1)]));
}

export const resample: Rows = {
  AffineGrid: hosted([20], [1], (call) =>
    sn.affineGrid(call.tensor(0), call.numbers(1)!, {
      alignCorners: call.attributes.int('align_corners', 0) === 1,
    }),
  ),
  DeformConv: row([19, 22], deformConv),
  GridSample: row([16, 20, 22], gridSample),
  Resize: hosted([10, 11, 13, 18, 19], [1, 2, 3], resize),
  Upsample: hosted([1, 7, 9, 10], [1], resize),
};
