// A function of a bundle tried at sizes of its ranges: what it takes, gives and captures there.

import { SinterError } from '../errors.ts';
import type { Sizes } from '../bundle-runtime/manifest.ts';
import type { Dim } from '../tensor/sizes/dim.ts';
import { asTrial, type TrialOptions } from '../tensor/sizes/trial.ts';
import { bytesOf, type Value } from '../tensor/values.ts';
import { recordEntry, wiredEntry, type Recording, type TracedEntry } from './entry.ts';
import { showSizes, type SizeRange, type SizeRanges } from './points.ts';
import type { OpenPoint } from './sizes.ts';
import { WeightTable } from './weights.ts';

/** The function at some sizes. */
export interface Trial {
  readonly sizes: Sizes;
  readonly recording: Recording;
  /** As one that has a table of weights of its own: what has to be the same at all sizes. */
  readonly own: TracedEntry;
  readonly tensors: readonly Value[];
}

/** The function at these sizes. Rejects with E_UNSUPPORTED where it cannot be recorded there. */
export async function trialOf(
  point: OpenPoint,
  sizes: Sizes,
  state: unknown,
  options: TrialOptions = {},
): Promise<Trial> {
  const at = await point.at(sizes);
  try {
    const recording = asTrial(() => recordEntry(at, state), options);
    const table = new WeightTable(new Map());
    return { sizes, recording, own: wiredEntry(recording, table), tensors: table.tensors };
  } catch (error) {
    if (!(error instanceof SinterError)) throw error;
    const [first, ...rest] = error.message.split('\n');
    const problem = `build: ${point.name} cannot be recorded at ${showSizes(sizes)}: ${first}`;
    throw new SinterError('E_UNSUPPORTED', [problem, ...rest].join('\n'), { cause: error });
  }
}

/**
 * The ranges that a function's inputs tell; what they do not tell does not matter to it, and is fixed.
 * Rejects with E_UNSUPPORTED where something else is given at other sizes all the same.
 */
export async function rangesTold(
  point: OpenPoint,
  state: unknown,
): Promise<{ readonly ranges: SizeRanges; readonly fixed: Sizes }> {
  const ranges = new Map<string, SizeRange>();
  const fixed: Record<string, number> = {};
  const given = [...(point.ranges ?? [])];
  if (given.length === 0) return { ranges, fixed };
  const most = Object.fromEntries(given.map(([name, { max }]) => [name, max]));
  const whole = await trialOf(point, { ...point.sizes[0], ...most }, state);
  for (const [name, range] of given) {
    const { min } = range;
    const other = await trialOf(point, { ...whole.sizes, [name]: min }, state);
    if (JSON.stringify(other.own.inputs) !== JSON.stringify(whole.own.inputs)) {
      ranges.set(name, range);
      continue;
    }
    fixed[name] = min;
    if (JSON.stringify(other.own.outputs) === JSON.stringify(whole.own.outputs)) continue;
    throw new SinterError(
      'E_UNSUPPORTED',
      `build: ${point.name} returns other shapes at ${showSizes({ [name]: min })} than at ${showSizes({ [name]: range.max })} for inputs of the same shapes: the inputs must determine the sizes`,
    );
  }
  return { ranges, fixed };
}

/** A tensor that a function captures and that is not the same at two sizes. */
export async function oddWeight(one: Trial, other: Trial): Promise<Value | undefined> {
  for (const [i, tensor] of one.tensors.entries()) {
    const twin = other.tensors[i]!;
    if (twin === tensor) continue;
    const isAlike = twin.dtype === tensor.dtype && `${twin.shape}` === `${tensor.shape}`;
    const values = isAlike ? await Promise.all([bytesOf(tensor), bytesOf(twin)]) : undefined;
    if (values?.[0].every((byte, k) => byte === values[1][k])) continue;
    return tensor;
  }
  return undefined;
}

/** What of an entry has to be the same at all sizes. */
export function likeness({ inputs, outputs, wiring, kept, scalars }: TracedEntry): string {
  const ranks = [...inputs, ...outputs].map((port) => ({
    ...port,
    shape: 'shape' in port ? port.shape.length : undefined,
  }));
  const sources = wiring.sources.map((source) => ('counter' in source ? { ...source, offset: 0 } : source));
  const checks = wiring.checks.map((check) => ({ ...check, where: '', first: 0, end: 0 }));
  return JSON.stringify([ranks, { ...wiring, sources, draws: 0, checks }, kept, [...scalars]]);
}

/** The shape of an input or output at a trial's sizes. */
export function shapeOf(port: object): readonly number[] {
  return (port as { readonly shape: readonly number[] }).shape;
}

/** Sizes of tensors and axes that are the same at all sizes. */
export function fixedSizes([first, ...others]: readonly Trial[]): number[] {
  const all = (own: TracedEntry): number[] =>
    [...own.inputs, ...own.outputs].flatMap((port) => ('shape' in port ? shapeOf(port) : []));
  return all(first!.own).filter((size, i) => others.every(({ own }) => all(own)[i] === size));
}

/** A size whose smallest value has a program of its own, as 1 often has: nothing fits there. */
export function splitOf(
  dims: readonly Dim[],
  trials: readonly Trial[],
  odd: readonly Trial[],
): Dim | undefined {
  if (odd.length === 0) return undefined;
  const countAt = ({ name, min }: Dim, all: readonly Trial[]): number =>
    all.filter(({ sizes }) => sizes[name] === min).length;
  const open = dims.filter(({ min, max }) => max > min);
  const alone = open.filter((dim) => {
    const count = countAt(dim, odd);
    return count > 0 && count === countAt(dim, trials);
  });
  // Where several sizes are smallest together, as in a picture of one patch, each of them has to go.
  const isSmallest = ({ sizes }: Trial): boolean => open.some(({ name, min }) => sizes[name] === min);
  const possible = alone.length > 0 ? alone : odd.every(isSmallest) ? open : [];
  // The one at whose smallest value most trials are odd, and of several such the one that most of them have.
  const shareAt = (dim: Dim): number => countAt(dim, odd) / countAt(dim, trials);
  const sorted = possible.sort(
    (one, other) => shareAt(other) - shareAt(one) || countAt(other, odd) - countAt(one, odd),
  );
  return sorted[0];
}
