// What all reductions share: the axes that they fold, the check of their arguments, and `keepdim`.

import * as arg from '../../../ir/arguments.ts';
import { reshape } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxes } from '../../../ir/shape.ts';
import { aTensor, expectTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply } from '../operand.ts';

/**
 * Which axes a reduction folds: one, several, or all when absent. Negative ones count from the
 * last.
 */
export type Axes = number | readonly number[];

export interface ReduceOptions {
  /** Keeps reduced axes with size 1; false by default. */
  readonly keepdim?: boolean;
}

/** @internal */
export const reduceOptions: arg.Table<ReduceOptions> = { keepdim: arg.flag };
const takes = arg.takes<(x: Tensor, axes?: Axes, options?: ReduceOptions) => Tensor>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/** Checks the arguments of a reduction that has no options of its own. @internal */
export function takesReduce(op: string, x: Tensor, axes?: Axes, options?: ReduceOptions): void {
  takes(op, x, axes, options);
}

/** The axes to fold, ascending; a rank-0 tensor is folded as one element, under axis 0 or −1. @internal */
export function axesOf(op: string, axes: Axes | undefined, x: Tensor): number[] {
  expectTensor(op, 'the operand', x);
  if (x.rank > 0) return normalizeAxes(op, axes, x.rank);
  normalizeAxes(op, axes, 1);
  return [];
}

/** Removes the kept axes of size 1 unless they are wanted. @internal */
export function dropKeptAxes(b: GraphBuilder, kept: Node, axes: readonly number[], keepdim: boolean): Node {
  if (keepdim) return kept;
  return reshape(
    b,
    kept,
    dims(kept).filter((_, axis) => !axes.includes(axis)),
  );
}

/** Records a reduction given by a formula that keeps the reduced axes. @internal */
export function reduction(
  op: string,
  x: Tensor,
  axes: Axes | undefined,
  options: ReduceOptions,
  make: (b: GraphBuilder, x: Node, axes: readonly number[]) => Node,
): Tensor {
  const list = axesOf(op, axes, x);
  return apply([x], (b, node) => dropKeptAxes(b, make(b, node, list), list, options.keepdim === true));
}
