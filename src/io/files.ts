// Node only: files by their paths. Loaded by a dynamic import and mapped to nothing in
// package.json's `browser`, so that no page's bundler meets a Node module.

import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The bytes of a file. */
export function readFile(path: string | URL): Promise<Uint8Array> {
  return fs.readFile(path);
}

/** Writes a file. */
export function writeFile(path: string | URL, bytes: Uint8Array): Promise<void> {
  return fs.writeFile(path, bytes);
}

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

/** Names of the files of a folder; undefined where a path is none. */
export async function filesOfFolder(path: string | URL): Promise<readonly string[] | undefined> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === true ? readdir(path) : undefined;
}

/** A file that is read at places, without being held. */
export async function openFile(path: string | URL): Promise<{
  size: number;
  read: (begin: number, end: number) => Promise<Uint8Array>;
  close: () => Promise<void>;
}> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    return {
      size,
      async read(begin, end) {
        const bytes = new Uint8Array(end - begin);
        let done = 0;
        while (done < bytes.length) {
          const { bytesRead } = await file.read(bytes, done, bytes.length - done, begin + done);
          if (bytesRead === 0) break;
          done += bytesRead;
        }
        return bytes.subarray(0, done);
      },
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** A file that is written piece by piece, and takes its place whole or not at all. */
export async function openSink(path: string | URL): Promise<{
  write: (bytes: Uint8Array) => Promise<void>;
  commit: () => Promise<void>;
  abandon: () => Promise<void>;
}> {
  const place = typeof path === 'string' ? path : fileURLToPath(path);
  const beside = `${place}.${randomUUID()}.tmp`;
  const file = await open(beside, 'wx');
  const abandon = async (): Promise<void> => {
    await file.close().catch(() => {});
    await rm(beside, { force: true });
  };
  return {
    write: (bytes) => file.writeFile(bytes),
    async commit() {
      await file.sync();
      await file.close();
      await rename(beside, place);
    },
    abandon,
  };
}

/** The names in a folder. */
export async function namesIn(path: string | URL): Promise<string[]> {
  return readdir(path);
}

/** The path of a name in a folder. */
export function placeIn(folder: string | URL, name: string): string {
  return join(typeof folder === 'string' ? folder : fileURLToPath(folder), name);
}

/** Makes a folder and those that it lies in, where they are not there. */
export async function makeFolder(path: string | URL): Promise<void> {
  await mkdir(path, { recursive: true });
}

/** Removes a file, if it is there. */
export async function removeFile(path: string | URL): Promise<void> {
  await rm(path, { force: true });
}
