// A cell applied step by step along time: a loop, whose kernels are those of one step. A sequence
// that has ended keeps its state and gives zeros, so that batches of unequal length need no packing.

import { scan } from '../control/scan.ts';
import type { Tensor } from '../../tensor.ts';
import { zerosLike } from '../creation/creation.ts';
import { gt, where } from '../elementwise/compare.ts';
import { unsqueeze } from '../shape/view.ts';

/** What a layer gives at each step, and the state after its last one. @internal */
export interface SequenceRun {
  /** [time, batch, H] */
  readonly outputs: Tensor;
  readonly state: readonly Tensor[];
}

/**
 * Runs `cell` over the steps of `inputs` [time, batch, …], backwards if asked for; the first part of
 * a state [batch, H] is what the layer gives. `lengths` [batch] says how many steps each sequence
 * has.
 *
 * @internal
 */
export function overTime(
  inputs: Tensor,
  start: readonly Tensor[],
  cell: (input: Tensor, state: readonly Tensor[]) => readonly Tensor[],
  lengths: Tensor | undefined,
  isReverse: boolean,
): SequenceRun {
  const [state, outputs] = scan(
    (old: readonly Tensor[], input: Tensor, time): [readonly Tensor[], Tensor] => {
      const next = cell(input, old);
      if (lengths === undefined) return [next, next[0]!];
      const runs = unsqueeze(gt(lengths, time), 1);
      return [
        next.map((value, i) => where(runs, value, old[i]!)),
        where(runs, next[0]!, zerosLike(next[0]!)),
      ];
    },
    start,
    inputs,
    { reverse: isReverse },
  );
  return { outputs, state };
}
