// Node only: the stages of compilations as files. Each compilation has a folder of its own below
// the one that `SINTER_DUMP` names, `001-step`, counted on from what is there; its files are
// numbered in the order of the stages. What cannot be written is said once, and costs nothing but
// the files.

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { filesOf } from './files.ts';
import type { Observer, StageWriter } from './stage.ts';

let isRefused = false;

function refuse(folder: string, error: unknown): void {
  if (isRefused) return;
  isRefused = true;
  const problem = error instanceof Error ? error.message : String(error);
  console.warn(`sinter: SINTER_DUMP: stages are not written to ${folder}: ${problem}`);
}

/** Writes into folders; loaded by `dump/stages.ts` where the environment names one. */
export const folderWriter: StageWriter = {
  begin(folder: string, title: string): Observer {
    let own: string | undefined;
    try {
      own = ownFolder(folder, title);
    } catch (error) {
      refuse(folder, error);
    }
    if (own === undefined) return () => undefined;
    const into = own;
    const texts = filesOf();
    return (stage) => {
      try {
        for (const { name, text } of texts(stage)) {
          if (text === undefined) rmSync(join(into, name), { force: true });
          else writeFileSync(join(into, name), text);
        }
      } catch (error) {
        refuse(into, error);
      }
    };
  },
};

/** A new folder with the next number; other processes may be taking numbers at the same time. */
function ownFolder(folder: string, title: string): string {
  mkdirSync(folder, { recursive: true });
  const word = title.replaceAll(/[^\w.-]+/g, '-').replaceAll(/^-+|-+$/g, '');
  const numbers = readdirSync(folder).map((name) => Number(/^(\d+)-/.exec(name)?.[1] ?? 0));
  for (let number = Math.max(0, ...numbers) + 1; ; number++) {
    const own = join(folder, `${String(number).padStart(3, '0')}-${word.slice(0, 60)}`);
    try {
      mkdirSync(own);
      return own;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
