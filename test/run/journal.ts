// The results of a run: a file of JSON lines, the first about the run, each other about a test file. It can be read while the run
// writes it, and a run that was cut goes on from it.

import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import type { Tier } from './costs.ts';
import type { Failure, Skip } from './worker/events.ts';

/** The first line. */
export interface RunHeader {
  readonly tier: Tier;
  readonly seed: number;
  readonly commit: string;
  /** When the run began: ISO 8601. */
  readonly began: string;
}

/** A test of which the processor time was measured. */
export interface TestCost {
  readonly name: string;
  /** In the quick tier. */
  readonly seconds: number;
}

/** One line: how a test file ended. */
export interface FileResult {
  readonly file: string;
  readonly state: 'passed' | 'failed';
  readonly seed: number;
  readonly processorSeconds: number;
  readonly wallSeconds: number;
  /** Of the processor seconds, those of imports and hooks. */
  readonly setupSeconds: number;
  /** And those of all tests that `costs` leaves out, in the quick tier. */
  readonly restSeconds: number;
  readonly passed: number;
  readonly failures: readonly Failure[];
  readonly skips: readonly Skip[];
  /** How many tests only the full tier runs. */
  readonly left: number;
  /** The tests that cost something to speak of. */
  readonly costs: readonly TestCost[];
}

/** What a journal held when it was opened. */
export interface Earlier {
  readonly header: RunHeader;
  readonly results: readonly FileResult[];
}

/** The lines of a journal; a last line that was cut is left out. */
export function readJournal(file: string): Earlier | undefined {
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const [header, ...results] = lines.map((line) => JSON.parse(line) as unknown);
  return header === undefined
    ? undefined
    : { header: header as RunHeader, results: results as readonly FileResult[] };
}

export interface Journal {
  add(result: FileResult): void;
}

/** Begins a journal with what an earlier run left of it. */
export function openJournal(file: string, header: RunHeader, kept: readonly FileResult[]): Journal {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, [header, ...kept].map((line) => `${JSON.stringify(line)}\n`).join(''));
  return { add: (result) => appendFileSync(file, `${JSON.stringify(result)}\n`) };
}
