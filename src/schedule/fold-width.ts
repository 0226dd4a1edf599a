// Folds of neighbouring columns of products, as the list of passes knows them: see fusion/column-folds.ts.

import { dims, type Node } from '../ir/graph.ts';
import { sharesWork } from './machine.ts';
import type { Target } from './target.ts';

/** Columns that are folded together: every tile of a workgroup has whole groups of them. */
export const foldWidth = 64;

/** Whether a node is a reduction that may be one over the rows of a product. */
export function mayFoldColumns(node: Node, target: Target): boolean {
  if (node.op !== 'reduce' || !sharesWork(target)) return false;
  const shape = dims(node.inputs[0]!);
  return node.attrs.axes.join() === String(shape.length - 1) && shape.at(-1)! % foldWidth === 0;
}
