// Initial values of weights. Each draws from the generator (`manualSeed`), so a seed determines a
// model. Defaults are PyTorch's: U(±1/√fanIn), which is Kaiming's uniform with a = √5.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import type { DType } from '../ir/dtype.ts';
import { normal, uniform } from '../tensor/ops/creation/random.ts';
import type { Tensor } from '../tensor/tensor.ts';

export interface InitOptions {
  /** f32 by default. */
  readonly dtype?: DType;
}

export const initOptions: arg.Table<InitOptions> = { dtype: arg.floatDType };

/** The sizes of a weight. */
export const weightShape: arg.Kind<readonly number[]> = arg.listOf(arg.count(0));

const takesFans = arg.takes<typeof fans>(['the shape', weightShape]);

/**
 * Values that one output element reads, and output elements that one input feeds: [out, in,
 * …window] weights.
 */
export function fans(shape: readonly number[]): { fanIn: number; fanOut: number } {
  takesFans('fans', shape);
  return fansOf('fans', shape);
}

/** `fans`, for another operation. */
export function fansOf(op: string, shape: readonly number[]): { fanIn: number; fanOut: number } {
  if (shape.length < 2) {
    throw new TensorError('E_SHAPE', op, `expects a weight of at least two axes: [${shape.join(',')}]`);
  }
  const window = shape.slice(2).reduce((product, size) => product * size, 1);
  return { fanIn: shape[1]! * window, fanOut: shape[0]! * window };
}

/** What follows the layer that is initialised. */
export type Nonlinearity = 'linear' | 'sigmoid' | 'tanh' | 'relu' | 'leakyRelu' | 'selu';

const nonlinearities: arg.Kind<Nonlinearity> = arg.oneOf(
  'linear',
  'sigmoid',
  'tanh',
  'relu',
  'leakyRelu',
  'selu',
);
const takesGain = arg.takes<typeof gain>(
  ['nonlinearity', nonlinearities],
  ['slope', arg.optional(arg.number)],
);

/** The factor that keeps the variance through a nonlinearity; `slope` is the leaky one's. */
export function gain(nonlinearity: Nonlinearity, slope: number = 0.01): number {
  takesGain('gain', nonlinearity, slope);
  switch (nonlinearity) {
    case 'linear':
    case 'sigmoid':
      return 1;
    case 'tanh':
      return 5 / 3;
    case 'relu':
      return Math.SQRT2;
    case 'leakyRelu':
      return Math.sqrt(2 / (1 + slope ** 2));
    case 'selu':
      return 3 / 4;
    default:
      return nonlinearity satisfies never;
  }
}

export interface XavierOptions extends InitOptions {
  /** 1 by default. */
  readonly gain?: number;
}

const takesXavierUniform = arg.takes<typeof xavierUniform>(
  ['the shape', weightShape],
  ['options', arg.options<XavierOptions>({ ...initOptions, gain: arg.number })],
);

/** U(±gain·√(6 / (fanIn + fanOut))) (Glorot and Bengio, 2010). */
export function xavierUniform(shape: readonly number[], options: XavierOptions = {}): Tensor {
  takesXavierUniform('xavierUniform', shape, options);
  return symmetric(shape, Math.sqrt(3) * xavierStd('xavierUniform', shape, options), options);
}

/** N(0, gain²·2 / (fanIn + fanOut)) (Glorot and Bengio, 2010). */
export function xavierNormal(shape: readonly number[], options: XavierOptions = {}): Tensor {
  takesXavierUniform('xavierNormal', shape, options);
  return normal(shape, { std: xavierStd('xavierNormal', shape, options), ...typeOf(options) });
}

function xavierStd(op: string, shape: readonly number[], options: XavierOptions): number {
  const { fanIn, fanOut } = fansOf(op, shape);
  return (options.gain ?? 1) * Math.sqrt(2 / (fanIn + fanOut));
}

export interface KaimingOptions extends InitOptions {
  /** Which pass keeps its variance; `fanIn`, the forward one, by default. */
  readonly mode?: 'fanIn' | 'fanOut';
  /** `leakyRelu` by default. */
  readonly nonlinearity?: Nonlinearity;
  /** Slope of the leaky one, 0 by default. */
  readonly a?: number;
}

const takesKaimingUniform = arg.takes<typeof kaimingUniform>(
  ['the shape', weightShape],
  [
    'options',
    arg.options<KaimingOptions>({
      ...initOptions,
      mode: arg.oneOf('fanIn', 'fanOut'),
      nonlinearity: nonlinearities,
      a: arg.number,
    }),
  ],
);

/** U(±gain·√(3 / fan)) (He et al., 2015). */
export function kaimingUniform(shape: readonly number[], options: KaimingOptions = {}): Tensor {
  takesKaimingUniform('kaimingUniform', shape, options);
  return symmetric(shape, Math.sqrt(3) * kaimingStd('kaimingUniform', shape, options), options);
}

/** N(0, gain² / fan) (He et al., 2015). */
export function kaimingNormal(shape: readonly number[], options: KaimingOptions = {}): Tensor {
  takesKaimingUniform('kaimingNormal', shape, options);
  return normal(shape, { std: kaimingStd('kaimingNormal', shape, options), ...typeOf(options) });
}

function kaimingStd(op: string, shape: readonly number[], options: KaimingOptions): number {
  const { mode = 'fanIn', nonlinearity = 'leakyRelu', a = 0 } = options;
  return gain(nonlinearity, a) / Math.sqrt(fansOf(op, shape)[mode]);
}

/** U(±bound). */
export function symmetric(shape: readonly number[], bound: number, options: InitOptions = {}): Tensor {
  return uniform(shape, { low: -bound, high: bound, ...typeOf(options) });
}

/** The dtype option alone, if it is given. */
export function typeOf(options: InitOptions): InitOptions {
  return options.dtype === undefined ? {} : { dtype: options.dtype };
}
