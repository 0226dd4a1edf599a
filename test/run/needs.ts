// The test files, and what each needs of the worker that runs it. Files with the same needs are run by one Vitest.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { importsOf } from './since.ts';

/** Needs that test files state in a comment: a whole sentence with the reason behind the colon. */
const sentences = {
  own: /^\/\/ Runs in a process of its own: \S/m,
  sources: /^\/\/ Runs on the sources: \S/m,
  alone: /^\/\/ Runs alone: \S/m,
  whole: /^\/\/ Its tests follow one another: \S/m,
} as const;

export interface Needs {
  /** No other file may run in its process. */
  readonly own: boolean;
  /** It imports the sources through Vite, not the build: it loads modules of TypeScript while it runs. */
  readonly sources: boolean;
  /** It measures time or memory of the process: it runs when all others have ended, and nothing runs beside it. */
  readonly alone: boolean;
  /** Each test builds on those before it: the quick tier runs all of them or none. */
  readonly whole: boolean;
  /** Its worker has a CUDA device, the stand-in's; elsewhere there is none. */
  readonly standIn: boolean;
  /** It runs on a device of the full tier alone, `native`: its tests there have that word in their names. */
  readonly native: boolean;
}

/** All test files below a root. */
export function testFiles(root: string, folder: string = 'test'): string[] {
  return fs.readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const place = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return testFiles(root, place);
    return entry.name.endsWith('.test.ts') ? [place] : [];
  });
}

/** Answers what files need, by their texts and those that they import. */
export function needsIn(root: string): (file: string) => Needs {
  const imports = new Map<string, readonly string[]>();
  const importsIn = (file: string): readonly string[] => {
    let names = imports.get(file);
    if (names === undefined) {
      const text = fs.readFileSync(path.join(root, file), 'utf8');
      names = importsOf(root, file, text).filter((name) => name.startsWith('test/') && name.endsWith('.ts'));
      imports.set(file, names);
    }
    return names;
  };
  const known = new Map<string, Needs>();
  const read = (file: string): Needs => {
    const text = fs.readFileSync(path.join(root, file), 'utf8');
    const seen = new Set([file]);
    for (const each of seen) for (const name of importsIn(each)) seen.add(name);
    return {
      own: sentences.own.test(text),
      sources: sentences.sources.test(text),
      alone: sentences.alone.test(text),
      whole: sentences.whole.test(text),
      standIn: seen.has('test/cuda/standin/standin.ts'),
      native: seen.has('test/support/devices.ts') || seen.has('test/runtime/native/waiting.ts'),
    };
  };
  return (file) => {
    if (!known.has(file)) known.set(file, read(file));
    return known.get(file)!;
  };
}

/** The same for files with the same needs. */
export const keyOf = ({ own, sources, standIn }: Needs): string => JSON.stringify([own, sources, standIn]);
