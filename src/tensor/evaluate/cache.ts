// The structural cache: one entry per graph structure, so that a loop compiles once. Hoisted constants start
// out compiled in; those that come back with other values become run-time scalars (a factor that a
// program changes, where a batch begins), and those that were made to differ are so from the start (a
// learning rate, a step count, a word of random state). Entries also record which intermediate values
// later programs read, and materialise those from then on.

import { scalarType, type DType } from '../../ir/dtype.ts';
import { showType } from '../../ir/infer.ts';
import { Executable } from './executable.ts';
import { aboutLater, counted } from '../report/compiles.ts';
import { operationsOf, type noveltyOf } from './structure.ts';
import { SessionPart } from '../session.ts';
import { Slot } from '../../slot.ts';
import type { StoredValue } from '../storage/storage.ts';
import { forget, graphOf, sameGraphKey, type GraphKey } from './graph-key.ts';

const capacity = 512;

/** Why operations are compiled once more, in words. Pages have none before a profile is taken; Node has them from the start. */
export const novelties: Slot<typeof noveltyOf> = new Slot('why operations are compiled');

/** What one evaluation runs. */
export interface Plan {
  readonly executable: Executable;
  /** Positions in the graph key that become values: its outputs, then the wanted ones. */
  readonly outputs: readonly number[];
  readonly scalars: readonly number[];
}

/** Hoisted constants that have had the same value as each other every time. */
interface Group {
  value: number;
  varies: boolean;
}

export class Entry {
  readonly graphKey: GraphKey<never>;
  readonly #groupOf: number[];
  readonly #groups: Group[];
  readonly #wanted = new Set<number>();
  #current: { readonly executable: Executable; readonly outputs: readonly number[] } | undefined = undefined;
  /** Why it is compiled next. */
  #why: () => string;

  constructor(graphKey: GraphKey<unknown>) {
    this.graphKey = forget(graphKey);
    this.#why = novelty(this.graphKey);
    const known = new Map<string, number>();
    this.#groups = [];
    this.#groupOf = graphKey.constants.map((value, i) => {
      const purpose = graphKey.purposes[i];
      const key = `${purpose ?? ''} ${valueKey(graphKey.constantTypes[i]!, value)}`;
      const group = known.get(key) ?? this.#groups.push({ value, varies: purpose !== undefined }) - 1;
      known.set(key, group);
      return group;
    });
  }

  /** From now on the value at this position is materialised. */
  want(position: number): void {
    if (this.#wanted.has(position) || this.graphKey.outputs.includes(position)) return;
    this.#wanted.add(position);
    const { node } = this.graphKey.parts[position]!;
    this.#renew(() => `${node.op} ${showType(node)}, which was passed by, is read`);
  }

  /** The program for this structure with these values of its hoisted constants. */
  plan(constants: readonly number[]): Plan {
    const values = this.#group(constants);
    this.#current ??= this.#build(constants);
    const scalars = values.filter((_, group) => this.#groups[group]!.varies);
    return { ...this.#current, scalars };
  }

  /** Frees the compiled program. */
  destroy(): void {
    this.#renew(() => 'it gave way to others');
  }

  #renew(why: () => string): void {
    this.#current?.executable.destroy();
    this.#current = undefined;
    this.#why = why;
  }

  /**
   * The value of each group; groups whose members differ are split, and those with a new value
   * start to vary.
   */
  #group(constants: readonly number[]): number[] {
    const values: number[] = [];
    const parts = new Map<string, number>();
    let changed: (() => string) | undefined;
    constants.forEach((value, i) => {
      const group = this.#groupOf[i]!;
      if (!(group in values)) values[group] = value;
      else if (!Object.is(values[group], value)) {
        const key = `${group} ${valueKey('f64', value)}`;
        const part = parts.get(key) ?? this.#groups.push({ ...this.#groups[group]! }) - 1;
        parts.set(key, part);
        values[part] = value;
        this.#groupOf[i] = part;
        changed = () => 'two numbers that were equal differ';
      }
    });
    this.#groups.forEach((group, i) => {
      if (group.varies || Object.is(group.value, values[i])) return;
      group.varies = true;
      const [was, is] = [group.value, values[i]!];
      changed = () => `a number that was compiled in varies: ${is} after ${was}`;
    });
    if (changed !== undefined) this.#renew(changed);
    return values;
  }

  #build(constants: readonly number[]): { executable: Executable; outputs: readonly number[] } {
    const outputs = [...this.graphKey.outputs, ...[...this.#wanted].sort((a, b) => a - b)];
    const slots = new Map<number, number>();
    this.#groups.forEach((group, i) => {
      if (group.varies) slots.set(i, slots.size);
    });
    // A scalar parameter has one dtype, and so has a group: its members started as one hoisted constant
    // value of one dtype.
    const graph = graphOf({ ...this.graphKey, constants }, outputs, (constant) =>
      slots.get(this.#groupOf[constant]!),
    );
    const leafCount = graph.parameters.length - slots.size;
    const scalars = new Set(Array.from({ length: slots.size }, (_, i) => leafCount + i));
    const what = counted(operationsOf(this.graphKey), 'recorded operation');
    const executable = new Executable(graph, { scalars }, undefined, aboutLater(what, this.#why));
    return { executable, outputs };
  }
}

function valueKey(dtype: DType, value: number): string {
  return `${scalarType(dtype)} ${Object.is(value, -0) ? '-0' : value}`;
}

/** The structures that a session knows, by their hashes; those used last come last. */
interface Structures {
  readonly entries: Map<number, Entry[]>;
  count: number;
}

const structures = new SessionPart((): Structures => ({ entries: new Map(), count: 0 }));

/**
 * The entry of this structure, made on first sight; the least recently used ones give way beyond
 * 512.
 */
export function entryFor(graphKey: GraphKey<unknown>): Entry {
  const { current } = structures;
  const { entries } = current;
  const bucket = entries.get(graphKey.hash) ?? [];
  let entry = bucket.find((known) => sameGraphKey(known.graphKey, graphKey));
  if (entry === undefined) {
    entry = new Entry(graphKey);
    bucket.push(entry);
    current.count += 1;
  }
  entries.delete(graphKey.hash);
  entries.set(graphKey.hash, bucket);
  for (const [hash, old] of entries) {
    if (current.count <= capacity || hash === graphKey.hash) break;
    entries.delete(hash);
    current.count -= old.length;
    for (const gone of old) gone.destroy();
  }
  return entry;
}

/**
 * How a structure differs from those that were compiled before. It holds only structures, no data,
 * since entries live long.
 */
function novelty(structure: GraphKey<never>): () => string {
  return () => novelties.filled?.(structure, knownStructures()) ?? 'not known';
}

function knownStructures(): GraphKey<never>[] {
  return [...structures.current.entries.values()].flatMap((bucket) => bucket.map(({ graphKey }) => graphKey));
}

/** Whether a program of this very structure has been asked for before. */
function isKnown(graphKey: GraphKey<unknown>): boolean {
  return (
    structures.current.entries.get(graphKey.hash)?.some((known) => sameGraphKey(known.graphKey, graphKey)) ===
    true
  );
}

/** The structures used last, at most so many, that may be this one at other sizes. */
export function knownLike({ parts, outputs }: GraphKey<unknown>, most: number): GraphKey<never>[] {
  const alike = knownStructures().filter(
    (other) =>
      other.parts.length === parts.length &&
      other.outputs.length === outputs.length &&
      other.parts.every(({ kind, node }, i) => {
        const here = parts[i]!;
        return here.kind === kind && (kind === 'leaf' || here.node.op === node.op);
      }),
  );
  return alike.slice(-most);
}

/** One run of a program for many sizes. */
export interface Shared extends Plan {
  readonly inputs: readonly StoredValue[];
}

/** Makes programs for many sizes of structures of sizes not met before (sizes/pending.ts). */
export interface PlanSharing {
  plan(graphKey: GraphKey<StoredValue>): Shared | undefined;
  /** Forgets the programs. */
  clear(): void;
}

const sharings = new Set<PlanSharing>();

/** From now on `sharing` is asked for such programs, until the function that this gives is called. */
export function onNewSizes(sharing: PlanSharing): () => void {
  sharings.add(sharing);
  return () => void sharings.delete(sharing);
}

/** A program for many sizes for a structure that has none of its own. */
export function sharedFor(graphKey: GraphKey<StoredValue>): Shared | undefined {
  if (isKnown(graphKey)) return undefined;
  for (const sharing of sharings) {
    const shared = sharing.plan(graphKey);
    if (shared !== undefined) return shared;
  }
  return undefined;
}

/** Forgets every compiled structure. */
export function clearCache(): void {
  for (const sharing of sharings) sharing.clear();
  const { current } = structures;
  for (const bucket of current.entries.values()) for (const entry of bucket) entry.destroy();
  current.entries.clear();
  current.count = 0;
}

/** Number of graph structures known. */
export function cacheSize(): number {
  return structures.current.count;
}
