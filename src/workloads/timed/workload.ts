// What a timed workload is: a counted one's program with data, how to call it again and again, and
// what its result is held to.

import type { Tensor } from '../../index.ts';
import type { Workload } from '../workload.ts';
import type { Reference } from './references.ts';

/**
 * Calls a workload once with what the last call left behind; gives the tensor that is its result.
 */
export type WorkloadStep = () => Tensor;

export interface TimedWorkload extends Workload {
  /** A step over these arguments, compiled where the workload is. */
  readonly start: (args: readonly unknown[]) => WorkloadStep;
  /**
   * What the result must be, and how far it may be off, relative to the largest reference value.
   */
  readonly reference: () => Reference;
  readonly tolerance: number;
}
