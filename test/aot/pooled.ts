// A module with a size left open, for `sinter build`: one function depends on it, the other does not.

import { ones, zeros, type Tensor } from '../../src/index.ts';

const weight: Tensor = ones([4, 2]);

export const pooled = (x: Tensor): { mean: Tensor } => ({ mean: x.matmul(weight).mean(0) });
export const doubled = (y: Tensor): { twice: Tensor } => ({ twice: y.mul(2) });

export const dims: { readonly batch: readonly number[] } = { batch: [1, 3] };
export const inputs = ({ batch }: { readonly batch: number }): Readonly<Record<string, Tensor[]>> => ({
  pooled: [zeros([batch, 4])],
  doubled: [zeros([2])],
});
