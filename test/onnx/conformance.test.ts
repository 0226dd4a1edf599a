// The ONNX project's backend tests, all of them, on the interpreter and as WebAssembly. They lie beside the repository; without them
// a note says so.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import { casesOf, runCases, type Tally } from '../support/conformance.ts';

const archive = fileURLToPath(new URL('../../../shared/onnx/conformance-open.tar.xz', import.meta.url));
const isThere = existsSync(archive);
if (!isThere) process.stderr.write(`skipped: no ONNX cases at ${archive}\n`);

const share = ({ passed, total }: Tally): number => passed / total;

describe.skipIf(!isThere)('the backend tests of the ONNX project', () => {
  const dir = isThere ? mkdtempSync(join(tmpdir(), 'sinter-onnx-')) : '';
  if (isThere) execFileSync('tar', ['xf', archive, '-C', dir]);
  afterAll(() => {
    setDevice(undefined);
    if (isThere) rmSync(dir, { recursive: true });
  });

  test.each(['wasm'])('pass on %s', { timeout: 240_000 }, async (device) => {
    setDevice(device);
    const report = await runCases(dir, casesOf(dir));
    expect(share(report.byScope['core']!)).toBeGreaterThanOrEqual(0.99);
    expect(share(report.byTag['f32-core']!)).toBeGreaterThanOrEqual(0.99);
    const untyped = report.failures.filter(({ reason }) => /^(?:TypeError|RangeError|Error)\b/.test(reason));
    expect(untyped).toEqual([]);
  });
});
