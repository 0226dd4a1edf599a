// The stages of a compilation as data, and who hears of them.

import type { Loop } from '../codegen/loop/loop.ts';
import type { Graph } from '../ir/graph.ts';
import type { PassTrace } from '../ir/origin/trace.ts';
import type { Program } from '../runtime/program.ts';
import type { Kernel } from '../schedule/kernel.ts';
import type { KernelSchedule } from '../schedule/schedule.ts';
import type { Target } from '../schedule/target.ts';

/** What a compilation has come to. All of it is immutable. */
export type CompileStage =
  | { readonly kind: 'recorded'; readonly graph: Graph; readonly target: Target }
  /** After the pass at `place` in the list of passes. */
  | {
      readonly kind: 'pass';
      readonly name: string;
      readonly guarantees: string;
      readonly place: number;
      readonly before: Graph;
      readonly graph: Graph;
      readonly trace: PassTrace;
    }
  | { readonly kind: 'schedule'; readonly graph: Graph; readonly schedule: KernelSchedule }
  /** Kernel number `place` of `count` was lowered; equal kernels share a Loop. */
  | {
      readonly kind: 'loop';
      readonly place: number;
      readonly count: number;
      readonly kernel: Kernel;
      readonly loop: Loop;
    }
  | {
      readonly kind: 'program';
      readonly program: Program;
      /** Of each kernel, in the order in which they run. */
      readonly sources: readonly (() => string)[];
    }
  | { readonly kind: 'error'; readonly error: unknown };

/** Hears of every stage of one compilation, as it is reached. */
export type Observer = (stage: CompileStage) => void;

/** Writes the stages of compilations down. */
export interface StageWriter {
  /** A new compilation, of what `title` says, into `folder`. */
  readonly begin: (folder: string, title: string) => Observer;
}
