// Node only: libraries of C functions, called through koffi. Handles, device pointers and addresses
// of host memory are JS numbers (they lie below 2^53); what a call gives back is read from one cell
// of memory that never moves.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { DeviceError } from '../../../errors.ts';
import type { Resolve } from '../../../packages/node.ts';
import type { Koffi, Library } from '../../koffi.ts';
import { triedInWords, type SearchPlace } from './search.ts';

/**
 * How an argument is handed over: `address` for handles, device pointers, and memory that must not
 * move.
 */
interface Values {
  i32: number;
  u32: number;
  u64: number;
  size: number;
  address: number;
  text: string;
  texts: readonly string[];
  bytes: Uint8Array;
}
export type ForeignKind = keyof Values;

export type Signatures = Readonly<Record<string, readonly ForeignKind[]>>;
type Arguments<Kinds extends readonly ForeignKind[]> = { -readonly [I in keyof Kinds]: Values[Kinds[I]] };
/**
 * A foreign function: gives a CUresult or nvrtcResult, 0 for success. `async` runs it on a thread
 * of libuv's.
 */
export interface Foreign<Kinds extends readonly ForeignKind[]> {
  (...args: Arguments<Kinds>): number;
  async(...args: [...Arguments<Kinds>, (error: Error | null, result: number) => void]): void;
}
export type Calls<Table extends Signatures> = { readonly [Name in keyof Table]: Foreign<Table[Name]> };

/** Memory outside the JS heap, at an address that stays. */
export interface HostBlock {
  readonly address: number;
  readonly memory: ArrayBuffer;
}

/** Eight bytes that a call writes its result to. */
export interface Cell {
  readonly address: number;
  /** As a handle, a pointer or a size. */
  number(): number;
  int(): number;
  float(): number;
  set(value: number): void;
}

export interface LibraryOptions {
  /** Variables that name places; those of the process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Finds files by their names; Node's resolution by default. */
  readonly resolve?: Resolve;
}

// A library is unloaded once its handle is collected, so handles are held, by file; on globalThis
// because a module may be dropped (test runners reset them) while its devices live on.
const heldKey = Symbol.for('sinter.cuda.held');
const held = ((globalThis as { [heldKey]?: Map<string, Library> })[heldKey] ??= new Map<string, Library>());

/** Nothing of `tried` would do; the variable names a file to take instead. */
export function absent(device: string, what: string, tried: readonly Tried[], variable: string): DeviceError {
  const problem = `${what} on this machine: ${triedInWords(tried)}`;
  return new DeviceError('E_DEVICE', device, problem, { hint: `${variable}=/path/to/the/library` });
}

export interface Tried {
  readonly file: string;
  readonly problem?: string;
}

/** The first library that opens and is not refused, else what was tried. */
export function openFirst(
  koffi: Koffi,
  places: Iterable<SearchPlace>,
  refuse: (library: Library) => string | undefined,
): Library | Tried[] {
  const tried: Tried[] = [];
  for (const { file, from } of places) {
    const isFile = path.isAbsolute(file);
    const because = from === undefined ? '' : ` (${from})`;
    if (isFile && !fs.existsSync(file)) {
      tried.push(from === undefined ? { file } : { file, problem: `is not there${because}` });
      continue;
    }
    try {
      if (isFile) preloadBuiltins(koffi, file);
      const library = held.get(file) ?? koffi.load(file);
      const problem = refuse(library);
      if (problem === undefined) {
        held.set(file, library);
        return library;
      }
      tried.push({ file, problem: problem + because });
    } catch (error) {
      const reason = (error as Error).message.split('\n')[0];
      tried.push(isFile ? { file, problem: `cannot be opened${because}: ${reason}` } : { file });
    }
  }
  return tried;
}

/**
 * NVRTC opens its builtins by bare name, which fails beside a library that was found off the
 * loader's path.
 */
function preloadBuiltins(koffi: Koffi, file: string): void {
  const name = path.basename(file);
  if (!name.includes('nvrtc')) return;
  const folder = path.dirname(fs.realpathSync(file));
  const major = /(?:\.so\.|nvrtc64_)(\d\d)/.exec(name)?.[1] ?? '';
  const pattern = new RegExp(`^(?:lib)?nvrtc-builtins(?:\\.so\\.|64_)${major}`);
  for (const entry of fs.readdirSync(folder)) {
    if (!pattern.test(entry) || entry.includes('.alt.')) continue;
    const builtins = path.join(folder, entry);
    try {
      if (!held.has(builtins)) held.set(builtins, koffi.load(builtins));
    } catch {
      // NVRTC itself will say what it lacks.
    }
  }
}

/**
 * The functions of a table; throws E_DEVICE where the library lacks one, by its former name too.
 */
export function bind<Table extends Signatures>(
  koffi: Koffi,
  library: Library,
  table: Table,
  device: string,
  former: Readonly<Record<string, string>> = {},
): Calls<Table> {
  const types = {
    i32: 'int32_t',
    u32: 'uint32_t',
    u64: 'uint64_t',
    size: 'size_t',
    address: 'uintptr_t',
    text: 'str',
    texts: koffi.pointer('str'),
    bytes: 'void *',
  } as const satisfies Readonly<Record<ForeignKind, unknown>>;
  const find = (name: string, kinds: readonly ForeignKind[]): unknown =>
    library.func(
      name,
      'int32_t',
      kinds.map((kind) => types[kind]),
    );
  const calls = Object.entries(table).map(([name, kinds]) => {
    try {
      return [name, find(name, kinds)] as const;
    } catch (cause) {
      const other = former[name];
      if (other !== undefined) return [name, find(other, kinds)] as const;
      throw new DeviceError('E_DEVICE', device, `the CUDA libraries lack ${name}: version 12 is the oldest`, {
        cause,
      });
    }
  });
  return Object.fromEntries(calls) as Calls<Table>;
}

/** Zeroed memory, for as long as the process runs. */
export function makeBlock(koffi: Koffi, bytes: number): HostBlock {
  const pointer: unknown = koffi.alloc('uint64_t', Math.ceil(bytes / 8));
  const memory = koffi.view(pointer, Math.ceil(bytes / 8) * 8);
  new Uint8Array(memory).fill(0);
  return { address: Number(koffi.address(pointer)), memory };
}

export function makeCell(koffi: Koffi): Cell {
  const { address, memory } = makeBlock(koffi, 8);
  const words = new Uint32Array(memory);
  const ints = new Int32Array(memory);
  const floats = new Float32Array(memory);
  return {
    address,
    number: () => words[0]! + words[1]! * 2 ** 32,
    int: () => ints[0]!,
    float: () => floats[0]!,
    set(value) {
      words[0] = value >>> 0;
      words[1] = Math.floor(value / 2 ** 32);
    },
  };
}
