// Windows: weights of the elements of a frame. Each is a function of where an element stands on the
// way from 0 to 1; a periodic one leaves out the last element, which begins the next period. Computed
// on the host in double precision.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import type { DType } from '../../../ir/dtype.ts';
import { tensor } from '../creation/creation.ts';
import type { Tensor } from '../../tensor.ts';

/**
 * Which elements a window has, and of what dtype.
 *
 * @names WindowShape
 */
export interface WindowShape {
  /** One element of the next period is left out; true by default. */
  readonly periodic?: boolean;
  readonly dtype?: DType;
}

/** @names HammingOptions */
export interface HammingOptions extends WindowShape {
  /** The constant term; 0.54 by default. */
  readonly alpha?: number;
  /** The factor of the cosine; 0.46 by default. */
  readonly beta?: number;
}

/** @names KaiserOptions */
export interface KaiserOptions extends WindowShape {
  /** How narrow the window is; 12 by default. */
  readonly beta?: number;
}

const shape = { periodic: arg.flag, dtype: arg.floatDType };
const size = ['the number of elements', arg.count(0)] as const;

/** f at each element's place between 0 and 1; one element alone is 1. @internal */
export function windowValues(
  n: number,
  periodic: boolean,
  f: (place: number) => number,
): Float64Array<ArrayBuffer> {
  const period = periodic ? n : n - 1;
  return Float64Array.from({ length: n }, (_, i) => (n === 1 ? 1 : f(i / period)));
}

/** Σ aⱼ·cos(2πjx) with alternating signs: Hann's, Hamming's and Blackman's windows. @internal */
export function cosineSum(...terms: readonly number[]): (place: number) => number {
  return (x) => terms.reduce((sum, a, j) => sum + (j % 2 === 0 ? a : -a) * Math.cos(2 * Math.PI * j * x), 0);
}

function windowOf(
  n: number,
  { periodic = true, dtype = 'f32' }: WindowShape,
  f: (x: number) => number,
): Tensor {
  return tensor(windowValues(n, periodic, f), { dtype });
}

const takesWindow = arg.takes<typeof hannWindow>(size, ['options', arg.options<WindowShape>(shape)]);

/**
 * ½ − ½·cos 2πx.
 *
 * @names hannWindow
 * @example
 * sn.hannWindow(4, { dtype: 'f32' });
 */
export function hannWindow(n: number, options: WindowShape = {}): Tensor {
  takesWindow('hannWindow', n, options);
  return windowOf(n, options, cosineSum(0.5, 0.5));
}

const takesHamming = arg.takes<typeof hammingWindow>(size, [
  'options',
  arg.options<HammingOptions>({ ...shape, alpha: arg.number, beta: arg.number }),
]);

/**
 * α − β·cos 2πx.
 *
 * @names hammingWindow
 * @example
 * sn.hammingWindow(4, { dtype: 'f32' });
 */
export function hammingWindow(n: number, options: HammingOptions = {}): Tensor {
  takesHamming('hammingWindow', n, options);
  const { alpha = 0.54, beta = 0.46 } = options;
  return windowOf(n, options, cosineSum(alpha, beta));
}

/**
 * 0.42 − ½·cos 2πx + 0.08·cos 4πx.
 *
 * @names blackmanWindow
 * @example
 * sn.blackmanWindow(4, { dtype: 'f32' });
 */
export function blackmanWindow(n: number, options: WindowShape = {}): Tensor {
  takesWindow('blackmanWindow', n, options);
  return windowOf(n, options, cosineSum(0.42, 0.5, 0.08));
}

/**
 * A triangle: 1 − |2x − 1|.
 *
 * @names bartlettWindow
 * @example
 * sn.bartlettWindow(4, { dtype: 'f32' });
 */
export function bartlettWindow(n: number, options: WindowShape = {}): Tensor {
  takesWindow('bartlettWindow', n, options);
  return windowOf(n, options, (x) => 1 - Math.abs(2 * x - 1));
}

const takesKaiser = arg.takes<typeof kaiserWindow>(size, [
  'options',
  arg.options<KaiserOptions>({ ...shape, beta: arg.number }),
]);

/**
 * I₀(β·√(1 − (2x − 1)²)) / I₀(β).
 *
 * @names kaiserWindow
 * @example
 * sn.kaiserWindow(4, { dtype: 'f32' });
 */
export function kaiserWindow(n: number, options: KaiserOptions = {}): Tensor {
  takesKaiser('kaiserWindow', n, options);
  const { beta = 12 } = options;
  // I₀ itself leaves the doubles a little further on.
  if (!(Math.abs(beta) <= 700)) {
    const problem = `expects beta from -700 to 700, got ${beta}`;
    throw new TensorError('E_VALUE', 'kaiserWindow', problem, 'beta: 12');
  }
  return windowOf(
    n,
    options,
    (x) => besselI0(beta * Math.sqrt(Math.max(0, 1 - (2 * x - 1) ** 2))) / besselI0(beta),
  );
}

/** Σ ((x/2)^k / k!)²: all terms are positive, so the sum keeps its digits. */
function besselI0(x: number): number {
  let [sum, term] = [1, 1];
  for (let k = 1; term > sum * 1e-17; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}
