// Short rows on a core are written out, and visited as the elements of a map are.

import { mapLoop } from '../../map/map.ts';
import type { FittingStrategy } from '../../shared/first-fit.ts';
import type { RowBody } from '../tiling.ts';
import { mapOfRows } from './short.ts';

export const short: FittingStrategy<RowBody> = {
  loop(frame) {
    const map = frame.target.serial === undefined ? undefined : mapOfRows(frame.kernel);
    return map === undefined ? undefined : mapLoop({ ...frame, kernel: map });
  },
};
