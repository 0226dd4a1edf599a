// The stages of a compilation, for whoever asks to see them: an observer given with the
// compilation, and, in Node, the folder that `SINTER_DUMP` names. The folder's writer is loaded
// when it is wanted, so that a page has nothing of it; what is compiled before it has come waits
// for it here.

import type { Loop } from '../codegen/loop/loop.ts';
import type { Graph } from '../ir/graph.ts';
import type { PassTrace } from '../ir/passes/trace.ts';
import type { Program } from '../runtime/program.ts';
import type { Kernel } from '../schedule/kernel.ts';
import type { Schedule } from '../schedule/schedule.ts';
import type { Target } from '../schedule/target.ts';

/** What a compilation has come to. All of it is immutable. */
export type Stage =
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
  | { readonly kind: 'schedule'; readonly graph: Graph; readonly schedule: Schedule }
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
export type Observer = (stage: Stage) => void;

/** Writes the stages of compilations down. */
export interface StageWriter {
  /** A new compilation, of what `title` says, into `folder`. */
  readonly begin: (folder: string, title: string) => Observer;
}

let writer: StageWriter | undefined;
let loading: Promise<void> | undefined;
const waiting: (() => void)[] = [];

/** The folder that `SINTER_DUMP` names, where there is an environment. */
function dumpFolder(): string | undefined {
  const named = typeof process === 'undefined' ? undefined : process.env?.['SINTER_DUMP'];
  return named === '' ? undefined : named;
}

function load(): Promise<void> {
  loading ??= import('./folder.ts').then(
    (loaded) => found(loaded.folderWriter),
    (error: unknown) => {
      console.warn(`sinter: SINTER_DUMP: stages cannot be written here: ${String(error)}`);
      found({ begin: () => () => undefined });
    },
  );
  return loading;
}

function found(loaded: StageWriter): void {
  writer = loaded;
  for (const write of waiting.splice(0)) write();
}

// A program that names a folder begins to load the writer together with Sinter.
if (dumpFolder() !== undefined) void load();

/**
 * Where stages are written: settles when the writer is there and has written what was compiled before.
 * Devices open after that, and commands run after that, so that a process which ends early has written
 * all stages that it reached.
 */
export function stagesWritten(): Promise<void> | undefined {
  return dumpFolder() === undefined ? undefined : load();
}

/** Who hears of the stages of a compilation; undefined, usually: nobody. */
export function observerOf(given: Observer | undefined, title: () => string): Observer | undefined {
  const folder = dumpFolder();
  if (folder === undefined) return given;
  const dump = observerIn(folder, title());
  return given === undefined
    ? dump
    : (stage) => {
        dump(stage);
        given(stage);
      };
}

function observerIn(folder: string, title: string): Observer {
  void load();
  let observer = writer?.begin(folder, title);
  if (observer === undefined)
    waiting.push(() => {
      observer = writer?.begin(folder, title);
    });
  return (stage) => {
    if (writer !== undefined) observer?.(stage);
    else waiting.push(() => observer?.(stage));
  };
}
