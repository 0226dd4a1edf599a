// What compiled functions have been compiled to where their sizes vary, and what they may overwrite, for explanations.

import type { Graph } from '../../ir/graph.ts';
import type { Flat } from '../tree.ts';

/** One program of a function: the largest size of each dim, and whether a call has met it. */
export interface SizeVariant {
  readonly upTo: Readonly<Record<string, number>>;
  readonly compiled: boolean;
}

export interface SizeReport {
  /** The program that a call of these arguments runs; undefined where it is of their sizes alone. */
  programOf(
    args: readonly unknown[],
  ): { readonly graph: Graph; readonly scalars: ReadonlySet<number> } | undefined;
  variants(): readonly SizeVariant[];
  /** Leaves of arguments whose memory a call may take. */
  donated(flat: Flat): readonly number[];
}

const reports = new WeakMap<object, SizeReport>();

export function noteReport(fn: object, report: SizeReport): void {
  reports.set(fn, report);
}

/** Undefined of a function that is no compiled one. */
export function reportOf(fn: object): SizeReport | undefined {
  return reports.get(fn);
}
