// Rare views, as a page loads them.

import '../methods.ts';

export {
  diag,
  diagEmbed,
  diagonal,
  flip,
  pad,
  roll,
  tril,
  triu,
  diagflat,
} from '../../tensor/ops/shape/movement.ts';
export { rearrange, reduce, repeat, tile } from '../../tensor/ops/shape/rearrange.ts';
export {
  atleast1d,
  atleast2d,
  atleast3d,
  blockDiag,
  broadcastTensors,
  cartesianProd,
  columnStack,
  combinations,
  dsplit,
  dstack,
  hsplit,
  hstack,
  tensorSplit,
  vsplit,
  vstack,
} from '../../tensor/ops/shape/stacking.ts';
export { fliplr, flipud, movedim, ravel, reshapeAs, rot90, swapaxes } from '../../tensor/ops/shape/turn.ts';
