// How losses of elements or samples become one number: their mean, their sum, or not at all.

import * as arg from '../../ir/arguments.ts';
import { div, reduce, reshape } from '../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import * as formula from './elementwise/formula.ts';

export type Reduction = 'mean' | 'sum' | 'none';

export interface LossOptions {
  /** How the elements' losses are combined; 'mean' by default. */
  readonly reduction?: Reduction;
}

export const lossOptions: arg.Table<LossOptions> = { reduction: arg.oneOf('mean', 'sum', 'none') };

export function allAxes(x: Node): number[] {
  return dims(x).map((_, axis) => axis);
}

/** The losses, their sum, or their sum over `count` (how many they are by default). */
export function reduced(b: GraphBuilder, losses: Node, reduction: Reduction, count?: Node): Node {
  if (reduction === 'none') return losses;
  const total = reduce(b, 'sum', losses, allAxes(losses));
  if (reduction === 'sum') return total;
  if (count !== undefined) return div(b, total, count);
  const all = formula.mean(b, losses, allAxes(losses));
  return reshape(b, all, []);
}
