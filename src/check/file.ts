// Node only: the table of workarounds in the file that `SINTER_WORKAROUNDS` names. Left out of pages by package.json's
// `browser`.

import { readFile } from 'node:fs/promises';
import { SinterError } from '../errors.ts';
import { parseData } from '../tune/book.ts';
import { adjustmentOf, type Adjust, type Workarounds } from './workarounds.ts';

const known = new Map<string, Promise<Adjust>>();

/** What a file says, read once. Rejects with E_IO where it cannot be read, and E_FORMAT where it is no table. */
export function adjustmentIn(file: string): Promise<Adjust> {
  const reading = known.get(file) ?? read(file);
  known.set(file, reading);
  return reading;
}

async function read(file: string): Promise<Adjust> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    const hint = 'sinter check MODEL --write FILE makes such a file';
    throw new SinterError('E_IO', `SINTER_WORKAROUNDS: ${problem}\n  try: ${hint}`, { cause });
  }
  return adjustmentOf(parseData(file, text) as Workarounds, file);
}
