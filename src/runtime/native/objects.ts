// Node only: shared objects on disk. An object is kept under the hash of its bytes, so a damaged one no
// longer matches its name; a small file under the hash of what it was compiled from says which object
// that is. Code is loaded from folders alone that nobody else may write to. A file that cannot be
// read counts as absent; where nothing can be kept, objects lie in a folder of this process.

import { createHash, randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { DeviceError } from '../../errors.ts';
import { cacheFolder } from '../cache.ts';
import { compileBeside, compileNow, type CCompiler } from './compiler.ts';

/** Files of this many days without use are removed when something is written. */
const keptDays = 60;

export class Objects {
  /** The name of the device whose objects these are. */
  readonly device: string;
  readonly #compiler: CCompiler;
  /** Where objects are kept, and where they are looked for: undefined for nowhere. */
  readonly #folder: string | undefined;
  /** A folder of this process, made when nothing else can be written to, or code of it be run. */
  #own: string | undefined;
  /** Whether code may be run from `folder`: mounts with noexec forbid it. */
  #isForbidden = false;
  #isTidy = false;
  /** Compilations under way, by key. */
  readonly #pending = new Map<string, Promise<string>>();
  readonly #ending = new AbortController();
  /** Resolves when the compiler that was started last has ended. */
  readonly #slots: Promise<unknown>[];
  #next = 0;

  constructor(device: string, compiler: CCompiler, folder: string | undefined) {
    this.device = device;
    this.#compiler = compiler;
    this.#folder = folder;
    this.#slots = Array.from({ length: os.availableParallelism() }, () => Promise.resolve());
  }

  /** What an object of this text is known by. */
  keyOf(text: string): string {
    return hashOf(`${this.#compiler.identity}\0${text}`);
  }

  /** The file of an object that was compiled before, whole; undefined where there is none. */
  find(key: string): string | undefined {
    for (const folder of [this.#folder, this.#own]) {
      if (folder === undefined || !isPrivate(folder)) continue;
      const hash = /^sinter object 1\n([0-9a-f]{64})\n$/.exec(readText(path.join(folder, `${key}.key`)))?.[1];
      if (hash === undefined) continue;
      const file = path.join(folder, `${hash}.so`);
      const bytes = readBytes(file);
      if (bytes !== undefined && hashOf(bytes) === hash) return this.#allowed(file);
    }
    return undefined;
  }

  /** The file of the text's object, compiled while the caller waits. Throws E_DEVICE. */
  makeNow(text: string): string {
    const key = this.keyOf(text);
    const known = this.find(key);
    if (known !== undefined) return known;
    return this.#makeHere(key, text);
  }

  /** The same by processes beside this one, as many at once as there are cores. */
  make(text: string): Promise<string> {
    const key = this.keyOf(text);
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    const slot = this.#next++ % this.#slots.length;
    const making = this.#slots[slot]!.then(() => this.#makeBeside(key, text));
    this.#slots[slot] = making.catch(() => undefined);
    this.#pending.set(key, making);
    void making.catch(() => undefined).then(() => this.#pending.delete(key));
    return making;
  }

  /**
   * A copy of an object that cannot be opened where it lies, in the folder of this process; undefined where it
   * is there already. From then on every object is opened there.
   */
  copyOf(file: string): string | undefined {
    this.#isForbidden = true;
    const copy = this.#allowed(file);
    return copy === file ? undefined : copy;
  }

  /** Where an object is opened. */
  #allowed(file: string): string {
    if (!this.#isForbidden || path.dirname(file) === this.#own) return file;
    const own = this.#ownFolder();
    if (own === undefined) return file;
    const copy = path.join(own, path.basename(file));
    try {
      // Not over one that may be open.
      if (!fs.existsSync(copy)) fs.copyFileSync(file, copy);
      return copy;
    } catch {
      removeQuietly(copy);
      return file;
    }
  }

  /** Ends compilers under way, and removes what is this process's alone. */
  close(): void {
    this.#ending.abort();
    if (this.#own !== undefined) removeQuietly(this.#own);
    this.#own = undefined;
  }

  async #makeBeside(key: string, text: string): Promise<string> {
    const known = this.find(key);
    if (known !== undefined) return known;
    for (const { folder, fresh } of this.#places()) {
      try {
        await compileBeside(this.#compiler, this.device, text, fresh, this.#ending.signal);
        return this.#settle(key, folder, fresh);
      } catch (error) {
        this.#giveUp(folder, fresh, error);
      }
    }
    throw this.#nowhere();
  }

  #makeHere(key: string, text: string): string {
    for (const { folder, fresh } of this.#places()) {
      try {
        compileNow(this.#compiler, this.device, text, fresh);
        return this.#settle(key, folder, fresh);
      } catch (error) {
        this.#giveUp(folder, fresh, error);
      }
    }
    throw this.#nowhere();
  }

  /** Throws what went wrong, unless it may go well in the folder of this process. */
  #giveUp(folder: string, fresh: string, error: unknown): void {
    removeQuietly(fresh);
    if (folder === this.#own || this.#ending.signal.aborted || !isFull(folder)) throw error;
  }

  /** Files that an object may be written to, one after the other; the last is this process's alone. */
  *#places(): Generator<{ readonly folder: string; readonly fresh: string }> {
    const place = (folder: string | undefined): { folder: string; fresh: string }[] => {
      const fresh = folder === undefined ? undefined : freshIn(folder);
      return folder === undefined || fresh === undefined ? [] : [{ folder, fresh }];
    };
    if (this.#folder !== undefined && makePrivate(this.#folder)) yield* place(this.#folder);
    yield* place(this.#ownFolder());
  }

  #ownFolder(): string | undefined {
    if (this.#own !== undefined) return this.#own;
    try {
      const own = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-native-'));
      process.once('exit', () => removeQuietly(own));
      this.#own = own;
    } catch {
      // There is no temporary folder that can be written to.
    }
    return this.#own;
  }

  /** Names a new object by its hash: readers find all of it or nothing. */
  #settle(key: string, folder: string, fresh: string): string {
    const bytes = readBytes(fresh);
    if (bytes === undefined || bytes.length === 0) {
      const problem = `${this.#compiler.command.join(' ')} ended well and wrote no object`;
      throw new DeviceError('E_DEVICE', this.device, `a program was not compiled: ${problem}`);
    }
    const hash = hashOf(bytes);
    const file = path.join(folder, `${hash}.so`);
    fs.renameSync(fresh, file);
    const note = path.join(folder, `${key}.${randomUUID()}`);
    try {
      fs.writeFileSync(note, `sinter object 1\n${hash}\n`, { mode: 0o600 });
      fs.renameSync(note, path.join(folder, `${key}.key`));
    } catch {
      // The object is there; the next process compiles it anew.
      removeQuietly(note);
    }
    this.#tidy(folder);
    return this.#allowed(file);
  }

  #nowhere(): DeviceError {
    const problem = `a program was not compiled: neither ${this.#folder ?? 'a cache folder'} nor ${os.tmpdir()} can be written to`;
    return new DeviceError('E_DEVICE', this.device, problem, {
      hint: 'set SINTER_CACHE to a writable folder',
    });
  }

  /** Once a process: removes files that no process has read or written for long. */
  #tidy(folder: string): void {
    if (this.#isTidy || folder === this.#own) return;
    this.#isTidy = true;
    const oldest = Date.now() - keptDays * 86_400_000;
    try {
      for (const name of fs.readdirSync(folder)) {
        const file = path.join(folder, name);
        const { atimeMs, mtimeMs } = fs.statSync(file);
        if (Math.max(atimeMs, mtimeMs) < oldest) fs.rmSync(file, { force: true });
      }
    } catch {
      // Another process tidies too.
    }
  }
}

/** Where objects are kept: `native` in the cache folder; undefined where there is no writable one. */
export function usualFolder(
  env: Readonly<Record<string, string | undefined>> = process.env,
): string | undefined {
  try {
    return path.join(cacheFolder(env), 'native');
  } catch {
    return undefined;
  }
}

/** Makes a folder that nobody else may write to; false where that cannot be. */
function makePrivate(folder: string): boolean {
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch {
    return false;
  }
  return isPrivate(folder);
}

function isPrivate(folder: string): boolean {
  try {
    const at = fs.statSync(folder);
    const user = process.getuid?.() ?? at.uid;
    return at.isDirectory() && at.uid === user && (at.mode & 0o022) === 0;
  } catch {
    return false;
  }
}

/** A file's name in a folder that can be written to; undefined where it cannot. */
function freshIn(folder: string): string | undefined {
  const fresh = path.join(folder, `${randomUUID()}.part`);
  try {
    fs.writeFileSync(fresh, '', { mode: 0o700 });
    return fresh;
  } catch {
    return undefined;
  }
}

/** Whether a folder takes no more bytes: a compiler's error may come from that. */
function isFull(folder: string): boolean {
  const probe = path.join(folder, `${randomUUID()}.part`);
  try {
    fs.writeFileSync(probe, new Uint8Array(2 ** 18));
    return false;
  } catch {
    return true;
  } finally {
    removeQuietly(probe);
  }
}

function readText(file: string): string {
  return readBytes(file)?.toString('utf8') ?? '';
}

function readBytes(file: string): Buffer | undefined {
  try {
    return fs.readFileSync(file);
  } catch {
    return undefined;
  }
}

function removeQuietly(file: string): void {
  try {
    fs.rmSync(file, { force: true, recursive: true });
  } catch {
    // It was never there, or is another's.
  }
}

export function hashOf(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex');
}
