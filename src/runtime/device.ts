// The interface of every backend. A backend owns buffers, loads Programs once, and runs them; it
// knows nothing of graphs.

import type { Communicator, Ranks } from './communicator.ts';
import type { Combining, Program, TargetId } from './program.ts';
import type { DeviceAllocation, Sharing } from './sharing.ts';

export type { DeviceAllocation };

/** A Program made ready on a device: pipelines compiled, scratch planned. */
export interface LoadedProgram {
  /** What the next run runs: where a device replaced the program that was loaded, the other one. */
  readonly program: Program;
  /** What ran it last, where a device has a choice. */
  readonly engine?: 'c' | 'wasm';
  /**
   * Fresh buffers, laid out as the program's packs ask, for the outputs that are no inputs: each
   * distinct one once, in order.
   */
  allocateOutputs(): DeviceAllocation[];
  /**
   * Queues one run and returns at once. `inputs` are the buffers of `program.inputs`, `outputs`
   * those of `program.outputs` (for a donated pair the caller passes the input's buffer as the
   * output too); buffers that do not lie as the program's packs require are moved, with their
   * contents. `scalars` are values of `program.scalars` but for those taken from an input. A
   * failure rejects `Device.read` or `Device.finish`, naming the kernel.
   */
  run(
    inputs: readonly DeviceAllocation[],
    outputs: readonly DeviceAllocation[],
    scalars: readonly number[],
  ): void;
  /** Frees scratch and pipelines. */
  destroy(): void;
}

/** What no kernel and no buffer of a device may exceed. */
export interface DeviceLimits {
  /** Storage buffers a kernel may bind. */
  readonly storageBuffers: number;
  /** Bytes of one device buffer. */
  readonly bufferBytes: number;
  /** Bytes of one binding. */
  readonly bindingBytes: number;
  readonly workgroupBytes: number;
  readonly workgroupInvocations: number;
  readonly workgroupsPerDimension: number;
}

/**
 * Facts the compiler may ask of a device; they make its `Target` (cost profile, limits) and are
 * stable for its lifetime, but for the features and the description of a device that is not whole
 * (`Device.whole`).
 */
export interface DeviceFacts {
  /**
   * `cuda`, `cuda:1`, `webgpu`, `wasm`, `webgpu:software`, `native` or `interpreter`; a backend that is
   * registered has a name of its own.
   */
  readonly name: string;
  /** Whose programs it runs. */
  readonly target: TargetId;
  /**
   * Whose programs it runs at first, where those of `target` take long to prepare: programs are loaded
   * in this form, and replaced when they have run a few times (`load`).
   */
  readonly first?: TargetId;
  readonly description: string;
  readonly software: boolean;
  readonly features: readonly string[];
  /** Invocations of a subgroup, at least and at most, where there are subgroups. */
  readonly subgroups?: { readonly min: number; readonly max: number };
  /** Threads that share the work, where the device says how many there are. */
  readonly threads?: number;
  /** Multiprocessors, and invocations that one holds at a time, where the device says. */
  readonly multiprocessors?: { readonly count: number; readonly invocations: number };
  /** Who combines the elements of collectives; the communicator where nothing is said. */
  readonly combining?: Combining;
  readonly limits: DeviceLimits;
}

/**
 * Host functions of a Program's `host` steps (interpreter only): whole buffers in, elements packed
 * from their start, padding at their end; packed elements out, with or without padding. They meet other
 * processes by `ranks`.
 */
export type HostFunctions = Readonly<
  Record<
    string,
    (inputs: readonly Uint8Array[], scalars: readonly number[], ranks: Ranks) => readonly Uint8Array[]
  >
>;

/** What every backend's device does. */
export interface Device {
  readonly facts: DeviceFacts;
  /**
   * Resolves when the facts are complete, and programs of `facts.target` can be loaded; rejects with E_DEVICE
   * where that cannot be. A device without it is whole from the start.
   */
  whole?(): Promise<void>;
  /**
   * Resolves when no program is being replaced by one that runs faster. A device without it never
   * replaces one.
   */
  settled?(): Promise<void>;
  /**
   * True once the device was destroyed or lost: every call fails from then on, and a new device
   * must be opened.
   */
  readonly lost: boolean;
  /**
   * A buffer of `bytes` (a multiple of 4, at least 4), contents undefined. Throws DeviceError E_OOM
   * or E_LIMIT.
   */
  allocate(bytes: number): DeviceAllocation;
  /** Queues an upload; the bytes are copied before it returns. */
  write(buffer: DeviceAllocation, bytes: Uint8Array): void;
  /**
   * Waits for queued work and copies the first `bytes` of the buffer out. Rejects with the first
   * failure since the last read.
   */
  read(buffer: DeviceAllocation, bytes: number): Promise<Uint8Array>;
  /**
   * The first `bytes` of the buffer as they lie there now, where that takes no waiting and nothing
   * has failed: to be looked at, not kept.
   */
  peek?(buffer: DeviceAllocation, bytes: number): Uint8Array | undefined;
  /**
   * Makes a program ready; pipelines compile in parallel behind the queue. `later`, where
   * `DeviceFacts.first` is, makes the program of `DeviceFacts.target` that computes the same, with the
   * same inputs, outputs, scalars and donations: a device may ask for it after some runs, and run it
   * from when it is ready.
   */
  load(program: Program, host?: HostFunctions, later?: () => Promise<Program>): LoadedProgram;
  /**
   * Has programs run their collectives on a communicator from now on, instead of the one joined before. Devices without it
   * refuse programs that have collectives, with E_UNSUPPORTED.
   */
  join?(communicator: Communicator): void;
  /** What it has joined. */
  readonly communicator?: Communicator | undefined;
  /** Waits until all queued work is done; rejects with its first failure. */
  finish(): Promise<void>;
  /**
   * Calls `work`, and gives the nanoseconds that the device spent on the runs it queued; undefined
   * where it has no clock.
   */
  measure?(work: () => void): Promise<number | undefined>;
  /** Bytes held by live buffers, and by the pool of freed ones. */
  memory(): { readonly live: number; readonly pooled: number; readonly buffers: number };
  /**
   * What it shares with other code on the same device; where it is not there, memory of others can
   * only be copied.
   */
  sharing?(): Promise<Sharing>;
  /**
   * Ends it: from now on it is lost. A promise resolves when its threads are gone, where it has
   * any.
   */
  destroy(): void | Promise<void>;
}

/** One way to get a device; `open` rejects with a reason when the machine has none. */
export interface Backend {
  readonly name: string;
  /** The language of its programs, where that is certain before it is opened: a page loads the compiler's part meanwhile. */
  readonly target?: TargetId;
  open(): Promise<Device>;
}
