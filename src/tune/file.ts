// Node only: keeps the text of a schedule store in a file. Loaded by a dynamic import, and excluded
// from pages by package.json's `browser`. The text is written to a new file that is then renamed,
// so that a reader finds either the old text or the new one.

import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import * as path from 'node:path';
import { cacheFolder } from '../runtime/cache.ts';
import type { Shelf } from './shelf.ts';

/** The file at `given`, else `schedules.json` in the cache folder. */
export function fileShelf(given: string | undefined): Shelf {
  const file = given === undefined ? path.join(cacheFolder(), 'schedules.json') : path.resolve(given);
  const read = async (): Promise<string | undefined> => {
    try {
      return await readFile(file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  };
  return {
    place: file,
    read,
    async write(update) {
      const text = update(await read());
      await mkdir(path.dirname(file), { recursive: true });
      const fresh = `${file}.${randomUUID()}`;
      await writeFile(fresh, text);
      await rename(fresh, file);
    },
  };
}
