// Runs PyTorch's OpInfo samples: each case by the row of its operator, outputs and gradients judged apart, and everything counted.

import { SinterError } from '../../../src/errors.ts';
import { toHostTensor } from '../../../src/io/tensors.ts';
import { gradients } from '../../../src/tensor/derivative/transform.ts';
import { tensor } from '../../../src/tensor/ops/creation/creation.ts';
import { Tensor } from '../../../src/tensor/tensor.ts';
import type { Call, Result } from './args.ts';
import { rowOf } from './calls/index.ts';
import { realPart } from './complex.ts';
import { derivedOf, weighted } from './derived.ts';
import { picksTheSame, type Picks } from './picks.ts';
import {
  difference,
  expectedNumbers,
  numbersOf,
  toleranceOf,
  type Numbers,
  type Tolerance,
} from './judge.ts';
import { operatorNames, readOperator, type Case, type Operator, type StoredTensor } from './read.ts';
import { tensorOf, ValueReader } from './value.ts';

export interface Tally {
  total: number;
  passed: number;
}

export interface DTypeTally extends Tally {
  readonly forward: Tally;
  readonly grad: Tally;
}

/** The last line of the command. */
export interface Report extends Tally {
  readonly forward: Tally;
  readonly grad: Tally;
  readonly ops: Tally;
  readonly byDtype: Record<string, DTypeTally>;
  readonly left: { op: string; reason: string }[];
  readonly failures: { id: string; reason: string }[];
}

/** Why parts of a case fail; undefined where they pass, and for the gradients of a case that has none. */
interface Fate {
  readonly forward: string | undefined;
  readonly grad: string | undefined;
}

/** How a result of several tensors and numbers is compared: as a list of tensors. */
function flattened(result: Result): Tensor[] {
  if (result instanceof Tensor) return [result];
  if (typeof result === 'boolean') return [tensor(result)];
  if (typeof result === 'bigint') return [tensor(result, { dtype: 'i64' })];
  if (typeof result === 'number')
    return [tensor(result, { dtype: Number.isInteger(result) ? 'i32' : 'f32' })];
  const items: readonly Result[] = Array.isArray(result) ? result : Object.values(result);
  return items.flatMap(flattened);
}

function storedIn(value: unknown): StoredTensor[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('tensor' in value) return [value as StoredTensor];
  return Object.values(value).flatMap(storedIn);
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text.split('\n').slice(0, 2).join(' ').slice(0, 400);
}

async function compared(
  operator: Operator,
  what: string,
  results: readonly (Tensor | undefined)[],
  expected: readonly (StoredTensor | null)[],
  tolerance: Tolerance,
  onlyFinite: boolean,
  isRight: (actual: Numbers, expected: Numbers, at: number) => Promise<boolean> = () =>
    Promise.resolve(false),
): Promise<string | undefined> {
  if (results.length !== expected.length)
    return `expected ${expected.length} ${what}s, got ${results.length}`;
  for (const [i, want] of expected.entries()) {
    const got = results[i];
    if (want === null || got === undefined) continue;
    const [actual, wanted] = [numbersOf(await toHostTensor(got)), expectedNumbers(operator, want)];
    const problem = difference(actual, wanted, { tolerance, onlyFinite });
    if (problem !== undefined && !(await isRight(actual, wanted, i))) return `${what} ${i}: ${problem}`;
  }
  return undefined;
}

async function gradientFate(
  operator: Operator,
  one: Case,
  outputs: readonly Tensor[],
  marked: readonly Tensor[],
  tolerance: Tolerance,
): Promise<string | undefined> {
  const parts = one.cotangents!.flatMap((weight, i) => {
    const output = outputs[i];
    const isConstant = weight === null || output === undefined || !output.requiresGrad;
    return isConstant ? [] : [realPart(weighted(output, tensorOf(operator, weight)))];
  });
  const found = gradients(parts, marked);
  return await compared(operator, 'gradient', found, one.grads!, tolerance, one.gradNotFinite === true);
}

async function fateOf(
  operator: Operator,
  one: Case,
  family: string,
  row: Picks | { call: Call },
): Promise<Fate> {
  const reader = new ValueReader(operator);
  const tolerance = toleranceOf(family, operator.name, storedIn([one.input, one.args, one.kwargs]), [
    ...one.outputs,
  ]);
  let outputs: Tensor[];
  let isRight: Parameters<typeof compared>[6];
  try {
    const positional = [reader.read(one.input), ...one.args.map((arg) => reader.read(arg))];
    const keywords = Object.fromEntries(
      Object.entries(one.kwargs).map(([name, value]) => [name, reader.read(value)]),
    );
    const results = flattened(await row.call(positional, keywords));
    outputs = one.derived === undefined ? results : derivedOf(one.derived, results);
    const source = 'source' in row ? row.source(positional, keywords) : undefined;
    if (source !== undefined && !source.isStable)
      isRight = async (actual, expected, at) =>
        at === outputs.length - 1 && (await picksTheSame(source, actual, expected));
  } catch (error) {
    const reason = reasonOf(error);
    return { forward: reason, grad: reason };
  }
  const late = async (judge: () => Promise<string | undefined>): Promise<string | undefined> => {
    try {
      return await judge();
    } catch (error) {
      return reasonOf(error);
    }
  };
  // Gradients first: their program computes what the outputs need as well.
  const grad =
    one.grads === undefined
      ? undefined
      : await late(() => gradientFate(operator, one, outputs, reader.marked, tolerance));
  const forward = await late(() =>
    compared(operator, 'output', outputs, one.outputs, tolerance, false, isRight),
  );
  return { forward, grad };
}

/** An operator that is left out on purpose has to say so by an error of ours. */
async function refusal(operator: Operator, one: Case, reason: string, call: Call): Promise<string> {
  const reader = new ValueReader(operator);
  try {
    const keywords = Object.entries(one.kwargs).map(([name, value]) => [name, reader.read(value)] as const);
    await call(
      [reader.read(one.input), ...one.args.map((arg) => reader.read(arg))],
      Object.fromEntries(keywords),
    );
  } catch (error) {
    if (error instanceof SinterError) return `left out: ${reason}`;
    return `left out without a typed error: ${reasonOf(error)}`;
  }
  return 'left out, but not refused';
}

const tally = (): Tally => ({ total: 0, passed: 0 });

function count(into: Tally, passes: boolean): void {
  into.total += 1;
  if (passes) into.passed += 1;
}

export interface RunOptions {
  /** Which cases of an operator run; all by default. */
  readonly takes?: (id: string) => boolean;
  /** Told of each operator as it ends. */
  readonly progress?: (name: string, passed: Tally) => void;
}

/** Runs the cases in a folder on the current device. */
export async function runSamples(folder: string, options: RunOptions = {}): Promise<Report> {
  const report: Report = {
    ...tally(),
    forward: tally(),
    grad: tally(),
    ops: tally(),
    byDtype: {},
    left: [],
    failures: [],
  };
  for (const name of operatorNames(folder)) {
    const operator = readOperator(folder, name);
    const cases = operator.cases.filter(({ id }) => options.takes?.(id) ?? true);
    if (cases.length === 0) continue;
    const own = tally();
    for (const one of cases) count(own, await runCase(operator, one, report));
    const row = rowOf(name);
    if (row !== undefined && 'left' in row) report.left.push({ op: name, reason: row.left });
    count(report.ops, own.passed === own.total);
    options.progress?.(name, own);
  }
  return report;
}

async function runCase(operator: Operator, one: Case, report: Report): Promise<boolean> {
  const row = rowOf(operator.name);
  let fate: Fate;
  if (row === undefined) fate = { forward: 'no row', grad: 'no row' };
  else if ('left' in row) {
    const reason = await refusal(operator, one, row.left, row.call);
    fate = { forward: reason, grad: reason };
  } else fate = await fateOf(operator, one, row.family, row);
  const hasGrad = one.grads !== undefined;
  const passes = fate.forward === undefined && (!hasGrad || fate.grad === undefined);
  const ofDtype = (report.byDtype[one.dtype] ??= { ...tally(), forward: tally(), grad: tally() });
  for (const into of [report, ofDtype]) {
    count(into, passes);
    count(into.forward, fate.forward === undefined);
    if (hasGrad) count(into.grad, fate.grad === undefined);
  }
  if (!passes) report.failures.push({ id: one.id, reason: fate.forward ?? fate.grad ?? '' });
  return passes;
}
