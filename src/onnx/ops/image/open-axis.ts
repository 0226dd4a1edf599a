// An axis of an image in another size, where sizes are left open: the places of elements are counted by operations in
// whole numbers, so that they are right at every size and on every device. ONNX Runtime and `placeOf` compute places in
// floats: one of these may fall just short of a whole number where these operations give the number.

import * as sn from '../../../operations/index.ts';
import { unchecked } from '../../../tensor/debug.ts';
import { cubicWeights } from '../../../tensor/ops/image/sample.ts';
import type { Tensor } from '../../../tensor/tensor.ts';

/** How one axis is resized. */
export interface ResizedAxis {
  readonly size: number;
  readonly count: number;
  readonly scale: number;
  /** The scale is the quotient of both sizes. */
  readonly isOfSizes: boolean;
  /** The part of the axis that is kept, as fractions of it. */
  readonly roi: readonly [start: number, end: number];
}

/** How places and weights are found. */
export interface ResizeStyle {
  readonly mode: string;
  readonly coordinates: string;
  readonly nearest: string;
  readonly cubic: number;
  readonly excludesOutside: boolean;
  readonly antialias: boolean;
  /** Weights are those of doubles. */
  readonly isWide: boolean;
  /** Corners are aligned to sizes as scales give them, not as they are cut to whole numbers. */
  readonly hasFractions: boolean;
}

/** Whole numbers that a place is made of: (by · i + start) / over. */
interface Places {
  readonly by: number;
  readonly start: number;
  readonly over: number;
}

/** The first element. */
const first: Places = { by: 0, start: 0, over: 1 };

/** Divisors of scales that are looked for. */
const mostDivisor = 64;

/** A scale as a quotient of whole numbers; undefined where it is none of small ones. */
function quotientOf({
  size,
  count,
  scale,
  isOfSizes,
}: ResizedAxis): readonly [top: number, bottom: number] | undefined {
  if (isOfSizes) return [count, size];
  for (let bottom = 1; bottom <= mostDivisor; bottom++) {
    const top = Math.round(scale * bottom);
    if (top > 0 && Math.abs(top / bottom - scale) < 1e-7 * scale) return [top, bottom];
  }
  return undefined;
}

function placesOf(axis: ResizedAxis, { coordinates, hasFractions }: ResizeStyle): Places | undefined {
  const { size, count, isOfSizes } = axis;
  const quotient = quotientOf(axis);
  if (quotient === undefined) return undefined;
  const [top, bottom] = quotient;
  switch (coordinates) {
    case 'half_pixel':
    case 'pytorch_half_pixel':
      if (coordinates === 'pytorch_half_pixel' && count === 1) return first;
      return { by: 2 * bottom, start: bottom - top, over: 2 * top };
    case 'tf_half_pixel_for_nn':
      return { by: 2 * bottom, start: bottom, over: 2 * top };
    case 'asymmetric':
      return { by: bottom, start: 0, over: top };
    case 'align_corners': {
      const isCut = isOfSizes || !hasFractions;
      const [by, over] = isCut ? [size - 1, count - 1] : [(size - 1) * bottom, size * top - bottom];
      return over === 0 ? first : { by, start: 0, over };
    }
    default:
      return undefined;
  }
}

/** The nearest element is the whole part of a place plus so many halves, and of a hair less where a whole number is too much. */
const roundings: Readonly<Record<string, readonly [halves: number, hairs: number]>> = {
  floor: [0, 0],
  ceil: [2, -1],
  round_prefer_ceil: [1, 0],
  round_prefer_floor: [1, -1],
};

/**
 * x with an axis in another size, recorded so that it holds at other sizes. Undefined where only the host can tell which
 * elements are read.
 */
export function openAxis(x: Tensor, axis: number, how: ResizedAxis, style: ResizeStyle): Tensor | undefined {
  const places = placesOf(how, style);
  if (places === undefined || style.antialias || style.excludesOutside || style.isWide) return undefined;
  const { by, start, over } = places;
  // Numbers stay within i32.
  if (2 * (by * how.count + Math.abs(start) + over) >= 2 ** 31) return undefined;
  const along = (line: Tensor): Tensor =>
    sn.reshape(
      line,
      x.shape.map((_, i) => (i === axis ? how.count : 1)),
    );
  const take = (places: Tensor): Tensor => {
    const inside = sn.clamp(places, 0, how.size - 1);
    return unchecked(() => sn.indexSelect(x, axis, inside));
  };
  const counted = sn.add(sn.mul(sn.arange(0, how.count, 1, { dtype: 'i32' }), by), start);
  if (style.mode === 'nearest') {
    const name = style.nearest === 'simple' ? (how.scale < 1 ? 'ceil' : 'floor') : style.nearest;
    const [halves, hairs] = roundings[name] ?? roundings['round_prefer_floor']!;
    const moved = sn.add(sn.mul(counted, 2), halves * over + hairs);
    return take(sn.floorDivide(moved, 2 * over));
  }
  const base = sn.floorDivide(counted, over);
  const rest = sn.sub(counted, sn.mul(base, over));
  const t = sn.div(sn.cast(rest, 'f32'), over);
  const weights = style.mode === 'cubic' ? cubicWeights(t, style.cubic) : [sn.sub(1, t), t];
  const before = style.mode === 'cubic' ? 1 : 0;
  return weights
    .map((weight, k) => sn.mul(take(sn.add(base, k - before)), along(weight)))
    .reduce((p, q) => sn.add(p, q));
}
