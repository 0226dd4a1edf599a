// Folds over neighbouring columns of a product. A reduction over every `foldWidth` columns of a product's rows
// joins the product's fusion group: the workgroup that has these columns folds them, so that the product itself
// need not reach memory. The pass `foldColumns` makes such reductions of those over whole rows.

import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import { atomsOf, divIndex, modIndex } from '../../ir/index-algebra/expr.ts';
import { sharesWork } from '../machine.ts';
import type { Target } from '../target.ts';
import type { Indices } from '../expression/evaluate.ts';
import { contractExtents } from './domain.ts';
import type { FusionGroup } from './place.ts';

/** Columns that are folded together: every tile of a workgroup has whole groups of them. */
export const foldWidth = 64;

/** Rows of the smallest tile: a product of fewer is spread over the machine in other ways. */
const fewestRows = 32;

/** Whether workgroups fold the columns of a product, of which there are so many: where they have tiles of it. */
export function foldsColumns(
  node: NodeOf<'dot'>,
  target: Target,
  n: number = contractExtents(node as Node).n,
): boolean {
  if (!sharesWork(target) || !['f32', 'f16', 'bf16'].includes(node.dtype)) return false;
  const { batch, m } = contractExtents(node as Node);
  const most = target.limits.workgroupsPerDimension;
  return (
    n > foldWidth &&
    n % foldWidth === 0 &&
    m >= fewestRows &&
    Math.max(batch, m / fewestRows, n / foldWidth) <= most
  );
}

/** Where a product's group has the result of a reduction over `foldWidth` columns; undefined for others. */
export function foldedAt(
  node: NodeOf<'reduce'>,
  { kind, axes, fusionRoots, members }: FusionGroup,
  target: Target,
): Indices | undefined {
  const [product] = fusionRoots;
  const [input] = node.inputs;
  const at = members.get(input!);
  if (kind !== 'dot' || product?.op !== 'dot' || at === undefined || !foldsColumns(product, target))
    return undefined;
  if (input!.dtype !== 'f32' || node.attrs.axes.join() !== String(at.length - 1)) return undefined;
  const { atom } = axes['n']!;
  const kept = at.slice(0, -1);
  const isOfColumns = kept.filter((index) => atomsOf(index).some((each) => each === atom));
  const isWhole =
    dims(input!).at(-1) === foldWidth &&
    at.at(-1) === modIndex(atom, foldWidth) &&
    isOfColumns.every((index) => index === divIndex(atom, foldWidth));
  return isWhole ? kept : undefined;
}
