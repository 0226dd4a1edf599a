// What a strategy of a dot or conv kernel is: one way to spread its products over the machine, with
// all that is known of it. Problems are given as the tiling sees them, with their sides exchanged
// where it is flipped. The strategies are the rows of a table (strategies.ts); each has a module.

import type { Target } from '../../../schedule/target.ts';
import type { Loop } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import type { Contract, ContractProblem } from './problem.ts';

/** What the tilings of every strategy say. */
export interface Tile {
  /** The sides change places first: the vector axis is always n. */
  readonly flip: boolean;
  /** Sums an invocation keeps: rows of m, columns of n (in fours, but for `window`). */
  readonly rows: number;
  readonly columns: number;
}

/** What a strategy does in one kernel besides one product of two operands that are there. */
export interface InOneKernel {
  /** Several products of one left operand. */
  readonly products?: true;
  /** Reductions of rows of the left operand, which it refers to. */
  readonly stages?: true;
  /** Folds of neighbouring columns of the result. */
  readonly folds?: true;
}

export interface Strategy<Tiling extends Tile & { readonly kind: string }> {
  /** Tilings worth a look, larger tiles first; not all of them are legal. */
  candidates(problem: ContractProblem, target: Target): Iterable<Tiling>;
  /** Whether `loop` can build this tiling for the problem within the target's limits. */
  isLegal(tiling: Tiling, problem: ContractProblem, target: Target): boolean;
  /**
   * Modelled time of one run of a legal tiling, without what all tilings of the problem have in
   * common.
   */
  time(tiling: Tiling, problem: ContractProblem, target: Target): number;
  loop(frame: Frame, body: Contract, tiling: Tiling, problem: ContractProblem): Loop;
  /** Nothing more, if absent. The left side must then be the left one: no tiling of those is flipped. */
  readonly together?: InOneKernel;
}
