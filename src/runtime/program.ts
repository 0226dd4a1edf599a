// Program: all that is needed to run, cache or ship a compiled graph. Plain JSON data; no shapes
// are inferred and nothing is compiled from here on. This file and its neighbours import nothing of
// the compiler.

/** Element types as programs name them (the same words as the compiler's). */
export type ElementType =
  | 'bool'
  | 'i8'
  | 'u8'
  | 'i16'
  | 'u16'
  | 'i32'
  | 'u32'
  | 'i64'
  | 'u64'
  | 'f16'
  | 'bf16'
  | 'f32'
  | 'f64';

export type TargetId = 'wgsl' | 'cuda' | 'wasm' | 'c' | 'interpreter';

export type BufferRole = 'input' | 'output' | 'scratch' | 'constant';

/**
 * One memory region. `scratch` lives in arena `arena` at `offset` bytes; inputs and outputs are
 * bound from outside. `bytes` is the device size, see `deviceBytes`.
 */
export interface ProgramBuffer {
  readonly name: string;
  readonly role: BufferRole;
  readonly bytes: number;
  readonly dtype: ElementType;
  readonly shape: readonly number[];
  readonly arena?: number;
  readonly offset?: number;
}

/**
 * Inputs, or outputs, that lie one behind another in one device buffer, so that a kernel binds them
 * all at once: where buffer `buffer` starts, and each member at its offset behind that. A device
 * moves inputs that lie elsewhere when the program runs; what a program returns as a pack it takes
 * as a pack of equal layout without moving anything. Members of a pack in scratch memory are placed
 * by arena and offset alone.
 */
export interface ProgramPack {
  /** Index of the buffer that spans the members; neither an input nor an output itself. */
  readonly buffer: number;
  /** In order, without overlap; buffers of the pack's role, each in this pack only. */
  readonly members: readonly ProgramPackMember[];
}

export interface ProgramPackMember {
  /** Index into `buffers`. */
  readonly buffer: number;
  /** Bytes from the start of the pack, a multiple of 256. */
  readonly offset: number;
}

export type BindingAccess = 'read' | 'read_write';

/** One kernel: its source in the target's language, and how it is called. */
export interface ProgramKernel {
  /** Unique in the program; also the entry point's name in `source`. */
  readonly name: string;
  readonly kind: string;
  readonly source: string;
  readonly workgroup: readonly [number, number, number];
  /** One per storage binding, in binding order 0, 1, 2…. */
  readonly bindings: readonly BindingAccess[];
  /** The scalar block (a uniform of 16-byte rows) is bound after the storage bindings. */
  readonly usesScalars: boolean;
  /**
   * CUDA: bytes of dynamic shared memory a launch asks for, where static shared memory is too
   * small. WebAssembly: bytes of scratch memory that a thread has of its own, undefined when the
   * kernel starts.
   */
  readonly sharedBytes?: number;
  /** CUDA only: tensor maps that a launch passes by value after all pointers, in order. */
  readonly tileMaps?: readonly ProgramTileMap[];
  /** WebAssembly only: results depend on the order of workgroups, so they run on one thread. */
  readonly serial?: boolean;
  readonly flops: number;
  /**
   * Bytes each run must move at least: every distinct input element once, every output element
   * once.
   */
  readonly bytes: number;
}

/**
 * Elements of a tensor in memory, at most: kernels count them in 32 bits with a sign, and groups,
 * rows and tiles at the end reach a little beyond it.
 */
export const mostElements: number = 2 ** 31 - 2 ** 16;

/**
 * A bound buffer as a tensor of which a kernel has boxes copied to workgroup memory, in lines of
 * 128 bytes whose pieces of 16 lie in the order that the device calls a swizzle of 128 bytes; zeros
 * where a box leaves the tensor. The axis of neighbours comes first, with a stride of 1.
 */
export interface ProgramTileMap {
  /** Index into the kernel's bindings. */
  readonly binding: number;
  readonly dtype: 'f16' | 'bf16';
  /** Elements before the first. */
  readonly offset: number;
  readonly sizes: readonly number[];
  /** Elements from one index to the next. */
  readonly strides: readonly number[];
  readonly box: readonly number[];
}

/**
 * What is wrong with the sizes and strides of a tile map, by the contract of
 * cuTensorMapEncodeTiled: neighbours first, and strides that are multiples of 16 bytes below 2^40
 * and each of the one before; a stride of 0 would make copies of one line where there are many.
 */
export function strideProblem({
  sizes,
  strides,
}: Pick<ProgramTileMap, 'sizes' | 'strides'>): string | undefined {
  if (sizes.some((size) => !(size >= 1 && size <= 2 ** 32)))
    return `sizes are 1 to 2^32, not [${sizes.join()}]`;
  if (strides[0] !== 1) return `neighbours come first, not [${strides.join()}]`;
  const odd = strides.findIndex((stride, axis) => {
    const before = strides[axis - 1] ?? 1;
    return axis > 0 && !(stride > 0 && stride < 2 ** 39 && stride % 8 === 0 && stride % before === 0);
  });
  if (odd < 0) return undefined;
  return `strides are multiples of 8 elements, and each of the one before, not [${strides.join()}]`;
}

/** What collectives combine elements by; `and` and `or` are for bool. */
export type CollectiveMonoid = 'sum' | 'prod' | 'min' | 'max' | 'and' | 'or';

/**
 * Who combines the elements of a collective: the communicator, whatever they are; a queue of the device, which combines what
 * `combinesOnStream` says; nobody, where programs of several processes do not run.
 */
export type Combining = 'communicator' | 'stream' | 'nobody';

/**
 * Whether NCCL combines elements as they have to be, `and` and `or` as the least and the largest byte. It has no integers of 16 bits, rounds
 * f16 and bf16 after each rank, and says nothing of NaN in min and max: kernels combine those, after an exchange.
 */
export function combinesOnStream(monoid: CollectiveMonoid, dtype: ElementType): boolean {
  switch (dtype) {
    case 'bool':
    case 'i8':
    case 'u8':
    case 'i32':
    case 'u32':
    case 'i64':
    case 'u64':
      return true;
    case 'f32':
    case 'f64':
      return monoid === 'sum' || monoid === 'prod';
    case 'i16':
    case 'u16':
    case 'f16':
    case 'bf16':
      return false;
    default:
      return dtype satisfies never;
  }
}

/**
 * What becomes of the blocks of a group of n ranks, each of which brings one block of elements and takes one.
 * Blocks are whole: where a block has n parts, these lie one behind the other.
 */
export type CollectiveAction =
  /** Every rank takes the blocks of all, combined element by element. */
  | { readonly kind: 'allReduce'; readonly monoid: CollectiveMonoid }
  /** Every rank takes the blocks of all, one behind the other in the order of the group. */
  | { readonly kind: 'allGather' }
  /** Blocks have n parts: rank i takes part i of all, combined element by element. */
  | { readonly kind: 'reduceScatter'; readonly monoid: CollectiveMonoid }
  /** Blocks have n parts: part j of rank i becomes part i of rank j. */
  | { readonly kind: 'allToAll' }
  /**
   * Rank `to` takes the block of rank `from` for each pair of places in the group; no place is twice the first, or
   * twice the second, of a pair. A rank to which nothing comes takes zeros.
   */
  | { readonly kind: 'permute'; readonly pairs: readonly (readonly [from: number, to: number])[] }
  /** Every rank takes the block of the rank at this place of the group. */
  | { readonly kind: 'broadcast'; readonly root: number };

/** An axis of a mesh of ranks: how many stand along it, and by how many ranks neighbours differ. */
export interface RankAxis {
  readonly size: number;
  readonly stride: number;
}

/** Groups of the ranks of a mesh: the ranks of one differ along these axes only, of which the first varies slowest. */
export interface RankGroups {
  /** How many ranks the mesh has. */
  readonly ranks: number;
  readonly axes: readonly RankAxis[];
}

/** A collective as programs name it: every rank finds its group. */
export interface Meeting extends RankGroups {
  readonly action: CollectiveAction;
  readonly dtype: ElementType;
}

/** What a run does, one after the other. */
export type ProgramStep =
  | {
      readonly kind: 'dispatch';
      /** Index into `kernels`. */
      readonly kernel: number;
      /** Indices into `buffers`, one per binding. */
      readonly buffers: readonly number[];
      /** Workgroup counts; the compiler keeps each within 65535. */
      readonly grid: readonly [number, number, number];
    }
  /** Whole-buffer copy. */
  | { readonly kind: 'copy'; readonly from: number; readonly to: number }
  /** Every byte of a buffer becomes 0. */
  | { readonly kind: 'clear'; readonly buffer: number }
  /** Steps that run so many times, one time after the other. */
  | { readonly kind: 'repeat'; readonly times: number; readonly steps: readonly ProgramStep[] }
  /**
   * Steps that run as long as the first element of a buffer, an i32, is not 0 before them, so many
   * times at most. The host reads it.
   */
  | {
      readonly kind: 'while';
      readonly guard: number;
      readonly times: number;
      readonly steps: readonly ProgramStep[];
    }
  /** So many bytes at the start of a buffer go to other ranks, and what comes from them to another buffer, or the same. */
  | ({
      readonly kind: 'collective';
      readonly from: number;
      readonly sends: number;
      readonly to: number;
      readonly takes: number;
    } & Meeting)
  /**
   * Interpreter target only: a function of the host, looked up in the table given when the program
   * is loaded.
   */
  | {
      readonly kind: 'host';
      readonly run: string;
      readonly reads: readonly number[];
      readonly writes: readonly number[];
    };

/** Every step, those of loops too, each once. */
export function* everyStep(steps: readonly ProgramStep[]): Generator<ProgramStep> {
  for (const step of steps) {
    yield step;
    if (step.kind === 'repeat' || step.kind === 'while') yield* everyStep(step.steps);
  }
}

/**
 * A number supplied at each run: a learning rate, a step count, a word of random state. With
 * `input`, the only element of that input (a position in `inputs`; not for bool), as it is when the
 * run starts: it takes no storage binding of any kernel.
 */
export interface ProgramScalar {
  readonly name: string;
  readonly dtype: 'f32' | 'i32' | 'u32' | 'bool';
  readonly input?: number;
}

/** A compiled graph as plain data. */
export interface Program {
  readonly version: 1;
  readonly target: TargetId;
  readonly kernels: readonly ProgramKernel[];
  readonly buffers: readonly ProgramBuffer[];
  readonly packs: readonly ProgramPack[];
  /** Bytes of each scratch arena. */
  readonly arenas: readonly number[];
  readonly steps: readonly ProgramStep[];
  /** Buffer index of each tensor input, in calling order. */
  readonly inputs: readonly number[];
  /**
   * Buffer index of each output. An output may repeat an input (passed through) or another output.
   */
  readonly outputs: readonly number[];
  /**
   * Inputs (positions in `inputs`) that the program overwrites: output position → input position.
   * The output's buffer then is the input's buffer.
   */
  readonly donated: readonly { readonly output: number; readonly input: number }[];
  /** Scalar `i` is word `i` of the scalar block. Those with an `input` come last. */
  readonly scalars: readonly ProgramScalar[];
}

/** A program but for its kernels' sources: all that is needed to place and to queue it. */
export type ProgramOutline = Omit<Program, 'kernels'> & { readonly kernels: readonly KernelOutline[] };

export type KernelOutline = Omit<ProgramKernel, 'source'>;

/**
 * Bytes a buffer of `count` packed elements takes on a device: rounded up to a group of four
 * elements and one more group, so that a vector access that starts inside the tensor stays inside
 * its buffer. A multiple of 4, never zero.
 */
export function deviceBytes(elementBytes: number, count: number): number {
  return (Math.ceil(count / 4) * 4 + 4) * elementBytes;
}
