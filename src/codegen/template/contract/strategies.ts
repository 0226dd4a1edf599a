// The strategies of dot and conv, one row each: whatever is asked of a tiling (whether it is legal,
// how long it takes, which Loop it becomes) is looked up here
// by its kind. A kind without a row is a type error.

import { blockRowsStrategy, type BlockRowsTiling } from './cpu/block-rows.ts';
import { direct, type DirectTiling } from './cpu/direct.ts';
import { gemv, type GemvTiling } from './cpu/gemv.ts';
import { image, type ImageTiling } from './cpu/image.ts';
import { packed, type PackedTiling } from './cpu/packed.ts';
import { winograd, type WinogradTiling } from './cpu/winograd.ts';
import { mma, type MmaTiling } from './gpu/mma.ts';
import { registers, type RegisterTiling } from './gpu/registers.ts';
import { splitK, type SplitKTiling } from './gpu/split-k.ts';
import { staged, type StagedTiling } from './gpu/staged.ts';
import { wgmma, type WgmmaTiling } from './gpu/wgmma.ts';
import { window, type WindowTiling } from './gpu/window.ts';
import type { ContractProblem } from './problem.ts';
import type { Strategy } from './strategy.ts';

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
  | WindowTiling;

type Kind = ContractTiling['kind'];

/** In the order in which they are tried: of equal times the first is taken. */
export const strategies: {
  readonly [K in Kind]: Strategy<Extract<ContractTiling, { readonly kind: K }>>;
} = {
  wgmma,
  mma,
  staged,
  window,
  'block-rows': blockRowsStrategy,
  direct,
  winograd,
  image,
  packed,
  gemv,
  registers,
  'split-k': splitK,
};

/** The strategy of a tiling. */
export function strategyOf({ kind }: ContractTiling): Strategy<ContractTiling> {
  return strategies[kind];
}

/** Tilings chosen by measurement or by hand, where there are any. */
export type PinnedTilings = (problem: ContractProblem) => ContractTiling | undefined;
