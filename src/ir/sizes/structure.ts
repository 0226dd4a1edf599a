// What recordings of one function at several sizes consist of, and the structure that they have in common.

import type { DType } from '../dtype.ts';
import type { Node } from '../graph.ts';
import type { Op } from '../ops.ts';
import type { Num } from './size.ts';

/** One node of a recording, as a graph key has it. */
export interface RecordedPart {
  readonly kind: 'leaf' | 'constant' | 'op' | 'moved';
  readonly node: Node;
  readonly inputs: readonly number[];
  readonly number: number;
}

/** A recording of a function: nodes, inputs before what reads them. */
export interface SizeRecording {
  readonly parts: readonly RecordedPart[];
  readonly constants: readonly number[];
  readonly outputs: readonly number[];
}

/** Attributes in which numbers may vary. */
export type VaryingAttrs = Readonly<Record<string, unknown>>;

/** One node of the structure. */
export interface StructurePart {
  readonly kind: 'leaf' | 'constant' | 'op';
  readonly op: Op;
  readonly dtype: DType;
  readonly shape: readonly Num[];
  readonly attrs: VaryingAttrs;
  readonly inputs: readonly number[];
  /** Of a leaf: its number. */
  readonly leaf: number;
  /** The node of the first recording, for messages. */
  readonly node: Node;
}

export interface SizeStructure {
  readonly parts: readonly StructurePart[];
  readonly outputs: readonly number[];
  readonly leaves: number;
}
