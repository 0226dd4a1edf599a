// The figures of kernels as they are committed (test/golden/): those of Loops, which need no tool, and those of machine code. Takes
// programs, gives rows; compares rows of machine code with committed ones.

import { readFileSync } from 'node:fs';
import { loadTime } from '../../src/schedule/machine.ts';
import { gpuTarget, type Target } from '../../src/schedule/target.ts';
import type { Workload } from '../../src/workloads/workload.ts';
import { readCode } from './assembly.ts';
import { countLoop, operationsOf, type LoopCounts } from './loops.ts';
import { machines, targetFor, type Arch } from './machines.ts';
import { modelOf, type Modelled } from './model.ts';
import { counted, kernelsOf, type CountedKernel } from './programs.ts';
import { compileKernel, type Tools } from './tools.ts';

export type CountedTarget = 'wgsl' | Arch;
export const countedTargets: readonly CountedTarget[] = ['wgsl', 'sm_90a', 'sm_80'];

const machineTarget = (target: CountedTarget): Target =>
  target === 'wgsl' ? gpuTarget : targetFor(machines[target]);

/** What a Loop says of a kernel. */
export interface LoopRow {
  readonly kernel: string;
  readonly times: number;
  readonly workgroups: number;
  readonly invocations: number;
  readonly workgroupBytes: number;
  readonly counts: Readonly<Record<string, number | Readonly<Record<string, number>>>>;
  /** Loads of global memory in a turn of the loop that brings most, and their bytes. */
  readonly loading: { readonly loads: number; readonly loadBytes: number };
  readonly unknown: number;
  /** Operations of all invocations for a byte that the schedule counts. */
  readonly perByte: number;
  /** µs, and the share of the roofline, by the figures of the target; of WGSL alone. */
  readonly model?: { readonly arithmetic: number; readonly memory: number; readonly share: number };
}

/** Three digits are what a model is worth; more would differ with the order of sums. */
const rounded = (value: number): number => Number(value.toPrecision(3));

/** Only what is there, so that rows are short. */
function compact(counts: LoopCounts): LoopRow['counts'] {
  const entries = Object.entries(counts).map(([name, count]) => [
    name,
    typeof count === 'number'
      ? rounded(count)
      : Object.fromEntries(
          Object.entries(count as Record<string, number>).map(([size, n]) => [size, rounded(n)]),
        ),
  ]);
  return Object.fromEntries(
    entries.filter(([, count]) => (typeof count === 'number' ? count > 0 : Object.keys(count!).length > 0)),
  ) as LoopRow['counts'];
}

/** The row of a kernel's Loop. */
export function loopRow(kernel: CountedKernel, target: Target): LoopRow {
  const { name, times, loop, bytes, flops } = kernel;
  const { counts, workgroups, invocations, workgroupBytes, loading, unknown } = countLoop(loop);
  const all = workgroups * invocations;
  const operations = operationsOf(counts) * all;
  const row = {
    kernel: name,
    times,
    workgroups,
    invocations,
    workgroupBytes,
    counts: compact(counts),
    loading,
    unknown,
    perByte: rounded(operations / Math.max(1, bytes)),
  };
  if (target.id !== 'wgsl') return row;
  // As in machine code, by the target's own figures: a core takes its share of operations, two of
  // which its arithmetic counts for a product and a sum, and bytes are under way for the time of a load.
  const { cores, arithmetic, bandwidth } = target;
  const ofBusiest = Math.ceil(workgroups / cores.count);
  const arithmeticTime = (operations / workgroups) * ofBusiest * (cores.count / (arithmetic / 2));
  const held = Math.min(ofBusiest, Math.max(1, Math.floor(cores.invocations / invocations)));
  const underWay = Math.min(cores.count, workgroups) * held * invocations * loading.loadBytes;
  const reached = underWay === 0 ? bandwidth : Math.min(bandwidth, underWay / loadTime);
  const memory = bytes / reached;
  const roofline = Math.max(bytes / bandwidth, flops / arithmetic);
  const share = roofline / Math.max(arithmeticTime, memory);
  return {
    ...row,
    model: { arithmetic: rounded(arithmeticTime), memory: rounded(memory), share: rounded(share) },
  };
}

/** What machine code says of a kernel. */
export interface CodeRow extends Omit<Modelled, 'occupancy' | 'waves'> {
  readonly kernel: string;
  readonly times: number;
  readonly grid: number;
  readonly threads: number;
  readonly registers: number;
  readonly spills: number;
  readonly staticShared: number;
  readonly dynamicShared: number;
  readonly occupancy: number;
  readonly waves: number;
}

/** The row of a kernel's machine code. */
export function codeRow(kernel: CountedKernel, arch: Arch, tools: Tools): CodeRow {
  const { name, times, loop, source, dynamicShared, flops, bytes } = kernel;
  const { counts, workgroups, invocations } = countLoop(loop);
  const { registers, spills, staticShared, assembly } = compileKernel(tools, source, arch);
  const shared = staticShared + dynamicShared;
  const launch = { threads: invocations, registers, shared, grid: workgroups, flops, bytes };
  const modelled = modelOf(readCode(assembly, name), counts, launch, machines[arch]);
  const { occupancy, waves, instructions, tensorShare, issue, memory, roofline, share } = modelled;
  return {
    kernel: name,
    times,
    grid: workgroups,
    threads: invocations,
    registers,
    spills,
    staticShared,
    dynamicShared,
    ...modelled,
    occupancy: rounded(occupancy),
    waves: rounded(waves),
    instructions: rounded(instructions),
    tensorShare: rounded(tensorShare),
    issue: rounded(issue),
    memory: rounded(memory),
    roofline: rounded(roofline),
    share: rounded(share),
  };
}

/** Rows by program. */
export type Rows<T> = Readonly<Record<string, readonly T[]>>;

export function loopRows(target: CountedTarget, list: readonly Workload[] = counted): Rows<LoopRow> {
  const machine = machineTarget(target);
  return Object.fromEntries(
    list.map((one) => [one.name, kernelsOf(one, machine).map((kernel) => loopRow(kernel, machine))]),
  );
}

export function codeRows(arch: Arch, tools: Tools, list: readonly Workload[] = counted): Rows<CodeRow> {
  const machine = machineTarget(arch);
  return Object.fromEntries(
    list.map((one) => [one.name, kernelsOf(one, machine).map((kernel) => codeRow(kernel, arch, tools))]),
  );
}

export const loopFile: URL = new URL('../../test/golden/loop-counts.json', import.meta.url);
export const codeFile: URL = new URL('../../test/golden/machine-code.json', import.meta.url);

export interface CodeFigures {
  /** The tools that made them. */
  readonly tools: string;
  readonly rows: Readonly<Record<Arch, Rows<CodeRow>>>;
}

export function committedCode(): CodeFigures {
  return JSON.parse(readFileSync(codeFile, 'utf8')) as CodeFigures;
}

export function committedLoops(): Readonly<Record<CountedTarget, Rows<LoopRow>>> {
  return JSON.parse(readFileSync(loopFile, 'utf8')) as Readonly<Record<CountedTarget, Rows<LoopRow>>>;
}

/** What became worse in the machine code of a program: nothing that another version of the tools may do a little otherwise. */
export function regressions(before: readonly CodeRow[], now: readonly CodeRow[]): readonly string[] {
  const names = (rows: readonly CodeRow[]): string => rows.map(({ kernel }) => kernel).join(', ');
  if (names(before) !== names(now)) return [`its kernels are ${names(now)}, and were ${names(before)}`];
  return now.flatMap((row, i) => {
    const old = before[i]!;
    const found: string[] = [];
    const more = (what: string, was: number, is: number): void => {
      if (is > was) found.push(`${row.kernel}: ${what}: ${is}, and was ${was}`);
    };
    more('bytes spilled', old.spills, row.spills);
    more('divisions by a call', old.divisions, row.divisions);
    if (row.held < old.held) found.push(`${row.kernel}: workgroups held: ${row.held}, and was ${old.held}`);
    if (row.share < 0.95 * old.share)
      found.push(`${row.kernel}: share of the roofline: ${row.share}, and was ${old.share}`);
    return found;
  });
}
