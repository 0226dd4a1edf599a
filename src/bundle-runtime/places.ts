// Assigns memory to everything in the programs of a bundle. Weights that a program needs as a pack have the
// layout of the first program that packs them. A program that needs another layout has copies, which are made
// before it runs and copied back afterwards. One program runs at a time, so intermediates, arguments and
// results of all programs share memory.

import type { Copy, Machine, ByteLocation } from './machine.ts';
import type { BundledProgram, BundleWeight, WeightPort } from './manifest.ts';

export interface ProgramPlaces<M> {
  readonly placeOf: (buffer: number) => ByteLocation<M>;
  readonly before: readonly Copy<M>[];
  readonly after: readonly Copy<M>[];
}

export interface Places<M> {
  /** Undefined for weights that no program takes. */
  readonly weights: readonly (ByteLocation<M> | undefined)[];
  /** In the order of the programs. */
  readonly programs: readonly ProgramPlaces<M>[];
}

/** What of a program says where its buffers may lie. */
export type PlacedProgram = Pick<
  BundledProgram,
  'buffers' | 'packs' | 'arenas' | 'inputs' | 'outputs' | 'ports'
>;

/** What gives memory. */
type Memory<M> = Pick<Machine<M>, 'allocate'>;

export function moved<M>({ memory, offset }: ByteLocation<M>, by: number): ByteLocation<M> {
  return { memory, offset: offset + by };
}

/** Allocates all memory that programs need on a machine. */
export function placesOf<M>(
  known: readonly BundleWeight[],
  all: readonly PlacedProgram[],
  machine: Memory<M>,
): Places<M> {
  const programs = all.map((program) => ({ program, places: new Map<number, ByteLocation<M>>() }));
  const weights: (ByteLocation<M> | undefined)[] = known.map(() => undefined);
  const arenas = largest(
    machine,
    all.map((program) => program.arenas),
  );

  const whole = (program: PlacedProgram, buffer: number): ByteLocation<M> => {
    return { memory: machine.allocate(program.buffers[buffer]!.bytes), offset: 0 };
  };
  // Packs are placed first, because they determine where their members lie.
  for (const { program, places } of programs) {
    for (const { buffer, members } of program.packs) {
      const place = whole(program, buffer);
      places.set(buffer, place);
      for (const member of members) places.set(member.buffer, moved(place, member.offset));
    }
    for (const { weight, buffer } of program.ports.weights) weights[weight] ??= places.get(buffer);
  }
  for (const { program, places } of programs)
    for (const { weight, buffer } of program.ports.weights) {
      const home = (weights[weight] ??= whole(program, buffer));
      if (!places.has(buffer)) places.set(buffer, home);
    }
  // Buffers that are written and never read.
  for (const { program } of programs)
    for (const { weight, buffer } of program.ports.updates) weights[weight] ??= whole(program, buffer);
  const passing = programs.map(({ program, places }) =>
    [...new Set([...program.inputs, ...program.outputs])].filter((buffer) => !places.has(buffer)),
  );
  const shared = largest(
    machine,
    passing.map((buffers, i) => buffers.map((buffer) => all[i]!.buffers[buffer]!.bytes)),
  );
  return {
    weights,
    programs: programs.map(({ program, places }, i) => {
      passing[i]!.forEach((buffer, at) => places.set(buffer, { memory: shared[at]!, offset: 0 }));
      const placeOf = (buffer: number): ByteLocation<M> => {
        const { role, arena = 0, offset = 0 } = program.buffers[buffer]!;
        return role === 'scratch' ? { memory: arenas[arena]!, offset } : places.get(buffer)!;
      };
      const copies = (ports: readonly WeightPort[], isBefore: boolean): Copy<M>[] =>
        ports.flatMap(({ weight, buffer }) => {
          const [home, own] = [weights[weight]!, placeOf(buffer)];
          if (isSame(home, own)) return [];
          const { bytes } = program.buffers[buffer]!;
          return [isBefore ? { from: home, to: own, bytes } : { from: own, to: home, bytes }];
        });
      const { weights: read, updates } = program.ports;
      return { placeOf, before: copies(read, true), after: atOnce(copies(updates, false), machine) };
    }),
  };
}

/** Copies as if all were made at once: sources that an earlier copy overwrites are saved first. */
function atOnce<M>(copies: readonly Copy<M>[], machine: Memory<M>): Copy<M>[] {
  const aside: Copy<M>[] = [];
  const all = copies.map((copy, i) => {
    const { from, bytes } = copy;
    if (!copies.slice(0, i).some(({ to }) => isSame(to, from))) return copy;
    const kept = { memory: machine.allocate(bytes), offset: 0 };
    aside.push({ from, to: kept, bytes });
    return { ...copy, from: kept };
  });
  return [...aside, ...all];
}

function isSame<M>(one: ByteLocation<M>, other: ByteLocation<M>): boolean {
  return one.memory === other.memory && one.offset === other.offset;
}

/** Memory for the first of each list, the second and so on, as large as the largest there. */
function largest<M>(machine: Memory<M>, lists: readonly (readonly number[])[]): M[] {
  const sizes: number[] = [];
  for (const list of lists) list.forEach((bytes, i) => (sizes[i] = Math.max(sizes[i] ?? 4, bytes)));
  return sizes.map((bytes) => machine.allocate(bytes));
}
