// Node only: compiled kernels on disk. An image is kept under the hash of its bytes, so a truncated
// or altered file no longer matches its name; a small file per kernel, under the hash of what it
// was compiled from, says which image holds it and by which name. A file that cannot be read counts
// as absent; failures to write are ignored.

import { createHash, randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { cacheFolder } from '../../cache.ts';

/** Where a kernel was found. */
export interface FoundCubin {
  /** The image's hash: one image is loaded once. */
  readonly image: string;
  /** The kernel's name in it. */
  readonly entry: string;
}

/** Files of this many days without use are removed when something is written. */
const KEPT_DAYS = 60;

export class Cubins {
  readonly #folder: string | undefined;
  #isTidy = false;

  /** Files are kept in a folder, which is made when needed; without one nothing is kept. */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** Where the kernel of this key is; undefined when it, or its image, is not there whole. */
  find(key: string): FoundCubin | undefined {
    const text = this.#read(`${key}.kernel`)?.toString('utf8');
    const [, image, entry] = /^sinter kernel 1\n([0-9a-f]{64})\n(\w+)\n$/.exec(text ?? '') ?? [];
    return image === undefined || entry === undefined ? undefined : { image, entry };
  }

  /** The bytes of an image; undefined unless they are what was written. */
  read(image: string): Uint8Array | undefined {
    const bytes = this.#read(`${image}.cubin`);
    return bytes !== undefined && hashOf(bytes) === image ? bytes : undefined;
  }

  /** Keeps an image, and by their keys the kernels in it. */
  write(bytes: Uint8Array, kernels: ReadonlyMap<string, string>): void {
    const image = hashOf(bytes);
    if (!this.#write(`${image}.cubin`, bytes)) return;
    for (const [key, entry] of kernels) this.#write(`${key}.kernel`, `sinter kernel 1\n${image}\n${entry}\n`);
    this.#tidy();
  }

  #read(name: string): Buffer | undefined {
    if (this.#folder === undefined) return undefined;
    try {
      return fs.readFileSync(path.join(this.#folder, name));
    } catch {
      return undefined;
    }
  }

  /** Written to another file that is then renamed: readers find all of the content or nothing. */
  #write(name: string, content: Uint8Array | string): boolean {
    if (this.#folder === undefined) return false;
    const fresh = path.join(this.#folder, `${name}.${randomUUID()}`);
    try {
      fs.mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      fs.writeFileSync(fresh, content);
      fs.renameSync(fresh, path.join(this.#folder, name));
      return true;
    } catch {
      try {
        fs.rmSync(fresh, { force: true });
      } catch {
        // It was never there.
      }
      return false;
    }
  }

  /** Once a process: removes files that no process has read or written for long. */
  #tidy(): void {
    if (this.#isTidy || this.#folder === undefined) return;
    this.#isTidy = true;
    const oldest = Date.now() - KEPT_DAYS * 86_400_000;
    try {
      for (const name of fs.readdirSync(this.#folder)) {
        const file = path.join(this.#folder, name);
        const { atimeMs, mtimeMs } = fs.statSync(file);
        if (Math.max(atimeMs, mtimeMs) < oldest) fs.rmSync(file, { force: true });
      }
    } catch {
      // Another process tidies too.
    }
  }
}

/**
 * Where compiled kernels are kept; without a writable cache folder they are compiled anew in every
 * process.
 */
export function usualFolder(): string | undefined {
  try {
    return path.join(cacheFolder(), 'cuda');
  } catch {
    return undefined;
  }
}

export function hashOf(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex');
}
