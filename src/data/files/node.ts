// Node only: folders. Loaded by a dynamic import and mapped to nothing in package.json's `browser`,
// so that no page's bundler meets a Node module.

import { readdir } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file in a folder of its class. */
export interface Filed {
  readonly path: string;
  /** The name of the folder. */
  readonly name: string;
}

/** The files with these endings, in the folders right below one and in what is below these, in the order of their names. */
export async function filesByFolder(
  folder: string | URL,
  endings: readonly string[],
): Promise<{ readonly names: readonly string[]; readonly files: readonly Filed[] }> {
  const root = folder instanceof URL ? fileURLToPath(folder) : folder;
  const entries = await readdir(root, { withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
  const files: Filed[] = [];
  for (const name of names) {
    const below = await readdir(join(root, name), { recursive: true, withFileTypes: true });
    const paths = below
      .filter((entry) => entry.isFile() && endings.includes(extname(entry.name).toLowerCase()))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
    files.push(...paths.map((path) => ({ path, name })));
  }
  return { names, files };
}
