// Singular value decompositions.

import * as arg from '../../../ir/arguments.ts';
import { full, reshape } from '../../../ir/build.ts';
import type { Node } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { apply } from '../operand.ts';
import { svdNodes, svdvalsNodes } from './rules.ts';
import { adjoint } from '../../../ir/matrix.ts';
import { batchOf, stacked, unstacked } from '../matrices.ts';
import { checkMatrices } from './stack.ts';

/** @names linalg.LinalgSvdOptions */
export interface LinalgSvdOptions {
  /** U [.., m, m] and Vᴴ [.., n, n] with whole bases; true by default. */
  readonly fullMatrices?: boolean;
}

const takesSvd = arg.takes<typeof svd>(
  ['x', aTensor],
  ['options', arg.options<LinalgSvdOptions>({ fullMatrices: arg.flag })],
);

/**
 * U, s and Vᴴ of x = U·diag(s)·Vᴴ for matrices [.., m, n]: U and V have orthonormal columns, s ≥ 0
 * descends along a last axis of min(m, n).
 *
 * @names linalg.svd
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.linalg.svd(x, { fullMatrices: false });
 */
export function svd(x: Tensor, options: LinalgSvdOptions = {}): [u: Tensor, s: Tensor, vh: Tensor] {
  takesSvd('linalg.svd', x, options);
  checkMatrices('linalg.svd', x);
  const [u, s, vh] = recordMany([x], (b, [node]) => {
    const parts = svdNodes(b, stacked(b, node!), options.fullMatrices !== false);
    const values = reshape(b, parts.s, [...x.shape.slice(0, -2), parts.s.shape[1] as number]);
    return [unstacked(b, parts.u, batchOf(x)), values, unstacked(b, parts.vh, batchOf(x))];
  });
  return [u!, s!, vh!];
}

const takesSvdvals = arg.takes<typeof svdvals>(['x', aTensor]);

/**
 * The singular values of matrices [.., m, n], descending: [.., min(m, n)].
 *
 * @names linalg.svdvals
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.linalg.svdvals(x);
 */
export function svdvals(x: Tensor): Tensor {
  takesSvdvals('linalg.svdvals', x);
  checkMatrices('linalg.svdvals', x);
  return apply([x], (b, node) => {
    const values = svdvalsNodes(b, stacked(b, node));
    return reshape(b, values, [...x.shape.slice(0, -2), values.shape[1] as number]);
  });
}

export interface SvdOptions {
  /** Only the min(m, n) columns that belong to singular values; true by default. */
  readonly some?: boolean;
  /** Whether U and V are wanted; zeros stand for them otherwise. True by default. */
  readonly computeUv?: boolean;
}

const takesOldSvd = arg.takes<typeof svdOfTorch>(
  ['x', aTensor],
  ['options', arg.options<SvdOptions>({ some: arg.flag, computeUv: arg.flag })],
);

/**
 * As `linalg.svd`, but with V rather than Vᴴ, and without what whole bases need more.
 *
 * @names svd
 * @jax jnp.linalg.svd
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.svd(a);
 */
export function svdOfTorch(x: Tensor, options: SvdOptions = {}): [u: Tensor, s: Tensor, v: Tensor] {
  takesOldSvd('svd', x, options);
  checkMatrices('svd', x);
  const { some = true, computeUv = true } = options;
  const [m, n] = x.shape.slice(-2) as [number, number];
  const lead = x.shape.slice(0, -2);
  const [u, s, v] = recordMany([x], (b, [node]) => {
    const a = stacked(b, node!);
    if (!computeUv) {
      const values = reshape(b, svdvalsNodes(b, a), [...lead, Math.min(m, n)]);
      const none = (side: number): Node => full(b, [...lead, side, side], 0, a.dtype);
      return [none(m), values, none(n)];
    }
    const parts = svdNodes(b, a, !some);
    const values = reshape(b, parts.s, [...lead, Math.min(m, n)]);
    return [unstacked(b, parts.u, batchOf(x)), values, unstacked(b, adjoint(b, parts.vh), batchOf(x))];
  });
  return [u!, s!, v!];
}
