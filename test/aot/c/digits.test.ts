// The example that learns digits in C alone, on the digits beside the project.
//
// Runs on the sources: it builds a program of TypeScript, which imports them.

import { gunzipSync } from 'node:zlib';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { setDevice } from '../../../src/index.ts';
import { sinter } from '../../support/cli.ts';
import { expectRun, missing, numbersOf, reason, removeFolders, strict } from './folders.ts';
import { temporary } from '../bundles.ts';

afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

const project = path.resolve(import.meta.dirname, '../../..');
const digits = path.join(project, '../shared/data/mnist');

test('digits are learned in C alone, as README.md of the example says', async ({ skip }) => {
  if (missing !== undefined) skip(reason);
  if (!fs.existsSync(digits)) skip(`there is no ${digits}`);
  const [folder, data] = [temporary(), temporary()];
  for (const name of ['t10k-images-idx3-ubyte', 't10k-labels-idx1-ubyte'])
    fs.writeFileSync(path.join(data, name), gunzipSync(fs.readFileSync(path.join(digits, `${name}.gz`))));
  const module = path.join(project, 'examples/mnist-bundle.ts');
  const said = await sinter('build', module, '--target', 'c', '--name', 'digits', '--out', folder);
  expect([said.code, said.err]).toEqual([0, '']);
  expect(said.out).toMatch(/digits\.c .* 11 kernels; a context has 1\.\d+ MiB/);
  expectRun('make', ['-s', '-C', folder, 'CFLAGS=-O2 -march=native -Werror', 'libdigits.a']);
  const source = path.join(project, 'examples/c/digits.c');
  expectRun('cc', [...strict, '-O2', '-I', folder, '-o', 'learn', source, 'libdigits.a', '-lm'], folder);
  const printed = expectRun('./learn', [folder, data], folder);
  const epochs = numbersOf(printed).get('epoch')!;
  expect(epochs).toHaveLength(5);
  const right = printed.match(/(?<=right )\S+/g)!.map(Number);
  expect(right.at(-1)).toBeGreaterThan(94);
  expect(fs.statSync(path.join(folder, 'digits.state')).size).toBeGreaterThan(1e6);
});
