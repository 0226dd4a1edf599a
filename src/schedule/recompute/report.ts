// What a budget of memory changed, as data.

import type { Graph } from '../../ir/graph.ts';

/** A value that is computed again. */
export interface Recomputed {
  /** Its dtype and shape. */
  readonly type: string;
  readonly op: string;
  readonly bytes: number;
}

/** What a budget of memory has done. */
export interface Fitting {
  /** Bytes that a run may take. */
  readonly budget: number;
  /** Bytes that a run takes without anything computed again, and with. */
  readonly plain: number;
  readonly bytes: number;
  /** Arithmetic that is added. */
  readonly flops: number;
  /** Values that are computed again instead of being kept, in the order of the way forward. */
  readonly values: readonly Recomputed[];
}

export interface FittedGraph {
  readonly graph: Graph;
  readonly fitting: Fitting;
}
