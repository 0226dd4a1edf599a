// Where everything of a model in C lies. There are three regions: the weights that no call changes stay
// where the caller put them, those that calls change are the state of a context, and all that lives no
// longer than a call shares the arena of a context.

import { placesOf, type ProgramPlaces } from '../../bundle-runtime/places.ts';
import type { BundleWeight } from '../../bundle-runtime/manifest.ts';
import type { HostTensor } from '../../io/host.ts';
import type { PortedProgram } from '../ported.ts';
import { everyStep, type Program } from '../../runtime/program.ts';

/** Every tensor begins at a multiple of so many bytes. */
export const alignment = 64;

/** Bytes of the state before its tensors: the seed and the counter of random numbers, and zeros. */
export const stateHead = 64;

export type CRegion = 'weights' | 'state' | 'arena';

/** Bytes from the start of a region; of the weights from the end of their head. */
export interface CPlace {
  readonly region: CRegion;
  readonly offset: number;
}

export interface PlacedCopy {
  readonly from: CPlace;
  readonly to: CPlace;
  readonly bytes: number;
}

export interface ProgramMemory {
  readonly placeOf: (buffer: number) => CPlace;
  /** What is copied before the first step and after the last. */
  readonly before: readonly PlacedCopy[];
  readonly after: readonly PlacedCopy[];
}

export interface ModelMemory {
  /** Bytes of each region. */
  readonly bytes: Readonly<Record<CRegion, number>>;
  /** Bytes of the state that a file of weights holds, from the end of the head on: zeros follow. */
  readonly storedState: number;
  /** Undefined for weights that no program takes. */
  readonly weights: readonly (CPlace | undefined)[];
  /** In the order of the programs; those of other instruction sets follow. */
  readonly programs: readonly ProgramMemory[];
  /** Of the kernel that is running; undefined where none needs any. */
  readonly scratch: CPlace | undefined;
  /** How many bytes that is, whole lines of memory. */
  readonly scratchBytes: number;
}

/** Memory that is placed in a region when all is known. */
interface Block {
  readonly bytes: number;
}

/** Assigns memory for all programs over their common weights. */
export function memoryOf(
  weights: readonly BundleWeight[],
  values: readonly HostTensor[],
  programs: readonly PortedProgram[],
): ModelMemory {
  const blocks: Block[] = [];
  const allocate = (bytes: number): Block => {
    const block = { bytes };
    blocks.push(block);
    return block;
  };
  const plan = placesOf(
    weights,
    programs.map(({ program, ports }) => ({ ...program, ports })),
    { allocate },
  );
  const scratchBytes = Math.max(0, ...programs.map(({ program }) => scratchOf(program)));
  const scratch = scratchBytes > 0 ? allocate(scratchBytes) : undefined;

  const changing = new Set<Block>();
  programs.forEach((program, i) => {
    const places = plan.programs[i]!;
    for (const buffer of writtenBy(program)) changing.add(places.placeOf(buffer).memory);
    for (const { to } of [...places.before, ...places.after]) changing.add(to.memory);
  });
  const homes = new Map<Block, number[]>();
  plan.weights.forEach((home, weight) => {
    if (home === undefined) return;
    homes.set(home.memory, [...(homes.get(home.memory) ?? []), weight]);
    if (weights[weight]!.state) changing.add(home.memory);
  });
  const isZero = (block: Block): boolean =>
    homes.get(block)!.every((weight) => values[weight]!.data.every((byte) => byte === 0));
  const held = blocks.filter((block) => homes.has(block) && changing.has(block));
  // What is all zeros at first comes last, so that no file holds it.
  const state = [...held.filter((block) => !isZero(block)), ...held.filter(isZero)];
  const stored = state.filter((block) => !isZero(block));
  const constant = blocks.filter((block) => homes.has(block) && !changing.has(block));
  const others = blocks.filter((block) => !homes.has(block));

  const places = new Map<Block, CPlace>();
  const lay = (region: CRegion, list: readonly Block[], start: number): number => {
    let offset = start;
    for (const block of list) {
      places.set(block, { region, offset });
      offset += aligned(block.bytes);
    }
    return offset;
  };
  const bytes = {
    weights: lay('weights', constant, 0),
    state: lay('state', state, stateHead),
    arena: Math.max(alignment, lay('arena', others, 0)),
  };
  const placed = ({ memory, offset }: { readonly memory: Block; readonly offset: number }): CPlace => {
    const { region, offset: start } = places.get(memory)!;
    return { region, offset: start + offset };
  };
  const copied = (copies: ProgramPlaces<Block>['before']): PlacedCopy[] =>
    copies.map(({ from, to, bytes }) => ({ from: placed(from), to: placed(to), bytes }));
  return {
    bytes,
    storedState: stored.reduce((sum, block) => sum + aligned(block.bytes), 0),
    weights: plan.weights.map((home) => home && placed(home)),
    programs: plan.programs.map(({ placeOf, before, after }) => ({
      placeOf: (buffer) => placed(placeOf(buffer)),
      before: copied(before),
      after: copied(after),
    })),
    scratch: scratch && places.get(scratch),
    scratchBytes: aligned(scratchBytes),
  };
}

function aligned(bytes: number): number {
  return alignment * Math.ceil(bytes / alignment);
}

/** Bytes that the kernels of a program need of their own; they run one after another. */
function scratchOf({ kernels }: Program): number {
  return Math.max(0, ...kernels.map(({ sharedBytes = 0 }) => sharedBytes));
}

/** Buffers that a call writes. */
function* writtenBy({ program: { steps, kernels }, ports }: PortedProgram): Generator<number> {
  yield* ports.args.filter((buffer) => buffer >= 0);
  for (const step of everyStep(steps)) {
    switch (step.kind) {
      case 'dispatch': {
        const { bindings } = kernels[step.kernel]!;
        yield* step.buffers.filter((_, i) => bindings[i] === 'read_write');
        break;
      }
      case 'copy':
        yield step.to;
        break;
      case 'clear':
        yield step.buffer;
        break;
      case 'collective':
        yield step.to;
        break;
      case 'host':
        yield* step.writes;
        break;
      case 'repeat':
      case 'while':
        break;
      default:
        step satisfies never;
    }
  }
}
