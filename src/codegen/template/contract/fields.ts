// What the tilings of each strategy say, besides what all do: books of schedules are read and checked by this, where no kernel
// is made.

import type { ContractTiling } from './strategies.ts';
import type { Tile } from './strategy.ts';

/**
 * What a field of a tiling holds: a positive whole number, or the axis along which memory is read.
 */
export type TilingFieldContent = 'count' | 'n or k';

type Kind = ContractTiling['kind'];
type Own<K extends Kind> = Exclude<keyof Extract<ContractTiling, { readonly kind: K }>, keyof Tile | 'kind'>;

/** Fields besides `kind` and those of every tile. */
export const tilingFields: { readonly [K in Kind]: Readonly<Record<Own<K>, TilingFieldContent>> } = {
  wgmma: { tileM: 'count', tileN: 'count', tileK: 'count', stages: 'count' },
  mma: { tileM: 'count', tileN: 'count', tileK: 'count', stages: 'count' },
  staged: { tileM: 'count', tileN: 'count', tileK: 'count' },
  window: { lines: 'count', taps: 'count' },
  direct: { lines: 'count' },
  winograd: { blockM: 'count', lines: 'count', blocks: 'count' },
  'winograd-weights': { blockM: 'count', blockN: 'count', lines: 'count' },
  image: { blockM: 'count', lines: 'count', blockK: 'count' },
  packed: { blockM: 'count', blockN: 'count', blockK: 'count' },
  'block-rows': {},
  gemv: { along: 'n or k' },
  registers: {},
  'split-k': { threads: 'count', slices: 'count', along: 'n or k' },
};
