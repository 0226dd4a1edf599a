// Selection, as a page loads them.

import '../methods.ts';

export { dynamicSlice, dynamicUpdateSlice } from '../../tensor/ops/select/dynamic.ts';
export {
  argwhere,
  expandByMask,
  maskedAt,
  maskedScatter,
  maskedSelect,
  nonzero,
} from '../../tensor/ops/select/nonzero.ts';
export {
  asStrided,
  asStridedScatter,
  diagonalScatter,
  selectScatter,
  sliceScatter,
  sliceWrite,
} from '../../tensor/ops/select/region.ts';
export { isin, unravelIndex } from '../../tensor/ops/select/search.ts';
export { segmentReduce } from '../../tensor/ops/select/segment.ts';
export { unique, uniqueConsecutive } from '../../tensor/ops/select/unique.ts';
export { addAt, maxAt, minAt, mulAt, setAt } from '../../tensor/ops/select/write-at.ts';
export { indexFill, indexPut, indexReduce, put } from '../../tensor/ops/select/write.ts';
