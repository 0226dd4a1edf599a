// Keeps what was prepared for the sets of buffers that a program was last run with, so that a loop
// which swaps two or three generations of its state prepares nothing again. A set is found again if
// all buffers and the program's arenas lie where they lay.

import type { Arrangement } from './layout.ts';
import { GpuBuffer, type BufferPools, type MemoryLocation } from './memory.ts';
import type { Slab } from './slabs.ts';
import type { Scratch } from './scratch.ts';
import { DeviceError } from '../errors.ts';
import type { DeviceAllocation } from './device.ts';
import type { Program } from './program.ts';

/** The part of a plan that is compared to find it again. */
export interface FittedPlan<Gpu> {
  readonly arrangement: Arrangement<Gpu>;
  readonly arenas: readonly Slab<Gpu>[];
}

/** Sets remembered. */
const planLimit = 4;

export class Plans<Gpu, Plan extends FittedPlan<Gpu>> {
  readonly #memory: BufferPools<Gpu>;
  readonly #scratch: Scratch<Gpu>;
  /** The one used last comes first. */
  readonly #plans: Plan[] = [];

  constructor(memory: BufferPools<Gpu>, scratch: Scratch<Gpu>) {
    this.#memory = memory;
    this.#scratch = scratch;
  }

  [Symbol.iterator](): Iterator<Plan> {
    return this.#plans[Symbol.iterator]();
  }

  /** Where these buffers were found to lie before, if nothing moved since. */
  arrangementOf(given: readonly GpuBuffer<Gpu>[]): Arrangement<Gpu> | undefined {
    for (const { arrangement } of this.#plans)
      if (arrangement.lasting && this.#lieAt(given, arrangement.places)) return arrangement;
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
    const at = plans.findIndex((plan) => {
      const { places } = plan.arrangement;
      const same =
        plan.arrangement === arrangement || arrangement.places.every((place, i) => isSame(place, places[i]!));
      return same && plan.arenas.every((slab, arena) => slab === this.#scratch.slab(arena));
    });
    if (at > 0) plans.unshift(...plans.splice(at, 1));
    return at < 0 ? undefined : plans[0];
  }

  /** Keeps a plan; gives the one that is evicted for it, if any. */
  add(plan: Plan): Plan | undefined {
    const last = this.#plans.length === planLimit ? this.#plans.pop() : undefined;
    this.#plans.unshift(plan);
    return last;
  }

  clear(): void {
    this.#plans.length = 0;
  }
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
