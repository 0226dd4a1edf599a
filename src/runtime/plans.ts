// Keeps what was prepared for the sets of buffers that a program was run with, so that a loop whose
// buffers come round prepares nothing again. A set is found again if all buffers and the program's
// arenas lie where they lay. How many sets are kept depends on the steps of the program. If more
// sets than that come round, some stay, and only the others are prepared again at each turn.

import type { Arrangement } from './layout.ts';
import { GpuBuffer, type BufferPools, type MemoryLocation } from './memory.ts';
import type { Slab } from './slabs.ts';
import type { Scratch } from './scratch.ts';
import { DeviceError } from '../errors.ts';
import type { DeviceAllocation } from './device.ts';
import { everyStep, type Program } from './program.ts';

/** The part of a plan that is compared to find it again. */
export interface FittedPlan<Gpu> {
  readonly arrangement: Arrangement<Gpu>;
  readonly arenas: readonly Slab<Gpu>[];
}

/** Steps of all plans of a program together, and the fewest and most plans that are kept whatever their steps. */
const keptSteps = 8192;
const fewestPlans = 4;
const mostPlans = 64;
/** Evicted plans that are remembered, as a number each; then all of them are forgotten. */
const mostEvicted = 1024;

/** How many plans a program of so many steps keeps. */
export function planLimit(steps: number): number {
  return Math.min(mostPlans, Math.max(fewestPlans, Math.floor(keptSteps / steps)));
}

export class Plans<Gpu, Plan extends FittedPlan<Gpu>> {
  readonly #memory: BufferPools<Gpu>;
  readonly #scratch: Scratch<Gpu>;
  readonly #limit: number;
  /** Inputs and outputs of the program: the places from which a plan's number is computed. */
  readonly #given: number;
  /** The one used last comes first. */
  readonly #plans: { readonly hash: number; readonly plan: Plan }[] = [];
  /** The numbers of evicted plans. */
  readonly #evicted = new Set<number>();

  constructor(memory: BufferPools<Gpu>, scratch: Scratch<Gpu>, program: Program) {
    this.#memory = memory;
    this.#scratch = scratch;
    this.#limit = planLimit([...everyStep(program.steps)].length);
    this.#given = program.inputs.length + program.outputs.length;
  }

  /** Where these buffers were found to lie before, if nothing moved since. */
  arrangementOf(given: readonly GpuBuffer<Gpu>[]): Arrangement<Gpu> | undefined {
    let hash = 0;
    for (let i = 0; i < given.length; i++) hash = mixed(hash, given[i]!.place(this.#memory));
    for (const { hash: own, plan } of this.#plans) {
      const { lasting, places } = plan.arrangement;
      if (own === hash && lasting && this.#lieAt(given, places)) return plan.arrangement;
    }
    return undefined;
  }

  /** Called for every buffer of every run: it makes nothing. */
  #lieAt(given: readonly GpuBuffer<Gpu>[], places: readonly MemoryLocation<Gpu>[]): boolean {
    for (let i = 0; i < given.length; i++)
      if (!isSame(given[i]!.place(this.#memory), places[i]!)) return false;
    return true;
  }

  /** The plan for these places and the arenas as they are now. */
  known(arrangement: Arrangement<Gpu>): Plan | undefined {
    const plans = this.#plans;
    const hash = this.#hashOf(arrangement);
    const found = plans.find(
      (entry) =>
        entry.hash === hash &&
        isOver(entry.plan, arrangement) &&
        entry.plan.arenas.every((slab, arena) => slab === this.#scratch.slab(arena)),
    );
    if (found !== undefined) plans.unshift(...plans.splice(plans.indexOf(found), 1));
    return found?.plan;
  }

  /**
   * Keeps a plan; gives the one that is evicted for it, if any. That is one over the same places whose arenas are gone, or the one
   * used longest ago. But if the new one was evicted before, more sets come round than are kept. Then the one used last is evicted,
   * so that the others are still there when their turn comes.
   */
  add(plan: Plan): Plan | undefined {
    const plans = this.#plans;
    const hash = this.#hashOf(plan.arrangement);
    const comesBack = this.#evicted.delete(hash);
    let at = plans.findIndex((entry) => entry.hash === hash && isOver(entry.plan, plan.arrangement));
    if (at < 0 && plans.length >= this.#limit) {
      at = comesBack ? 0 : plans.length - 1;
      if (this.#evicted.size === mostEvicted) this.#evicted.clear();
      this.#evicted.add(plans[at]!.hash);
    }
    const last = at < 0 ? undefined : plans.splice(at, 1)[0]!.plan;
    plans.unshift({ hash, plan });
    return last;
  }

  /** Forgets all plans, and gives them. */
  clear(): readonly Plan[] {
    this.#evicted.clear();
    return this.#plans.splice(0).map(({ plan }) => plan);
  }

  #hashOf({ places }: Arrangement<Gpu>): number {
    let hash = 0;
    for (let i = 0; i < this.#given; i++) hash = mixed(hash, places[i]!);
    return hash;
  }
}

/** Whether a plan is over these places. */
function isOver<Gpu>(plan: FittedPlan<Gpu>, arrangement: Arrangement<Gpu>): boolean {
  const { places } = plan.arrangement;
  return (
    plan.arrangement === arrangement || arrangement.places.every((place, i) => isSame(place, places[i]!))
  );
}

/** A number of 32 bits for places in order, one place after another. */
function mixed<Gpu>(hash: number, { slab, offset }: MemoryLocation<Gpu>): number {
  return Math.imul(hash ^ slab.id, 0x9e3779b1) ^ offset;
}

function isSame<Gpu>(a: MemoryLocation<Gpu>, b: MemoryLocation<Gpu>): boolean {
  return a.slab === b.slab && a.offset === b.offset;
}

// What a run of a program is given: buffers of this device, large enough, in the right number; and
// fresh ones for its outputs.

/**
 * Inputs, then outputs, as buffers of `device`; throws E_VALIDATION naming the one that is wrong.
 */
export function givenBuffers<Gpu>(
  program: Program,
  device: string,
  inputs: readonly DeviceAllocation[],
  outputs: readonly DeviceAllocation[],
): GpuBuffer<Gpu>[] {
  const given: GpuBuffer<Gpu>[] = [];
  bind('input', program.inputs, inputs);
  bind('output', program.outputs, outputs);
  return given;

  function bind(kind: string, indices: readonly number[], allocated: readonly DeviceAllocation[]): void {
    if (allocated.length !== indices.length) {
      const problem = `${allocated.length} ${kind} buffers given: expected ${indices.length}`;
      throw new DeviceError('E_VALIDATION', device, problem);
    }
    for (let i = 0; i < indices.length; i++) {
      const buffer = allocated[i]!;
      const asked = program.buffers[indices[i]!]!;
      if (!(buffer instanceof GpuBuffer) || buffer.bytes < asked.bytes)
        throw misfit(device, `${kind} ${i} (${asked.name})`, asked.bytes, buffer);
      given.push(buffer);
    }
  }
}

/** Why a buffer cannot be bound. Only a failing run makes the text. */
function misfit(device: string, what: string, bytes: number, buffer: DeviceAllocation): DeviceError {
  const problem =
    buffer instanceof GpuBuffer
      ? `${what} needs ${bytes} bytes and was given ${buffer.bytes}`
      : `${what} is not a buffer of this device`;
  return new DeviceError('E_VALIDATION', device, problem);
}

/**
 * Fresh buffers, laid out as the program's packs ask, for the outputs that are no inputs: each
 * distinct one once, in order.
 */
export function outputBuffers<Gpu>(program: Program, memory: BufferPools<Gpu>): DeviceAllocation[] {
  const made = new Map<number, DeviceAllocation>();
  for (const { buffer, members } of program.packs) {
    if (program.buffers[buffer]!.role !== 'output') continue;
    const parts = members.map((member) => {
      return { offset: member.offset, bytes: program.buffers[member.buffer]!.bytes };
    });
    const handles = memory.allocateTogether(program.buffers[buffer]!.bytes, parts);
    members.forEach((member, i) => made.set(member.buffer, handles[i]!));
  }
  for (const index of program.outputs) {
    const { role, bytes } = program.buffers[index]!;
    if (role === 'output' && !made.has(index)) made.set(index, memory.allocate(bytes));
  }
  return [...new Set(program.outputs)].flatMap((index) => made.get(index) ?? []);
}
