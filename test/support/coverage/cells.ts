// Cells of the table: a row in a dtype on a device, run in one of five ways, against what the reference interpreter gives. Rows that go
// into one program together are run as one, and taken apart where that program fails.

import * as sn from '../../../src/index.ts';
import { SinterError } from '../../../src/errors.ts';
import type { HostTensor } from '../../../src/io/host.ts';
import { fromHostTensor, toHostTensor } from '../../../src/io/tensors.ts';
import { isComplex, isFloat, isInexact, partType, type DType } from '../../../src/ir/dtype.ts';
import { unpackBytes } from '../../../src/ir/value.ts';
import { exportOnnx, loadOnnx } from '../../../src/onnx/index.ts';
import { called, givenOf, hasDtypes, inputsIn, recorded, tensorsIn, type Inputs } from './call.ts';
import type { Row } from '../../../scripts/operations/rows.ts';

/** Read at once; as one compiled program; as the program of its gradients; as an ONNX model read back; as a bundle. */
export const modes = ['eager', 'compiled', 'differentiated', 'exported', 'bundled'] as const;
export type Mode = (typeof modes)[number];

type Tensors = Readonly<Record<string, sn.Tensor>>;

/** Gradients of a weighted sum of some of the outputs. */
interface Gradients {
  readonly outputs: readonly number[];
  readonly seeds: readonly HostTensor[];
  readonly expected: readonly HostTensor[];
}

/** A row in a dtype: its inputs and what the interpreter gives, or why recording refuses it. */
export interface Prepared {
  readonly row: Row;
  readonly dtype: DType;
  readonly inputs: Inputs;
  readonly expected: readonly HostTensor[];
  /** The same of the call that has a size, where there is one. */
  readonly sized: readonly HostTensor[];
  /** Weights of the outputs and the gradients of their sum; undefined where there are none. */
  readonly gradients: Gradients | undefined;
  /** Why there are none where the operation has them in part. */
  readonly refusal: SinterError | undefined;
  /** Numbers are drawn: a program of several rows would draw others. */
  readonly isRandom: boolean;
}

export type Outcome =
  | { readonly kind: 'ok' }
  | { readonly kind: 'refused'; readonly error: SinterError }
  | { readonly kind: 'failed'; readonly reason: string };

export const ok: Outcome = { kind: 'ok' };

/** What an error is: a refusal is typed, and says a dtype or that something is not supported. */
export function outcomeOf(error: unknown): Outcome {
  const isRefusal =
    error instanceof SinterError && ['E_DTYPE', 'E_UNSUPPORTED', 'E_VALUE', 'E_GRAD'].includes(error.code);
  if (isRefusal) return { kind: 'refused', error };
  return {
    kind: 'failed',
    reason: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
  };
}

/** The dtypes that a row is tried in: one where it names none. */
export function dtypesOf(row: Row, all: readonly DType[]): readonly DType[] {
  return hasDtypes(row) ? all : all.filter((dtype) => dtype === 'f32');
}

/** Weights of an output, so that no gradient is a sum that cancels. */
function seedOf(output: sn.Tensor): sn.Tensor {
  const weights = sn.tensor(
    Array.from({ length: output.size }, (_, i) => ((i * 7) % 5) / 4 + 0.5),
    { shape: output.shape },
  );
  return weights.cast(output.dtype);
}

const hosts = (tensors: readonly sn.Tensor[]): Promise<HostTensor[]> =>
  Promise.all(tensors.map(toHostTensor));

const trackable = ({ dtype }: HostTensor): boolean => isInexact(dtype);

/** A row in a dtype, on the interpreter. */
export async function prepared(row: Row, dtype: DType): Promise<Prepared | Outcome> {
  try {
    const inputs = await inputsIn(await givenOf(row), dtype);
    const values = tensorsIn(inputs, true);
    const outputs = await called(row, dtype, values);
    const isRandom = sn.saveRngState().counter !== '0';
    const expected = await hosts(outputs);
    const leaves = Object.values(values).filter((value) => value.requiresGrad);
    const ofSize = row.sized === undefined ? outputs : recorded(row, dtype, values);
    const sized = row.sized === undefined ? expected : await hosts(ofSize);
    const known = { row, dtype, inputs, expected, sized, isRandom };
    const places = ofSize.flatMap((output, i) => (output.requiresGrad ? [i] : []));
    const carrying = places.map((i) => ofSize[i]!);
    if (carrying.length === 0 || leaves.length === 0)
      return { ...known, gradients: undefined, refusal: undefined };
    try {
      const seeds = carrying.map(seedOf);
      const found = await hosts(sn.gradients(carrying, leaves, seeds));
      const gradients = { outputs: places, seeds: await hosts(seeds), expected: found };
      return { ...known, gradients, refusal: undefined };
    } catch (error) {
      if (error instanceof SinterError) return { ...known, gradients: undefined, refusal: error };
      throw error;
    }
  } catch (error) {
    return outcomeOf(error);
  }
}

const tolerances: Readonly<Partial<Record<DType, number>>> = {
  f16: 4e-3,
  bf16: 3e-2,
  f32: 5e-5,
  f64: 1e-9,
};

/** Why results are not the expected ones; undefined where they are. */
export function difference(
  found: readonly HostTensor[],
  expected: readonly HostTensor[],
  compute: DType,
): string | undefined {
  if (found.length !== expected.length) return `${found.length} results in place of ${expected.length}`;
  for (const [i, want] of expected.entries()) {
    const got = found[i]!;
    const told = ({ dtype, shape }: HostTensor): string => `${dtype}[${shape.join(',')}]`;
    if (told(got) !== told(want)) return `result ${i} is ${told(got)} in place of ${told(want)}`;
    const part = partType(want.dtype);
    const count = (want.shape.reduce((size, n) => size * n, 1) || 0) * (isComplex(want.dtype) ? 2 : 1);
    const [a, b] = [got, want].map(({ data }) => unpackBytes(data, part, [count]).data);
    // What is computed of halves is no more exact where it leaves as something wider.
    const tolerance = Math.max(
      tolerances[part] ?? 0,
      isFloat(part) ? (tolerances[partType(compute)] ?? 0) : 0,
    );
    for (let k = 0; k < count; k++) {
      const [x, y] = [a![k]!, b![k]!];
      if (x === y || (Number.isNaN(x) && Number.isNaN(y))) continue;
      const near =
        tolerance > 0 && Math.abs(Number(x) - Number(y)) <= tolerance * Math.max(1, Math.abs(Number(y)));
      if (!near) return `element ${k} of ${told(want)} is ${x} in place of ${y}`;
    }
  }
  return undefined;
}

export function judged(
  found: readonly HostTensor[],
  expected: readonly HostTensor[],
  compute: DType,
): Outcome {
  const reason = difference(found, expected, compute);
  return reason === undefined ? ok : { kind: 'failed', reason };
}

/** Which rows a way of running is for. */
export function applies({ row, gradients, dtype, isRandom }: Prepared, mode: Mode): boolean {
  if (mode === 'eager') return true;
  if (row.eager !== undefined) return false;
  if (mode === 'differentiated') return gradients !== undefined;
  if (mode === 'exported') return !isRandom;
  if (mode === 'bundled') return !isRandom && (dtype === 'f32' || dtype === 'i32' || dtype === 'c64');
  return true;
}

async function eager({ row, dtype, inputs, expected }: Prepared): Promise<Outcome> {
  return judged(await hosts(await called(row, dtype, tensorsIn(inputs, false))), expected, dtype);
}

/** Rows as one program: the results of each. */
async function together(rows: readonly Prepared[], isGradient: boolean): Promise<Outcome[]> {
  const run = sn.compile((all: readonly { readonly x: Tensors; readonly seeds: readonly sn.Tensor[] }[]) =>
    all.map(({ x, seeds }, i) => {
      const { row, dtype, gradients } = rows[i]!;
      const all = recorded(row, dtype, x);
      if (!isGradient) return all;
      const outputs = gradients!.outputs.map((place) => all[place]!);
      const leaves = Object.entries(x).filter(([name]) => trackable(rows[i]!.inputs[name]!));
      return sn.gradients(
        outputs,
        leaves.map(([, value]) => value),
        seeds,
      );
    }),
  );
  const given = rows.map(({ inputs, gradients }) => ({
    x: tensorsIn(inputs, isGradient),
    seeds: isGradient ? gradients!.seeds.map(fromHostTensor) : [],
  }));
  sn.manualSeed(7);
  const results = run(given) as readonly (readonly sn.Tensor[])[];
  const outcomes: Outcome[] = [];
  for (const [i, result] of results.entries()) {
    const { sized, gradients, dtype } = rows[i]!;
    outcomes.push(judged(await hosts(result), isGradient ? gradients!.expected : sized, dtype));
  }
  return outcomes;
}

/** As one, or, where that fails, in halves. */
export async function inParts(
  rows: readonly Prepared[],
  run: (rows: readonly Prepared[]) => Promise<readonly Outcome[]>,
): Promise<Outcome[]> {
  if (rows.length === 0) return [];
  try {
    return [...(await run(rows))];
  } catch (error) {
    if (rows.length === 1) return [outcomeOf(error)];
    const middle = Math.ceil(rows.length / 2);
    return [...(await inParts(rows.slice(0, middle), run)), ...(await inParts(rows.slice(middle), run))];
  }
}

/** Random rows alone, the others by as many as one program takes. */
function batches(rows: readonly Prepared[], size: number): Prepared[][] {
  const alone = rows.filter(({ isRandom }) => isRandom).map((row) => [row]);
  const others = rows.filter(({ isRandom }) => !isRandom);
  const groups = Array.from({ length: Math.ceil(others.length / size) }, (_, i) =>
    others.slice(i * size, (i + 1) * size),
  );
  return [...alone, ...groups];
}

/** A complex tensor as the floats that an ONNX model has for it. */
export function pairs(host: HostTensor): HostTensor {
  return isComplex(host.dtype) ? { ...host, dtype: partType(host.dtype), shape: [...host.shape, 2] } : host;
}

async function exported({ row, dtype, inputs, sized }: Prepared): Promise<Outcome> {
  const names = Object.keys(inputs);
  const call = (...args: readonly sn.Tensor[]): unknown =>
    recorded(row, dtype, Object.fromEntries(names.map((name, i) => [name, args[i]!])));
  // The bits of floats have a spelling from this version on.
  const { bytes } = await exportOnnx(call as never, Object.values(tensorsIn(inputs, false)), { opset: 26 });
  const model = await loadOnnx(bytes);
  const given = Object.values(inputs).map((input, i) => {
    return [model.inputs[i]!.name, fromHostTensor(pairs(input))] as const;
  });
  const results = await model.run(Object.fromEntries(given));
  const found = model.outputs.map(({ name }) => results[name]!);
  return judged(await hosts(found), sized.map(pairs), dtype);
}

/** How many rows go into one program. */
const perProgram = 24;

/** The outcome of each row that a way of running is for, on the current device. */
export async function runMode(
  mode: Exclude<Mode, 'bundled'>,
  rows: readonly Prepared[],
): Promise<Map<Prepared, Outcome>> {
  const outcomes = new Map<Prepared, Outcome>();
  const chosen = rows.filter((row) => applies(row, mode));
  const single = mode === 'eager' ? eager : mode === 'exported' ? exported : undefined;
  if (single !== undefined) {
    for (const row of chosen)
      outcomes.set(row, await single(row).catch((error: unknown) => outcomeOf(error)));
    return outcomes;
  }
  for (const batch of batches(chosen, perProgram)) {
    const results = await inParts(batch, (part) => together(part, mode === 'differentiated'));
    batch.forEach((row, i) => outcomes.set(row, results[i]!));
  }
  return outcomes;
}
