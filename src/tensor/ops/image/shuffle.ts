// Shuffles of channels and pixels: reshapes and a permutation, so that they cost nothing where what
// follows reads through them.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { permute, reshape } from '../../../ir/build.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, show } from '../operand.ts';

const takesShuffle = arg.takes<typeof pixelShuffle>(['x', aTensor], ['the factor', arg.count(1)]);

/** Leading axes and the last three of [.., C, H, W]. */
function image(op: string, x: Tensor): [lead: number[], c: number, h: number, w: number] {
  if (x.rank < 3) throw new TensorError('E_SHAPE', op, `expects [..,C,H,W]: ${show(x)}`);
  const [c, h, w] = x.shape.slice(-3) as [number, number, number];
  return [x.shape.slice(0, -3), c, h, w];
}

/** `lead` leading axes stay; the others come in this order, counted from the first of them. */
function behind(lead: number, ...order: readonly number[]): number[] {
  return [...Array.from({ length: lead }, (_, i) => i), ...order.map((axis) => lead + axis)];
}

/**
 * [.., C·r², H, W] to [.., C, H·r, W·r]: channels become squares of r × r pixels (Shi et al.,
 * 2016).
 *
 * @example
 * const channels = sn.linspace(0, 15, 16).reshape([1, 4, 2, 2]);
 * sn.pixelShuffle(channels, 2);
 */
export function pixelShuffle<D extends DType>(x: Tensor<D>, factor: number): Tensor<D> {
  takesShuffle('pixelShuffle', x, factor);
  const [lead, c, h, w] = image('pixelShuffle', x);
  const channels = c / factor ** 2;
  if (!Number.isInteger(channels)) {
    throw new TensorError(
      'E_SHAPE',
      'pixelShuffle',
      `${c} channels are no multiple of ${factor}²: ${show(x)}`,
    );
  }
  return apply([x], (b, node) => {
    const open = reshape(b, node, [...lead, channels, factor, factor, h, w]);
    const turned = permute(b, open, behind(lead.length, 0, 3, 1, 4, 2));
    return reshape(b, turned, [...lead, channels, h * factor, w * factor]);
  });
}

/**
 * The inverse of `pixelShuffle`: squares of r × r pixels become channels.
 *
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * sn.pixelUnshuffle(image, 2);
 */
export function pixelUnshuffle<D extends DType>(x: Tensor<D>, factor: number): Tensor<D> {
  takesShuffle('pixelUnshuffle', x, factor);
  const [lead, c, h, w] = image('pixelUnshuffle', x);
  if (h % factor !== 0 || w % factor !== 0) {
    throw new TensorError('E_SHAPE', 'pixelUnshuffle', `${h} × ${w} is no multiple of ${factor}: ${show(x)}`);
  }
  return apply([x], (b, node) => {
    const open = reshape(b, node, [...lead, c, h / factor, factor, w / factor, factor]);
    const turned = permute(b, open, behind(lead.length, 0, 2, 4, 1, 3));
    return reshape(b, turned, [...lead, c * factor ** 2, h / factor, w / factor]);
  });
}

const takesChannelShuffle = arg.takes<typeof channelShuffle>(
  ['x', aTensor],
  ['the number of groups', arg.count(1)],
);

/**
 * [N, C, …] with its `groups` runs of channels interleaved (Zhang et al., 2018).
 *
 * @example
 * const channels = sn.linspace(0, 15, 16).reshape([1, 4, 2, 2]);
 * sn.channelShuffle(channels, 2);
 */
export function channelShuffle<D extends DType>(x: Tensor<D>, groups: number): Tensor<D> {
  takesChannelShuffle('channelShuffle', x, groups);
  if (x.rank < 2) throw new TensorError('E_SHAPE', 'channelShuffle', `expects [N,C,…]: ${show(x)}`);
  const [n, c, ...rest] = x.shape as readonly [number, number, ...number[]];
  if (c % groups !== 0) {
    throw new TensorError(
      'E_SHAPE',
      'channelShuffle',
      `${c} channels do not split into ${groups} groups: ${show(x)}`,
    );
  }
  return apply([x], (b, node) => {
    const open = reshape(b, node, [n, groups, c / groups, ...rest]);
    const order = open.shape.map((_, axis) => axis);
    return reshape(b, permute(b, open, [0, 2, 1, ...order.slice(3)]), x.shape);
  });
}
