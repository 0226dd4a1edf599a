// Runs a program kernel by kernel on the memory that a run of it has, and computes what each kernel writes with
// the interpreter too, from the values that the kernel reads there. Kernels of equal source and size are compared
// once. What turns out wrong is put right on the device, so that later kernels are judged by numbers like those
// of a right run.

import { interpreter } from '../compile/slots.ts';
import type { CompiledGraph, Inside } from '../compile/compile.ts';
import { CompilerBug, SinterError, TensorError } from '../errors.ts';
import { lowered as loweredType } from '../ir/dtype.ts';
import { dims, type Node } from '../ir/graph.ts';
import { hostArray, packBytes, unpackBytes, type HostArray } from '../ir/value.ts';
import { storedBytes } from '../codegen/lower/assemble.ts';
import type { Device, DeviceAllocation, LoadedProgram } from '../runtime/device.ts';
import { everyStep, type Program, type ProgramBuffer, type ProgramStep } from '../runtime/program.ts';
import type { Kernel } from '../schedule/kernel.ts';
import { differenceOf, Nudging } from './comparison.ts';
import { ComparisonPlan, isPartial, unwritten } from './plan.ts';
import type { KernelCheck, ValueDifference } from './report.ts';

/** A program on a device with what a run of it is given. */
export interface CheckedRun {
  readonly device: Device;
  /** Compiled with `inspect`. */
  readonly compiled: CompiledGraph;
  /** Buffers of the program's inputs; those that it writes over are this run's own. */
  readonly inputs: readonly DeviceAllocation[];
  readonly scalars: readonly number[];
  /** The precision of products of f32. */
  readonly precision: 'f32' | 'tf32';
  /** Called with the number of kernels that ran, and of all. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** A kernel that was compared, and its place among the kernels of the schedule. */
export interface ComparedKernel {
  readonly kernel: Kernel;
  readonly check: KernelCheck;
}

/** Compares every kernel. Rejects with E_UNSUPPORTED for programs of several processes, and E_DEVICE_LOST. */
export async function checkKernels(run: CheckedRun): Promise<readonly ComparedKernel[]> {
  const checking = new Checking(run);
  try {
    return await checking.all();
  } finally {
    checking.free();
  }
}

/** Bytes of scratch memory as a buffer, which has some, and whole words. */
const arenaBytes = (bytes: number): number => Math.max(4, 4 * Math.ceil(bytes / 4));

/** Seeds of the ways in which values are changed to see how much rounding may explain. */
const seeds: readonly number[] = [1, 2, 3];

class Checking {
  readonly #run: CheckedRun;
  readonly #program: Program;
  readonly #inside: Inside;
  readonly #main: LoadedProgram;
  readonly #outputs: readonly DeviceAllocation[];
  /**
   * What scratch memory holds from one kernel to the next. The memory itself is shared by all programs of the device, and others may
   * run, be loaded or go in the meantime.
   */
  readonly #arenas: readonly DeviceAllocation[];
  readonly #fresh: readonly DeviceAllocation[];
  readonly #plan: ComparisonPlan;
  /** What kernels read, until what they write is compared. */
  readonly #read = new Map<number, ReadonlyMap<Node, HostArray>>();
  /** Scalars of the program, by node, and in order: read once, because kernels may write over the inputs that hold them. */
  readonly #numbers = new Map<Node, HostArray>();
  readonly #scalars: number[] = [];
  /** Steps that have yet to run. */
  readonly #waiting: ProgramStep[] = [];
  /** Kernels, by the first of their kind, that were found to be wrong. */
  readonly #wrong = new Set<number>();

  constructor(run: CheckedRun) {
    const { device, compiled, inputs } = run;
    const { program } = compiled;
    this.#plan = new ComparisonPlan(compiled);
    if ([...everyStep(program.steps)].some(({ kind }) => kind === 'collective')) {
      const problem = 'the program is one of several processes, whose kernels cannot be checked alone';
      throw new TensorError('E_UNSUPPORTED', 'check', problem, 'check a program of one process');
    }
    this.#run = run;
    this.#program = program;
    this.#inside = this.#plan.inside;
    this.#main = device.load(program);
    this.#fresh = this.#main.allocateOutputs();
    let fresh = 0;
    const outputs: DeviceAllocation[] = [];
    for (const [i, buffer] of program.outputs.entries()) {
      const input = program.inputs.indexOf(buffer);
      const first = program.outputs.indexOf(buffer);
      outputs.push(input >= 0 ? inputs[input]! : first < i ? outputs[first]! : this.#fresh[fresh++]!);
    }
    this.#outputs = outputs;
    this.#arenas = program.arenas.map((bytes) => device.allocate(arenaBytes(bytes)));
  }

  free(): void {
    this.#main.destroy();
    for (const buffer of [...this.#fresh, ...this.#arenas]) buffer.destroy();
  }

  async all(): Promise<readonly ComparedKernel[]> {
    const { kernels } = this.#inside.schedule;
    const found: ComparedKernel[] = [];
    for (const [slot, node] of this.#inside.scalars.entries()) {
      const number = await this.#scalar(node, slot);
      this.#numbers.set(node, number);
      this.#scalars.push(Number(number.data[0]));
    }
    for (const [at, kernel] of kernels.entries()) {
      if (this.#passes(kernel, at)) {
        this.#waiting.push(...this.#inside.placed.steps[at]!);
        continue;
      }
      this.#run.onProgress?.(at, kernels.length);
      await this.#passWaiting();
      const check = await this.#step(kernel, at);
      if (check !== undefined) found.push({ kernel, check });
    }
    this.#run.onProgress?.(kernels.length, kernels.length);
    return found;
  }

  /** Whether a kernel is only run: neither what it reads nor what it writes is looked at. */
  #passes(kernel: Kernel, at: number): boolean {
    const { compared, feeding } = this.#plan;
    return !compared.has(at) && !this.#isBad(at) && !feeding.has(at) && !isPartial(kernel);
  }

  /** Whether a kernel is like one that was found to be wrong, and can be put right: it alone writes what it writes. */
  #isBad(at: number): boolean {
    return this.#wrong.has(this.#plan.first(at)) && this.#plan.together(at).length === 1;
  }

  /** Runs the kernels that are only run. */
  async #passWaiting(): Promise<void> {
    const steps = this.#waiting.splice(0);
    if (steps.length > 0) await this.#after(steps, []);
  }

  /** Runs one kernel; says how it compares where it is the first of its kind. */
  async #step(kernel: Kernel, at: number): Promise<KernelCheck | undefined> {
    const { device } = this.#run;
    const steps = this.#inside.placed.steps[at]!;
    const [isCompared, isBad] = [this.#plan.compared.has(at), this.#isBad(at)];
    // What several kernels write is compared when the last of them has run.
    const wanted = isCompared || isBad ? this.#plan.completed(at) : [];
    const { feeding } = this.#plan;
    if (isBad || feeding.has(at)) this.#read.set(at, await this.#valuesOf(this.#plan.readsOf(kernel)));
    if (isPartial(kernel)) await this.#fill(this.#plan.leftOpen(kernel));
    let got: readonly HostArray[] = [];
    let problem: string | undefined;
    try {
      got = await this.#after(steps, wanted);
    } catch (error) {
      const isOfKernel = error instanceof SinterError && !(error instanceof CompilerBug) && !device.lost;
      if (wanted.length === 0 || !isOfKernel) throw error;
      problem = error.message;
    }
    if (wanted.length === 0) return undefined;
    const expected = this.#interpreted(at, wanted);
    const difference = problem === undefined ? this.#difference(at, wanted, got, expected) : undefined;
    if (problem !== undefined || difference !== undefined) {
      this.#wrong.add(this.#plan.first(at));
      await this.#put(wanted, (i) => packBytes(expected[i]!));
    }
    for (const part of this.#read.keys()) if ((feeding.get(part) ?? at) <= at) this.#read.delete(part);
    return isCompared ? this.#checkOf(at, problem, difference) : undefined;
  }

  /** Runs steps, and gives what nodes hold then. */
  async #after(steps: readonly ProgramStep[], nodes: readonly Node[]): Promise<readonly HostArray[]> {
    const { device, inputs } = this.#run;
    const probes = nodes.map((node) => device.allocate(storedBytes(node)));
    let part: LoadedProgram | undefined;
    try {
      part = this.#load(steps, nodes, 'out');
      part.run([...inputs, ...this.#arenas], [...this.#outputs, ...this.#arenas, ...probes], this.#scalars);
      await device.finish();
      const values: HostArray[] = [];
      for (const [i, node] of nodes.entries())
        values.push(unpackBytes(await device.read(probes[i]!, storedBytes(node)), node.dtype, dims(node)));
      return values;
    } finally {
      part?.destroy();
      for (const probe of probes) probe.destroy();
    }
  }

  /** What nodes hold now. */
  async #valuesOf(nodes: readonly Node[]): Promise<Map<Node, HostArray>> {
    const { device, inputs } = this.#run;
    const values = new Map<Node, HostArray>();
    const between: Node[] = [];
    for (const node of nodes) {
      const input = this.#program.inputs.indexOf(this.#inside.placed.bufferOf.get(node) ?? -1);
      if (input < 0) between.push(node);
      else {
        const bytes = await device.read(inputs[input]!, storedBytes(node));
        values.set(node, unpackBytes(bytes, node.dtype, dims(node)));
      }
    }
    if (between.length === 0) return values;
    const found = await this.#after([], between);
    between.forEach((node, i) => values.set(node, found[i]!));
    return values;
  }

  #checkOf(at: number, problem: string | undefined, difference: ValueDifference | undefined): KernelCheck {
    return {
      ...this.#plan.factsOf(at),
      verdict: problem !== undefined ? 'failed' : difference === undefined ? 'right' : 'wrong',
      ...(problem !== undefined && { problem }),
      ...(difference !== undefined && { difference }),
    };
  }

  #difference(
    at: number,
    wanted: readonly Node[],
    got: readonly HostArray[],
    expected: readonly HostArray[],
  ): ValueDifference | undefined {
    const rounding = this.#plan.rounding(at, this.#run.precision);
    const arePartial = this.#plan.isPartial(at);
    let nudged: readonly (readonly HostArray[])[] | undefined;
    const others = (): readonly (readonly HostArray[])[] =>
      (nudged ??= seeds.map((seed) => {
        const nudging = new Nudging(rounding, seed);
        return this.#interpreted(at, wanted, (value) => nudging.of(value));
      }));
    for (const [i, value] of got.entries()) {
      const bytes = arePartial ? packBytes(value) : undefined;
      const isNeeded = (element: number): boolean =>
        bytes === undefined || !isUnwritten(bytes, value, element);
      const found = differenceOf(value, expected[i]!, rounding, isNeeded, () =>
        others().map((values) => values[i]!),
      );
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** What these nodes are by the interpreter, from the values that the kernel reads; `change` is applied to all values. */
  #interpreted(
    at: number,
    wanted: readonly Node[],
    change: (value: HostArray) => HostArray = (value) => value,
  ): readonly HostArray[] {
    const known = new Map<Node, HostArray>();
    const own = new Set(wanted);
    for (const part of this.#plan.together(at))
      for (const [node, value] of this.#read.get(part)!) if (!own.has(node)) known.set(node, change(value));
    for (const [node, value] of this.#numbers) known.set(node, change(value));
    return interpreter.value.valuesFrom(wanted, known, undefined, change);
  }

  /** A scalar of the program as a run has it. */
  async #scalar(node: Node, slot: number): Promise<HostArray> {
    const { input } = this.#program.scalars[slot]!;
    if (input === undefined) return hostArray(node.dtype, [], [this.#run.scalars[slot]!]);
    return unpackBytes(await this.#run.device.read(this.#run.inputs[input]!, 4), node.dtype, []);
  }

  /** Fills what a kernel writes in part, so that what it leaves unwritten can be told. */
  async #fill(nodes: readonly Node[]): Promise<void> {
    await this.#put(nodes, (i) => new Uint8Array(storedBytes(nodes[i]!)).fill(unwritten));
  }

  /** Writes bytes to where nodes lie on the device. */
  async #put(nodes: readonly Node[], bytes: (i: number) => Uint8Array): Promise<void> {
    if (nodes.length === 0) return;
    const { device, inputs } = this.#run;
    const probes = nodes.map((node) => device.allocate(storedBytes(node)));
    const part = this.#load([], nodes, 'in');
    try {
      for (const [i, probe] of probes.entries()) device.write(probe, whole(bytes(i), probe.bytes));
      part.run([...inputs, ...this.#arenas, ...probes], [...this.#outputs, ...this.#arenas], this.#scalars);
      await device.finish();
    } finally {
      part.destroy();
      for (const probe of probes) probe.destroy();
    }
  }

  /**
   * Some steps of the program, with all scalars from outside, between copies of its scratch memory from and to buffers behind its inputs and outputs, and copies
   * of nodes to buffers behind these outputs, or from buffers behind these inputs.
   */
  #load(steps: readonly ProgramStep[], nodes: readonly Node[], direction: 'in' | 'out'): LoadedProgram {
    const program = this.#program;
    const buffers: ProgramBuffer[] = [...program.buffers];
    const own: number[] = [];
    const copies: ProgramStep[] = [];
    for (const node of nodes) {
      const entry = { bytes: storedBytes(node), dtype: loweredType(node.dtype), shape: dims(node) };
      const known = this.#inside.placed.bufferOf.get(node);
      const place = this.#inside.memory.placeOf.get(node);
      if (known === undefined && place === undefined)
        throw new CompilerBug('check', `${node.op} lies nowhere`);
      // Members of a pack in scratch memory are bound by no kernel, and have no buffer of their own.
      const home = known ?? buffers.push({ ...entry, name: 'member', role: 'scratch', ...place! }) - 1;
      const probe =
        buffers.push({ ...entry, name: 'probe', role: direction === 'in' ? 'input' : 'output' }) - 1;
      own.push(probe);
      copies.push(
        direction === 'in'
          ? { kind: 'copy', from: probe, to: home }
          : { kind: 'copy', from: home, to: probe },
      );
    }
    const arenas = program.arenas.map((given, arena) => {
      const bytes = arenaBytes(given);
      const entry = { bytes, dtype: 'u32', shape: [bytes / 4] } as const;
      const shared = buffers.push({ ...entry, name: 'arena', role: 'scratch', arena, offset: 0 }) - 1;
      const kept = buffers.push({ ...entry, name: 'kept', role: 'input' }) - 1;
      return { shared, kept };
    });
    const kept = arenas.map((arena) => arena.kept);
    // Only what runs is compiled.
    const part = onlySteps(program, steps);
    return this.#run.device.load({
      ...part,
      buffers,
      scalars: program.scalars.map(({ name, dtype }) => ({ name, dtype })),
      arenas: program.arenas.map(arenaBytes),
      steps: [
        ...arenas.map((arena): ProgramStep => ({ kind: 'copy', from: arena.kept, to: arena.shared })),
        ...part.steps,
        ...copies,
        ...arenas.map((arena): ProgramStep => ({ kind: 'copy', from: arena.shared, to: arena.kept })),
      ],
      inputs: [...program.inputs, ...kept, ...(direction === 'in' ? own : [])],
      outputs: [...program.outputs, ...kept, ...(direction === 'out' ? own : [])],
    });
  }
}

/** The same program with these of its steps only, and the kernels that they run. */
function onlySteps(program: Program, steps: readonly ProgramStep[]): Program {
  const used = [...everyStep(steps)].flatMap((step) => (step.kind === 'dispatch' ? [step.kernel] : []));
  const kernels = [...new Set(used)];
  const renumbered = (step: ProgramStep): ProgramStep => {
    if (step.kind === 'dispatch') return { ...step, kernel: kernels.indexOf(step.kernel) };
    if (step.kind !== 'repeat' && step.kind !== 'while') return step;
    return { ...step, steps: step.steps.map(renumbered) };
  };
  return {
    ...program,
    kernels: kernels.map((kernel) => program.kernels[kernel]!),
    steps: steps.map(renumbered),
  };
}

/** Bytes with zeros behind them. */
function whole(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length >= length) return bytes.subarray(0, length);
  const all = new Uint8Array(length);
  all.set(bytes);
  return all;
}

function isUnwritten(bytes: Uint8Array, array: HostArray, element: number): boolean {
  const width = bytes.length / array.data.length;
  for (let i = element * width; i < (element + 1) * width; i++) if (bytes[i] !== unwritten) return false;
  return true;
}
