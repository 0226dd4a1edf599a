// The stand-in for NVRTC and the CUDA driver: a library built from the sources in shim/ by the
// host's C++ compiler, once for each version of them, into a cache folder. It runs generated CUDA C
// on the CPU.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findCompiler } from '../../support/cpp.ts';
import { pruneFolder } from './prune.ts';

/** Threads of a block run in this order: as numbered, backwards, shuffled, or one warp as far as it can before the next. */
export const orders = { forward: 0, reverse: 1, random: 2, warpPriority: 3 } as const;
export type Order = keyof typeof orders;

const folder = fileURLToPath(new URL('shim', import.meta.url));

function sourcesIn(path: string): string[] {
  return readdirSync(path, { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? sourcesIn(join(path, entry.name)) : [join(path, entry.name)]))
    .filter((file) => /\.(?:cpp|h)$/.test(file))
    .sort();
}

function buildLibrary(compiler: string): string {
  const files = sourcesIn(folder);
  const version = execFileSync(compiler, ['--version'], { encoding: 'utf8' });
  const hash = createHash('sha256').update(version);
  for (const file of files) hash.update(`\0${relative(folder, file)}\0`).update(readFileSync(file));
  const key = hash.digest('hex').slice(0, 24);
  const cache = join(tmpdir(), `sinter-cuda-standin-${userInfo().uid}`);
  const library = join(cache, `libstandin-${key}.so`);
  const programs = join(cache, `programs-${key}`);
  pruneFolder(programs);
  if (existsSync(library)) return library;
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  // Headers stay beside what is built with them, so that a library is that of every checkout with these sources.
  const headers = join(cache, `headers-${key}`);
  cpSync(join(folder, 'device'), headers, { recursive: true });
  const building = join(cache, `building-${key}`);
  if (!mine(building) && came(library)) return library;
  try {
    build(compiler, files, { headers, programs, cache, library });
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
  return library;
}

/** Whether this process is the one that builds: the first to make the folder. */
function mine(building: string): boolean {
  try {
    mkdirSync(building);
    return true;
  } catch {
    return false;
  }
}

/** Waits for what another worker builds; not for ever, because that one may have been ended. */
function came(library: string): boolean {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 0; tries < 400 && !existsSync(library); tries++) Atomics.wait(pause, 0, 0, 100);
  return existsSync(library);
}

interface Places {
  readonly headers: string;
  readonly programs: string;
  readonly cache: string;
  readonly library: string;
}

function build(compiler: string, files: readonly string[], places: Places): void {
  const { headers, programs, cache, library } = places;
  // Built in a folder of its own: a library appears whole or not at all.
  const folder = mkdtempSync(join(cache, 'build-'));
  const defines = Object.entries({ HEADERS: headers, COMPILER: compiler, PROGRAMS: programs });
  const flags = ['-std=c++17', '-O2', '-fPIC', '-fvisibility=hidden', '-Wall', '-Wextra'];
  const compile = [...flags, ...defines.map(([name, value]) => `-DSTANDIN_${name}="${value}"`)];
  // All sources at once: what they include of the host's library takes most of the time that they take one by one.
  const units = files.filter((file) => file.endsWith('.cpp'));
  const all = join(folder, 'all.cpp');
  writeFileSync(all, units.map((file) => `#include "${file}"\n`).join(''));
  const built = join(folder, 'libstandin.so');
  execFileSync(compiler, [...compile, '-shared', '-o', built, all, '-ldl'], {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  renameSync(built, library);
  rmSync(folder, { recursive: true });
}

export type StandIn =
  | { readonly available: true; readonly library: string }
  | { readonly available: false; readonly reason: string };

let found: StandIn | undefined;

/** The stand-in's library; or why there is none: a machine without a host compiler, or one it is not written for. */
export function standIn(): StandIn {
  if (found !== undefined) return found;
  const here = `${process.platform} ${process.arch}`;
  if (!['linux x64', 'linux arm64'].includes(here)) {
    return (found = { available: false, reason: `the CUDA stand-in runs on Linux, not on ${here}` });
  }
  const compiler = findCompiler();
  if (compiler === undefined) {
    return (found = { available: false, reason: 'no host C++ compiler: tried CXX, g++, c++, clang++' });
  }
  return (found = { available: true, library: buildLibrary(compiler) });
}

export interface StandInOptions {
  /** Kernels are built with the checks of the checker. */
  readonly check?: boolean;
  readonly order?: Order;
}

/**
 * From here on the device `cuda` of this process is the stand-in; false where there is none.
 */
export function useStandIn(options: StandInOptions = {}): boolean {
  const found = standIn();
  if (!found.available) return false;
  process.env['SINTER_CUDA_DRIVER'] = found.library;
  process.env['NVRTC_PATH'] = found.library;
  const { check = false, order = 'forward' } = options;
  process.env['STANDIN_SETTINGS'] = `check=${Number(check)},order=${orders[order]}`;
  return true;
}
