// Dropout of whole channels, and dropout that keeps mean and variance of what `selu` gives.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, broadcast, fullLike, mul, where } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, checkFloat, show } from '../operand.ts';
import * as formula from '../../formula/elementwise.ts';
import { chance } from '../../formula/noise.ts';
import type { DropoutOptions } from './random.ts';

const takesDropout = arg.takes<typeof dropout1d>(
  ['x', aTensor],
  ['p', arg.optional(arg.share)],
  ['options', arg.options<DropoutOptions>({ training: arg.flag })],
);

/** x where a draw for each channel, of rank `rank` or one less without a batch, keeps it. */
function channelDropout(op: string, spatial: number, x: Tensor, p: number, options: DropoutOptions): Tensor {
  takesDropout(op, x, p, options);
  checkFloat(op, x);
  if (x.rank !== spatial + 1 && x.rank !== spatial + 2)
    throw new TensorError('E_SHAPE', op, `expects rank ${spatial + 2} (or ${spatial + 1}): ${show(x)}`);
  if (options.training === false || p === 0) return x;
  const channels = x.rank - spatial;
  return apply([x], (b, node) => {
    const zero = fullLike(b, node, 0);
    if (p === 1) return zeroed(b, node);
    return where(b, dropped(b, node, channels, p), zero, mul(b, node, 1 / (1 - p)));
  });
}

/** Zeros that x has a gradient of 0 through. */
function zeroed(b: GraphBuilder, x: Node): Node {
  const all = b.add('broadcast', [b.add('constant', [], { value: 1, dtype: 'bool' }) as Node], {
    shape: dims(x),
  }) as Node;
  return where(b, all, fullLike(b, x, 0), x);
}

/** true with probability `p`, drawn once for all that lies behind the first `lead` axes. */
function dropped(b: GraphBuilder, x: Node, lead: number, p: number): Node {
  const kept = dims(x).map((dim, axis) => (axis < lead ? dim : 1));
  return broadcast(b, chance(b, kept, p), dims(x));
}

/**
 * Zeroes each channel [N, C, L] (or [C, L]) whole with probability `p`, and scales the others.
 *
 * @example
 * const line = sn.ones([1, 4, 2]);
 * sn.dropout1d(line, 0.5);
 */
export function dropout1d<D extends DType>(x: Tensor<D>, p = 0.5, options: DropoutOptions = {}): Tensor<D> {
  return channelDropout('dropout1d', 1, x, p, options);
}

/**
 * Zeroes each channel [N, C, H, W] (or [C, H, W]) whole with probability `p`, and scales the others.
 *
 * @example
 * const image = sn.ones([1, 4, 1, 2]);
 * sn.dropout2d(image, 0.5);
 */
export function dropout2d<D extends DType>(x: Tensor<D>, p = 0.5, options: DropoutOptions = {}): Tensor<D> {
  return channelDropout('dropout2d', 2, x, p, options);
}

/**
 * Zeroes each channel [N, C, D, H, W] whole with probability `p`, and scales the others.
 *
 * @example
 * const volume = sn.ones([1, 4, 1, 1, 2]);
 * sn.dropout3d(volume, 0.5);
 */
export function dropout3d<D extends DType>(x: Tensor<D>, p = 0.5, options: DropoutOptions = {}): Tensor<D> {
  return channelDropout('dropout3d', 3, x, p, options);
}

/** What `selu` gives for −∞: −scale·alpha. */
const saturation = -1.7580993408473766;

function alphaDropped(op: string, x: Tensor, lead: number, p: number, options: DropoutOptions): Tensor {
  checkFloat(op, x);
  if (options.training === false || p === 0) return x;
  if (p === 1) return apply([x], zeroed);
  // Scale and shift that bring mean and variance back (Klambauer et al., 2017).
  const scale = 1 / Math.sqrt((1 - p) * (1 + p * saturation ** 2));
  const shift = -scale * p * saturation;
  return apply([x], (b, node) =>
    formula.widened(b, node, (wide) => {
      const kept = where(b, dropped(b, wide, lead, p), fullLike(b, wide, saturation), wide);
      return add(b, mul(b, kept, scale), shift);
    }),
  );
}

/**
 * Dropout that sets elements to what `selu` gives for −∞ instead of 0, and keeps mean and variance
 * of standardised inputs.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.alphaDropout(x, 0.5);
 */
export function alphaDropout<D extends DType>(
  x: Tensor<D>,
  p = 0.5,
  options: DropoutOptions = {},
): Tensor<D> {
  takesDropout('alphaDropout', x, p, options);
  return alphaDropped('alphaDropout', x, x.rank, p, options);
}

/**
 * `alphaDropout` of whole channels [N, C, …].
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.featureAlphaDropout(x, 0.5);
 */
export function featureAlphaDropout<D extends DType>(
  x: Tensor<D>,
  p = 0.5,
  options: DropoutOptions = {},
): Tensor<D> {
  takesDropout('featureAlphaDropout', x, p, options);
  if (x.rank < 2) throw new TensorError('E_SHAPE', 'featureAlphaDropout', `expects [N,C,…]: ${show(x)}`);
  return alphaDropped('featureAlphaDropout', x, 2, p, options);
}
