// A cell applied step by step along time, written out: one step's kernels for each step. A sequence
// that has ended keeps its state and gives zeros, so that batches of unequal length need no packing.

import type { Tensor } from '../../tensor.ts';
import { zerosLike } from '../creation/creation.ts';
import { gt, where } from '../elementwise/compare.ts';
import { unsqueeze } from '../shape/view.ts';

/** What a layer gives at each step, and the state after its last one. */
export interface Run {
  readonly outputs: readonly Tensor[];
  readonly state: readonly Tensor[];
}

/**
 * Runs `cell` over `steps` steps, backwards if asked for; the first part of a state [batch, H] is
 * what the layer gives. `lengths` [batch] says how many steps each sequence has.
 */
export function overTime(
  steps: number,
  start: readonly Tensor[],
  cell: (time: number, state: readonly Tensor[]) => readonly Tensor[],
  lengths: Tensor | undefined,
  isReverse: boolean,
): Run {
  const outputs = new Array<Tensor>(steps);
  let state = start;
  for (let k = 0; k < steps; k++) {
    const time = isReverse ? steps - 1 - k : k;
    const next = cell(time, state);
    if (lengths === undefined) {
      [state, outputs[time]] = [next, next[0]!];
      continue;
    }
    const runs = unsqueeze(gt(lengths, time), 1);
    const old = state;
    state = next.map((value, i) => where(runs, value, old[i]!));
    outputs[time] = where(runs, next[0]!, zerosLike(next[0]!));
  }
  return { outputs, state };
}
