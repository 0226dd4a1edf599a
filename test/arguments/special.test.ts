// The members of the namespace `special` refuse every wrong argument, as all operations do (every.test.ts).

import { afterAll, beforeAll, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { ownNames, specialRows } from './rows/special.ts';
import { faultsOf, validFault } from './walk.ts';

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
const members = sn.special as unknown as Readonly<Record<string, Callable>>;

test('every member has a row', () => {
  expect(Object.keys(specialRows).toSorted()).toEqual(Object.keys(members).toSorted());
});

test.each(Object.entries(specialRows))('%s', async (name, places) => {
  const row = { call: members[name]!, places };
  expect(await validFault(row)).toEqual([]);
  expect(await faultsOf(ownNames[name] ?? name, row)).toEqual([]);
});
