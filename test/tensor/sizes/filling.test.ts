// Whatever lies beyond a varying size, no element that counts depends on it: every operation of the table, with every axis of its inputs.

import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import { givenOf, inputsIn, recorded, type Inputs } from '../../support/coverage/call.ts';
import { allRows } from '../../support/coverage/report.ts';
import type { Row } from '../../../scripts/operations/rows.ts';
import { casesOf } from '../../support/sample.ts';
import { outcomeOf, variations, type Outcome, type Varied } from './filling.ts';
import { chosen, halved, nested, turned } from './loops.ts';

// Where a call stands costs a test runner that maps sources much.
const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0;
  sn.setDevice('interpreter');
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
  sn.setDevice(undefined);
});

type Values = Readonly<Record<string, sn.Tensor>>;

/** Primitives that may refuse a varying size. */
const refusing = /^(conv|factor|fft|jacobiRows|segmentReduce): /;

/** The operations that do, as docs/functions/sizes.md says. */
const page = readFileSync(path.resolve(import.meta.dirname, '../../../docs/functions/sizes.md'), 'utf8');
const table = /### Operations that reject\n([^]*?)\n## /.exec(page)![1]!;
const listed = new Set([...table.matchAll(/`([\w.]+)`/g)].map(([, name]) => name!));

/** Whether an operation cannot be one program for all sizes of an axis along which it takes them. */
function isRefused(outcome: Outcome): boolean {
  return outcome.kind === 'refused' || (outcome.kind === 'fixed' && /^\w+ beside \w+$/.test(outcome.why));
}

function expectIndependent(varied: Varied, outcome: Outcome): void {
  const told = `${JSON.stringify(varied)}: ${JSON.stringify(outcome)}`;
  expect(outcome.kind === 'differs', told).toBe(false);
  if (outcome.kind === 'refused') expect(outcome.message, told).toMatch(refusing);
}

/** Whether some axis is refused. */
async function check(inputs: Inputs, fn: (values: Values) => readonly sn.Tensor[]): Promise<boolean> {
  let refused = false;
  for (const varied of variations(inputs)) {
    sn.manualSeed(7);
    const outcome = await outcomeOf(fn, inputs, varied);
    expectIndependent(varied, outcome);
    refused ||= isRefused(outcome);
  }
  return refused;
}

const operationOf = ({ name }: Row): string => name.split('/')[0]!;

/** The gradients of a weighted sum of all results that have them. */
function gradientsOf(row: Row, values: Values): readonly sn.Tensor[] {
  const leaves = Object.entries(values).flatMap(([name, x]) =>
    x.dtype === 'f32' ? [[name, x.detach().requiresGrad_()] as const] : [],
  );
  const results = recorded(row, 'f32', { ...values, ...Object.fromEntries(leaves) });
  const outputs = results.filter((result) => result.requiresGrad);
  if (outputs.length === 0) return [];
  const weights = outputs.map((y) =>
    sn.arange(y.size).mul(0.25).add(0.5).cos().reshape(y.shape).cast(y.dtype),
  );
  return sn.gradients(
    outputs,
    leaves.map(([, x]) => x),
    weights,
  );
}

const rows = allRows.filter(({ eager, given }) => eager === undefined && Object.keys(given).length > 0);

/** Inputs in a dtype; undefined where the operation does not take it. */
async function inputsOf(row: Row, dtype: DType): Promise<Inputs | undefined> {
  try {
    return await inputsIn(await givenOf(row), dtype);
  } catch (error) {
    if (error instanceof sn.SinterError) return undefined;
    throw error;
  }
}

describe.each(['f32', 'i32', 'bool', 'c64'] as const)('of %s', (dtype) => {
  test.each(rows)('$name', async (row) => {
    const inputs = await inputsOf(row, dtype);
    if (inputs === undefined) return;
    const refused = await check(inputs, (values) => recorded(row, dtype, values));
    if (dtype === 'f32' && refused) expect(listed).toContain(operationOf(row));
  });
});

test('what the document lists is refused', async () => {
  expect([...listed].filter((name) => !rows.some((row) => operationOf(row) === name))).toEqual([]);
  const all = [...listed];
  const count = casesOf(all.length, 12);
  for (const name of all.slice(0, count)) {
    let refused = false;
    for (const row of rows.filter((other) => operationOf(other) === name)) {
      const inputs: Inputs | undefined = refused ? undefined : await inputsOf(row, 'f32');
      refused ||= inputs !== undefined && (await check(inputs, (values) => recorded(row, 'f32', values)));
    }
    expect(refused, name).toBe(true);
  }
});

describe('the gradients', () => {
  test.each(rows)('$name', async (row) => {
    const inputs = await inputsOf(row, 'f32');
    if (inputs !== undefined) await check(inputs, (values) => gradientsOf(row, values));
  });
});

/** What no row of the table shows: an axis alone varies, by a name that the program is told by. */
const others: readonly Row[] = [
  { name: 'merged', call: 'sn.searchsorted(line.reshape([-1]), x, { right: true })' },
  { name: 'edges', call: 'sn.histogram(x, edges)' },
  { name: 'edges of integers', call: 'sn.searchsorted(whole, whole, { right: true })' },
  { name: 'draws', call: 'sn.multinomial(edges, 4, { replacement: true })' },
].map((row) => ({
  ...row,
  given: {
    ...(row.call.includes('line') ? { line: 'sn.tensor([[1], [2], [4]])' } : {}),
    ...(row.call.includes('x') ? { x: 'sn.tensor([0.5, 2, NaN, 9])' } : {}),
    ...(row.call.includes('edges') ? { edges: 'sn.tensor([0, 1, 3, 5, 9])' } : {}),
    ...(row.call.includes('whole') ? { whole: "sn.tensor([0, 1, 2147483647], { dtype: 'i32' })" } : {}),
  },
}));

test.each(others)('$name: it is one program for all sizes', async (row) => {
  const inputs = await givenOf(row);
  const axis = Object.keys(inputs)[0]!;
  sn.manualSeed(7);
  const outcome = await outcomeOf((values) => recorded(row, 'f32', values), inputs, { [axis]: [0] });
  expect(outcome).toEqual({ kind: 'same' });
});

type Turning = (x: sn.Tensor) => readonly sn.Tensor[];
const turning: readonly (readonly [name: string, fn: Turning, given: string, axis: number])[] = [
  ['a scan', turned, 'sn.arange(12).sin().reshape([3, 4])', 1],
  ['a branch', (x) => [chosen(x)], 'sn.arange(4).sin()', 0],
  ['a loop that ends by data', (x) => [halved(x)], 'sn.arange(4).sin()', 0],
  ['a loop in a loop', (x) => [nested(x)], 'sn.arange(4).sin()', 0],
];

test.each(turning)('%s and its gradient: they are one program for all sizes', async (name, fn, x, axis) => {
  const inputs = await givenOf({ name, call: '', given: { x } });
  const gradient = sn.grad((each: sn.Tensor) =>
    fn(each).reduce((sum: sn.Tensor, y) => sum.add(y.square().sum()), sn.tensor(0)),
  );
  // The derivative of a loop that ends by data would go back an unknown number of turns.
  const all =
    fn === turning[2]![1] ? [fn] : [fn, (each: sn.Tensor): readonly sn.Tensor[] => [gradient(each)]];
  for (const each of all)
    expect(await outcomeOf((values) => each(values['x']!), inputs, { x: [axis] })).toEqual({ kind: 'same' });
});

test('a search, a histogram and a draw give at every size what they give at one', async () => {
  const place = sn.compile((s: sn.Tensor) => sn.searchsorted(s, sn.tensor([2.5])));
  const bins = sn.compile((e: sn.Tensor) => sn.histogram(sn.tensor([0.5, 2.5]), e)[0]!);
  const drawn = sn.compile((w: sn.Tensor) => sn.multinomial(w, 3, { replacement: true }));
  for (const n of [5, 6, 7, 8, 9]) {
    const edges = sn.arange(n).cast('f32');
    expect(await place(edges).item(), `of ${n}`).toBe(3);
    expect(await bins(edges).sum().item(), `of ${n}`).toBe(2);
    const only = sn.oneHot(sn.tensor(1, { dtype: 'i32' }), n).cast('f32');
    expect(await drawn(only).array(), `of ${n}`).toEqual([1, 1, 1]);
  }
});
