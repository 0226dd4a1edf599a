// Checks a bundle on the device at hand: runs its kernels one by one on inputs of a seed, and compares what they write with
// what the interpreter computed when the bundle was built (`check.json`, see expected.ts). `check.js` of a bundle is made
// of this file. The check has memory of its own, in which each kernel finds what the ones before it left there.

import { DeviceCheck, type CheckedProgram, type KernelCheck } from '../check/report.ts';
import { SinterError } from '../errors.ts';
import type { ProgramStep } from '../runtime/program.ts';
import {
  fingerprint,
  misfitOf,
  seededBytes,
  type ExpectedBundle,
  type ExpectedComparison,
  type ExpectedKernel,
  type ExpectedPlace,
  type ExpectedProgram,
} from './expected.ts';
import { readWhole } from './files.ts';
import type { Binding, ByteLocation, Machine, RunProgram } from './machine.ts';
import type { BundledProgram, BundleTarget } from './manifest.ts';
import { moved } from './places.ts';
import type { LoadOptions, Model } from './runtime.ts';

/** Where a bundle is checked, as `load` takes it. */
export interface BundleCheckOptions extends Pick<
  LoadOptions,
  'target' | 'device' | 'threads' | 'base' | 'signal'
> {
  /** Called with the number of kernels of a program that ran, and of all; nobody by default. */
  readonly onProgress?: (done: number, total: number) => void;
}

type Load = (options: LoadOptions) => Promise<Model>;

/**
 * Checks every program of the bundle that `load` loads, on the first of its targets that works here. Where kernels are wrong,
 * it looks for another target of the bundle that is right. Rejects with E_FORMAT where `file` is not of this bundle, and
 * with what `load` rejects with.
 */
export async function checkBundle(
  load: Load,
  file: URL,
  { onProgress, ...where }: BundleCheckOptions = {},
): Promise<DeviceCheck<undefined>> {
  const place = where.base ? new URL('check.json', where.base) : file;
  const text = new TextDecoder().decode(await readWhole(place, where.signal));
  if (!text.startsWith('{"version":1,'))
    throw new SinterError('E_IO', `${place.href}: not a check of a bundle of this version`);
  const expected = JSON.parse(text) as ExpectedBundle;
  const on = async (target: BundleTarget | undefined): Promise<TargetChecked> => {
    const checks: CheckPrograms[] = [];
    const model = await load({
      ...where,
      ...(target !== undefined && { target }),
      instead: (machine) => {
        const { seen, check } = watched(machine);
        checks.push(check);
        return seen;
      },
    });
    try {
      const programs = await checks.at(-1)!(expected.targets[model.target] ?? [], onProgress);
      return { name: model.target, description: model.description, programs };
    } finally {
      model.dispose();
    }
  };
  const first = await on(where.target);
  const wrong = wrongOf(first);
  if (wrong.length === 0) return new DeviceCheck(undefined, first, first.programs);
  const instead = await rightOf(Object.keys(expected.targets) as BundleTarget[], first, on);
  const { name: device, description } = first;
  const workaround = {
    device,
    description,
    avoid: [],
    schedules: {},
    ...(instead !== undefined && { instead }),
    wrong: wrong.map(({ name, writes }) => `${name} -> ${writes.join(', ')}`),
  };
  // One entry, of whatever program.
  const programs = first.programs.map((program, i) => (i === 0 ? { ...program, workaround } : program));
  return new DeviceCheck(undefined, first, programs);
}

interface TargetChecked {
  readonly name: BundleTarget;
  readonly description: string;
  readonly programs: readonly CheckedProgram[];
}

function wrongOf({ programs }: TargetChecked): KernelCheck[] {
  return programs.flatMap(({ kernels }) => kernels.filter(({ verdict }) => verdict !== 'right'));
}

/** Another target on which all kernels are right. */
async function rightOf(
  targets: readonly BundleTarget[],
  { name }: TargetChecked,
  on: (target: BundleTarget) => Promise<TargetChecked>,
): Promise<BundleTarget | undefined> {
  for (const target of targets) {
    if (target === name) continue;
    try {
      if (wrongOf(await on(target)).length === 0) return target;
    } catch (error) {
      // There is no such device here.
      if ((error as SinterError).code !== 'E_DEVICE') throw error;
    }
  }
  return undefined;
}

type CheckPrograms = (
  expected: readonly ExpectedProgram[],
  onProgress: BundleCheckOptions['onProgress'],
) => Promise<readonly CheckedProgram[]>;

/** A machine on which programs are noted and not made ready, and what checks them on the machine itself. */
function watched<M>(machine: Machine<M>): { readonly seen: Machine<M>; readonly check: CheckPrograms } {
  const bindings: Binding<M>[] = [];
  const seen: Machine<M> = {
    description: machine.description,
    allocate: (bytes) => machine.allocate(bytes),
    write: (place, bytes) => machine.write(place, bytes),
    read: (place, bytes) => machine.read(place, bytes),
    prepare: (binding) => {
      bindings.push(binding);
      return Promise.resolve(() => Promise.resolve([]));
    },
    dispose: () => machine.dispose(),
  };
  return { seen, check: (expected, onProgress) => programsChecked(machine, bindings, expected, onProgress) };
}

async function programsChecked<M>(
  machine: Machine<M>,
  bindings: readonly Binding<M>[],
  expected: readonly ExpectedProgram[],
  onProgress: BundleCheckOptions['onProgress'],
): Promise<readonly CheckedProgram[]> {
  const found: CheckedProgram[] = [];
  for (const [i, binding] of bindings.entries()) {
    const own = expected[i];
    if (own?.program !== fingerprint(JSON.stringify(binding.program))) {
      const problem = 'check.json is of another build than program.json';
      throw new SinterError('E_FORMAT', `check: ${problem}\n  try: sinter build --check, and copy all files`);
    }
    const kept = await weightsOf(machine, binding);
    found.push(await new ProgramChecking(machine, binding, own).all(onProgress));
    // Each program is given the weights as they were built.
    for (const { place, bytes } of kept) machine.write(place, bytes);
  }
  return found;
}

/** The weights that a program writes over where they lie. */
function weightsOf<M>(
  machine: Machine<M>,
  { program: { ports, buffers }, placeOf }: Binding<M>,
): Promise<{ readonly place: ByteLocation<M>; readonly bytes: Uint8Array }[]> {
  const changed = ports.weights.filter(({ weight }) =>
    ports.updates.some((update) => update.weight === weight),
  );
  return Promise.all(
    changed.map(async ({ buffer }) => {
      const place = placeOf(buffer);
      return { place, bytes: await machine.read(place, buffers[buffer]!.bytes) };
    }),
  );
}

/** What elements hold before a kernel that writes some of them only. */
const unwritten = 0xa5;

/** Errors that are not about a kernel. */
const fatal: readonly unknown[] = ['E_DEVICE', 'E_DEVICE_LOST', 'E_IO', 'E_OOM', 'E_STATE'];

class ProgramChecking<M> {
  readonly #machine: Machine<M>;
  readonly #binding: Binding<M>;
  readonly #expected: ExpectedProgram;
  /** All scalars; those that inputs hold are read once, because kernels may write over these inputs. */
  #words = new Int32Array();
  /** Values that a wrong kernel wrote, or that were computed from such. */
  readonly #spoilt = new Set<number>();
  /** Kernels, by the first of their kind, that are wrong, or cannot run. */
  readonly #wrong = new Set<number>();
  /** Steps that have yet to run. */
  readonly #waiting: ProgramStep[] = [];

  constructor(machine: Machine<M>, binding: Binding<M>, expected: ExpectedProgram) {
    this.#machine = machine;
    this.#binding = binding;
    this.#expected = expected;
  }

  async all(onProgress: BundleCheckOptions['onProgress']): Promise<CheckedProgram> {
    const { program } = this.#binding;
    const { title, before, kernels } = this.#expected;
    await this.#begin(program.steps.slice(0, before));
    const found: KernelCheck[] = [];
    let [at, skipped] = [before, 0];
    for (const [done, kernel] of kernels.entries()) {
      const steps = program.steps.slice(at, (at += kernel.steps));
      const { first, reads, writes, open = [], compared } = kernel;
      // Nothing is known of what a wrong kernel writes, and of what is computed from that.
      if (this.#wrong.has(first) || reads.some((id) => this.#spoilt.has(id))) {
        for (const id of writes) this.#spoilt.add(id);
        if (compared !== undefined) skipped += 1;
        continue;
      }
      if (compared === undefined && open.length === 0) {
        this.#waiting.push(...steps);
        continue;
      }
      onProgress?.(done, kernels.length);
      await this.#run(this.#waiting.splice(0), []);
      this.#fill(open);
      const isJudged = compared?.values.every(({ id }) => !this.#spoilt.has(id)) === true;
      if (isJudged) found.push(await this.#compared(kernel, compared, steps));
      else {
        this.#waiting.push(...steps);
        if (compared !== undefined) skipped += 1;
      }
    }
    onProgress?.(kernels.length, kernels.length);
    return { title, kernels: found, ...(skipped > 0 && { skipped }) };
  }

  /** Brings inputs, weights and scalars to where the program has them. */
  async #begin(steps: readonly ProgramStep[]): Promise<void> {
    const { program, placeOf } = this.#binding;
    const machine = this.#machine;
    for (const [i, input] of this.#expected.inputs.entries())
      if (input !== null) machine.write(placeOf(program.ports.args[i]!), seededBytes(input, i));
    this.#words = new Int32Array(program.scalars.length);
    this.#words.set(this.#expected.words);
    const run = await this.#prepared(steps, true);
    await run(this.#words, []);
    for (const [slot, { input }] of program.scalars.entries()) {
      if (input === undefined) continue;
      const bytes = await machine.read(placeOf(program.inputs[input]!), 4);
      this.#words[slot] = new DataView(bytes.buffer, bytes.byteOffset).getInt32(0, true);
    }
  }

  /** Runs a kernel and compares what it writes. */
  async #compared(
    { first, writes }: ExpectedKernel,
    { values, firsts, partial, ...facts }: ExpectedComparison,
    steps: readonly ProgramStep[],
  ): Promise<KernelCheck> {
    let found: readonly Uint8Array[];
    try {
      found = await this.#run(steps, values);
    } catch (error) {
      if (fatal.includes((error as SinterError).code)) throw error;
      this.#wrong.add(first);
      for (const id of writes) this.#spoilt.add(id);
      return { ...facts, verdict: 'failed', problem: (error as Error).message };
    }
    for (const [i, value] of values.entries()) {
      const bytes = found[i]!;
      const isUnwritten = (from: number, count: number): boolean =>
        partial === true && bytes.subarray(from, from + count).every((byte) => byte === unwritten);
      const misfit = misfitOf(value, bytes, isUnwritten);
      if (misfit === undefined) continue;
      for (const one of firsts) this.#wrong.add(one);
      for (const { id } of values) this.#spoilt.add(id);
      return { ...facts, verdict: 'wrong', ...misfit };
    }
    return { ...facts, verdict: 'right' };
  }

  #fill(places: readonly ExpectedPlace[]): void {
    const { placeOf } = this.#binding;
    for (const { buffer, offset, bytes } of places)
      this.#machine.write(moved(placeOf(buffer), offset), new Uint8Array(bytes).fill(unwritten));
  }

  /** Runs steps; gives what lies at some places then. */
  async #run(
    steps: readonly ProgramStep[],
    wanted: readonly ExpectedPlace[],
  ): Promise<readonly Uint8Array[]> {
    if (steps.length === 0 && wanted.length === 0) return [];
    const run = await this.#prepared(steps, false);
    const { placeOf } = this.#binding;
    return run(
      this.#words,
      wanted.map(({ buffer, offset, bytes }) => ({ place: moved(placeOf(buffer), offset), bytes })),
    );
  }

  #prepared(steps: readonly ProgramStep[], isFirst: boolean): Promise<RunProgram<M>> {
    const { program, before } = this.#binding;
    const part = onlySteps(program, steps);
    return this.#machine.prepare({
      ...this.#binding,
      program: part,
      before: isFirst ? before : [],
      after: [],
    });
  }
}

/** The program with these of its steps only, and the kernels that they run; all of its scalars come from outside. */
function onlySteps(program: BundledProgram, steps: readonly ProgramStep[]): BundledProgram {
  const used = new Set<number>();
  const note = (step: ProgramStep): void => {
    if (step.kind === 'dispatch') used.add(step.kernel);
    else if ('steps' in step) step.steps.forEach(note);
  };
  steps.forEach(note);
  const kernels = [...used];
  const renumbered = (step: ProgramStep): ProgramStep => {
    if (step.kind === 'dispatch') return { ...step, kernel: kernels.indexOf(step.kernel) };
    return 'steps' in step ? { ...step, steps: step.steps.map(renumbered) } : step;
  };
  return {
    ...program,
    kernels: kernels.map((kernel) => program.kernels[kernel]!),
    steps: steps.map(renumbered),
    scalars: program.scalars.map(({ name, dtype }) => ({ name, dtype })),
  };
}
