// Node only: NCCL, opened through koffi, and its functions. Communicators do not block: a call that gives ncclInProgress takes effect
// when ncclCommGetAsyncError says so. Numbers are those of nccl.h, which are the same in all versions from 2.14 on.

import { existsSync, readdirSync } from 'node:fs';
import * as path from 'node:path';
import { DeviceError } from '../../errors.ts';
import type { Resolve } from '../../packages/node.ts';
import { loadKoffi, type Koffi, type Library } from '../../runtime/koffi.ts';
import type { CollectiveMonoid, ElementType } from '../../runtime/program.ts';

/** The first version whose communicators do not block. */
const oldest = 21_400;

const idBytes = 128;

/** ncclResult_t. */
const [success, inProgress] = [0, 7];

/** ncclDataType_t; elements that it has no type for are moved as bytes. */
export const typeOf: Readonly<Partial<Record<ElementType, number>>> = {
  bool: 1,
  i8: 0,
  u8: 1,
  i32: 2,
  u32: 3,
  i64: 4,
  u64: 5,
  f32: 7,
  f64: 8,
};
export const byteType = 1;

/** ncclRedOp_t. */
export const operationOf: Readonly<Record<CollectiveMonoid, number>> = {
  sum: 0,
  prod: 1,
  max: 2,
  min: 3,
  // Of bytes that are 0 or 1.
  or: 2,
  and: 3,
};

/** Parameters of the functions: `p` an address or memory, `h` a handle, `n` a count, `i` an int, `d` an id by value. */
const functions = {
  GetVersion: 'p',
  GetUniqueId: 'p',
  CommInitRankConfig: 'pidip',
  CommGetAsyncError: 'hp',
  CommFinalize: 'h',
  CommDestroy: 'h',
  CommAbort: 'h',
  GroupStart: '',
  GroupEnd: '',
  AllReduce: 'hhniihh',
  AllGather: 'hhnihh',
  ReduceScatter: 'hhniihh',
  Broadcast: 'hhniihh',
  Send: 'hniihh',
  Recv: 'hniihh',
} as const;

export type NcclFunction = keyof typeof functions;
type NcclArgument = number | ArrayBufferView | { readonly internal: readonly number[] };

export interface NcclOptions {
  /** That of the process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Finds koffi; as a program in the working directory does by default. */
  readonly resolve?: Resolve;
}

/** NCCL, by its functions. What they give but success is an error, with NCCL's words. */
export interface NcclLibrary {
  /** `NCCL 2.23.4`. */
  readonly version: string;
  /** Calls a function. Throws E_COLLECTIVE where it fails; says whether it is in progress. */
  call(name: NcclFunction, ...args: readonly NcclArgument[]): boolean;
  /** A new id, in base64. */
  newId(): string;
  /** Begins to make the communicator of this rank. */
  begin(id: string, ranks: number, rank: number): number;
  /** Whether nothing is in progress. Throws where something has failed. */
  isReady(communicator: number): boolean;
}

/** Files to try, in order. */
export function ncclPlaces(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const given = env['SINTER_NCCL'] ?? '';
  if (given !== '') return [path.resolve(given)];
  const name = 'libnccl.so.2';
  const homes = [env['VIRTUAL_ENV'], env['CONDA_PREFIX']].flatMap((home) =>
    home ? [path.join(home, 'lib')] : [],
  );
  const pythons = homes.flatMap((lib) =>
    existsSync(lib)
      ? readdirSync(lib)
          .filter((entry) => entry.startsWith('python3'))
          .map((entry) => path.join(lib, entry, 'site-packages', 'nvidia', 'nccl', 'lib'))
      : [],
  );
  const folders = [...homes, ...pythons, '/usr/local/cuda/lib64', '/usr/local/nvidia/lib64'];
  return [name, ...folders.map((folder) => path.join(folder, name)).filter((file) => existsSync(file))];
}

/** Opens NCCL. Rejects with E_DEVICE, which says what was tried, and where it is too old. */
export async function openNccl({ env = process.env, resolve }: NcclOptions = {}): Promise<NcclLibrary> {
  const koffi = await loadKoffi('nccl', 'NCCL', resolve);
  const tried: string[] = [];
  for (const file of ncclPlaces(env)) {
    try {
      return bound(koffi, koffi.load(file), file);
    } catch (error) {
      if (error instanceof DeviceError) throw error;
      tried.push(`${file} (${(error as Error).message.split('\n')[0]})`);
    }
  }
  throw new DeviceError('E_DEVICE', 'nccl', `NCCL cannot be opened: ${tried.join('; ')}`, {
    hint: 'install NCCL (libnccl2), or SINTER_NCCL=/path/to/libnccl.so.2',
  });
}

/** A configuration as NCCL 2.14 knows it; later ones take the rest as it is by default. */
function nonBlocking(): Uint8Array {
  const bytes = new Uint8Array(new ArrayBuffer(24));
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, 24n, true);
  view.setUint32(8, 0xcafebeef, true);
  view.setUint32(12, oldest, true);
  view.setInt32(16, 0, true);
  return bytes;
}

function bound(koffi: Koffi, library: Library, file: string): NcclLibrary {
  const idType = koffi.struct({ internal: koffi.array('uint8_t', idBytes) });
  const types = { p: 'void *', h: 'uintptr_t', n: 'size_t', i: 'int', d: idType } as const;
  const bindings = new Map(
    Object.entries(functions).map(([name, kinds]) => [
      name,
      library.func(
        `nccl${name}`,
        'int',
        [...kinds].map((kind) => types[kind as keyof typeof types]),
      ) as (...args: readonly NcclArgument[]) => number,
    ]),
  );
  const errorString = library.func('ncclGetErrorString', 'str', ['int']) as (code: number) => string;
  const lastError = library.func('ncclGetLastError', 'str', ['uintptr_t']) as (
    handle: number,
  ) => string | null;
  const failure = (name: NcclFunction, code: number): Error => {
    const last = lastError(0) ?? '';
    const words = `nccl${name} has failed: ${errorString(code)} (${code})${last === '' ? '' : `: ${last}`}`;
    return new Error(words);
  };
  const call = (name: NcclFunction, ...args: readonly NcclArgument[]): boolean => {
    const code = bindings.get(name)!(...args);
    if (code !== success && code !== inProgress) throw failure(name, code);
    return code === inProgress;
  };
  const cell = new BigUint64Array(new ArrayBuffer(8));
  const word = new Int32Array(cell.buffer);
  call('GetVersion', cell);
  const code = word[0]!;
  const version = `NCCL ${Math.floor(code / 10_000)}.${Math.floor(code / 100) % 100}.${code % 100}`;
  if (code < oldest)
    throw new DeviceError(
      'E_DEVICE',
      'nccl',
      `${file} is ${version}: 2.14 is the oldest that does not block`,
    );
  return {
    version,
    call,
    newId: () => {
      const id = new Uint8Array(new ArrayBuffer(idBytes));
      call('GetUniqueId', id);
      return Buffer.from(id).toString('base64');
    },
    begin: (id, ranks, rank) => {
      cell[0] = 0n;
      call(
        'CommInitRankConfig',
        cell,
        ranks,
        { internal: [...Buffer.from(id, 'base64')] },
        rank,
        nonBlocking(),
      );
      return Number(cell[0]);
    },
    isReady: (communicator) => {
      call('CommGetAsyncError', communicator, cell);
      const state = word[0]!;
      if (state !== success && state !== inProgress) throw failure('CommGetAsyncError', state);
      return state === success;
    },
  };
}
