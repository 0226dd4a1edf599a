// PyTorch's own samples of its operators: a spread of 600 on WebAssembly. They lie beside the repository; without them a note says so.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import { operatorNames } from '../support/opinfo/read.ts';
import { rowNames } from '../support/opinfo/calls/index.ts';
import { runSamples } from '../support/opinfo/run.ts';
import { casesOf } from '../support/sample.ts';

const archive = fileURLToPath(new URL('../../../shared/opinfo/opinfo-open.tar.xz', import.meta.url));
const isThere = existsSync(archive);
if (!isThere) process.stderr.write(`skipped: no PyTorch samples at ${archive}\n`);

/** About 600 of all cases; in the quick tier about 100. */
const [oneIn, oneInQuick] = [11, 66];
/** How many of them may fail; lowered as operators are added. */
const mayFail = 6;

describe.skipIf(!isThere)("PyTorch's samples of its operators", () => {
  const dir = isThere ? mkdtempSync(join(tmpdir(), 'sinter-opinfo-')) : '';
  if (isThere) execFileSync('tar', ['xf', archive, '-C', dir]);
  afterAll(() => {
    setDevice(undefined);
    if (isThere) rmSync(dir, { recursive: true });
  });

  test('every row is one of an operator that PyTorch has', () => {
    const known = new Set(operatorNames(dir));
    // PyTorch has samples of these that are not in the archive.
    for (const name of ['logaddexp', 'logaddexp2']) known.add(name);
    expect(rowNames.filter((name) => !known.has(name))).toEqual([]);
  });

  test('pass on wasm, a spread of them', async () => {
    setDevice('wasm');
    const step = casesOf(600, 100) === 600 ? oneIn : oneInQuick;
    let next = 0;
    const report = await runSamples(dir, { takes: () => next++ % step === 0 });
    const failures = report.failures.filter(({ reason }) => reason !== 'no row');
    const listed = failures.map(({ id, reason }) => `${id}: ${reason}`).join('\n');
    expect(report.total).toBeGreaterThanOrEqual(Math.floor(6500 / step));
    expect(report.total - report.passed, listed).toBeLessThanOrEqual(mayFail);
  });
});
