// Convolutions by transforms: products of spectra, of as many points as keep the ends apart.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { isComplex } from '../../../ir/dtype.ts';
import { nextSmooth } from '../../../ir/fft/plan.ts';
import { normalizeAxes } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { conj } from '../complex/complex.ts';
import { mul } from '../elementwise/arithmetic.ts';
import { calledAs, show } from '../operand.ts';
import { narrow } from '../shape/indexing.ts';
import { flip } from '../shape/movement.ts';
import { fftn, ifftn, irfftn, rfftn } from './transform.ts';

/** @names ConvolveOptions, fft.ConvolveOptions */
export interface ConvolveOptions {
  /**
   * All of the result (`full`, by default), as much of its middle as the first operand has (`same`, as SciPy's
   * `fftconvolve`; `jnp.convolve` has as much as the longer operand), or what meets no end (`valid`).
   */
  readonly mode?: 'full' | 'same' | 'valid';
  /** The axes; all by default. Others broadcast. */
  readonly dim?: number | readonly number[];
}

const takesConvolve = arg.takes<typeof convolve>(
  ['the first operand', aTensor],
  ['the second operand', aTensor],
  ['options', arg.options<ConvolveOptions>({ mode: arg.oneOf('full', 'same', 'valid'), dim: arg.inside() })],
);

/**
 * Σⱼ xⱼ·yₖ₋ⱼ along one axis or several, by transforms.
 *
 * @jax jnp.convolve, jax.scipy.signal.fftconvolve
 * @example
 * const v = sn.tensor([1, 2, 3, 4]);
 * const k = sn.tensor([1, 0, -1]);
 * sn.fft.convolve(v, k);
 */
export function convolve(x: Tensor, y: Tensor, options: ConvolveOptions = {}): Tensor {
  takesConvolve('convolve', x, y, options);
  return convolved('convolve', x, y, options);
}

/**
 * Σⱼ xⱼ·ȳⱼ₋ₖ along one axis or several: a convolution with y turned around, and conjugated.
 *
 * @jax jnp.correlate
 * @example
 * const v = sn.tensor([1, 2, 3, 4]);
 * const k = sn.tensor([1, 0, -1]);
 * sn.fft.correlate(v, k);
 */
export function correlate(x: Tensor, y: Tensor, options: ConvolveOptions = {}): Tensor {
  takesConvolve('correlate', x, y, options);
  return convolved('correlate', x, conj(flip(y, axesOf('correlate', x, y, options))), options);
}

function axesOf(op: string, x: Tensor, y: Tensor, { dim }: ConvolveOptions): readonly number[] {
  if (x.rank === y.rank && x.rank > 0) return normalizeAxes(op, dim, x.rank);
  throw new TensorError('E_SHAPE', op, `expects operands of one rank, with axes: ${show(x, y)}`);
}

function convolved(op: string, x: Tensor, y: Tensor, options: ConvolveOptions): Tensor {
  const axes = axesOf(op, x, y, options);
  const { mode = 'full' } = options;
  const [left, right] = [x, y].map(({ shape }) => axes.map((axis) => shape[axis]!)) as [number[], number[]];
  if ([...left, ...right].includes(0))
    throw new TensorError('E_SHAPE', op, `expects elements along every axis: ${show(x, y)}`);
  const contains = (a: readonly number[], b: readonly number[]): boolean =>
    a.every((size, i) => size >= b[i]!);
  if (mode === 'valid' && !contains(left, right) && !contains(right, left)) {
    const problem = `expects one operand that the other fits in along every axis: ${show(x, y)}`;
    throw new TensorError('E_SHAPE', op, problem, "mode: 'full'");
  }
  const full = left.map((size, i) => size + right[i]! - 1);
  const s = full.map(nextSmooth);
  const how = { s, dim: axes };
  const product = calledAs(op, () =>
    isComplex(x.dtype) || isComplex(y.dtype)
      ? ifftn(mul(fftn(x, how), fftn(y, how)), { dim: axes })
      : irfftn(mul(rfftn(x, how), rfftn(y, how)), how),
  );
  return axes.reduce((result, axis, i) => {
    const size = {
      full: full[i]!,
      same: left[i]!,
      valid: Math.max(left[i]!, right[i]!) - Math.min(left[i]!, right[i]!) + 1,
    }[mode];
    return narrow(result, axis, Math.floor((full[i]! - size) / 2), size);
  }, product);
}
