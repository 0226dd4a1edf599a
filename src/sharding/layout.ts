// What a process has of a value while a program is made: its part, and whether that is the value already.

import type { Split } from '../ir/mesh/split.ts';
import type { Monoid } from '../ir/ops.ts';

export interface ShardLayout {
  readonly split: Split;
  /** The value is what the processes along these mesh axes have, combined; they have not been combined yet. */
  readonly pending: ShardPending | undefined;
}

export interface ShardPending {
  readonly over: readonly string[];
  readonly monoid: Monoid;
}
