// The machines that kernels are counted for: what a multiprocessor holds, and how much it does in a clock. Sources of the
// constants: the CUDA C++ Programming Guide (tables of technical specifications and of arithmetic throughput by compute
// capability), NVIDIA's whitepapers of A100 and H100, and, for mma.sync on H100, Luo et al., "Benchmarking and Dissecting the Nvidia
// Hopper GPU Architecture via Microbenchmarking" (2024), which measures 62 % of what warp groups reach.

import { cudaTarget, targetOf, type Target } from '../../src/schedule/target.ts';
import type { Instruction } from './assembly.ts';
import { bytesOf } from './assembly.ts';
import { pipeOf, type Pipe } from './pipes.ts';

export type Arch = 'sm_90a' | 'sm_80';

export interface Machine {
  readonly arch: Arch;
  readonly name: string;
  readonly multiprocessors: number;
  /** Clocks per µs. */
  readonly clock: number;
  /** Bytes per µs of its memory. */
  readonly bandwidth: number;
  /** Of a multiprocessor: registers of 32 bits, warps, workgroups, bytes of shared memory. */
  readonly registers: number;
  readonly warps: number;
  readonly workgroups: number;
  readonly shared: number;
  /** Products and sums of f16 in a clock, of a quarter of a multiprocessor: by warp groups where there are any, by mma.sync. */
  readonly tensor: number;
  readonly mma: number;
  /** Lanes of a quarter of a multiprocessor that do arithmetic of f32, and of f64. */
  readonly floats: number;
  readonly doubles: number;
}

export const machines: Readonly<Record<Arch, Machine>> = {
  sm_90a: {
    arch: 'sm_90a',
    name: 'H100 SXM',
    multiprocessors: 132,
    clock: 1830,
    bandwidth: 3_350_000,
    registers: 65_536,
    warps: 64,
    workgroups: 32,
    shared: 233_472,
    tensor: 512,
    mma: 318,
    floats: 32,
    doubles: 16,
  },
  sm_80: {
    arch: 'sm_80',
    name: 'A100 SXM 80 GB',
    multiprocessors: 108,
    clock: 1410,
    bandwidth: 2_039_000,
    registers: 65_536,
    warps: 64,
    workgroups: 32,
    shared: 167_936,
    tensor: 256,
    mma: 256,
    floats: 16,
    doubles: 8,
  },
};

/** Bytes of shared memory that every workgroup takes besides its own, from 8.0 on. */
const reservedShared = 1024;

/** The target that kernels are generated for, as for an open device of this kind. */
export function targetFor({ arch, multiprocessors, warps, shared }: Machine): Target {
  return targetOf({
    name: 'cuda',
    target: 'cuda',
    description: arch,
    software: false,
    features: arch === 'sm_90a' ? ['sm_80', 'sm_90', 'sm_90a'] : ['sm_80'],
    subgroups: { min: 32, max: 32 },
    multiprocessors: { count: multiprocessors, invocations: 32 * warps },
    limits: { ...cudaTarget.limits, workgroupBytes: shared - reservedShared },
  });
}

/** What a workgroup takes. */
export interface Footprint {
  readonly threads: number;
  /** Of an invocation. */
  readonly registers: number;
  /** Bytes. */
  readonly shared: number;
}

/**
 * How many workgroups a multiprocessor holds: as many as its registers (given to warps in units of 256), its shared memory (given
 * in units of 128 bytes, 1 KiB of it the system's), its warps and its list of workgroups allow.
 */
export function workgroupsHeld({ threads, registers, shared }: Footprint, machine: Machine): number {
  const warps = Math.ceil(threads / 32);
  const ofWarp = 256 * Math.ceil((32 * registers) / 256);
  // Warps belong to quarters of the multiprocessor, each with a quarter of the registers.
  const warpsByRegisters = 4 * Math.floor(machine.registers / 4 / ofWarp);
  const ofWorkgroup = 128 * Math.ceil((shared + reservedShared) / 128);
  return Math.min(
    machine.workgroups,
    Math.floor(machine.warps / warps),
    Math.floor(warpsByRegisters / warps),
    Math.floor(machine.shared / ofWorkgroup),
  );
}

/** Lanes of a quarter of a multiprocessor that do what the programming guide counts 64 and 16 of in a clock. */
const [halfRate, specialRate] = [16, 4];
/** Bytes that a multiprocessor moves in a clock: to and from shared memory, and from the second level of its cache. */
const [sharedBytes, globalBytes] = [128, 64];

/**
 * Clocks for which an instruction of one warp takes its pipe, of a quarter of a multiprocessor. What quarters share (loads and
 * stores: 32 places in a clock, and bytes) counts four times. `conflicts`: what 128 bytes of shared memory take, where 1 is best.
 */
export function clocksOf(each: Instruction, machine: Machine, conflicts = 1): number {
  const pipe = pipeOf(each.name);
  switch (pipe) {
    case 'tensor':
      return tensorClocks(each, machine);
    case 'fma':
      return 32 / (each.name.startsWith('I') ? halfRate : machine.floats);
    case 'alu':
      return 32 / halfRate;
    case 'xu':
      return 32 / specialRate;
    case 'double':
      return 32 / machine.doubles;
    case 'lsu': {
      if (!/^(?:LD|ST|ATOM|RED)/.test(each.name) || each.name === 'LDC') return 4;
      const bytes = 32 * bytesOf(each);
      const isShared = /^(?:LDS|STS)/.test(each.name);
      return 4 * Math.max(1, isShared ? (conflicts * bytes) / sharedBytes : bytes / globalBytes);
    }
    case 'uniform':
    case 'control':
      return 1;
    default:
      return pipe satisfies never;
  }
}

function tensorClocks({ opcode }: Instruction, { tensor, mma }: Machine): number {
  // Of tf32 half as many in a clock.
  const half = opcode.includes('TF32') ? 2 : 1;
  // `HGMMA.64x256x16.F32.BF16`: four warps share its rows.
  const group = /\.(\d+)x(\d+)x(\d+)/.exec(opcode);
  if (group !== null) return (half * Number(group[1]) * Number(group[2]) * Number(group[3])) / 4 / tensor;
  const shape = /\.(16)(8)(16|8|4)(?=\.|$)/.exec(opcode);
  if (shape === null) throw new Error(`no shape is known of ${opcode}`);
  return (half * Number(shape[1]) * Number(shape[2]) * Number(shape[3])) / mma;
}

/** Most arithmetic in a µs: of matrix units, or of f32. A product and a sum count as two. */
export function peakOf({ multiprocessors, clock, tensor, floats }: Machine, usesTensor: boolean): number {
  return multiprocessors * clock * 4 * 2 * (usesTensor ? tensor : floats);
}

export type { Pipe };
