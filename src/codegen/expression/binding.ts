// What expressions and indices of a kernel are lowered with: values of its axes, and ways of its
// template.

import type { IndexExpr } from '../../ir/index-algebra/expr.ts';
import type { Expr } from '../../schedule/expression/expr.ts';
import type { Value } from '../loop/loop.ts';

/**
 * How the axes of a kernel are run over: a substitution into template indices, and the value of
 * each template atom.
 */
export interface AxisBinding {
  readonly substitution: ReadonlyMap<IndexExpr, IndexExpr>;
  readonly atoms: ReadonlyMap<IndexExpr, Value>;
}

export interface LoweringOptions {
  /**
   * Elements that each lane reads for itself are loaded in aligned groups of four, where it is
   * known which of the four each is: for points whose neighbours, lowered with the same builder,
   * read the others.
   */
  readonly shareGroups?: boolean;
  /**
   * Every other element of eight is taken from two loads of four, where loads need not be aligned.
   */
  readonly strides?: boolean;
  /** Conditions that hold at all points. */
  readonly certain?: ReadonlySet<Expr>;
  /** Computes an expression in another way than its own; undefined: it has none. */
  readonly instead?: (expr: Expr, value: (arg: Expr) => Value) => Value | undefined;
}
