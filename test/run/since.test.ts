// Which test files a change can reach.

import { expect, test } from 'vitest';
import * as path from 'node:path';
import { affectedBy, importsOf } from './since.ts';

const root = path.resolve(import.meta.dirname, '../..');
const tests = ['test/ir/print.test.ts', 'test/run/since.test.ts', 'test/structure/time.test.ts'];

test('a test is reached by a source that it imports, through others too', () => {
  expect([...affectedBy(root, ['src/ir/text/print.ts'], tests)]).toContain('test/ir/print.test.ts');
  expect([...affectedBy(root, ['src/onnx/load.ts'], tests)]).not.toContain('test/ir/print.test.ts');
});

test('every test is reached by what decides how tests run', () => {
  expect([...affectedBy(root, ['package.json'], tests)]).toEqual(tests);
  expect([...affectedBy(root, ['test/support/seed.ts'], tests)]).toEqual(tests);
});

test('the rules of the tree are reached by everything', () => {
  expect([...affectedBy(root, ['docs/ops.md'], tests)]).toContain('test/structure/time.test.ts');
});

test('imports are static, dynamic, of types, and of files named beside the module', () => {
  const text = `
    import { a } from './costs.ts';
    export type { B } from "./journal.ts";
    const c = await import('./report.ts');
    const d = new URL('./run.ts', import.meta.url);
    import * as sn from 'sinter';
    import 'node:fs';
    const e = await import('../../dist/io/index.js');
  `;
  expect(importsOf(root, 'test/run/x.ts', text)).toEqual([
    'test/run/costs.ts',
    'test/run/journal.ts',
    'test/run/report.ts',
    'test/run/run.ts',
    'src/index.ts',
    'src/io/index.ts',
  ]);
});
