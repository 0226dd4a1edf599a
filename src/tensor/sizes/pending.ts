// Pending values among the arguments of a program for many sizes, so that `f(ones([n]))` does not cost a
// program for each n. The graphs of values that came at different sizes are laid over one another, as the
// recordings of a function are (ir/sizes/). They cannot be recorded again at sizes of our choice. So the
// ranges of numbers that follow from a size are read off the graphs that came; they decide only how much room
// a program has. `match` and the capacities decide whether a program is right for a size.

import { SinterError } from '../../errors.ts';
import { scalarType } from '../../ir/dtype.ts';
import { generalise, match, type Matched } from '../../ir/sizes/recording.ts';
import { isVarying, VaryingSizes, type SizeValues, type VaryingNumber } from '../../ir/sizes/size.ts';
import type { RecordedPart, SizeRecording, SizeStructure } from '../../ir/sizes/structure.ts';
import { scalarValue, variantOf, type Variant } from '../../ir/sizes/variant.ts';
import { knownLike, onNewSizes, type Shared, type PlanSharing } from '../evaluate/cache.ts';
import { Executable } from '../evaluate/executable.ts';
import type { GraphKey } from '../evaluate/graph-key.ts';
import { aboutLater, counted } from '../report/compiles.ts';
import { operationsOf } from '../evaluate/structure.ts';
import { SessionPart } from '../session.ts';
import type { StoredValue } from '../storage/storage.ts';
import { autoDims, mostSizes } from './auto.ts';
import { varies } from './family.ts';

/** Values that were alike but for sizes come before, at least. */
const leastBefore = 2;
/** So many structures are kept, the ones that were used last. */
const mostFamilies = 64;
/** How many programs one structure has for parts of the range. */
const mostVariants = 8;
/** An axis takes at most so many times its work. */
const mostWaste = 4;
/** The room of the smallest program along an axis. */
const leastRoom = 16;

/** A recording, in which numbers that are made to differ are leaves behind the others. */
function recordingOf({ parts, constants, outputs, purposes, leafCount }: Sized): SizeRecording {
  let next = leafCount;
  const own = parts.map((part): RecordedPart => {
    return isMade(part, purposes) ? { ...part, kind: 'leaf', number: next++ } : part;
  });
  return { parts: own, constants, outputs };
}

type Sized = Pick<GraphKey<unknown>, 'parts' | 'constants' | 'outputs' | 'purposes'> & {
  readonly leafCount: number;
};

function sized(graphKey: GraphKey<unknown>): Sized {
  // What was forgotten has no leaves of its own.
  const numbers = graphKey.parts.flatMap(({ kind, number }) => (kind === 'leaf' ? [number + 1] : []));
  return { ...graphKey, leafCount: Math.max(0, ...numbers) };
}

function isMade({ kind, number, node }: RecordedPart, purposes: Sized['purposes']): boolean {
  return kind === 'constant' && purposes[number] !== undefined && scalarType(node.dtype) === node.dtype;
}

/** The numbers of a graph key that are made to differ, in the order of their leaves. */
function madeNumbers({ parts, constants, purposes }: Sized): number[] {
  return parts.flatMap((part) => (isMade(part, purposes) ? [constants[part.number]!] : []));
}

interface Ready {
  /** How great the sizes are at most from which the others follow. */
  readonly upTo: SizeValues;
  readonly variant: Variant;
  readonly executable: Executable;
}

class PendingFamily {
  readonly #structure: SizeStructure;
  readonly #sizes: VaryingSizes;
  readonly #leafCount: number;
  readonly #ready: Ready[] = [];
  #isRefused = false;

  constructor(structure: SizeStructure, sizes: VaryingSizes, leafCount: number) {
    this.#structure = structure;
    this.#sizes = sizes;
    this.#leafCount = leafCount;
  }

  fit(graphKey: Sized, recording: SizeRecording): Matched | undefined {
    if (graphKey.leafCount !== this.#leafCount) return undefined;
    return match(this.#structure, recording, this.#sizes);
  }

  plan(graphKey: GraphKey<StoredValue>, own: Sized, { values, leaves }: Matched): Shared | undefined {
    const ready = this.#readyFor(values, graphKey);
    if (ready === undefined) return undefined;
    const { variant, executable } = ready;
    const all = this.#sizes.complete(
      values,
      variant.scalars.map(({ num }) => num),
    );
    if (all === undefined) return undefined;
    const made = madeNumbers(own);
    const count = this.#leafCount;
    return {
      executable,
      inputs: leaves.slice(0, count).map((leaf) => graphKey.leaves[leaf]!),
      outputs: graphKey.outputs,
      scalars: [
        ...leaves.slice(count).map((leaf) => made[leaf - count]!),
        ...variant.scalars.map((scalar) => scalarValue(scalar, all)),
      ],
    };
  }

  #readyFor(values: SizeValues, graphKey: GraphKey<unknown>): Ready | undefined {
    const fitting = this.#ready.find(
      (ready) =>
        [...ready.upTo].every(([num, most]) => {
          const size = values.get(num)!;
          return size <= most && most <= mostWaste * Math.max(leastRoom, size);
        }) && this.#fits(ready.variant, values),
    );
    if (fitting !== undefined) return fitting;
    if (this.#isRefused || this.#ready.length >= mostVariants) return undefined;
    const made = this.#make(values, graphKey);
    if (made === undefined) this.#isRefused = true;
    else this.#ready.push(made);
    return made;
  }

  #fits({ capacities }: Variant, values: SizeValues): boolean {
    return [...capacities].every(([num, capacity]) => {
      const value = values.get(num) ?? this.#sizes.complete(values, [num])?.get(num) ?? Infinity;
      return value <= capacity;
    });
  }

  #make(values: SizeValues, graphKey: GraphKey<unknown>): Ready | undefined {
    const { upTo, all } = roomFor(this.#structure, values);
    let variant: Variant;
    try {
      variant = variantOf(this.#structure, this.#sizes, [all, values], () => 'a size');
    } catch (error) {
      // It goes on as if there were no programs for many sizes.
      if (error instanceof SinterError) return undefined;
      throw error;
    }
    if (!this.#fits(variant, values)) return undefined;
    const count = variant.graph.parameters.length - this.#leafCount;
    const scalars = new Set(Array.from({ length: count }, (_, i) => this.#leafCount + i));
    const what = counted(operationsOf(graphKey), 'recorded operation');
    const rooms = [...new Set(upTo.values())].join(', ');
    const about = aboutLater(what, () => `one program for sizes up to ${rooms}`);
    return { upTo, variant, executable: new Executable(variant.graph, { scalars }, undefined, about) };
  }

  destroy(): void {
    for (const { executable } of this.#ready) executable.destroy();
  }
}

/**
 * The numbers of a recording at greater sizes: those from which others follow (`upTo`) at the next
 * power of two, and what follows from them as in the recordings that there are.
 */
function roomFor(
  structure: SizeStructure,
  values: SizeValues,
): { readonly upTo: SizeValues; readonly all: SizeValues } {
  const upTo: SizeValues = new Map();
  const all: SizeValues = new Map();
  const ofShapes = new Set(structure.parts.flatMap(({ shape }) => shape.filter(isVarying)));
  const whole = [...values.keys()].filter((num) => num.values.every((value) => Number.isSafeInteger(value)));
  const total = (num: VaryingNumber): number => num.values.reduce((sum, value) => sum + value, 0);
  const rank = (num: VaryingNumber): number => (ofShapes.has(num) ? 0 : 1);
  for (const num of whole.sort((a, b) => rank(a) - rank(b) || total(a) - total(b))) {
    const roots = [...upTo.keys()];
    const follows =
      firstOf(roots, (root) => extrapolated(root.values, num.values, upTo.get(root)!)) ??
      firstOf(roots, (a) => firstOf(roots, (b) => productOf(a, b, num, upTo)));
    if (follows !== undefined) all.set(num, follows);
    else if (ofShapes.has(num)) {
      const room = 2 ** Math.ceil(Math.log2(Math.max(leastRoom, values.get(num)!)));
      upTo.set(num, room);
      all.set(num, room);
    }
  }
  return { upTo, all };
}

function firstOf<T, R>(items: readonly T[], of: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = of(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

function productOf(
  a: VaryingNumber,
  b: VaryingNumber,
  num: VaryingNumber,
  upTo: SizeValues,
): number | undefined {
  const by = num.values[0]! / (a.values[0]! * b.values[0]!);
  const isProduct = num.values.every((value, i) => value === by * a.values[i]! * b.values[i]!);
  return isProduct ? by * upTo.get(a)! * upTo.get(b)! : undefined;
}

/** The polynomial of at most the second degree through all points, at x (Newton); undefined where there is none. */
function extrapolated(xs: readonly number[], ys: readonly number[], x: number): number | undefined {
  const places = xs.flatMap((value, i) => (xs.indexOf(value) === i ? [i] : []));
  // One point at least is left to say whether it is one.
  places.splice(Math.min(3, places.length - 1));
  if (places.length === 0) return undefined;
  const [i, j, k] = places;
  const at = (to: number): number => {
    const slope = (p: number, q: number): number => (ys[q]! - ys[p]!) / (xs[q]! - xs[p]!);
    const first = j === undefined ? 0 : slope(i!, j);
    const second = k === undefined ? 0 : (slope(j!, k) - first) / (xs[k]! - xs[i!]!);
    return ys[i!]! + first * (to - xs[i!]!) + second * (to - xs[i!]!) * (to - xs[j ?? i!]!);
  };
  // Rounded where thirds would not come out even.
  if (!xs.every((value, n) => Math.abs(at(value) - ys[n]!) < 1e-6)) return undefined;
  const found = Math.round(at(x));
  return Math.abs(at(x) - found) < 1e-6 && found >= 0 ? found : undefined;
}

/** The families of a session; the ones used last come first. */
const known = new SessionPart((): { families: PendingFamily[] } => ({ families: [] }));

/** How to compute values by a program for many sizes; undefined where there is none. */
function planOf(graphKey: GraphKey<StoredValue>): Shared | undefined {
  if (!autoDims()) return undefined;
  const own = sized(graphKey);
  const recording = recordingOf(own);
  const { current } = known;
  for (const family of current.families) {
    const fitted = family.fit(own, recording);
    if (fitted === undefined) continue;
    current.families = [family, ...current.families.filter((other) => other !== family)];
    return family.plan(graphKey, own, fitted);
  }
  const before = knownLike(graphKey, mostSizes).map(sized);
  if (before.length < leastBefore) return undefined;
  const sizes = new VaryingSizes();
  const structure = generalise([recording, ...before.map(recordingOf)], sizes);
  if (!('parts' in structure) || !varies(structure)) return undefined;
  const family = new PendingFamily(structure, sizes, own.leafCount);
  const fitted = family.fit(own, recording);
  const plan = fitted && family.plan(graphKey, own, fitted);
  if (plan === undefined) return undefined;
  current.families.unshift(family);
  for (const gone of current.families.splice(mostFamilies)) gone.destroy();
  return plan;
}

function forgetAll(): void {
  for (const family of known.current.families) family.destroy();
  known.current.families = [];
}

const sharing: PlanSharing = { plan: planOf, clear: forgetAll };

/**
 * From now on what programs for many sizes are called with is computed by such programs, until the
 * function that this gives is called.
 */
export function servePending(): () => void {
  return onNewSizes(sharing);
}
