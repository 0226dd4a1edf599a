// attention: scores, row statistics and weighted sums in one sweep over the keys (or one for each
// statistic that another depends on), with nothing of score size in memory. How a kernel is built
// is one of a few strategies, the first that fits.

import { CompilerBug } from '../../../errors.ts';
import type { Loop } from '../../loop/loop.ts';
import { firstFitting, type FittingStrategy } from '../shared/first-fit.ts';
import type { Frame } from '../shared/frame.ts';
import { Slot } from '../../../slot.ts';
import type { Attention } from './rows.ts';

/** In the order in which they are tried. Lanes fit everything. */
export const attentionStrategies: Readonly<
  Record<'fewRows' | 'packed' | 'wgmma' | 'mma' | 'lanes', Slot<FittingStrategy<Attention>>>
> = {
  fewRows: new Slot('attention of few rows on a core'),
  packed: new Slot('attention on a core'),
  wgmma: new Slot('attention by warp groups'),
  mma: new Slot('attention on matrix units'),
  lanes: new Slot('attention by lanes'),
};

/** The Loop of an attention kernel. */
export function attentionLoop(frame: Frame): Loop {
  const { body } = frame.kernel;
  if (body.kind !== 'attention') throw new CompilerBug('attention template', `got a ${body.kind} kernel`);
  return firstFitting(attentionStrategies, frame, body);
}
