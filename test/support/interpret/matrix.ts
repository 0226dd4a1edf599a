// What the statements of matrix units do in the Loop interpreter: fragments lie among the 32
// invocations of a subgroup as the PTX ISA lays them down ("Warp Level Matrix Instructions"), and
// the destination of an asynchronous copy is poison until the copy is waited for.

import { dtypeBytes } from '../../../src/ir/dtype.ts';
import { bf16FromBits, bf16ToBits, f16FromBits, f16ToBits, type HostData } from '../../../src/ir/value.ts';
import type { Frame, Lane } from './registers.ts';
import type { LoopBuffer, MatrixStmt, MatrixType, Value, Width } from '../../../src/codegen/loop/loop.ts';
import type { Shadow } from './shadow.ts';

/** Invocations of a subgroup that acts as one. */
export const matrixSubgroup = 32;
/** Rows and columns of the matrices that memory holds. */
const edge = 8;

/** A buffer, with what the interpreter knows of its accesses. */
export interface Memory {
  readonly buffer: LoopBuffer;
  readonly data: HostData;
  /** Absent for buffers the kernel never writes. */
  readonly shadow: Shadow | undefined;
}

/** The invocation that is at work, for reports of what it does. */
export interface Worker {
  /** Makes `item` the running invocation. */
  readonly enter: (item: number) => void;
  /** Notes what is accessed. */
  readonly touch: (access: string) => void;
  readonly fail: (problem: string) => never;
}

/**
 * `ldmatrix.x4`: every invocation's register `index` says where a row begins; registers `to` …
 * `to + 3` become its part of four matrices, a pair of neighbours in a row (in a column, if
 * transposed) each, the first in the low half. The first of `frames` is invocation `start`.
 */
export function loadMatrices(
  frames: readonly Frame[],
  start: number,
  { buffer, data, shadow }: Memory,
  index: number,
  to: number,
  transposed: boolean,
  { enter, touch, fail }: Worker,
): void {
  const toBits = buffer.dtype === 'f16' ? f16ToBits : bf16ToBits;
  const row = (item: number): number[] => {
    enter(start + item);
    const at = frames[item]![index]!;
    if (at % edge !== 0) fail(`row ${at} of a matrix in ${buffer.name} is not aligned to ${edge} elements`);
    if (!(at >= 0 && at + edge <= buffer.size))
      fail(`row ${at} of a matrix is outside ${buffer.name}, which has ${buffer.size}`);
    return Array.from({ length: edge }, (_, column) => {
      touch(`${buffer.name}[${at + column}]`);
      if (shadow === undefined || !shadow.isWritten(at + column))
        return fail(`${buffer.name}[${at + column}] is read but nobody wrote it`);
      shadow.read(at + column);
      return toBits(data[at + column] as number);
    });
  };
  for (let first = 0; first < frames.length; first += matrixSubgroup)
    for (let matrix = 0; matrix < 4; matrix++) {
      const rows = Array.from({ length: edge }, (_, i) => row(first + edge * matrix + i));
      for (let lane = 0; lane < matrixSubgroup; lane++) {
        const [line, pair] = [lane >> 2, 2 * (lane & 3)];
        const [low, high] = transposed
          ? [rows[pair]![line]!, rows[pair + 1]![line]!]
          : [rows[line]![pair]!, rows[line]![pair + 1]!];
        frames[first + lane]![to + matrix] = (low | (high << 16)) >>> 0;
      }
    }
}

const single = new Float32Array(1);
const bits = new Uint32Array(single.buffer);

/** The nearest f32 with 10 bits of fraction, ties away from zero (`cvt.rna.tf32`). */
export function roundTf32(x: number): number {
  single[0] = x;
  if (Number.isFinite(x)) bits[0] = (bits[0]! + 0x1000) & 0xffffe000;
  return single[0];
}

/** The value of the upper 19 bits of a word. */
function tf32FromBits(word: number): number {
  bits[0] = word & 0xffffe000;
  return single[0]!;
}

/**
 * `mma.m16n8k8` for tf32, otherwise `mma.m16n8k16`: adds the product of two fragments to the sums
 * in registers `sum` … `sum + 3`, rounded to f32 once.
 */
export function multiplyMatrices(
  frames: readonly Frame[],
  operand: MatrixType,
  sum: number,
  lhs: number,
  rhs: number,
): void {
  const steps = operand === 'tf32' ? 8 : 16;
  const value = operand === 'f16' ? f16FromBits : bf16FromBits;
  const half = (word: number, k: number): number => value(k % 2 === 0 ? word & 0xffff : word >>> 16);
  for (let first = 0; first < frames.length; first += matrixSubgroup) {
    const left = (m: number, k: number): number => {
      if (operand === 'tf32')
        return tf32FromBits(frames[first + 4 * (m % 8) + (k % 4)]![lhs + (m >> 3) + 2 * (k >> 2)]!);
      const lane = 4 * (m % 8) + ((k % 8) >> 1);
      return half(frames[first + lane]![lhs + (m >> 3) + 2 * (k >> 3)]!, k);
    };
    const right = (k: number, n: number): number => {
      if (operand === 'tf32') return tf32FromBits(frames[first + 4 * n + (k % 4)]![rhs + (k >> 2)]!);
      const lane = 4 * n + ((k % 8) >> 1);
      return half(frames[first + lane]![rhs + (k >> 3)]!, k);
    };
    for (let m = 0; m < 16; m++)
      for (let n = 0; n < 8; n++) {
        const frame = frames[first + 4 * (m % 8) + (n >> 1)]!;
        const at = sum + (n & 1) + 2 * (m >> 3);
        let total = frame[at]!;
        for (let k = 0; k < steps; k++) total += left(m, k) * right(k, n);
        frame[at] = Math.fround(total);
      }
  }
}

/** Gives every invocation the registers of the one whose place differs by the bits of `mask`. */
export function shuffleRegisters(frames: readonly Frame[], slot: number, width: number, mask: number): void {
  const values = frames.map((frame) => frame.slice(slot, slot + width));
  frames.forEach((frame, item) => {
    (values[item ^ mask] ?? values[item]!).forEach((value, lane) => {
      frame[slot + lane] = value;
    });
  });
}

interface Copy {
  readonly to: Memory;
  readonly at: number;
  readonly values: readonly number[];
}

/** Copies under way, by invocation. */
export class AsyncCopies {
  readonly #open = new Map<number, Copy[]>();
  readonly #groups = new Map<number, Copy[][]>();

  /** At the start of a workgroup. */
  clear(): void {
    this.#open.clear();
    this.#groups.clear();
  }

  /** Begins a copy: its destination must not be read until the copy is waited for. */
  begin(
    item: number,
    from: Memory,
    source: number,
    to: Memory,
    at: number,
    inside: boolean,
    worker: Worker,
  ): void {
    const count = 16 / dtypeBytes(to.buffer.dtype);
    for (const [place, { buffer }] of [
      [source, from],
      [at, to],
    ] as const) {
      if (place % count !== 0) worker.fail(`element ${place} of ${buffer.name} is not aligned to ${count}`);
      if (!(place >= 0 && place + count <= buffer.size))
        worker.fail(
          `elements ${place} to ${place + count} are outside ${buffer.name}, which has ${buffer.size}`,
        );
    }
    const values = Array.from({ length: count }, (_, i) => (inside ? Number(from.data[source + i]) : 0));
    const copy: Copy = { to, at, values };
    this.#write(copy, () => Number.NaN, worker);
    const open = this.#open.get(item);
    if (open === undefined) this.#open.set(item, [copy]);
    else open.push(copy);
  }

  commit(item: number): void {
    const groups = this.#groups.get(item) ?? [];
    groups.push(this.#open.get(item) ?? []);
    this.#groups.set(item, groups);
    this.#open.delete(item);
  }

  wait(item: number, pending: number, worker: Worker): void {
    const groups = this.#groups.get(item) ?? [];
    const done = groups.splice(0, Math.max(0, groups.length - pending));
    for (const copy of done.flat()) this.#write(copy, (i) => copy.values[i]!, worker);
  }

  #write({ to, at, values }: Copy, value: (i: number) => number, { touch }: Worker): void {
    for (const i of values.keys()) {
      touch(`${to.buffer.name}[${at + i}]`);
      to.shadow!.write(at + i, true);
      to.data[at + i] = value(i);
    }
  }
}

type Action = (frame: Frame) => void;

/** What a statement is made of: buffers, registers, and the work at hand. */
export interface Surroundings {
  readonly memory: (name: string) => Memory;
  /** A scalar value. */
  readonly lane: (value: Value) => Lane;
  /** First register of a variable. */
  readonly registers: (name: string) => number;
  /** Reserves registers under a name. */
  readonly define: (name: string, width: Width) => number;
  /** Registers for a value, and the action that puts it there. */
  readonly keep: (value: Value) => { readonly slot: number; readonly leave: Action };
  readonly copies: AsyncCopies;
  /** The running invocation. */
  readonly item: () => number;
  readonly worker: Worker;
}

/**
 * A statement as what each invocation does on its own, or as what it leaves for the others and what
 * all do when they meet.
 */
export type MatrixStep =
  | { readonly run: Action; readonly leave?: undefined; readonly meet?: undefined }
  | {
      readonly run?: undefined;
      readonly leave: readonly Action[];
      readonly meet: (frames: readonly Frame[], first: number) => void;
    };

export function matrixStep(stmt: MatrixStmt, around: Surroundings): MatrixStep {
  const { memory, lane, registers, define, keep, copies, item, worker } = around;
  switch (stmt.kind) {
    case 'loadMatrix': {
      const from = memory(stmt.buffer);
      const { slot, leave } = keep(stmt.index);
      const to = define(stmt.name, 4);
      const { transposed } = stmt;
      return {
        leave: [leave],
        meet: (frames, first) => loadMatrices(frames, first, from, slot, to, transposed, worker),
      };
    }
    case 'mma': {
      const [lhs, rhs, sum] = [keep(stmt.lhs), keep(stmt.rhs), registers(stmt.name)];
      return {
        leave: [lhs.leave, rhs.leave],
        meet: (frames) => multiplyMatrices(frames, stmt.operand, sum, lhs.slot, rhs.slot),
      };
    }
    case 'shuffle': {
      const [from, to] = [keep(stmt.value), define(stmt.name, stmt.value.width)];
      return {
        leave: [from.leave, (frame) => frame.copyWithin(to, from.slot, from.slot + stmt.value.width)],
        meet: (frames) => shuffleRegisters(frames, to, stmt.value.width, stmt.mask),
      };
    }
    case 'asyncCopy': {
      const [from, to] = [memory(stmt.from), memory(stmt.buffer)];
      const [at, index, inside] = [lane(stmt.at), lane(stmt.index), lane(stmt.inside)];
      return {
        run: (frame) => copies.begin(item(), from, at(frame), to, index(frame), inside(frame) !== 0, worker),
      };
    }
    case 'asyncCommit':
      return { run: () => copies.commit(item()) };
    case 'asyncWait':
      return { run: () => copies.wait(item(), stmt.pending, worker) };
    default:
      return stmt satisfies never;
  }
}
