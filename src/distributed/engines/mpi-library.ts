// Node only: a library of MPI, opened through koffi, and its functions. There are three binary interfaces: that of Open MPI, where
// handles are addresses of the library's globals; that of MPICH and those who follow it, where handles are integers; and the standard
// one of MPI 5. Which one a library has is told by the library, not by its name.

import { DeviceError } from '../../errors.ts';
import { loadKoffi, type Koffi, type Library } from '../../runtime/koffi.ts';
import type { ElementType } from '../../runtime/program.ts';
import type { Resolve } from '../../packages/node.ts';
import { collectiveError } from '../call.ts';

/** A communicator, a dtype, an operation, as the library calls it. */
export type MpiHandle = number | bigint;

type NativeType = Exclude<ElementType, 'bool' | 'f16' | 'bf16'> | 'byte';

/** What is the same in all programs that use a library. */
interface Constants {
  readonly world: MpiHandle;
  readonly types: Readonly<Record<NativeType, MpiHandle>>;
  readonly operations: Readonly<Record<'sum' | 'prod' | 'min' | 'max' | 'and' | 'or', MpiHandle>>;
  readonly errorsReturn: MpiHandle;
  readonly inPlace: bigint;
  readonly ignoredStatus: bigint;
}

export type MpiAbi = 'Open MPI' | 'MPICH' | 'MPI 5';

const mpich: Constants = {
  world: 0x44000000,
  types: {
    byte: 0x4c00010d,
    i8: 0x4c000137,
    u8: 0x4c00013b,
    i16: 0x4c000238,
    u16: 0x4c00023c,
    i32: 0x4c000439,
    u32: 0x4c00043d,
    i64: 0x4c00083a,
    u64: 0x4c00083e,
    f32: 0x4c00040a,
    f64: 0x4c00080b,
  },
  operations: {
    max: 0x58000001,
    min: 0x58000002,
    sum: 0x58000003,
    prod: 0x58000004,
    and: 0x58000006,
    or: 0x58000008,
  },
  errorsReturn: 0x54000001,
  inPlace: 0xffff_ffff_ffff_ffffn,
  ignoredStatus: 1n,
};

const standard: Constants = {
  world: 0x101,
  types: {
    byte: 0x247,
    i8: 0x240,
    u8: 0x241,
    i16: 0x248,
    u16: 0x249,
    i32: 0x250,
    u32: 0x251,
    i64: 0x258,
    u64: 0x259,
    f32: 0x210,
    f64: 0x214,
  },
  operations: { sum: 0x21, min: 0x22, max: 0x23, prod: 0x24, and: 0x28, or: 0x29 },
  errorsReturn: 0x142,
  inPlace: 1n,
  ignoredStatus: 0n,
};

function openMpiConstants(library: Library): Constants {
  const at = (name: string): bigint => library.symbol(`ompi_${name}`) as bigint;
  return {
    world: at('mpi_comm_world'),
    types: {
      byte: at('mpi_byte'),
      i8: at('mpi_int8_t'),
      u8: at('mpi_uint8_t'),
      i16: at('mpi_int16_t'),
      u16: at('mpi_uint16_t'),
      i32: at('mpi_int32_t'),
      u32: at('mpi_uint32_t'),
      i64: at('mpi_int64_t'),
      u64: at('mpi_uint64_t'),
      f32: at('mpi_float'),
      f64: at('mpi_double'),
    },
    operations: {
      sum: at('mpi_op_sum'),
      prod: at('mpi_op_prod'),
      min: at('mpi_op_min'),
      max: at('mpi_op_max'),
      and: at('mpi_op_band'),
      or: at('mpi_op_bor'),
    },
    errorsReturn: at('mpi_errors_return'),
    inPlace: 1n,
    ignoredStatus: 0n,
  };
}

/** Parameters of the functions: `h` a handle, `i` an int, `p` memory or an address. */
const functions = {
  Init: 'pp',
  Initialized: 'p',
  Finalized: 'p',
  Finalize: '',
  Abort: 'hi',
  Error_string: 'ipp',
  Comm_rank: 'hp',
  Comm_size: 'hp',
  Comm_dup: 'hp',
  Comm_group: 'hp',
  Comm_create_group: 'hhip',
  Comm_set_errhandler: 'hh',
  Group_incl: 'hipp',
  Group_free: 'p',
  Iallreduce: 'ppihhhp',
  Iallgather: 'pihpihhp',
  Ireduce_scatter_block: 'ppihhhp',
  Ialltoall: 'pihpihhp',
  Ibcast: 'pihihp',
  Isend: 'pihiihp',
  Irecv: 'pihiihp',
  Recv: 'pihiihp',
  Iprobe: 'iihpp',
  Test: 'ppp',
} as const;

export type MpiArgument = MpiHandle | Uint8Array | Int32Array | BigInt64Array | null;

/** Calls a function by its name. Throws E_COLLECTIVE with the library's message where it does not give MPI_SUCCESS. */
export type MpiCall = (name: keyof typeof functions, ...args: readonly MpiArgument[]) => void;

export interface MpiLibrary extends Constants {
  readonly abi: MpiAbi;
  readonly file: string;
  /** `Open MPI v4.1.4`. */
  readonly version: string;
  readonly call: MpiCall;
  /** The handle that a function has written to a cell. */
  handleIn(cell: BigInt64Array): MpiHandle;
}

export interface MpiOptions {
  /** That of the process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Finds koffi; as a program in the working directory does by default. */
  readonly resolve?: Resolve;
}

/** Libraries by name, in the order of what the process was started by. */
export function mpiPlaces(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const given = env['SINTER_MPI'] ?? '';
  if (given !== '') return [given];
  if (process.platform === 'darwin') return ['libmpi_abi.dylib', 'libmpi.dylib', 'libpmpi.dylib'];
  const openMpi = ['libmpi.so.40', 'libmpi.so.80', 'libmpi.so'];
  const mpichNames = [
    'libmpi_abi.so.0',
    'libmpi_abi.so',
    'libmpich.so.12',
    'libmpi.so.12',
    'libmpi_cray.so.12',
  ];
  const isOpenMpi = Object.keys(env).some((name) => /^(?:OMPI|PMIX|PRTE)_/.test(name));
  return isOpenMpi ? [...openMpi, ...mpichNames] : [...mpichNames, ...openMpi];
}

/** The first library that is there. Rejects with E_DEVICE, which says what was tried. */
export async function openMpi({ env = process.env, resolve }: MpiOptions = {}): Promise<MpiLibrary> {
  const koffi = await loadKoffi('mpi', 'MPI', resolve);
  // UCX, by which MPICH moves bytes, watches for memory that is given back. To see whether it can, it moves the end of the heap (brk)
  // a page up and down again: a page that another thread of the process has taken in between is then gone, and the process dies.
  // Without it, UCX on InfiniBand registers memory for each transfer. It reads this when it is loaded.
  process.env['UCX_MEM_MMAP_HOOK_MODE'] ??= 'none';
  const tried: string[] = [];
  for (const file of mpiPlaces(env)) {
    let library: Library;
    try {
      // Open MPI's components look for the symbols of the library that loads them.
      library = koffi.load(file, { global: true });
    } catch (error) {
      tried.push(`${file} (${(error as Error).message.split('\n')[0]})`);
      continue;
    }
    return bound(library, file);
  }
  throw new DeviceError('E_DEVICE', 'mpi', `no library of MPI can be opened: ${tried.join('; ')}`, {
    hint: 'install Open MPI or MPICH, or SINTER_MPI=/path/to/libmpi.so',
  });
}

/** The binary interface of a library, by what it has and says. */
function abiOf(library: Library, file: string, version: string): MpiAbi {
  if (/libmpi_abi\b/.test(file)) return 'MPI 5';
  try {
    library.symbol('ompi_mpi_comm_world');
    return 'Open MPI';
  } catch {
    if (/MPICH|MVAPICH|Intel\(R\) MPI|CRAY MPICH/i.test(version)) return 'MPICH';
  }
  throw new DeviceError(
    'E_UNSUPPORTED',
    'mpi',
    `${file} is neither Open MPI nor MPICH, and has no standard interface: ${version}`,
    {
      hint: 'SINTER_MPI=/path/to/libmpi_abi.so',
    },
  );
}

function bound(library: Library, file: string): MpiLibrary {
  const version = versionOf(library);
  const abi = abiOf(library, file, version);
  const constants = abi === 'Open MPI' ? openMpiConstants(library) : abi === 'MPICH' ? mpich : standard;
  const types: Readonly<Record<string, Parameters<Koffi['pointer']>[0]>> = {
    h: abi === 'MPICH' ? 'int' : 'intptr_t',
    i: 'int',
    p: 'void *',
  };
  const bindings = new Map(
    Object.entries(functions).map(([name, kinds]) => [
      name,
      library.func(
        `MPI_${name}`,
        'int',
        [...kinds].map((kind) => types[kind]!),
      ) as (...args: readonly MpiArgument[]) => number,
    ]),
  );
  const explain = (code: number): string => {
    const [text, length] = [new Uint8Array(512), new Int32Array(1)];
    bindings.get('Error_string')!(code, text, length);
    return new TextDecoder().decode(text.subarray(0, length[0]));
  };
  return {
    ...constants,
    abi,
    file,
    version: firstLine(version),
    call: (name, ...args) => {
      for (const argument of args) if (ArrayBuffer.isView(argument)) settle(argument);
      const code = bindings.get(name)!(...args);
      if (code !== 0) throw collectiveError('mpi', `MPI_${name} has failed: ${explain(code)}`);
    },
    handleIn: (cell) => (abi === 'MPICH' ? Number(BigInt.asIntN(32, cell[0]!)) : cell[0]!),
  };
}

/**
 * Small arrays lie among JavaScript's objects, which are moved about, until somebody asks for their buffer. Memory in which
 * MPI writes later has to stay where it is.
 */
function settle({ buffer }: ArrayBufferView): ArrayBufferLike {
  return buffer;
}

function versionOf(library: Library): string {
  const [text, length] = [new Uint8Array(8192), new Int32Array(1)];
  library.func('MPI_Get_library_version', 'int', ['void *', 'void *'])(text, length);
  return new TextDecoder().decode(text.subarray(0, length[0])).replaceAll('\0', '');
}

/** `Open MPI v4.1.4`, `MPICH 4.0.2`. */
function firstLine(version: string): string {
  return version
    .split(/[\n,]/)[0]!
    .replace(/\s*Version:\s*/, ' ')
    .trim();
}
