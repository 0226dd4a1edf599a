// Reading images between their elements: at coordinates that are data, by nearest, linear or cubic
// interpolation, with a rule for what lies outside (Jaderberg et al., 2015). Each tap is a gather,
// so that the result has gradients in the image and in the places.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { checkList, sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { wideType } from '../../formula/elementwise.ts';
import type { Tensor } from '../../tensor.ts';
import { cast } from '../elementwise/cast.ts';
import { ge, le, logicalAnd, lt, where } from '../elementwise/compare.ts';
import { arange, onesLike } from '../creation/creation.ts';
import { abs, clamp, floor, round } from '../elementwise/elementwise.ts';
import { add, div, fmod, mul, remainder, sub } from '../elementwise/arithmetic.ts';
import { gather } from '../shape/gather.ts';
import { stack } from '../shape/join.ts';
import { matmul } from '../product/matmul.ts';
import { withAutocastType } from '../../autocast.ts';
import { checkFloat, show } from '../operand.ts';
import { expand, reshape, transpose, unsqueeze } from '../shape/view.ts';
import { select } from '../shape/indexing.ts';

export interface SampleOptions {
  /** `linear` by default; `cubic` has 4 taps an axis. */
  readonly mode?: 'linear' | 'nearest' | 'cubic';
  /** Outside is 0 (default), the nearest edge, or the mirror image. */
  readonly paddingMode?: 'zeros' | 'border' | 'reflection';
  /**
   * −1 and 1 are the centres of the outermost elements, not their outer edges; false by default.
   */
  readonly alignCorners?: boolean;
}

/**
 * A place brought into the image. As in PyTorch, the edges themselves count as outside, where nothing
 * depends on the place, and what is no number is at the first edge.
 */
function bounded(place: Tensor, last: number): Tensor {
  const isWithin = logicalAnd(lt(0, place), lt(place, last));
  return where(isWithin, place, where(le(last, place), last, 0));
}

/** Where an axis ends for reflection: between its outermost centres, or at its edges. */
function reflected(place: Tensor, size: number, alignCorners: boolean): Tensor {
  const [low, span] = alignCorners ? [0, size - 1] : [-0.5, size];
  if (span === 0) return bounded(mul(place, 0), 0);
  const distance = abs(sub(place, low));
  const rest = fmod(distance, span);
  const isEven = le(remainder(floor(div(distance, span)), 2), 0.5);
  return bounded(add(where(isEven, rest, sub(span, rest)), low), size - 1);
}

function inside(place: Tensor, size: number, options: SampleOptions): Tensor {
  switch (options.paddingMode ?? 'zeros') {
    case 'border':
      return bounded(place, size - 1);
    case 'reflection':
      return reflected(place, size, options.alignCorners === true);
    default:
      return place;
  }
}

/**
 * Weights of the four taps around a place that lies `t` behind the second, by Keys' kernel (1981): polynomials of t,
 * whose digits do not cancel as those of the distances do. @internal
 */
export function cubicWeights(t: Tensor, a: number = -0.75): Tensor[] {
  const rest = sub(1, t);
  const outer = (x: Tensor, y: Tensor): Tensor => mul(mul(mul(x, a), y), y);
  const inner = (x: Tensor): Tensor => add(mul(mul(sub(mul(x, a + 2), a + 3), x), x), 1);
  // a·t·(1 − t)² and a·t²·(1 − t) at the ends.
  return [outer(t, rest), inner(t), inner(rest), outer(rest, t)];
}

/** Taps of one axis: places (whole numbers, in floats) and their weights. */
function tapsOf(
  place: Tensor,
  size: number,
  options: SampleOptions,
): (readonly [Tensor, Tensor | undefined])[] {
  if (options.mode === 'nearest') return [[round(inside(place, size, options)), undefined]];
  if (options.mode === 'cubic') {
    const base = floor(place);
    return cubicWeights(sub(place, base)).map((weight, k) => [
      inside(add(base, k - 1), size, options),
      weight,
    ]);
  }
  const at = inside(place, size, options);
  const base = floor(at);
  const t = sub(at, base);
  return [
    [base, sub(1, t)],
    [add(base, 1), t],
  ];
}

/** x [B,C,S…] read at places, one [B,P] tensor a spatial axis: [B,C,P]. @internal */
export function sampleAt(x: Tensor, places: readonly Tensor[], options: SampleOptions = {}): Tensor {
  const [batch, channels, ...sizes] = x.shape as readonly [number, number, ...number[]];
  const flat = reshape(x, [batch, channels, sizeOf(sizes)]);
  const points = places[0]!.shape[1]!;
  const wide = wideType(x.dtype);
  // Every combination of taps: its place in the flattened image, its weight, and whether it lies in
  // the image.
  interface Tap {
    readonly index: Tensor;
    readonly weight: Tensor | undefined;
    readonly seen: Tensor;
  }
  const taps = places.reduce<Tap[] | undefined>((known, place, axis) => {
    const size = sizes[axis]!;
    const own = tapsOf(cast(place, wide), size, options).map(([at, weight]) => ({
      index: cast(clamp(at, 0, size - 1), 'i32'),
      weight,
      seen: logicalAnd(ge(at, 0), le(at, size - 1)),
    }));
    if (known === undefined) return own;
    return known.flatMap((outer) =>
      own.map((inner) => ({
        index: add(mul(outer.index, size), inner.index),
        weight: outer.weight === undefined ? inner.weight : mul(outer.weight, inner.weight!),
        seen: logicalAnd(outer.seen, inner.seen),
      })),
    );
  }, undefined);
  return taps!
    .map(({ index, weight, seen }) => {
      const spread = expand(unsqueeze(index, 1), [batch, channels, points]);
      const read = gather(flat, 2, spread);
      const shown = where(unsqueeze(seen, 1), read, 0);
      return weight === undefined ? shown : mul(shown, cast(unsqueeze(weight, 1), x.dtype));
    })
    .reduce((p, q) => add(p, q));
}

const takesGridSample = arg.takes<typeof gridSample>(
  ['the image', aTensor],
  ['the grid', aTensor],
  [
    'options',
    arg.options<SampleOptions>({
      mode: arg.oneOf('linear', 'nearest', 'cubic'),
      paddingMode: arg.oneOf('zeros', 'border', 'reflection'),
      alignCorners: arg.flag,
    }),
  ],
);

/**
 * Images [N,C,S…] read at the places of a grid [N,…,axes] whose last axis holds coordinates from −1
 * to 1, the last spatial axis first: [N,C,…].
 *
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * const grid = sn.tensor([[[[-0.5, -0.5], [0.25, 0.5]]]]);
 * sn.gridSample(image, grid);
 */
export function gridSample(x: Tensor, grid: Tensor, options: SampleOptions = {}): Tensor {
  takesGridSample('gridSample', x, grid, options);
  const op = 'gridSample';
  checkFloat(op, x, grid);
  const { mode = 'linear', paddingMode = 'zeros', alignCorners = false } = options;
  const axes = x.rank - 2;
  if (axes < 1 || grid.rank !== x.rank || grid.shape[0] !== x.shape[0] || grid.shape.at(-1) !== axes) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `expects [N,C,S…] and a grid [N,…,${Math.max(1, axes)}]: ${show(x, grid)}`,
    );
  }
  const [batch, channels] = x.shape as readonly [number, number];
  const points = sizeOf(grid.shape.slice(1, -1));
  const flat = reshape(grid, [batch, points, axes]);
  const places = Array.from({ length: axes }, (_, i) => {
    const size = x.shape[i + 2]!;
    const at = add(cast(select(flat, -1, axes - 1 - i), wideType(x.dtype)), 1);
    return alignCorners ? mul(at, (size - 1) / 2) : div(sub(mul(at, size), 1), 2);
  });
  const out = sampleAt(x, places, { mode, paddingMode, alignCorners });
  return reshape(out, [batch, channels, ...grid.shape.slice(1, -1)]);
}

export interface GridOptions {
  /** As in `SampleOptions`; false by default. */
  readonly alignCorners?: boolean;
}

const takesAffineGrid = arg.takes<typeof affineGrid>(
  ['theta', aTensor],
  ['size', arg.inside()],
  ['options', arg.options<GridOptions>({ alignCorners: arg.flag })],
);

/**
 * The grid of places that affine maps theta [N,axes,axes+1] send an output of `size` [N,C,S…] to:
 * [N,S…,axes], for `gridSample`.
 *
 * @torch torch.nn.functional.affine_grid, torch.affine_grid_generator
 * @example
 * const theta = sn.tensor([[[1, 0, 0.5], [0, 1, 0]]]);
 * sn.affineGrid(theta, [1, 1, 2, 2]);
 */
export function affineGrid(theta: Tensor, size: readonly number[], options: GridOptions = {}): Tensor {
  takesAffineGrid('affineGrid', theta, size, options);
  const op = 'affineGrid';
  checkFloat(op, theta);
  checkList(op, 'size', size);
  const spatial = size.slice(2);
  const axes = spatial.length;
  if (
    theta.rank !== 3 ||
    theta.shape[0] !== size[0] ||
    theta.shape[1] !== axes ||
    theta.shape[2] !== axes + 1
  ) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `expects [${size[0]},${axes},${axes + 1}] for [${size.join(',')}]: ${show(theta)}`,
    );
  }
  const coordinates = spatial.map((count, i) => {
    const place = arange(count, undefined, 1, { dtype: wideType(theta.dtype) });
    const along =
      options.alignCorners === true
        ? sub(mul(place, count > 1 ? 2 / (count - 1) : 0), count > 1 ? 1 : 0)
        : sub(div(add(mul(place, 2), 1), count), 1);
    const shaped = reshape(
      along,
      spatial.map((dim, k) => (k === i ? dim : 1)),
    );
    return expand(shaped, spatial);
  });
  const points = stack([...coordinates.toReversed(), onesLike(coordinates[0]!)], -1);
  const flat = cast(reshape(points, [1, sizeOf(spatial), axes + 1]), theta.dtype);
  // Places are exact also inside of `autocast`.
  const turned = withAutocastType(undefined, () =>
    matmul(expand(flat, [size[0]!, sizeOf(spatial), axes + 1]), transpose(theta)),
  );
  return reshape(turned, [size[0]!, ...spatial, axes]);
}
