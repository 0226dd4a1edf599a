// Folders of compiled programs that tests share between runs.

import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Random tests make programs that nobody asks for again: of too many, those go that no running test can be about to load. */
export function pruneFolder(programs: string): void {
  if (!existsSync(programs)) return;
  const files = readdirSync(programs);
  if (files.length < 10_000) return;
  const old = Date.now() - 3_600_000;
  for (const file of files) {
    const path = join(programs, file);
    const { mtimeMs = old } = statSync(path, { throwIfNoEntry: false }) ?? {};
    if (mtimeMs < old) rmSync(path, { force: true });
  }
}
