// Node only: files by their paths. Loaded by a dynamic import and mapped to nothing in
// package.json's `browser`, so that no page's bundler meets a Node module.

import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

export { readFile, writeFile } from 'node:fs/promises';

/**
 * Writes a file whole or not at all: into a new one beside it, which reaches the disk before it
 * takes the place.
 */
export async function replaceFile(path: string | URL, bytes: Uint8Array): Promise<void> {
  const place = typeof path === 'string' ? path : fileURLToPath(path);
  const beside = `${place}.${randomUUID()}.tmp`;
  try {
    const file = await open(beside, 'wx');
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, place);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}
