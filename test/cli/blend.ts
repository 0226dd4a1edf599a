// A program for tests of `sinter run`: an image, ids and a number in, two tensors out.

import { tensor, zeros, type Tensor } from '../../src/index.ts';

export const fn = (
  image: Tensor,
  options: { readonly ids: Tensor; readonly strength: number },
): { readonly blended: Tensor; readonly next: Tensor } => ({
  blended: image.mul(2).add(options.strength),
  next: options.ids.add(1),
});

export const inputs: Parameters<typeof fn> = [
  zeros([1, 3, 2, 4]),
  { ids: tensor([5, 6, 7], { dtype: 'i32' }), strength: 0.5 },
];
