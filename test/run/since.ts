// Which test files a change can reach: those that changed, import a file that did, directly or through others, or name a file
// that did, such as a fixture. Imports are read out of the text, dynamic ones and `new URL(…, import.meta.url)` included.

import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

/** Files that decide how all tests run. */
const ofAll =
  /^(package(-lock)?\.json|tsconfig.*\.json|vitest\.config\.ts|\.ci\/|test\/run\/|test\/support\/seed\.ts)/;

const git = (root: string, args: readonly string[]): string[] =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 })
    .split('\n')
    .filter((line) => line !== '');

/** The files that differ between a revision and the working tree, new ones included. */
export function changedSince(root: string, revision: string): string[] {
  return [
    ...git(root, ['diff', '--name-only', '--no-renames', revision, '--']),
    ...git(root, ['ls-files', '--others', '--exclude-standard']),
  ];
}

const reference = /(?:\bfrom\s*|\bimport\s*\(?\s*|new URL\(\s*)['"`]([^'"`$]+)['"`]/g;

/** The files of the project that a module names. */
export function importsOf(root: string, file: string, text: string): string[] {
  return [...text.matchAll(reference)].flatMap(([, name]) => {
    const head = /^sinter(?:\/(\w+))?$/.exec(name!);
    if (head !== null) {
      const room = head[1] === 'runtime' ? 'interop/' : head[1] === undefined ? '' : `${head[1]}/`;
      return [`src/${room}index.ts`];
    }
    if (!name!.startsWith('.')) return [];
    const place = path.posix.join(path.posix.dirname(file), name!);
    const source = place.replace(/^dist\//, 'src/').replace(/\.js$/, '.ts');
    return [source, place].filter((each) => isFile(path.join(root, each))).slice(0, 1);
  });
}

const isFile = (place: string): boolean => fs.statSync(place, { throwIfNoEntry: false })?.isFile() === true;

/** Of some test files, those that a change since a revision can reach. */
export function affectedSince(root: string, revision: string, tests: readonly string[]): Set<string> {
  return affectedBy(root, changedSince(root, revision), tests);
}

/** Of some test files, those that changed files can reach. */
export function affectedBy(root: string, changes: readonly string[], tests: readonly string[]): Set<string> {
  if (changes.some((file) => ofAll.test(file))) return new Set(tests);
  const changed = new Set(changes);
  // What no module imports is named by those that read it: by its own name or its folder's.
  const data = changes.filter((file) => !file.endsWith('.ts')).map((file) => path.posix.basename(file));
  const folders = changes.filter((file) => !file.endsWith('.ts')).map((file) => path.posix.dirname(file));
  const names = [...new Set([...data, ...folders.filter((folder) => folder !== '.')])];
  const imports = new Map<string, { readonly imports: readonly string[]; readonly named: boolean }>();
  const read = (file: string): { readonly imports: readonly string[]; readonly named: boolean } => {
    let known = imports.get(file);
    if (known === undefined) {
      const text = fs.readFileSync(path.join(root, file), 'utf8');
      known = {
        imports: importsOf(root, file, text),
        named: names.some((name) => text.includes(name)),
      };
      imports.set(file, known);
    }
    return known;
  };
  const reached = (test: string): boolean => {
    const seen = new Set([test]);
    for (const file of seen) {
      if (changed.has(file)) return true;
      if (!file.endsWith('.ts')) continue;
      const { imports: next, named } = read(file);
      if (named && file.startsWith('test/')) return true;
      for (const each of next) seen.add(each);
    }
    return false;
  };
  // The rules of the tree read every file.
  return new Set(tests.filter((test) => test.startsWith('test/structure/') || reached(test)));
}
