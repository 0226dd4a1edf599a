// How the invocations of a workgroup are spread over the rows of an attention kernel, and over the keys
// of a block.

import type { Value } from '../../loop/loop.ts';

/** How the rows of a workgroup are spread over its invocations. */
export interface Seats {
  /** Rows a workgroup handles. */
  readonly rows: number;
  /** Invocations that share a row; a power of two. */
  readonly parts: number;
  /** Which of the rows is this invocation's, and which part of it. */
  readonly place: Value;
  readonly part: Value;
  readonly workgroup: readonly [number, number, number];
  /** Quads of keys that an invocation takes at a time: every parts-th of a block. */
  readonly quads: number;
  /**
   * Invocations of a row among which columns are dealt, a power of two: the others add other keys of
   * a block. All of a row where this is not said.
   */
  readonly columnParts?: number;
}

/** An invocation's keys of a block. */
export interface KeyBlock {
  /** First quad of the block. */
  readonly first: Value;
  /**
   * This invocation's quads, and which of their lanes hold a key (undefined: all). On matrix units
   * they are pairs of keys, of two rows (gpu/fragment-rows.ts).
   */
  readonly quads: readonly { readonly quad: Value; readonly inside: Value | undefined }[];
}

/** Invocations of a row that each combine what all of them have, one after the other; of more, in rounds. */
export const fewParts = 8;

/**
 * Callbacks of a walk over blocks of keys: before the first, and at the beginning of each. Quads
 * `from` up to `end` are walked over.
 */
export interface Feed {
  readonly open: (from: Value, end: Value) => void;
  readonly each: (first: Value, end: Value) => void;
}
