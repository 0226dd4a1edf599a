// The first minutes in a folder of one's own: what `npm init -y` makes, whatever kind of modules that npm thinks best, and programs
// of every kind in it. The package is the build, linked as npm links a folder.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findRuntime } from '../support/runtimes.ts';

const root = path.resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(path.join(tmpdir(), 'sinter-first-'));
const cli = path.join(folder, 'node_modules/sinter/dist/cli/main.js');

/** Runs a program in the folder; gives what it printed, warnings of Node's included. */
function run(command: string, ...args: readonly string[]): string {
  const env = { ...process.env, SINTER_DEVICE: 'interpreter', NODE_OPTIONS: '' };
  const { stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8', env });
  return stdout + stderr;
}

const write = (file: string, text: string): void => writeFileSync(path.join(folder, file), text);

/** Makes the folder's packages what `type` says: `npm init` of npm 11 writes "commonjs", that of npm 10 nothing. */
function setType(type: string | undefined): void {
  const file = path.join(folder, 'package.json');
  const { type: _, ...rest } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  write('package.json', JSON.stringify({ ...rest, type }));
}

const texts = {
  module: `import * as sn from 'sinter';
import { two } from './beside.js';
export const fn = (x) => sn.softmax(x.mul(two), 1);
export const inputs = { fn: [sn.zeros([8, 8])] };
`,
  script: `import * as sn from 'sinter';
export const fn = (x: sn.Tensor): sn.Tensor => sn.softmax(x.mul(2), 1);
export const inputs = { fn: [sn.zeros([8, 8])] };
`,
  required: `const sn = require('sinter');
exports.fn = (x) => sn.softmax(x.mul(2), 1);
exports.inputs = { fn: [sn.zeros([8, 8])] };
`,
};

beforeAll(() => {
  run('npm', 'init', '-y');
  mkdirSync(path.join(folder, 'node_modules'));
  for (const name of ['tsx', 'esbuild', '@esbuild', 'get-tsconfig', 'resolve-pkg-maps']) {
    const place = path.join(root, 'node_modules', name);
    symlinkSync(place, path.join(folder, 'node_modules', name));
  }
  symlinkSync(root, path.join(folder, 'node_modules/sinter'));
  write('beside.js', 'export const two = 2;\n');
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.each(['commonjs', undefined, 'module'])('in a package of type %s', (type) => {
  beforeAll(() => setType(type));

  test.each<readonly [file: string, text: string]>([
    ['program.mjs', texts.module],
    ['program.js', texts.module],
    ['program.ts', texts.script],
    ['program.mts', texts.script],
    ['program.cjs', texts.required],
    ...(type === 'module' ? [] : [['required.js', texts.required] as const]),
  ])('sinter explain %s', (file, text) => {
    write(file, text);
    expect(run(process.execPath, cli, 'explain', file)).toMatch(/^graph \{\n[^]*reduce/);
  });

  test.each([
    ['program.js', texts.module],
    ['program.ts', texts.script],
  ])('sinter build %s', (file, text) => {
    write(file, text);
    const printed = run(process.execPath, cli, 'build', file, '--out', `built-${file}`, '--target', 'wasm');
    const manifest = path.join(folder, `built-${file}`, 'program.json');
    expect(readFileSync(manifest, 'utf8'), printed).toContain('"fn"');
  });

  test('a mistake in a program is told as the mistake that it is', () => {
    write('wrong.js', 'export const fn = (x => x;\n');
    expect(run(process.execPath, cli, 'explain', 'wrong.js')).toMatch(
      /^sinter: (Unexpected|missing)[^\n]*\n/m,
    );
  });

  test('Node that reads TypeScript by itself reads it here too', ({ skip }) => {
    const later = findRuntime('Node');
    if ('absent' in later) return skip(later.absent);
    for (const [file, text] of [
      ['program.ts', texts.script],
      ['program.js', texts.module],
    ] as const) {
      write(file, text);
      expect(run(later.command, cli, 'explain', file)).toMatch(/^graph \{/);
    }
  });
});

test('the first program of README.md runs as it stands, as JavaScript and as TypeScript', () => {
  const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
  const [, program] = /```ts\n([^]*?)```/.exec(readme)!;
  setType(undefined);
  expect(readme).toContain('npm init -y && npm pkg set type=module');
  run('npm', 'pkg', 'set', 'type=module');
  write('first.js', program!);
  write('first.ts', program!);
  const printed = '[ [ 2 ], [ -1 ], [ 0.5 ] ]\n';
  expect(run(process.execPath, 'first.js')).toBe(printed);
  expect(run(process.execPath, path.join(folder, 'node_modules/tsx/dist/cli.mjs'), 'first.ts')).toBe(printed);
});

test('a CommonJS package takes it by require', () => {
  setType('commonjs');
  write('first.js', "console.log(require('sinter').ones([2]).shape);\n");
  expect(run(process.execPath, 'first.js')).toContain('[ 2 ]\n');
});
