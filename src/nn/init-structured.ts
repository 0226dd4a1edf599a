// Initial values that are more than noise of one width: limited, scaled by what a weight is
// connected to, orthogonal, sparse, the identity of a convolution.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { erf } from '../ir/interpret/erf.ts';
import { full, zeros } from '../tensor/ops/creation/creation.ts';
import { normal, rand, randn, uniform } from '../tensor/ops/creation/random.ts';
import { iota, wideType } from '../tensor/formula/elementwise.ts';
import { mul } from '../tensor/ops/elementwise/arithmetic.ts';
import { lt, where } from '../tensor/ops/elementwise/compare.ts';
import { clamp } from '../tensor/ops/elementwise/elementwise.ts';
import { svd } from '../operations/linalg.ts';
import { withAutocastType } from '../tensor/autocast.ts';
import { matmul } from '../tensor/ops/product/matmul.ts';
import { argsort } from '../tensor/ops/reduce/sort.ts';
import { reshape } from '../tensor/ops/shape/view.ts';
import { ndtri } from '../tensor/ops/special/functions.ts';
import { record } from '../tensor/record.ts';
import { binary, cast, full as fullOf } from '../ir/build.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { fansOf, initOptions, typeOf, weightShape, type InitOptions } from './init.ts';

const takesConstant = arg.takes<typeof constant>(
  ['the shape', weightShape],
  ['the value', arg.number],
  ['options', arg.options<InitOptions>(initOptions)],
);

/** One value everywhere. */
export function constant(shape: readonly number[], value: number, options: InitOptions = {}): Tensor {
  takesConstant('constant', shape, value, options);
  return full(shape, value, typeOf(options));
}

export interface TruncNormalOptions extends InitOptions {
  /** 0 by default. */
  readonly mean?: number;
  /** 1 by default. */
  readonly std?: number;
  /** The least value, −2 by default: a value, not a number of deviations. */
  readonly low?: number;
  /** The greatest value, 2 by default. */
  readonly high?: number;
}

const takesTruncNormal = arg.takes<typeof truncNormal>(
  ['the shape', weightShape],
  [
    'options',
    arg.options<TruncNormalOptions>({
      ...initOptions,
      mean: arg.finite,
      std: arg.positive,
      low: arg.number,
      high: arg.number,
    }),
  ],
);

/** Φ(z): the share of a normal distribution below z. */
const below = (z: number): number => (1 + erf(z * Math.SQRT1_2)) / 2;

/** Normal, but never outside of [low, high]: Φ⁻¹ of a uniform number between their shares. */
export function truncNormal(shape: readonly number[], options: TruncNormalOptions = {}): Tensor {
  takesTruncNormal('truncNormal', shape, options);
  const { mean = 0, std = 1, low = -2, high = 2 } = options;
  if (!(low < high)) throw new TensorError('E_VALUE', 'truncNormal', `low ${low} must be below high ${high}`);
  const [first, last] = [below((low - mean) / std), below((high - mean) / std)];
  if (!(first < last)) {
    const problem = `[${low}, ${high}] is too far from the mean ${mean} for deviations of ${std}`;
    throw new TensorError('E_VALUE', 'truncNormal', problem);
  }
  const { dtype = 'f32' } = options;
  const shares = uniform(shape, { low: first, high: last, dtype: wideType(dtype) });
  return clamp(ndtri(shares).mul(std).add(mean), low, high).cast(dtype);
}

export interface VarianceScalingOptions extends InitOptions {
  /** 1 by default. */
  readonly scale?: number;
  /** What the variance is divided by: `fanIn` by default, `fanAvg` their mean. */
  readonly mode?: 'fanIn' | 'fanOut' | 'fanAvg';
  /** `truncatedNormal` by default, within two deviations. */
  readonly distribution?: 'normal' | 'truncatedNormal' | 'uniform';
}

const takesScaling = arg.takes<typeof varianceScaling>(
  ['the shape', weightShape],
  [
    'options',
    arg.options<VarianceScalingOptions>({
      ...initOptions,
      scale: arg.positive,
      mode: arg.oneOf('fanIn', 'fanOut', 'fanAvg'),
      distribution: arg.oneOf('normal', 'truncatedNormal', 'uniform'),
    }),
  ],
);

/** The deviation of a normal distribution that is cut off at two deviations. */
const CUT = 0.8796256610342398;

/** Noise of variance scale/fan (Glorot and Bengio, 2010; He et al., 2015 in one). */
export function varianceScaling(shape: readonly number[], options: VarianceScalingOptions = {}): Tensor {
  takesScaling('varianceScaling', shape, options);
  const { scale = 1, mode = 'fanIn', distribution = 'truncatedNormal' } = options;
  const { fanIn, fanOut } = fansOf('varianceScaling', shape);
  const std = Math.sqrt(scale / { fanIn, fanOut, fanAvg: (fanIn + fanOut) / 2 }[mode]);
  const dtype = typeOf(options);
  switch (distribution) {
    case 'normal':
      return normal(shape, { std, ...dtype });
    case 'uniform':
      return uniform(shape, { low: -std * Math.sqrt(3), high: std * Math.sqrt(3), ...dtype });
    case 'truncatedNormal': {
      const wide = std / CUT;
      return truncNormal(shape, { std: wide, low: -2 * wide, high: 2 * wide, ...dtype });
    }
    default:
      return distribution satisfies never;
  }
}

export interface OrthogonalOptions extends InitOptions {
  /** 1 by default. */
  readonly gain?: number;
}

const takesOrthogonal = arg.takes<typeof orthogonal>(
  ['the shape', weightShape],
  ['options', arg.options<OrthogonalOptions>({ ...initOptions, gain: arg.number })],
);

/**
 * A weight whose rows, or columns where there are fewer of them, are orthonormal times the gain
 * (Saxe et al., 2013): the orthogonal part U·Vᴴ of normal noise.
 */
export function orthogonal(shape: readonly number[], options: OrthogonalOptions = {}): Tensor {
  takesOrthogonal('orthogonal', shape, options);
  fansOf('orthogonal', shape);
  const rows = shape[0]!;
  const columns = shape.slice(1).reduce((product, size) => product * size, 1);
  if (rows * columns === 0) return zeros(shape, typeOf(options));
  const { dtype = 'f32' } = options;
  const [u, , vh] = svd(randn([rows, columns], { dtype: wideType(dtype) }), { fullMatrices: false });
  return reshape(
    mul(
      withAutocastType(undefined, () => matmul(u, vh)),
      options.gain ?? 1,
    ),
    shape,
  ).cast(dtype);
}

export interface DiracOptions extends InitOptions {
  /** Groups of a convolution, 1 by default. */
  readonly groups?: number;
}

const takesDirac = arg.takes<typeof dirac>(
  ['the shape', weightShape],
  ['options', arg.options<DiracOptions>({ ...initOptions, groups: arg.count(1) })],
);

/** A convolution's weight that passes on as many channels as it can: 1 in the middle of the window. */
export function dirac(shape: readonly number[], options: DiracOptions = {}): Tensor {
  takesDirac('dirac', shape, options);
  const { groups = 1 } = options;
  const [out, , ...window] = shape as [number, number, ...number[]];
  if (window.length === 0 || window.length > 3 || out % groups !== 0) {
    const problem = `expects [out, in, …window] with ${groups} groups: [${shape.join(',')}]`;
    throw new TensorError('E_SHAPE', 'dirac', problem);
  }
  return record([], (b) => {
    const at = (axis: number): ReturnType<typeof iota> => iota(b, shape, axis);
    const middles = window.map((size, i) =>
      binary(b, 'eq', at(i + 2), fullOf(b, shape, Math.floor(size / 2), 'i32')),
    );
    const channel = binary(b, 'eq', binary(b, 'mod', at(0), out / groups), at(1));
    const all = [...middles, channel].reduce((both, one) => binary(b, 'and', both, one));
    return cast(b, all, options.dtype ?? 'f32');
  });
}

export interface SparseOptions extends InitOptions {
  /** Of the numbers that are not 0; 0.01 by default. */
  readonly std?: number;
}

const takesSparse = arg.takes<typeof sparse>(
  ['the shape', weightShape],
  ['sparsity', arg.share],
  ['options', arg.options<SparseOptions>({ ...initOptions, std: arg.notNegative })],
);

/** Normal numbers, but a share of each column, at random rows, is 0 (Martens, 2010). */
export function sparse(shape: readonly number[], sparsity: number, options: SparseOptions = {}): Tensor {
  takesSparse('sparse', shape, sparsity, options);
  if (shape.length !== 2)
    throw new TensorError('E_SHAPE', 'sparse', `expects two axes: [${shape.join(',')}]`);
  const count = Math.ceil(sparsity * shape[0]!);
  const values = normal(shape, { std: options.std ?? 0.01, ...typeOf(options) });
  // The rank of each row among random numbers of its column.
  const rank = argsort(argsort(rand(shape), 0), 0);
  return where(lt(rank, count), 0, values);
}
