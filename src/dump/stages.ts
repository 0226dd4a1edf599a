// The stages of a compilation, for observers: one that is passed to the compilation, and, in Node, the folder
// that `SINTER_DUMP` names. The writer of the folder is loaded when it is needed, so a page does not contain
// it. Stages compiled before it is loaded wait here.

import type { Observer, StageWriter } from './stage.ts';

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
