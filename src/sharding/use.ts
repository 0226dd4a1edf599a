// What is told of the collectives of a program: which value they move, by how many bytes, and why.

import type { CollectiveOp } from '../ir/ops.ts';

/** A collective of the program of a process. */
export interface CollectiveUse {
  readonly kind: CollectiveOp;
  readonly over: readonly string[];
  readonly ranks: number;
  /** What is moved, on one process: `f32[64, 32]`. */
  readonly value: string;
  /** Bytes of the whole that is moved, as `bytesSent` takes them. */
  readonly whole: number;
  /** Bytes that each process sends. */
  readonly bytes: number;
  readonly why: string;
}
