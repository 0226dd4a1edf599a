// The declarations of the package stand alone: programs that import each of its parts check without
// `skipLibCheck`, with and without the declarations of a page, and with no other package installed.
// Runs on the sources: it emits the declarations itself.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { joinDeclarations } from '../../scripts/slim/declarations.ts';
import { publicTypes } from '../../scripts/slim/slim.ts';
import manifest from '../../package.json' with { type: 'json' };

const root = fileURLToPath(new URL('../../', import.meta.url));
const tsc = join(root, 'node_modules/typescript/bin/tsc');
// The rest, package.json, has no types.
const entryPoints = Object.keys(manifest.exports).filter((name) => name !== './package.json');
let folder: string;

function compile(args: readonly string[], cwd: string): string {
  try {
    return execFileSync(process.execPath, [tsc, ...args], { cwd, encoding: 'utf8' });
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sinter-declarations-'));
  const at = join(folder, 'node_modules/sinter');
  mkdirSync(at, { recursive: true });
  cpSync(join(root, 'package.json'), join(at, 'package.json'));
  const options = ['--emitDeclarationOnly', '--sourceMap', 'false', '--inlineSources', 'false'];
  const emitted = compile(['-p', 'tsconfig.build.json', '--outDir', join(at, 'dist'), ...options], root);
  expect(emitted).toBe('');
  joinDeclarations(join(at, 'dist'), publicTypes(join(at, 'dist')));
  const parts = entryPoints;
  const lines = parts.map((part, i) => `export * as part${i} from 'sinter${part.slice(1)}';`);
  writeFileSync(join(folder, 'all.ts'), lines.join('\n'));
  parts.forEach((_, i) => writeFileSync(join(folder, `one${i}.ts`), lines[i]!));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(['es2022', 'es2022,dom'])('programs check with the library %s', (lib) => {
  const options = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--types', '', '--target', 'es2022'];
  for (const module of [
    ['--module', 'nodenext'],
    ['--module', 'esnext', '--moduleResolution', 'bundler'],
  ]) {
    const said = compile([...options, '--lib', lib, ...module, 'all.ts'], folder);
    expect(said).toBe('');
  }
});

test('and so does a program that imports one part only', () => {
  const options = ['--noEmit', '--strict', '--types', '', '--target', 'es2022', '--lib', 'es2022'];
  const failed = entryPoints.flatMap((part, i) => {
    const said = compile([...options, '--module', 'nodenext', `one${i}.ts`], folder);
    return said === '' ? [] : [`${part}: ${said}`];
  });
  expect(failed).toEqual([]);
});
