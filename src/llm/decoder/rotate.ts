// Rotary embeddings: pairs of elements of each head turned by an angle that grows with the position.

import { add, cat, flip, mul, narrow, reshape } from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { RopeConfig } from '../config/config.ts';

/**
 * Heads x [T, heads, size] turned by the angles of T positions: `turns` [T, 2, dims] has the cosines
 * and the signed sines of each (config/rope.ts).
 */
export function rotate(x: Tensor, turns: Tensor, { layout, dims }: RopeConfig): Tensor {
  const [rows, heads, size] = x.shape as readonly [number, number, number];
  const pairs = layout === 'interleaved' ? [dims / 2, 2] : [2, dims / 2];
  const shaped = [rows, heads, ...pairs];
  const turning = reshape(dims === size ? x : narrow(x, 2, 0, dims), shaped);
  const [cos, sin] = [0, 1].map((which) => reshape(narrow(turns, 1, which, 1), [rows, 1, ...pairs]));
  const exchanged = flip(turning, layout === 'interleaved' ? 3 : 2);
  const turned = reshape(add(mul(turning, cos!), mul(exchanged, sin!)), [rows, heads, dims]);
  return dims === size ? turned : cat([turned, narrow(x, 2, dims, size - dims)], 2);
}
