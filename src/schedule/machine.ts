// What the scheduler and the templates know of a machine: its kind, its limits, how much of it there is to
// fill, and a cost profile. It is plain data, so a budget for a GPU can be computed on a machine without one.
// Below the description stand the questions that schedules ask about it, by name. Each answer follows from
// the description, so no pass and no template has figures of its own. target.ts has the targets.

import { isWide, type DType } from '../ir/dtype.ts';
import type { DeviceLimits } from '../runtime/device.ts';
import type { Combining, TargetId } from '../runtime/program.ts';

/**
 * What runs kernels. `gpu`: invocations of a workgroup run at a time, and workgroup memory and
 * barriers pay. `software`: a processor that a GPU's language is compiled for; its invocations run
 * four at a time, and a barrier costs more than the loads it saves (1.8 µs per 64 invocations).
 * `cpu`: a core that runs the invocations of a workgroup in turn, so that what they have between
 * them costs nothing, and that fills workgroup memory alone, as fast as a cache is.
 */
export type MachineKind = 'gpu' | 'software' | 'cpu';

export interface Target {
  readonly id: TargetId;
  /** Names the profile in reports: `wgsl`, `wgsl:software`, `cuda`, `interpreter`. */
  readonly name: string;
  readonly machine: MachineKind;
  /** Element types that kernels compute with. */
  readonly dtypes: readonly DType[];
  readonly limits: DeviceLimits;
  /** Who combines the elements of collectives. What a stream does not combine, kernels do. */
  readonly combining: Combining;
  /** Which process of its mesh a program is for, where it is for one. */
  readonly rank?: number;
  readonly cores: Cores;
  /**
   * Threads that share the workgroups of a kernel, where that is known beforehand. Which results
   * there are does not depend on it.
   */
  readonly threads?: number;
  /**
   * WebAssembly: whether there are instructions whose results differ from machine to machine
   * (relaxed SIMD).
   */
  readonly relaxedSimd?: boolean;
  /** Floats an invocation of a map kernel handles, at most. */
  readonly elementsPerInvocation: number;
  /** Invocations of a workgroup that only divides the work. */
  readonly workgroupSize: number;
  readonly rows: RowProfile;
  /** How loops are written where a core runs invocations in turn (`cpu`). */
  readonly serial?: SerialProfile;
  /**
   * Vector registers of a core that a language for one gives: four lanes of 32 bits and 16 of them
   * where nothing is said.
   */
  readonly vectors?: VectorProfile;
  /** Where there are subgroups, and they pay. */
  readonly subgroups?: SubgroupProfile;
  /**
   * Types that matrix units multiply (tensor cores), where there are any: by subgroups of 32
   * invocations, with sums of f32. tf32 takes the place of f32, and is there only where it is asked
   * for.
   */
  readonly matrixUnits?: readonly ('f16' | 'bf16' | 'tf32')[];
  /** Whether a kernel may bind a part of a buffer to read and another part to write, which WebGPU forbids. */
  readonly bindsParts?: true;
  /** Whether warp groups multiply tiles that the device copies on its own (sm_90a). */
  readonly warpgroups?: true;
  /**
   * Cost model: µs for a dispatch, bytes per µs, arithmetic per µs; µs of a step that waits for the
   * one before, a read or two.
   */
  readonly launch: number;
  readonly bandwidth: number;
  readonly arithmetic: number;
  readonly step: number;
  /** What a product by weights costs for each further row beside one, as a share of what it costs for that one. */
  readonly furtherRow: number;
  /** Whether it works while the host goes on: a run returns before it is done. */
  readonly isBesideHost: boolean;
}

/** What work is divided among: multiprocessors of a GPU, cores of a CPU. */
export interface Cores {
  readonly count: number;
  /**
   * Invocations that keep one of them busy: as many as a multiprocessor holds at a time; enough
   * that the cores of a CPU, which take workgroups as they get through with others, end at about
   * the same time.
   */
  readonly invocations: number;
}

export interface SubgroupProfile {
  /** Invocations of a subgroup, at least and at most. */
  readonly min: number;
  readonly max: number;
  /** Whether invocations that follow each other fill one subgroup after the other. */
  readonly inOrder?: true;
}

/**
 * How loops are written for a processor core: every iteration of a loop costs, and every sum that waits
 * for the last one does.
 */
export interface SerialProfile {
  /** Groups of four in an iteration of a loop, and accumulators that do not wait for each other. */
  readonly unroll: number;
  /** Operations that an iteration may have for that. */
  readonly work: number;
  /** Groups of four that one register holds, which an iteration has however much it does; 1 if absent. */
  readonly inRegister?: number;
  /** Elements of a row that has loops of its own, at least. */
  readonly width: number;
}

/** Vector registers of a processor core. */
export interface VectorProfile {
  /** Lanes of 32 bits. */
  readonly lanes: 4 | 8 | 16;
  readonly registers: 16 | 32;
}

/** How row kernels trade registers, workgroup memory and sweeps over memory. */
export interface RowProfile {
  /**
   * Steps of a row (elements, or groups of four) that one invocation takes before it shares the row
   * with others.
   */
  readonly alone: number;
  /** Invocations that share a row at least, when it is shared. */
  readonly share: number;
  /** Groups of four elements that an invocation keeps in registers between two sweeps. */
  readonly registers: number;
  /** Bytes of workgroup memory that keep what registers do not. */
  readonly shared: number;
  /**
   * Elements from which on a row that is read anew by every sweep is worth fewer sweeps with more
   * arithmetic.
   */
  readonly fuse: number;
  /**
   * Steps of an invocation above which a row becomes partial results and their combination, if rows
   * are few.
   */
  readonly split: number;
}

/**
 * Whether invocations of a workgroup help each other: tiles are staged in workgroup memory, rows
 * are shared.
 */
export function sharesWork({ machine }: Target): boolean {
  return machine === 'gpu';
}

/**
 * Whether subgroups combine values of a dtype: WGSL's functions take words, and an integer of 64 bits
 * is two there.
 */
export function reducesInSubgroups({ id }: Target, dtype: DType): boolean {
  return id !== 'wgsl' || !isWide(dtype);
}

/** Groups of four lanes that one register of a core holds side by side. */
export const groupsInRegister = ({ serial }: Target): number => serial?.inRegister ?? 1;

/** Whether an invocation packs operands into workgroup memory before it multiplies them. */
export function packsOperands({ machine }: Target): boolean {
  return machine === 'cpu';
}

/** Invocations that fill the machine. */
export function invocationsToFill({ cores }: Target): number {
  return cores.count * cores.invocations;
}

/** Invocations of a reduction that keep memory busy: each has several loads under way. */
export function invocationsToLoad(target: Target): number {
  return invocationsToFill(target) / 16;
}

/**
 * Invocations that fill the machine when each walks elements on its own; on a GPU neighbours share
 * what they bring.
 */
export function walkersToFill(target: Target): number {
  return sharesWork(target) ? invocationsToFill(target) / 4 : invocationsToFill(target);
}

/**
 * Blocks of keys that fill the machine: a workgroup of 256 invocations takes one, or an invocation
 * on its own.
 */
export function blocksToFill(target: Target): number {
  return sharesWork(target) ? invocationsToFill(target) / 256 : invocationsToFill(target);
}

/**
 * Results of a contraction that fill the machine: workgroups of a GPU share sums already, 16
 * invocations each.
 */
export function resultsToFill(target: Target): number {
  return sharesWork(target) ? invocationsToFill(target) / 16 : invocationsToFill(target) / 2;
}

/** µs from a load to its value, from the memory of a large GPU; microbenchmarks of A100 and H100 find 480 to 700 ns. */
export const loadTime = 0.6;
/** Bytes of a load, and how many loads of an invocation are on their way at a time. */
const [loadBytes, loadsAtOnce] = [16, 4];

/**
 * Bytes per µs that one workgroup of a GPU can bring from memory (Little's law): what is on its way, in the time
 * that a load takes from the memory of a large GPU.
 */
export function workgroupBandwidth(invocations: number): number {
  return (invocations * loadsAtOnce * loadBytes) / loadTime;
}
