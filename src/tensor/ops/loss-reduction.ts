// How losses of elements or samples become one number: their mean, their sum, or not at all.

import * as arg from '../../ir/arguments.ts';
import { binary, div, fullLike, reduce, reshape, where } from '../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import * as formula from '../formula/elementwise.ts';

/** How the losses of elements become one: their mean, their sum, or not at all. */
export type Reduction = 'mean' | 'sum' | 'none';

export interface LossOptions {
  /** How the elements' losses are combined; 'mean' by default. */
  readonly reduction?: Reduction;
}

/** @internal */
export const lossOptions: arg.Table<LossOptions> = { reduction: arg.oneOf('mean', 'sum', 'none') };

/** @internal */
export function allAxes(x: Node): number[] {
  return dims(x).map((_, axis) => axis);
}

/** The losses, their sum, or their sum over `count` (how many they are by default). @internal */
export function reduced(b: GraphBuilder, losses: Node, reduction: Reduction, count?: Node): Node {
  if (reduction === 'none') return losses;
  const total = reduce(b, 'sum', losses, allAxes(losses));
  if (reduction === 'sum') return total;
  if (count !== undefined) return div(b, total, count);
  const all = formula.mean(b, losses, allAxes(losses));
  return reshape(b, all, []);
}

/** max(0, x), whose derivative passes at 0 (as PyTorch's `clamp_min`) and not at NaN. @internal */
export function hinge(b: GraphBuilder, x: Node): Node {
  const zero = fullLike(b, x, 0);
  const fixed = binary(b, 'max', formula.stopGradient(b, x), zero);
  return where(b, binary(b, 'le', zero, x), x, fixed);
}
