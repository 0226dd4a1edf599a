// PyTorch's own samples of its operators: a spread of 600 on WebAssembly, and of 100 as compiled C. They lie beside the
// repository; without them a note says so.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import { withoutCompiler } from '../runtime/native/machine.ts';
import { chooseDevice } from '../runtime/native/waiting.ts';
import { operatorNames } from '../support/opinfo/read.ts';
import { rowNames } from '../support/opinfo/calls/index.ts';
import { runSamples, type Report } from '../support/opinfo/run.ts';
import { casesOf, isQuick } from '../support/sample.ts';

const archive = fileURLToPath(new URL('../../../shared/opinfo/opinfo-open.tar.xz', import.meta.url));
const isThere = existsSync(archive);
if (!isThere) process.stderr.write(`skipped: no PyTorch samples at ${archive}\n`);

/** About 600 of all cases; in the quick tier about 100. */
const [oneIn, oneInQuick] = [11, 66];
/** As compiled C, where a case costs several times as much. */
const oneInCompiled = 61;
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

  /** Runs one case in `step`, always the same ones. */
  function runSpread(step: number): Promise<Report> {
    let next = 0;
    return runSamples(dir, { takes: () => next++ % step === 0 });
  }

  function expectPassed({ total, passed, failures }: Report, step: number): void {
    const listed = failures.filter(({ reason }) => reason !== 'no row');
    expect(total).toBeGreaterThanOrEqual(Math.floor(6500 / step));
    expect(total - passed, listed.map(({ id, reason }) => `${id}: ${reason}`).join('\n')).toBeLessThanOrEqual(
      mayFail,
    );
  }

  test('pass on wasm, a spread of them', async () => {
    setDevice('wasm');
    const step = casesOf(600, 100) === 600 ? oneIn : oneInQuick;
    expectPassed(await runSpread(step), step);
  });

  test('pass on native, a spread of them', async (context) => {
    if (isQuick) context.skip('compiling takes more than the quick tier has time for');
    if (withoutCompiler !== undefined) context.skip(withoutCompiler);
    const rehearse = await chooseDevice('native');
    await rehearse?.(() => runSpread(oneInCompiled));
    const { total, failures } = await runSpread(oneInCompiled);
    expect(total).toBeGreaterThanOrEqual(Math.floor(6500 / oneInCompiled));
    // What fails on wasm too is no matter of the device.
    setDevice('wasm');
    const failed = new Set(failures.map(({ id }) => id));
    const onWasm = await runSamples(dir, { takes: (id) => failed.has(id) });
    const there = new Set(onWasm.failures.map(({ id }) => id));
    expect(failures.filter(({ id }) => !there.has(id))).toEqual([]);
  });
});
