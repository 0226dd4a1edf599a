// The templates, by the kind of body that they fill. Elementwise kernels are what every page begins with; the others come when
// there is such a kernel.

import { Lazy } from '../../lazy.ts';
import type { Body } from '../../schedule/kernel.ts';
import type { Loop } from '../loop/loop.ts';
import type { PinnedTilings } from '../template/contract/strategies.ts';
import type { Frame } from '../template/shared/frame.ts';

export type Template = (frame: Frame, pinned: PinnedTilings) => Loop;

/** Kinds of kernels whose templates are loaded when they are met. */
export type RareKind = Exclude<Body['kind'], 'map' | 'batched-dispatch' | 'iterate'>;

function lazy(name: RareKind, importing: () => Promise<Template>): Lazy<Template> {
  return new Lazy(`the template ${name}`, importing);
}

export const templates: Readonly<Record<RareKind, Lazy<Template>>> = {
  'row-reduction': lazy('row-reduction', async () => {
    return (await import('../template/row-reduction/row-reduction.ts')).rowReductionLoop;
  }),
  contract: lazy('contract', async () => {
    return (await import('../template/contract/contract.ts')).contractLoop;
  }),
  attention: lazy('attention', async () => {
    return (await import('../template/attention/attention.ts')).attentionLoop;
  }),
  scan: lazy('scan', async () => (await import('../template/scan/scan.ts')).scanLoop),
  fft: lazy('fft', async () => (await import('../template/fft/fft.ts')).fftLoop),
  scatter: lazy('scatter', async () => (await import('../template/scatter/scatter.ts')).scatterLoop),
  'scatter-add-atomic': lazy('scatter-add-atomic', async () => {
    return (await import('../template/scatter/scatter-add-atomic.ts')).scatterAddAtomicLoop;
  }),
  'segment-reduce': lazy('segment-reduce', async () => {
    return (await import('../template/scatter/segment-reduce.ts')).segmentReduceLoop;
  }),
  sort: lazy('sort', async () => (await import('../template/sort/sort.ts')).sortLoop),
  'radix-rank': lazy('radix-rank', async () => {
    return (await import('../template/sort/radix-rank.ts')).radixRankLoop;
  }),
  'search-sorted': lazy('search-sorted', async () => {
    return (await import('../template/sort/search-sorted.ts')).searchSortedLoop;
  }),
  'complete-rows': lazy('complete-rows', async () => {
    return (await import('../template/linalg/complete.ts')).completeRowsLoop;
  }),
  'jacobi-rows': lazy('jacobi-rows', async () => {
    return (await import('../template/linalg/jacobi.ts')).jacobiRowsLoop;
  }),
  factor: lazy('factor', async () => (await import('../template/factor/factor.ts')).factorLoop),
};
