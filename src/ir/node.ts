// A node of the Graph IR, as data: one operation over others, with its attributes and its type.

import type { DType } from './dtype.ts';
import type { Attrs, CollectiveOp, Op } from './ops.ts';
import type { Shape } from './shape.ts';

export interface NodeFields<K extends Op> {
  readonly op: K;
  readonly inputs: readonly Node[];
  readonly attrs: Attrs<K>;
  readonly dtype: DType;
  readonly shape: Shape;
  /** Unique over the process and larger than every input's, so ids are a topological order. */
  readonly id: number;
  /** Hash of op and attributes: the same for the node over other inputs. */
  readonly salt: number;
}

/** A node of one op, with that op's attributes. */
export type NodeOf<K extends Op> = NodeFields<K>;
/** One operation of a graph; narrow on `op` to read `attrs`. */
export type Node = { [K in Op]: NodeFields<K> }[Op];
/** What processes do together. */
export type CollectiveNode = { [K in CollectiveOp]: NodeFields<K> }[CollectiveOp];
