// The strategies of dot and conv, one row each: whatever is asked of a tiling (whether it is legal,
// how long it takes, which Loop it becomes) is looked up here
// by its kind. A kind without a row is a type error. Chunks bring the strategies of their machine (compile/chunks.ts).

import type { BlockRowsTiling } from './cpu/block-rows.ts';
import type { DirectTiling } from './cpu/direct.ts';
import type { GemvTiling } from './cpu/gemv.ts';
import type { ImageTiling } from './cpu/image.ts';
import type { PackedTiling } from './cpu/packed.ts';
import type { WinogradTiling } from './cpu/winograd.ts';
import type { WinogradWeightsTiling } from './cpu/winograd-weights.ts';
import type { MmaTiling } from './gpu/mma.ts';
import type { RegisterTiling } from './gpu/registers.ts';
import type { SplitKTiling } from './gpu/split-k.ts';
import type { StagedTiling } from './gpu/staged.ts';
import type { WgmmaTiling } from './gpu/wgmma.ts';
import type { WindowTiling } from './gpu/window.ts';
import type { ContractProblem } from './problem.ts';
import type { Strategy } from './strategy.ts';
import { Slot } from '../../../slot.ts';

/** How a dot or conv kernel is spread over the machine, as plain data. */
export type ContractTiling =
  | BlockRowsTiling
  | DirectTiling
  | GemvTiling
  | ImageTiling
  | MmaTiling
  | PackedTiling
  | RegisterTiling
  | SplitKTiling
  | StagedTiling
  | WgmmaTiling
  | WinogradTiling
  | WinogradWeightsTiling
  | WindowTiling;

type Kind = ContractTiling['kind'];

const slot = <T extends ContractTiling>(kind: T['kind']): Slot<Strategy<T>> =>
  new Slot(`the strategy ${kind}`);

/** In the order in which they are tried: of equal times the first is taken. */
export const strategies: {
  readonly [K in Kind]: Slot<Strategy<Extract<ContractTiling, { readonly kind: K }>>>;
} = {
  wgmma: slot('wgmma'),
  mma: slot('mma'),
  staged: slot('staged'),
  window: slot('window'),
  'block-rows': slot('block-rows'),
  direct: slot('direct'),
  winograd: slot('winograd'),
  'winograd-weights': slot('winograd-weights'),
  image: slot('image'),
  packed: slot('packed'),
  gemv: slot('gemv'),
  registers: slot('registers'),
  'split-k': slot('split-k'),
};

/** The strategy of a tiling. */
export function strategyOf({ kind }: ContractTiling): Strategy<ContractTiling> {
  return strategies[kind].value as Strategy<ContractTiling>;
}

/** Every strategy that is there. */
export function presentStrategies(): readonly Strategy<ContractTiling>[] {
  return Object.values(strategies).flatMap(({ filled }) =>
    filled === undefined ? [] : [filled as Strategy<ContractTiling>],
  );
}

/** Whether the strategy of a tiling is there; on its own machine it is. */
export function isPresent({ kind }: ContractTiling): boolean {
  return strategies[kind].filled !== undefined;
}

/** Tilings chosen by measurement or by hand, where there are any. */
export type PinnedTilings = (problem: ContractProblem) => ContractTiling | undefined;
