// Every public function refuses every wrong argument by a SinterError that names it, records nothing before, and leaves the next
// computation as it was. An export that no row tells how to call fails here.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import * as io from '../../src/io/index.ts';
import * as nn from '../../src/nn/index.ts';
import * as optim from '../../src/optim/index.ts';
import { ioRows } from './file-rows.ts';
import { methodRows, nnRows, optimRows } from './layer-rows.ts';
import { operationRows, type Rows } from './operation-rows.ts';
import { faultsOf, validFault } from './walk.ts';

// Where a call stands costs a test runner that maps sources much; `arguments.test.ts` has it.
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

/** A member called as a function; classes are made. */
function callOf(member: unknown): Callable {
  if (!/^class\b/.test(Function.prototype.toString.call(member))) return member as Callable;
  return (...args) => new (member as new (...given: readonly unknown[]) => unknown)(...args);
}

async function checked(told: string, call: Callable, places: Rows[string]): Promise<void> {
  const row = { call, places };
  expect(await validFault(row)).toEqual([]);
  expect(await faultsOf(told, row)).toEqual([]);
  expect(await sn.tensor([1, 2]).add(1).array()).toEqual([2, 3]);
}

const entries: readonly (readonly [entry: string, members: object, rows: Rows])[] = [
  ['sinter', sn, operationRows],
  ['sinter/nn', nn, nnRows],
  ['sinter/optim', optim, optimRows],
  ['sinter/io', io, ioRows],
];

describe.each(entries)('%s', (_, members, rows) => {
  const known = Object.entries(rows).filter(([name]) => name in members);
  test.each(known)('%s', async (name, places) => {
    await checked(name, callOf((members as Readonly<Record<string, unknown>>)[name]), places);
  });
});

describe('methods of Tensor', () => {
  const methods = Object.entries(operationRows).filter(([name]) => name in sn.Tensor.prototype);
  test.each(methods)('%s', async (name, places) => {
    const method = (sn.Tensor.prototype as unknown as Readonly<Record<string, Callable>>)[name]!;
    await checked(name, (self, ...rest) => method.call(self, ...rest), places);
  });
});

test.each(methodRows)('$name', async ({ told, call, places }) => {
  await checked(told, call, places);
});
