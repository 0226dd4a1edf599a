// A spread of the table of operations: some rows in some dtypes on every device, the same in every run. `npm run coverage:ops` runs them all.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { close, setDevice } from '../../src/index.ts';
import { dtypes } from '../../src/ir/dtype.ts';
import { removeFolders } from '../aot/bundles.ts';
import type { Mode } from '../support/coverage/cells.ts';
import { coverage, type Report } from '../support/coverage/report.ts';
import type { Row } from '../../scripts/operations/rows.ts';
import { everyDevice } from '../support/devices.ts';

// Where a call stands costs a test runner that maps sources much.
const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0;
});
afterAll(async () => {
  Error.stackTraceLimit = stackTraceLimit;
  await close();
  removeFolders();
  setDevice(undefined);
});

/** A number that follows from a text, evenly spread. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (const char of text) state = Math.imul(state ^ char.codePointAt(0)!, 0x01000193);
  state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d);
  return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
}

/** One in so many cells of the table. */
const share =
  (one: number, mode: string) =>
  ({ name }: Row, dtype: string): boolean =>
    hash(`${name} ${dtype} ${mode}`) < one;

async function spread(one: number, modes: readonly Mode[], devices = everyDevice): Promise<Report> {
  return coverage({ devices, modes, dtypes, takes: share(one, modes.join(' ')) });
}

/** All of it came out, and there was something. */
function expectWhole(report: Report, least: number): void {
  expect(report.failures).toEqual([]);
  expect(report.cells).toBeGreaterThan(least);
  expect(report.ok).toBeGreaterThan(report.cells / 3);
}

test('what a dtype is refused for is said of the function that was called', async () => {
  // Nothing runs: whatever is refused is refused while it is recorded.
  const report = await coverage({
    devices: ['interpreter'],
    modes: [],
    dtypes: ['bool', 'u8', 'f16', 'c64'],
  });
  expect(report.failures).toEqual([]);
  expect(report.refused).toBeGreaterThan(700);
});

test('what every operation gives is what the interpreter gives', async () => {
  expectWhole(await spread(1 / 60, ['compiled']), 200);
  expectWhole(await spread(1 / 60, ['eager'], ['interpreter', 'wasm']), 100);
});

test('gradients are those that the interpreter gives', async () => {
  expectWhole(await spread(1 / 60, ['differentiated']), 40);
});

test('exported models give the same', async () => {
  expectWhole(await spread(1 / 60, ['exported'], ['wasm']), 50);
});

test('bases of rows that are missing are built for GPUs', async () => {
  const takes = ({ name }: Row): boolean => name === 'linalg.svd' || name === 'pinverse';
  const report = await coverage({ devices: ['webgpu:software'], modes: ['bundled'], dtypes: ['f32'], takes });
  expect(report.failures).toEqual([]);
  expect(report.ok).toBe(2);
});
