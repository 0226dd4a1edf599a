// Runs an executable on stored values: uploads the inputs, allocates the outputs and queues the run. An
// error is kept in the outputs and thrown when they are read. If donated memory is shared with another
// value, it is copied first.

import { SinterError } from '../../errors.ts';
import type { Device, DeviceAllocation } from '../../runtime/device.ts';
import type { TargetId } from '../../runtime/program.ts';
import { copied } from './copy.ts';
import { submit, type Job } from '../device.ts';
import type { Executable, Ready } from './executable.ts';
import { runOrProfile } from '../report/spans.ts';
import { counts } from '../report/stats.ts';
import { SessionPart } from '../session.ts';
import { evictAll, Resident } from '../storage/resident.ts';
import type { StoredValue } from '../storage/storage.ts';

export interface Run {
  readonly executable: Executable;
  readonly inputs: readonly StoredValue[];
  /** Promised Storages, one per output of the graph. */
  readonly outputs: readonly StoredValue[];
  readonly scalars: readonly number[];
  /**
   * The program has room for more than these inputs and outputs are: they lie at the beginning of its
   * buffers.
   */
  readonly isPartial?: boolean;
}

/** Looks at a run whose inputs have arrived, before the device that it will run on gets it. */
export type RunCheck = (device: Device, run: Run) => Promise<void>;

/** What looks at the runs of a session, while `check` is under way. */
export const runChecks: SessionPart<{ current: RunCheck | undefined }> = new SessionPart(() => ({
  current: undefined,
}));

/** Queues one run. Inputs are kept until it has been handed to the device; never throws. */
export function execute(run: Run): void {
  for (const input of run.inputs) input.pin();
  submit(new ExecuteJob(run));
}

class ExecuteJob implements Job {
  readonly #run: Run;
  readonly #executable: Executable;
  readonly #check: RunCheck | undefined = runChecks.current.current;

  constructor(run: Run) {
    this.#run = run;
    this.#executable = run.executable;
  }

  fetch(target: TargetId | undefined): void {
    this.#executable.fetch(target);
  }

  ready(device: Device): boolean {
    if (this.#check !== undefined) return false;
    return this.#executable.isPrepared(device) && this.#run.inputs.every((input) => input.canReach(device));
  }

  async prepare(device: Device): Promise<void> {
    for (const input of this.#run.inputs) {
      if (!input.canReach(device)) await input.arrived();
      if (!input.canReach(device)) await input.toHost();
    }
    await this.#executable.prepare(device);
    await this.#check?.(device, this.#run);
  }

  run(device: Device): void {
    compute(device, this.#run);
    this.#done();
  }

  fail(error: unknown): void {
    for (const output of this.#run.outputs) output.fail(error);
    this.#done();
  }

  #done(): void {
    for (const input of this.#run.inputs) input.unpin();
  }
}

/**
 * Runs a program. Where it cannot be run whole, because something that it reads has failed, or is
 * too large, its halves are: what cannot be computed fails alone, and what was recorded beside it
 * does not.
 */
function compute(device: Device, run: Run): void {
  const { executable, inputs, outputs, scalars, isPartial = false } = run;
  let problem = inputs.find((input) => input.failure !== undefined)?.failure;
  if (problem === undefined) {
    try {
      const ready = executable.on(device);
      const residents = orFreed(device, () => {
        const made = dispatch(device, ready, inputs, scalars, isPartial);
        return isPartial ? cut(made, outputs) : made;
      });
      outputs.forEach((output, i) => output.fulfil(residents[i]!));
      return;
    } catch (error) {
      problem = error;
    }
  }
  if (outputs.length <= 1 || device.lost || isOverBudget(executable, problem)) {
    for (const output of outputs) output.fail(problem);
    return;
  }
  for (const part of executable.halves())
    compute(device, {
      executable: part.executable,
      inputs: part.inputs.map((i) => inputs[i]!),
      outputs: part.outputs.map((i) => outputs[i]!),
      scalars: part.scalars.map((i) => scalars[i]!),
      isPartial,
    });
}

/** Whether a program takes more memory than the user lets it take: nothing of it is run then. */
function isOverBudget({ options }: Executable, problem: unknown): boolean {
  return options.memory !== undefined && problem instanceof SinterError && problem.code === 'E_LIMIT';
}

/**
 * Whether a donated value may be written over: no tensor, reader or other value uses its memory,
 * and this run pinned it once.
 */
function isSole(donor: StoredValue, memory: Resident): boolean {
  return donor.owners <= 0 && donor.pins <= 1 && !memory.shared;
}

/** Tries again without the device copies that the host can replace when memory runs out. */
function orFreed<T>(device: Device, fn: () => T): T {
  try {
    return fn();
  } catch (error) {
    if (!(error instanceof SinterError && error.code === 'E_OOM' && evictAll(device))) throw error;
    return fn();
  }
}

/** Runs a program; gives the device copy of each output. */
function dispatch(
  device: Device,
  { loaded, donated, casts, places, dispatches, moved }: Ready,
  inputs: readonly StoredValue[],
  scalars: readonly number[],
  isPartial: boolean,
): Resident[] {
  const held: Resident[] = [];
  const fresh: Resident[] = [];
  const outputs: Resident[] = [];
  try {
    // Pinned, so that uploading one input cannot evict another.
    for (let i = 0; i < inputs.length; i++) {
      const dtype = casts[i];
      const input = dtype === undefined ? inputs[i]! : inputs[i]!.cast(dtype);
      const memory = input.on(device)!;
      held.push(donated[i]! && !isSole(input, memory) ? copied(memory) : memory.share());
      if (!isPartial) continue;
      const { program } = loaded;
      const room = program.buffers[program.inputs[i]!]!.bytes;
      const own = held[i]!;
      if (own.buffer.bytes >= room) continue;
      held[i] = copied(own, own.buffer.bytes, room);
      own.release();
    }
    for (const buffer of loaded.allocateOutputs()) fresh.push(new Resident(device, buffer));
    for (const place of places) {
      if (place.from === 'device') outputs.push(fresh[place.index]!);
      else outputs.push(again((place.from === 'input' ? held : outputs)[place.index]!));
    }
    runOrProfile(device, loaded, held.map(bufferOf), outputs.map(bufferOf), scalars);
    counts.runs += 1;
    counts.dispatches += dispatches;
    counts.moved += moved;
  } catch (error) {
    for (const resident of [...outputs, ...fresh]) resident.release();
    throw error;
  } finally {
    for (const resident of held) resident.release();
  }
  return outputs;
}

/** What counts of results that lie at the beginning of larger buffers, in buffers of its own. */
function cut(made: readonly Resident[], outputs: readonly StoredValue[]): Resident[] {
  return made.map((resident, i) => {
    const bytes = outputs[i]!.deviceBytes;
    if (resident.buffer.bytes <= bytes) return resident;
    const own = copied(resident, bytes);
    resident.release();
    return own;
  });
}

/** The same memory for one more value; of memory that others may write to a copy. */
function again(resident: Resident): Resident {
  if (resident.isLent) return copied(resident);
  resident.pinDown();
  return resident.share();
}

function bufferOf(resident: Resident): DeviceAllocation {
  return resident.buffer;
}
