// What every kind of bundle begins with: all functions recorded at all their sizes, and the weights
// that they share as they are stored.

import { SinterError } from '../errors.ts';
import { storedType } from '../ir/stored.ts';
import type { BundleWeight } from '../bundle-runtime/manifest.ts';
import type { HostTensor } from '../io/host.ts';
import type { Value } from '../tensor/values.ts';
import type { EntryPoint, EntryResult, TracedEntry, Wire } from './entry.ts';
import { isPacked, pack, partsOf, type WeightFormat } from './formats.ts';
import { twin, uniqueName } from './names.ts';
import { recordedEntry, type RecordedEntry } from './recorded.ts';
import type { OpenPoint } from './sizes.ts';
import type { Stored } from './storage.ts';
import { WeightTable } from './weights.ts';

export interface PrepareOptions {
  /** The tree of tensors that entries take as their first argument, and return; none by default. */
  readonly state?: unknown;
  /** Names of captured tensors; by default they are numbered. */
  readonly names?: ReadonlyMap<Value, string>;
  /** The format of matrices that no call changes; unchanged by default. */
  readonly format?: WeightFormat;
  /** Whether programs check labels and indices; they do by default. */
  readonly checks?: boolean;
}

export interface PreparedEntries {
  readonly recorded: readonly RecordedEntry[];
  readonly weights: readonly BundleWeight[];
  /** By weight. */
  readonly values: readonly HostTensor[];
  /** How each weight of the recordings is stored. */
  readonly stored: readonly Stored[];
  /** What is not as it was asked for. */
  readonly notes: readonly string[];
}

/** Records functions, and computes their weights. Throws E_UNSUPPORTED for what bundles do not support. */
export async function prepared(
  points: readonly (EntryPoint | OpenPoint)[],
  options: PrepareOptions,
): Promise<PreparedEntries> {
  const twice = twin(points.map(({ name }) => name));
  if (twice !== undefined)
    throw new SinterError(
      'E_UNSUPPORTED',
      `build: two functions are called ${twice}, the name of a default export too\n  try: another name`,
    );
  const table = new WeightTable(options.names ?? new Map());
  const recorded: RecordedEntry[] = [];
  const notes: string[] = [];
  for (const point of points) {
    const given: OpenPoint = 'at' in point ? point : { name: point.name, sizes: [{}], at: () => point };
    const open: OpenPoint =
      options.checks === false
        ? { ...given, at: async (sizes) => ({ ...(await given.at(sizes)), checks: false }) }
        : given;
    recorded.push({ name: open.name, ...(await recordedEntry(open, options.state, table, notes)) });
  }
  const weights = await storedWeights(
    table,
    options.format ?? 'f32',
    recorded.flatMap(({ cases }) => cases.map(({ traced }) => traced)),
  );
  return { recorded, ...weights, notes };
}

/** Weights as they are stored: their types, their values, and where each weight's begin. */
async function storedWeights(
  table: WeightTable,
  format: WeightFormat,
  traced: readonly TracedEntry[],
): Promise<{ readonly weights: BundleWeight[]; readonly values: HostTensor[]; readonly stored: Stored[] }> {
  const weightsOf = (results: readonly EntryResult[], wires: readonly Wire[]): number[] =>
    results.flatMap((from) => {
      const wire = 'input' in from ? wires[from.input] : undefined;
      return wire !== undefined && 'weight' in wire ? [wire.weight] : [];
    });
  // A weight that a call returns is stored unquantised.
  const shown = new Set(
    traced.flatMap(({ wiring: { results, updates, wires } }) =>
      weightsOf([...results, ...updates.map(({ from }) => from)], wires),
    ),
  );
  const used = new Set(
    traced.flatMap(({ wiring: { wires, updates } }) => [
      ...wires.flatMap((wire) => ('weight' in wire ? [wire.weight] : [])),
      ...updates.map(({ weight }) => weight),
    ]),
  );
  const all = await table.values();
  const weights: BundleWeight[] = [];
  const values: HostTensor[] = [];
  const stored: Stored[] = [];
  const constants: number[] = [];
  const names = new Set(table.all.filter((_, i) => used.has(i)).map(({ name }) => name));
  const isConstant = (i: number): boolean =>
    used.has(i) && !shown.has(i) && !table.isNamed(i) && !table.all[i]!.state;
  for (const [i, weight] of table.all.entries()) {
    const own = !weight.state && !shown.has(i) && isPacked(format, weight) ? format : 'f32';
    // Each recording makes its constants anew.
    const twin = isConstant(i) ? constants.find((other) => isSame(all[other]!, all[i]!)) : undefined;
    if (twin !== undefined) {
      stored.push(stored[twin]!);
      continue;
    }
    if (isConstant(i)) constants.push(i);
    stored.push({ format: own, first: weights.length });
    if (!used.has(i)) continue;
    if (own === 'f32') {
      const { name, state } = weight;
      weights.push({ name, ...storedType(weight), state });
      values.push(all[i]!);
      continue;
    }
    for (const part of partsOf(own, weight.shape))
      weights.push({ name: uniqueName(weight.name + part.suffix, names), ...storedType(part), state: false });
    values.push(...pack(own, all[i]!));
  }
  return { weights, values, stored };
}

function isSame(one: HostTensor, other: HostTensor): boolean {
  return (
    one.dtype === other.dtype &&
    `${one.shape}` === `${other.shape}` &&
    one.data.every((byte, i) => byte === other.data[i])
  );
}
