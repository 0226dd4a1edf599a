// What is published knows its users only: nothing of how this project measures itself (names of
// workloads in a foreign driver, other libraries that are measured, folders beside the checkout) is
// in src, nor in what is built from it.

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { prune } from '../../scripts/prune.ts';
import { filesUnder, readText, root, sources } from './source.ts';

/**
 * What must not be said, and what it is. Comments may name ONNX Runtime, whose bugs exported models
 * avoid.
 */
const foreign: Readonly<Record<string, RegExp>> = {
  'a workload of the driver': /\bW\d+[a-z]?\b/,
  'a library to measure beside': /tfjs|tensorflow|jax-(?:js|webgpu|wasm)|\bort-(?:web|node)|onnxruntime/i,
  'a folder beside the checkout': /\.\.\/(?:shared|bench|onnx)\//,
  'a setting of the driver': /\bBENCH_[A-Z]+|\bOURS\b|ours-w/,
};

function found(path: string, text: string): string[] {
  return Object.entries(foreign).flatMap(([what, pattern]) => {
    const [match] = pattern.exec(text) ?? [];
    return match === undefined ? [] : [`${path}: '${match}' is ${what}`];
  });
}

test('the sources name no private tool of this project', () => {
  expect([...sources.values()].flatMap(({ path, text }) => found(path, withoutImports(text)))).toEqual([]);
});

/** Modules of src import each other by such paths as well. */
function withoutImports(text: string): string {
  return text.replaceAll(/(?:from |import ?\(?)(['"])\.{1,2}\/[^'"]*\1/g, '');
}

test('what is looked for is found', () => {
  const planted = [
    "name: 'W4b'",
    '// beside jax-webgpu',
    "new URL('../../../shared/onnx/models', import.meta.url)",
    "process.env['BENCH_HARDWARE_GPU']",
  ];
  expect(planted.map((text) => found('x', withoutImports(text)).length)).toEqual([1, 1, 1, 1]);
});

describe('dist', () => {
  const built = existsSync(join(root, 'dist')) ? filesUnder('dist', '') : [];

  test('says nothing else', ({ skip }) => {
    skip(built.length === 0, 'there is no dist: npm run build');
    // Of what is there, that which the last build made: a later one removes the rest. A minifier may
    // call anything by two letters, so the bundle runtimes are looked at where they come from, above.
    const sourceOf = (path: string): string =>
      path.replace(/^dist\//, 'src/').replace(/(?:\.d\.ts|\.js)$/, '.ts');
    const made = built.filter((path) => sources.has(sourceOf(path)));
    // Modules of types alone leave nothing, and declarations are joined.
    expect(made.length).toBeGreaterThan(sources.size / 2);
    expect(made.flatMap((path) => found(path, withoutImports(readText(path))))).toEqual([]);
  });

  test('loses what has no source any more when it is built', () => {
    const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> };
    expect(scripts['build:slim']).toMatch(/^tsx scripts\/prune\.ts && /);
    for (const name of ['build', 'build:checked'])
      expect(scripts[name]).toMatch(/^tsc -p tsconfig\.build\.json .*&& npm run --silent build:slim$/);
    const folder = mkdtempSync(join(tmpdir(), 'sinter-prune-'));
    try {
      const [from, to] = [join(folder, 'src'), join(folder, 'dist')];
      for (const path of ['src/ir', 'dist/ir', 'dist/old/er'])
        mkdirSync(join(folder, path), { recursive: true });
      const write = (path: string): void => writeFileSync(join(folder, path), '');
      const kept = ['js', 'd.ts'].map((end) => `dist/ir/a.${end}`);
      const gone = [
        'dist/ir/a.js.map',
        'dist/ir/b.js',
        'dist/ir/b.d.ts',
        'dist/old/er/c.js.map',
        'dist/note.txt',
      ];
      ['src/ir/a.ts', ...kept, ...gone].forEach(write);
      expect(prune(to, from).map((path) => `dist/${path}`)).toEqual(expect.arrayContaining(gone));
      expect(kept.filter((path) => !existsSync(join(folder, path)))).toEqual([]);
      expect([...gone, 'dist/old'].filter((path) => existsSync(join(folder, path)))).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
