// The templates, by the kind of body that they fill. That of elementwise kernels is part of the compiler; chunks bring the others.

import { Slot } from '../../slot.ts';
import type { Body } from '../../schedule/kernel.ts';
import type { Loop } from '../loop/loop.ts';
import type { PinnedTilings } from '../template/contract/strategies.ts';
import type { Frame } from '../template/shared/frame.ts';

export type Template = (frame: Frame, pinned: PinnedTilings) => Loop;

/** Kinds of kernels whose templates chunks bring. */
export type RareKind = Exclude<Body['kind'], 'map' | 'batched-dispatch' | 'iterate' | 'collective'>;

const slot = (kind: RareKind): Slot<Template> => new Slot(`the template ${kind}`);

export const templates: Readonly<Record<RareKind, Slot<Template>>> = {
  'row-reduction': slot('row-reduction'),
  contract: slot('contract'),
  attention: slot('attention'),
  scan: slot('scan'),
  fft: slot('fft'),
  scatter: slot('scatter'),
  'scatter-add-atomic': slot('scatter-add-atomic'),
  'segment-reduce': slot('segment-reduce'),
  sort: slot('sort'),
  'radix-rank': slot('radix-rank'),
  'search-sorted': slot('search-sorted'),
  'complete-rows': slot('complete-rows'),
  'jacobi-rows': slot('jacobi-rows'),
  factor: slot('factor'),
};
