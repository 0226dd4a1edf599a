// Arranges the inputs and outputs of a program in memory: the members of a pack lie one after another, and
// buffers that a kernel writes do not overlap with those that it reads (they lie in different slabs, if a
// device binds whole slabs). Buffers that lie elsewhere are moved when the program is run: handles get new
// ranges, and their bytes are copied in the order of the device. In a loop that happens once.

import { everyStep, type Program } from './program.ts';
import type { Failures } from './failures.ts';
import type { GpuBuffer, BufferPools, MemoryLocation } from './memory.ts';
import type { Timeline } from './timeline.ts';

/** The parts of a device that moving buffers needs. */
export interface Mover<Gpu> {
  readonly timeline: Timeline;
  readonly failures: Failures;
  readonly memory: BufferPools<Gpu>;
  /** Whether a kernel may read and write different parts of one slab. */
  readonly mayShareSlabs: boolean;
  /** Copies bytes, now; `at` is the place of the copies in the order. They overlap nothing. */
  copy(at: number, copies: readonly Move<Gpu>[]): void;
}

export interface Move<Gpu> {
  readonly from: MemoryLocation<Gpu>;
  readonly to: MemoryLocation<Gpu>;
  readonly bytes: number;
}

interface Member {
  /** Among the inputs, then the outputs. */
  readonly position: number;
  /** Where it lies in the unit. */
  readonly offset: number;
  readonly bytes: number;
  readonly name: string;
}

/** Where everything lies when a program runs. */
export interface Arrangement<Gpu> {
  /** Of inputs, then outputs, then the starts of packs. */
  readonly places: readonly MemoryLocation<Gpu>[];
  /**
   * The packs stay valid while the buffers are not moved: none holds a copy of a buffer that is
   * given twice.
   */
  readonly lasting: boolean;
}

/** Handles that lie together: a pack, or one buffer alone. */
interface Unit {
  readonly bytes: number;
  readonly members: readonly Member[];
  readonly isPack: boolean;
  /** Holds something before the program runs. */
  readonly isInput: boolean;
  /** Some kernel binds all of it for writing, padding included. */
  readonly isWritten: boolean;
}

/** The layout of one program, computed for every set of buffers. */
export class ProgramLayout<Gpu> {
  readonly #mover: Mover<Gpu>;
  readonly #packs: readonly Unit[];
  /** Units that must not share a slab, or overlap in one. */
  readonly #separate: readonly (readonly [Unit, Unit])[];

  constructor(mover: Mover<Gpu>, program: Program) {
    this.#mover = mover;
    const { packs, unitOf } = unitsOf(program);
    this.#packs = packs;
    this.#separate = separatePairs(program, unitOf);
  }

  /** Moves buffers that lie in the wrong place. `given` are the inputs, then the outputs. */
  arrange(given: readonly GpuBuffer<Gpu>[]): Arrangement<Gpu> {
    const starts = new Map<Unit, MemoryLocation<Gpu>>();
    // Packs that are overwritten come last: a buffer in two packs must end in the one that is
    // written.
    for (const pack of [...this.#packs].sort((a, b) => Number(a.isWritten) - Number(b.isWritten))) {
      starts.set(pack, this.#inPlace(pack, given) ?? this.#gather(pack, given));
    }
    for (const [one, other] of this.#separate) {
      if (!this.#clash(one, other, given, starts)) continue;
      // One buffer that is given twice cannot be separated; binding it for reading and writing is
      // refused later.
      const own = new Set(one.members.map(({ position }) => given[position]));
      if (other.members.some(({ position }) => own.has(given[position]))) continue;
      const moved = one.isPack && !other.isPack ? other : one;
      const start = this.#gather(moved, given);
      if (moved.isPack) starts.set(moved, start);
    }
    const lasting = this.#packs.every((pack) => {
      const place = this.#inPlace(pack, given);
      const start = starts.get(pack)!;
      return place?.slab === start.slab && place.offset === start.offset;
    });
    const places = given.map((buffer) => buffer.place(this.#mover.memory));
    return { places: [...places, ...this.#packs.map((pack) => starts.get(pack)!)], lasting };
  }

  #clash(
    one: Unit,
    other: Unit,
    given: readonly GpuBuffer<Gpu>[],
    starts: ReadonlyMap<Unit, MemoryLocation<Gpu>>,
  ): boolean {
    const [a, b] = [one, other].map((unit) => {
      return starts.get(unit) ?? this.#placeOf(unit.members[0]!.position, given);
    }) as [MemoryLocation<Gpu>, MemoryLocation<Gpu>];
    if (a.slab !== b.slab) return false;
    const overlap = a.offset < b.offset + other.bytes && b.offset < a.offset + one.bytes;
    return overlap || !this.#mover.mayShareSlabs;
  }

  #placeOf(position: number, given: readonly GpuBuffer<Gpu>[]): MemoryLocation<Gpu> {
    return given[position]!.place(this.#mover.memory);
  }

  /** The start of a pack whose members lie as it asks. */
  #inPlace(
    { members, bytes, isWritten }: Unit,
    given: readonly GpuBuffer<Gpu>[],
  ): MemoryLocation<Gpu> | undefined {
    const first = this.#placeOf(members[0]!.position, given);
    const { slab } = first;
    const offset = first.offset - members[0]!.offset;
    if (offset < 0 || offset + bytes > slab.bytes) return undefined;
    const fits = members.every((member) => {
      const place = this.#placeOf(member.position, given);
      return place.slab === slab && place.offset === offset + member.offset;
    });
    if (!fits || (isWritten && this.#mover.memory.isCrowded(slab, offset, bytes, members.length)))
      return undefined;
    return { slab, offset };
  }

  /** Puts a unit into a slab of its own. */
  #gather(unit: Unit, given: readonly GpuBuffer<Gpu>[]): MemoryLocation<Gpu> {
    const { timeline, failures, memory } = this.#mover;
    const tenants = unit.members.map(({ position, offset, bytes, name }) => {
      const buffer = given[position]!;
      if (unit.isPack && buffer.bytes !== bytes) {
        const sizes = `needs exactly ${bytes} bytes and was given ${buffer.bytes}`;
        throw memory.misuse(`${name} is part of a pack: it ${sizes}`);
      }
      return { buffer, offset };
    });
    const { slab, from } = memory.gather(unit.isPack ? unit.bytes : tenants[0]!.buffer.bytes, tenants);
    if (unit.isInput) {
      const at = failures.tick();
      const copies = tenants.map(({ buffer, offset }, i) => {
        return { from: from[i]!, to: { slab, offset }, bytes: buffer.bytes };
      });
      timeline.push(() => {
        if (!failures.lost) this.#mover.copy(at, copies);
      });
    }
    return { slab, offset: 0 };
  }
}

type UnitOf = (buffer: number) => Unit | undefined;

/** The packs, and the unit of every input and output. */
function unitsOf(program: Program): { readonly packs: readonly Unit[]; readonly unitOf: UnitOf } {
  const { inputs, outputs, buffers, steps, kernels } = program;
  const positions = new Map<number, number>();
  [...inputs, ...outputs].forEach((buffer, i) => {
    if (!positions.has(buffer)) positions.set(buffer, i);
  });
  const written = new Set<number>();
  for (const step of everyStep(steps)) {
    if (step.kind === 'collective') written.add(step.to);
    if (step.kind !== 'dispatch') continue;
    step.buffers.forEach((buffer, i) => {
      if (kernels[step.kernel]!.bindings[i] === 'read_write') written.add(buffer);
    });
  }
  const units = new Map<number, Unit>();
  const packs = program.packs.map((pack): Unit => {
    const unit = {
      bytes: buffers[pack.buffer]!.bytes,
      members: pack.members.map(({ buffer, offset }) => {
        const { bytes, name } = buffers[buffer]!;
        return { position: positions.get(buffer)!, offset, bytes, name };
      }),
      isPack: true,
      isInput: buffers[pack.buffer]!.role === 'input',
      isWritten: written.has(pack.buffer),
    };
    for (const buffer of [pack.buffer, ...pack.members.map((member) => member.buffer)])
      units.set(buffer, unit);
    return unit;
  });
  for (const [buffer, position] of positions) {
    if (units.has(buffer)) continue;
    const { bytes, name } = buffers[buffer]!;
    units.set(buffer, {
      bytes,
      members: [{ position, offset: 0, bytes, name }],
      isPack: false,
      isInput: position < inputs.length,
      isWritten: written.has(buffer),
    });
  }
  return { packs, unitOf: (buffer) => units.get(buffer) };
}

/**
 * Pairs of units of which one dispatch, or collective, reads one and writes the other, or one of which is
 * copied to the other.
 */
function separatePairs(
  { steps, kernels, inputs, outputs, buffers }: Program,
  unitOf: UnitOf,
): (readonly [Unit, Unit])[] {
  const pairs = new Map<Unit, Set<Unit>>();
  const add = (one: Unit | undefined, other: Unit | undefined): void => {
    if (one === undefined || other === undefined || one === other) return;
    const known = pairs.get(one);
    if (known === undefined) pairs.set(one, new Set([other]));
    else known.add(other);
  };
  for (const step of everyStep(steps)) {
    if (step.kind === 'copy' || step.kind === 'collective') add(unitOf(step.from), unitOf(step.to));
    if (step.kind !== 'dispatch') continue;
    const { bindings } = kernels[step.kernel]!;
    step.buffers.forEach((read, i) => {
      if (bindings[i] !== 'read') return;
      step.buffers.forEach((write, k) => {
        if (bindings[k] === 'read_write') add(unitOf(read), unitOf(write));
      });
    });
  }
  // An output that repeats an input or another output is copied into the buffer given for it.
  outputs.forEach((buffer, i) => {
    const position = inputs.length + i;
    const unit = unitOf(buffer);
    if (unit === undefined || unit.members.some((member) => member.position === position)) return;
    const { bytes, name } = buffers[buffer]!;
    const members = [{ position, offset: 0, bytes, name }];
    add(unit, { bytes, members, isPack: false, isInput: false, isWritten: false });
  });
  return [...pairs].flatMap(([one, others]) => [...others].map((other) => [one, other] as const));
}
