// The members of the namespace `distributions`, and of what they make, refuse every wrong argument, as all operations do
// (every.test.ts).

import { afterAll, beforeAll, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { flag, like, maybe, operand, options, shape, t, type Meaning } from './kinds.ts';
import { faultsOf, validFault, type Row } from './walk.ts';

const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0;
  sn.setDevice('interpreter');
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
  sn.setDevice(undefined);
});

type Callable = (...args: readonly unknown[]) => unknown;
const members = sn.distributions as unknown as Readonly<Record<string, Callable>>;
const share: Meaning = like(operand, () => sn.full([2], 0.5));
const optional = maybe(share);

const rows: Readonly<Record<string, readonly Meaning[]>> = {
  ...Object.fromEntries(
    ['beta', 'cauchy', 'gamma', 'gumbel', 'laplace', 'logistic', 'logNormal', 'normal', 'uniform'].map(
      (name) => [name, [optional, optional]],
    ),
  ),
  ...Object.fromEntries(['chi2', 'exponential', 'poisson'].map((name) => [name, [optional]])),
  bernoulli: [share],
  geometric: [share],
  categorical: [t(2, 3), options({ probs: flag })],
  studentT: [share, options({ loc: operand, scale: operand })],
};

test('every member has a row', () => {
  expect(Object.keys(rows).toSorted()).toEqual(Object.keys(members).toSorted());
});

async function check(told: string, row: Row): Promise<void> {
  expect(await validFault(row)).toEqual([]);
  expect(await faultsOf(told, row)).toEqual([]);
}

test.each(Object.entries(rows))('%s', async (name, places) => {
  await check(name, { call: members[name]!, places });
});

const made: readonly (readonly [method: 'sample' | 'rsample' | 'logProb', place: Meaning])[] = [
  ['sample', maybe(shape(2, 3))],
  ['rsample', maybe(shape(2, 3))],
  ['logProb', operand],
];

test.each(made)('%s of a normal distribution', async (method, place) => {
  const normal = sn.distributions.normal(0.5, 2);
  const call: Callable = (given) => normal[method](given as never);
  await check(`normal.${method}`, { call, places: [place] });
});
