// What a run of a program does, before addresses are known: steps over slots (the program's
// buffers, its scalar block, and the buffers that repeated outputs are copied to), and which steps
// must wait for which. In: a program; out: steps and dependencies, the same for every set of
// buffers. Collectives go on beside the steps that follow, up to a step that waits for them.

import { DeviceError } from '../../errors.ts';
import type { Meeting, ProgramOutline, ProgramStep } from '../program.ts';
import type { Dependencies } from './graph.ts';

/** A slot is a number: a buffer of the program, or one of those that `Slots` names. */
export type RunStep =
  | {
      readonly kind: 'launch';
      readonly kernel: number;
      readonly grid: readonly [number, number, number];
      readonly slots: readonly number[];
    }
  | { readonly kind: 'copy'; readonly from: number; readonly to: number; readonly bytes: number }
  | { readonly kind: 'clear'; readonly slot: number; readonly bytes: number }
  /** Steps that run so many times; taken apart where there are few. */
  | { readonly kind: 'repeat'; readonly times: number; readonly runSteps: readonly RunStep[] }
  /** Steps that run while the first i32 of a slot is not 0, so many times at most. */
  | {
      readonly kind: 'while';
      readonly guard: number;
      readonly times: number;
      readonly runSteps: readonly RunStep[];
    }
  /** What other ranks take part in: `sends` bytes of a slot go to them, `takes` bytes of one come from them. */
  | {
      readonly kind: 'collective';
      readonly meeting: Meeting;
      readonly from: number;
      readonly sends: number;
      readonly to: number;
      readonly takes: number;
    }
  /** Waits for the collectives that were begun, but for so many of the last ones. */
  | { readonly kind: 'await'; readonly but: number }
  /** Scalars given by the caller go to the scalar block. */
  | { readonly kind: 'upload'; readonly bytes: number }
  /** A scalar that is the element of an input. */
  | { readonly kind: 'scalar'; readonly from: number; readonly word: number };

/** Slots besides the program's buffers. */
export interface RunSlots {
  readonly scalars: number;
  /** Of output `i`, where it repeats an input or an output before it. */
  output(i: number): number;
}

export function slotsOf({ buffers }: ProgramOutline): RunSlots {
  return { scalars: buffers.length, output: (i) => buffers.length + 1 + i };
}

/** Steps of a loop that a graph may hold: each waits for some of those before it. */
const longest = 2048;

/** Whether the steps can be one graph: none runs again and again. */
export function isFlat(runSteps: readonly RunStep[]): boolean {
  return runSteps.every(({ kind }) => kind !== 'repeat' && kind !== 'while');
}

/** Whether a graph can hold a step: one call of the driver, on one stream. */
export function isInGraph({ kind }: { readonly kind: RunStep['kind'] }): boolean {
  return kind !== 'collective' && kind !== 'await' && kind !== 'repeat' && kind !== 'while';
}

/** The steps of a run; `isCopied` says which outputs lie elsewhere than the buffers they repeat. */
export function runStepsOf(program: ProgramOutline, isCopied: readonly boolean[]): RunStep[] {
  const { buffers, inputs, outputs, scalars, steps, kernels } = program;
  const runSteps: RunStep[] = [];
  const slots = slotsOf(program);
  if (kernels.some(({ usesScalars }) => usesScalars)) {
    const given = scalars.filter(({ input }) => input === undefined).length;
    if (given > 0) runSteps.push({ kind: 'upload', bytes: 4 * given });
    scalars.forEach(({ input }, word) => {
      if (input !== undefined) runSteps.push({ kind: 'scalar', from: inputs[input]!, word });
    });
  }
  const stepsOf = (step: ProgramStep): RunStep[] => {
    switch (step.kind) {
      case 'dispatch': {
        if (step.grid.includes(0)) return [];
        const { kernel, grid, buffers: bound } = step;
        const extra = kernels[kernel]!.usesScalars ? [slots.scalars] : [];
        return [{ kind: 'launch', kernel, grid, slots: [...bound, ...extra] }];
      }
      case 'copy':
        return [{ kind: 'copy', from: step.from, to: step.to, bytes: buffers[step.from]!.bytes }];
      case 'clear':
        return [{ kind: 'clear', slot: step.buffer, bytes: buffers[step.buffer]!.bytes }];
      case 'repeat': {
        const { times } = step;
        const turn = step.steps.flatMap(stepsOf);
        if (times * turn.length > longest || !isFlat(turn))
          return [{ kind: 'repeat', times, runSteps: turn }];
        return Array.from({ length: times }, () => turn).flat();
      }
      case 'while':
        return [
          { kind: 'while', guard: step.guard, times: step.times, runSteps: step.steps.flatMap(stepsOf) },
        ];
      case 'collective':
        return collectiveOf(step);
      // Refused when the program is loaded.
      case 'host':
        return [];
      default:
        return step satisfies never;
    }
  };
  runSteps.push(...steps.flatMap(stepsOf));
  outputs.forEach((buffer, i) => {
    if (!isCopied[i]) return;
    runSteps.push({ kind: 'copy', from: buffer, to: slots.output(i), bytes: buffers[buffer]!.bytes });
  });
  return runSteps;
}

/** A collective; of a rank alone, a copy. */
function collectiveOf(step: Extract<ProgramStep, { readonly kind: 'collective' }>): RunStep[] {
  const { from, sends, to, takes, action, dtype, ranks, axes } = step;
  if (takes === 0) return [];
  if (axes.some(({ size }) => size > 1))
    return [{ kind: 'collective', meeting: { action, dtype, ranks, axes }, from, sends, to, takes }];
  // Zeros come where nothing is sent. Buffers are multiples of 4 bytes.
  if (action.kind === 'permute' && action.pairs.length === 0)
    return [{ kind: 'clear', slot: to, bytes: 4 * Math.ceil(takes / 4) }];
  return from === to ? [] : [{ kind: 'copy', from, to, bytes: takes }];
}

/**
 * The steps with the waits for their collectives: each comes before the first step that reads or overwrites what the collective brings,
 * or overwrites what it sends. Where `isAtOnce`, each collective is waited for before anything else runs. Loops begin and end with none
 * that is going on.
 */
export function withWaits(
  program: ProgramOutline,
  runSteps: readonly RunStep[],
  isAtOnce: boolean,
): RunStep[] {
  if (!runSteps.some(hasCollective)) return [...runSteps];
  const neighbours = overlapping(program);
  const meet = (slots: readonly number[], others: readonly number[]): boolean =>
    slots.some((slot) => neighbours(slot).some((other) => others.includes(other)));
  const within = (steps: readonly RunStep[]): RunStep[] => {
    const result: RunStep[] = [];
    let open: Access[] = [];
    /** Waits for the first `count` of those that are going on. */
    const wait = (count: number): void => {
      if (count === 0) return;
      open = open.slice(count);
      result.push({ kind: 'await', but: open.length });
    };
    for (const step of steps) {
      if (step.kind === 'repeat' || step.kind === 'while') {
        wait(open.length);
        result.push({ ...step, runSteps: within(step.runSteps) });
        continue;
      }
      const access = accesses(program, step);
      // Collectives wait for each other by themselves.
      if (step.kind !== 'collective') {
        const last = open.findLastIndex(
          ({ reads, writes }) =>
            meet(writes, [...access.reads, ...access.writes]) || meet(reads, access.writes),
        );
        wait(last + 1);
      }
      result.push(step);
      if (step.kind === 'collective') open.push(access);
      if (isAtOnce) wait(open.length);
    }
    wait(open.length);
    return result;
  };
  return within(runSteps);
}

function hasCollective(step: RunStep): boolean {
  if (step.kind === 'repeat' || step.kind === 'while') return step.runSteps.some(hasCollective);
  return step.kind === 'collective';
}

/**
 * Each step depends on the one before: used when buffers overlap that the program assumes to be
 * separate.
 */
export function inOrder(runSteps: readonly RunStep[]): Dependencies {
  return runSteps.map((_, i) => (i === 0 ? [] : [i - 1]));
}

/**
 * Each step depends on those whose results it reads, and on those that used what it overwrites;
 * implied dependencies are left out.
 */
export function dependenciesOf(program: ProgramOutline, runSteps: readonly RunStep[]): Dependencies {
  const neighbours = overlapping(program);
  const writers = new Map<number, number>();
  const readers = new Map<number, number[]>();
  /** Steps before which each step certainly comes, itself included. */
  const ancestors: Uint32Array[] = [];
  const words = Math.ceil(runSteps.length / 32);
  return runSteps.map((step, i) => {
    const { reads, writes } = accesses(program, step);
    const wanted = new Set<number>();
    const afterWriters = (slot: number): void => {
      for (const other of neighbours(slot)) {
        const writer = writers.get(other);
        if (writer !== undefined) wanted.add(writer);
      }
    };
    for (const slot of reads) afterWriters(slot);
    for (const slot of writes) {
      afterWriters(slot);
      for (const other of neighbours(slot)) for (const reader of readers.get(other) ?? []) wanted.add(reader);
    }
    const known = new Uint32Array(words);
    const kept: number[] = [];
    for (const earlier of [...wanted].sort((a, b) => b - a)) {
      if ((known[earlier >>> 5]! >>> (earlier & 31)) & 1) continue;
      kept.push(earlier);
      ancestors[earlier]!.forEach((word, k) => (known[k]! |= word));
    }
    known[i >>> 5]! |= 1 << (i & 31);
    ancestors.push(known);
    for (const slot of reads) {
      const list = readers.get(slot);
      if (list === undefined) readers.set(slot, [i]);
      else list.push(i);
    }
    for (const slot of writes) {
      writers.set(slot, i);
      readers.set(slot, []);
    }
    return kept;
  });
}

/** The slots that a step reads and writes. */
interface Access {
  readonly reads: readonly number[];
  readonly writes: readonly number[];
}

function accesses(program: ProgramOutline, step: RunStep): Access {
  const { scalars } = slotsOf(program);
  switch (step.kind) {
    case 'launch': {
      const { bindings } = program.kernels[step.kernel]!;
      return { reads: step.slots, writes: step.slots.filter((_, i) => bindings[i] === 'read_write') };
    }
    case 'copy':
      return { reads: [step.from], writes: [step.to] };
    case 'clear':
      return { reads: [], writes: [step.slot] };
    case 'collective':
      return { reads: [step.from], writes: [step.to] };
    case 'await':
      return { reads: [], writes: [] };
    case 'repeat':
    case 'while':
      throw new DeviceError('E_STATE', 'cuda', `a graph holds no ${step.kind}`);
    case 'upload':
      return { reads: [], writes: [scalars] };
    case 'scalar':
      return { reads: [step.from], writes: [scalars] };
    default:
      return step satisfies never;
  }
}

/**
 * For each slot the slots that share bytes with it, itself included: places in an arena, members of
 * a pack, donated pairs.
 */
function overlapping(program: ProgramOutline): (slot: number) => readonly number[] {
  const { buffers, packs, donated, inputs, outputs } = program;
  const lists = new Map<number, Set<number>>();
  const note = (one: number, other: number): void => {
    const list = lists.get(one);
    if (list === undefined) lists.set(one, new Set([one, other]));
    else list.add(other);
  };
  const both = (one: number, other: number): void => {
    note(one, other);
    note(other, one);
  };
  const byArena = new Map<number, number[]>();
  buffers.forEach(({ role, arena }, i) => {
    if (role !== 'scratch') return;
    const peers = byArena.get(arena!);
    if (peers === undefined) byArena.set(arena!, [i]);
    else peers.push(i);
  });
  for (const peers of byArena.values()) {
    peers.sort((a, b) => buffers[a]!.offset! - buffers[b]!.offset!);
    peers.forEach((one, k) => {
      const end = buffers[one]!.offset! + buffers[one]!.bytes;
      for (let n = k + 1; n < peers.length && buffers[peers[n]!]!.offset! < end; n++) both(one, peers[n]!);
    });
  }
  for (const { buffer, members } of packs) for (const member of members) both(buffer, member.buffer);
  // A donated input lies where its output does; so do the packs of the two, and all members of
  // these.
  for (const { input, output } of donated) {
    const [from, to] = [inputs[input]!, outputs[output]!];
    if (from === to) continue;
    for (const one of [from, ...(lists.get(from) ?? [])]) {
      for (const other of [to, ...(lists.get(to) ?? [])]) both(one, other);
    }
  }
  const arrays = new Map([...lists].map(([slot, list]) => [slot, [...list]]));
  return (slot) => arrays.get(slot) ?? [slot];
}
