// Removes from dist what no file of src is the source of, so that what moved or went is not
// published, and no test reads it. Part of `npm run build`, after the compiler and before
// scripts/bundle-runtimes.ts, which writes what it makes anew.

import { existsSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

/**
 * Removes from `built` the files without a source below `source`, and folders that are empty then;
 * gives their paths in `built`.
 */
export function prune(built: string, source: string): string[] {
  const removed: string[] = [];
  const visit = (folder: string): void => {
    for (const entry of readdirSync(path.join(built, folder), { withFileTypes: true })) {
      const inside = path.join(folder, entry.name);
      const place = path.join(built, inside);
      if (entry.isDirectory()) {
        visit(inside);
        if (readdirSync(place).length === 0) rmdirSync(place);
        continue;
      }
      const name = inside.replace(/(?:\.d\.ts|\.js)$/, '.ts');
      if (name !== inside && existsSync(path.join(source, name))) continue;
      unlinkSync(place);
      removed.push(inside);
    }
  };
  visit('');
  return removed;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  prune(path.join(root, 'dist'), path.join(root, 'src'));
}
