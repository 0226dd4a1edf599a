// What the scheduler and the templates may know of a machine: limits that must hold and a cost profile. Plain data, so that a
// budget can be computed for a GPU on a machine that has none.

import { dtypes, type DType } from '../ir/dtype.ts';
import type { DeviceFacts } from '../runtime/device.ts';
import type { TargetId } from '../runtime/program.ts';

export interface Target {
  readonly id: TargetId;
  /** Names the profile in reports: `wgsl`, `wgsl:software`, `cuda`, `interpreter`. */
  readonly name: string;
  /** Element types that kernels compute with. */
  readonly dtypes: readonly DType[];
  readonly limits: {
    /** Storage buffers a kernel may bind. */
    readonly storageBuffers: number;
    /** Bytes of one device buffer. */
    readonly bufferBytes: number;
    /** Bytes of one binding. */
    readonly bindingBytes: number;
    readonly workgroupBytes: number;
    readonly workgroupInvocations: number;
    readonly workgroupsPerDimension: number;
  };
  /** Workgroup memory and barriers pay: tiles are staged, rows are shared by a workgroup. False where a barrier costs more
   *  than the loads it saves (the software adapter: 1.8 µs per 64 invocations). */
  readonly cooperative: boolean;
  /** WebAssembly: whether there are instructions whose results differ from machine to machine (relaxed SIMD). */
  readonly relaxedSimd?: boolean;
  /** Threads that share the workgroups of a kernel, where that is known beforehand. */
  readonly threads?: number;
  /** A workgroup may be one invocation that fills workgroup memory alone, as fast as a cache is: operands are packed there before
   *  they are multiplied. */
  readonly packs?: true;
  /** Invocations needed to fill the machine. */
  readonly parallelism: number;
  /** Floats an invocation of a map kernel handles. */
  readonly elementsPerInvocation: number;
  readonly workgroupSize: number;
  readonly rows: RowProfile;
  /** Where a thread runs the invocations of a workgroup in turn: what they have between them costs nothing, but every turn of a loop
   *  and every sum that waits for the last one does. */
  readonly serial?: SerialProfile;
  /** Invocations of a subgroup, at least and at most, where the device has subgroups and they pay. */
  readonly subgroups?: { readonly min: number; readonly max: number };
  /** Types that matrix units multiply (tensor cores), where there are any: by subgroups of 32 invocations, with sums of f32.
   *  tf32 takes the place of f32, and is there only where it is asked for. */
  readonly matrixUnits?: readonly ('f16' | 'bf16' | 'tf32')[];
  /** Whether warp groups multiply tiles that the device copies on its own (sm_90a), and how many multiprocessors do. */
  readonly warpgroups?: { readonly multiprocessors: number };
  /** Cost model: µs for a dispatch, bytes per µs, arithmetic per µs. */
  readonly launch: number;
  readonly bandwidth: number;
  readonly arithmetic: number;
}

/** How loops are written for a processor core. */
export interface SerialProfile {
  /** Groups of four in a turn of a loop, and accumulators that do not wait for each other. */
  readonly unroll: number;
  /** Operations that a turn may have for that. */
  readonly work: number;
  /** Elements of a row that has loops of its own, at least. */
  readonly width: number;
}

/** How row kernels trade registers, workgroup memory and sweeps over memory. */
export interface RowProfile {
  /** Steps of a row (elements, or groups of four) that one invocation takes before it shares the row with others. */
  readonly alone: number;
  /** Invocations that share a row at least, when it is shared. */
  readonly share: number;
  /** Groups of four elements that an invocation keeps in registers between two sweeps. */
  readonly registers: number;
  /** Bytes of workgroup memory that keep what registers do not. */
  readonly shared: number;
  /** Elements from which on a row that is read anew by every sweep is worth fewer sweeps with more arithmetic. */
  readonly fuse: number;
  /** Steps of an invocation above which a row becomes partial results and their combination, if rows are few. */
  readonly split: number;
}

/** A mid-range GPU with the limits every WebGPU device offers. Budgets are counted on this one. */
export const gpuTarget: Target = {
  id: 'wgsl',
  name: 'wgsl',
  dtypes: ['f32', 'f16', 'bf16', 'i32', 'u32', 'bool'],
  limits: {
    storageBuffers: 8,
    bufferBytes: 268_435_456,
    bindingBytes: 134_217_728,
    workgroupBytes: 16_384,
    workgroupInvocations: 256,
    workgroupsPerDimension: 65_535,
  },
  cooperative: true,
  parallelism: 65_536,
  elementsPerInvocation: 4,
  workgroupSize: 64,
  rows: { alone: 8, share: 8, registers: 16, shared: 12_288, fuse: 0, split: 64 },
  launch: 5,
  bandwidth: 400_000,
  arithmetic: 8_000_000,
};

/** A software adapter on a few cores, from measurements: barriers dear, many floats an invocation, 11 µs a dispatch. */
export const softwareTarget: Target = {
  ...gpuTarget,
  name: 'wgsl:software',
  cooperative: false,
  parallelism: 512,
  elementsPerInvocation: 256,
  workgroupSize: 16,
  rows: { alone: Infinity, share: 1, registers: 8, shared: 0, fuse: Infinity, split: 2048 },
  launch: 11,
  bandwidth: 4_000,
  arithmetic: 10_000,
};

/** An H200 or H100, by its data sheet and the copy bandwidth measured on one. */
export const cudaTarget: Target = {
  ...gpuTarget,
  id: 'cuda',
  name: 'cuda',
  dtypes,
  limits: {
    // Pointers are cheap; a masked attention's gradients take ten.
    storageBuffers: 16,
    bufferBytes: 2 ** 40,
    bindingBytes: 2 ** 40,
    // 227 KiB, of which launches must ask for what is beyond 48.
    workgroupBytes: 232_448,
    workgroupInvocations: 1024,
    workgroupsPerDimension: 65_535,
  },
  parallelism: 270_336,
  subgroups: { min: 32, max: 32 },
  matrixUnits: ['f16', 'bf16'],
  launch: 3,
  bandwidth: 4_300_000,
  arithmetic: 50_000_000,
};

/** WebAssembly SIMD on one thread: invocations run in turn, and a kernel costs next to nothing to start. */
export const wasmTarget: Target = {
  ...softwareTarget,
  id: 'wasm',
  name: 'wasm',
  dtypes,
  limits: {
    storageBuffers: 256,
    bufferBytes: 2 ** 31,
    bindingBytes: 2 ** 31,
    workgroupBytes: 2 ** 21,
    workgroupInvocations: 1024,
    workgroupsPerDimension: 2 ** 30,
  },
  parallelism: 64,
  elementsPerInvocation: 16_384,
  workgroupSize: 1,
  packs: true,
  // Half of the second level of a cache.
  rows: { ...softwareTarget.rows, shared: 262_144 },
  serial: { unroll: 4, work: 32, width: 16 },
  launch: 1,
  bandwidth: 20_000,
  arithmetic: 30_000,
};

export const interpreterTarget: Target = { ...gpuTarget, id: 'interpreter', name: 'interpreter', dtypes };

/** The profile for an open device, with the device's own limits. */
export function targetOf(facts: DeviceFacts): Target {
  if (facts.name === 'interpreter') return interpreterTarget;
  const limits = { ...facts.limits };
  const subgroups = facts.subgroups === undefined ? {} : { subgroups: facts.subgroups };
  if (/^cuda(?::\d+)?$/.test(facts.name)) {
    const { matrixUnits, ...simple } = cudaTarget;
    const { storageBuffers } = cudaTarget.limits;
    // What kernels for matrix units are made of begins with compute capability 8.
    const units = facts.features.includes('sm_80') && matrixUnits !== undefined ? { matrixUnits } : {};
    // Warp groups multiply with instructions that this architecture alone has.
    const { features, multiprocessors } = facts;
    const warpgroups =
      features.includes('sm_90a') && multiprocessors !== undefined ? { warpgroups: { multiprocessors } } : {};
    return { ...simple, ...units, ...warpgroups, limits: { ...limits, storageBuffers }, ...subgroups };
  }
  if (/^wasm(?::\d+)?$/.test(facts.name)) {
    const { threads } = facts;
    const relaxedSimd = facts.features.includes('relaxed-simd');
    return { ...wasmTarget, limits, relaxedSimd, ...(threads !== undefined && { threads }) };
  }
  // The software adapter has subgroups of four, which save no barrier that its schedules would have.
  if (facts.software) return { ...softwareTarget, limits };
  return { ...gpuTarget, limits, ...subgroups };
}

/** The target for a precision of products of f32: as they are, or in tf32 where the device has matrix units for it. */
export function withPrecision(target: Target, precision: 'f32' | 'tf32'): Target {
  const { matrixUnits } = target;
  if (precision === 'f32' || matrixUnits === undefined || matrixUnits.includes('tf32')) return target;
  return { ...target, matrixUnits: [...matrixUnits, 'tf32'] };
}
