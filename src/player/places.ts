// Where everything in a bundle's programs lies. Weights that a program wants side by side lie so in the first entry that asks; where
// another entry wants them otherwise, it has copies of its own, which are made before it runs and handed back after.

import { SinterError } from '../errors.ts';
import type { Copy, Machine, Place } from './machine.ts';
import type { BundledProgram, BundleTarget, Entry, Manifest } from './manifest.ts';

export interface EntryPlaces<M> {
  readonly placeOf: (buffer: number) => Place<M>;
  readonly before: readonly Copy<M>[];
  readonly after: readonly Copy<M>[];
}

export interface Places<M> {
  readonly weights: readonly Place<M>[];
  readonly entries: ReadonlyMap<string, EntryPlaces<M>>;
}

export function programOf(entry: Entry, target: BundleTarget): BundledProgram {
  const program = entry.programs[target];
  if (program === undefined) throw new SinterError('E_FORMAT', `the bundle has no programs for ${target}`);
  return program;
}

export function moved<M>({ memory, offset }: Place<M>, by: number): Place<M> {
  return { memory, offset: offset + by };
}

/** Allocates all memory that a bundle needs on a machine. */
export function placesOf<M>(manifest: Manifest, target: BundleTarget, machine: Machine<M>): Places<M> {
  const entries = Object.entries(manifest.entries).map(([name, entry]) => {
    return { name, entry, program: programOf(entry, target), places: new Map<number, Place<M>>() };
  });
  const weights: (Place<M> | undefined)[] = manifest.weights.map(() => undefined);
  const arenas: M[] = [];
  const most: number[] = [];
  for (const { program } of entries)
    program.arenas.forEach((bytes, i) => (most[i] = Math.max(most[i] ?? 4, bytes)));
  for (const bytes of most) arenas.push(machine.allocate(bytes));

  const whole = (program: BundledProgram, buffer: number): Place<M> => {
    return { memory: machine.allocate(program.buffers[buffer]!.bytes), offset: 0 };
  };
  // What lies side by side comes first: it says where its members are.
  for (const { entry, program, places } of entries) {
    for (const { buffer, members } of program.packs) {
      const place = whole(program, buffer);
      places.set(buffer, place);
      for (const member of members) places.set(member.buffer, moved(place, member.offset));
    }
    entry.wiring.forEach((wire, i) => {
      if ('weight' in wire) weights[wire.weight] ??= places.get(program.inputs[i]!);
    });
  }
  for (const { entry, program, places } of entries) {
    entry.wiring.forEach((wire, i) => {
      const buffer = program.inputs[i]!;
      const place = places.get(buffer);
      if ('argument' in wire) {
        if (place === undefined) places.set(buffer, whole(program, buffer));
        return;
      }
      const home = (weights[wire.weight] ??= whole(program, buffer));
      if (place === undefined) places.set(buffer, home);
    });
    for (const buffer of program.outputs) if (!places.has(buffer)) places.set(buffer, whole(program, buffer));
  }
  const homes = weights.map((place, i) => {
    if (place === undefined) throw new SinterError('E_FORMAT', `no entry takes ${manifest.weights[i]!.name}`);
    return place;
  });
  return {
    weights: homes,
    entries: new Map(
      entries.map(({ name, entry, program, places }) => {
        const placeOf = (buffer: number): Place<M> => {
          const { role, arena = 0, offset = 0 } = program.buffers[buffer]!;
          return role === 'scratch' ? { memory: arenas[arena]!, offset } : places.get(buffer)!;
        };
        const copy = (from: Place<M>, to: Place<M>, buffer: number): Copy<M>[] => {
          const isSame = from.memory === to.memory && from.offset === to.offset;
          return isSame ? [] : [{ from, to, bytes: program.buffers[buffer]!.bytes }];
        };
        const before = entry.wiring.flatMap((wire, i) => {
          const buffer = program.inputs[i]!;
          return 'weight' in wire ? copy(homes[wire.weight]!, placeOf(buffer), buffer) : [];
        });
        const after = entry.updates.flatMap(({ weight, from }) => {
          const buffer = 'output' in from ? program.outputs[from.output]! : program.inputs[from.input]!;
          return copy(placeOf(buffer), homes[weight]!, buffer);
        });
        return [name, { placeOf, before, after }];
      }),
    ),
  };
}
