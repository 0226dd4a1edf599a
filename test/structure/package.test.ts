// What npm publishes and installs: every entry has a source, nothing has to be downloaded with the package, every public name
// is documented where it is declared.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { filesUnder, reachable, readText, root, sources } from './source.ts';

/** What of the package stands behind one of its names. */
interface Entry {
  readonly types: string;
  readonly default: string;
}

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly browser: Readonly<Record<string, unknown>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, Entry | string>>;
  readonly files: readonly string[];
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly sideEffects: readonly string[];
}

const manifest = JSON.parse(readText('package.json')) as Manifest;

/** What programs import: all but package.json, which tools resolve. */
const { './package.json': self, ...entryPoints } = manifest.exports;
const points = Object.entries(entryPoints) as [string, Entry][];

/** The source of a built file: `./dist/ir/index.js` → `src/ir/index.ts`. */
function sourceOf(built: string): string {
  return built.replace(/^\.\/dist\//, 'src/').replace(/(?:\.d\.ts|\.js)$/, '.ts');
}

describe('package.json', () => {
  test('names only built files that have a source', () => {
    const named = [
      ...points.flatMap(([, entry]) => Object.values<string>({ ...entry })),
      ...Object.values(manifest.bin),
      ...Object.keys(manifest.browser),
      ...manifest.sideEffects,
    ];
    expect(named.map(sourceOf).filter((path) => !sources.has(path))).toEqual([]);
  });

  test('reaches every file that is built: what only tests need lies beside them', () => {
    const entries = [
      ...points.map(([, entry]) => entry.default),
      ...Object.values(manifest.bin),
      ...Object.values(manifest.browser).filter((other) => typeof other === 'string'),
    ].map(sourceOf);
    // scripts/bundle-runtimes.ts makes one file of each choice of these.
    const openers = [...sources.keys()].filter((path) =>
      /^src\/bundle-runtime\/open-[a-z-]+\.ts$/.test(path),
    );
    expect(openers.length).toBeGreaterThan(2);
    const roots = [
      ...entries,
      ...openers,
      'src/bundle-runtime/check.ts',
      'src/bundle-runtime/runtime.ts',
      'src/bundle-runtime/wasm.ts',
      // What a thread runs, which is named by its address.
      'src/compile/thread/serve.ts',
      'src/cli/launch/rank.ts',
    ];
    const reached = new Set(roots.flatMap((path) => reachable(path, () => true)));
    expect([...sources.keys()].filter((path) => !reached.has(path))).toEqual([]);
  });

  test('can be resolved itself, as tools do to find its folder and version', () => {
    expect(self).toBe('./package.json');
  });

  test('gives every entry its types', () => {
    for (const [, entry] of points) expect(sourceOf(entry.types)).toBe(sourceOf(entry.default));
  });

  test('tells bundlers which modules must stay although nothing is taken from them', () => {
    const wanted = [...sources.values()].flatMap(({ path, text }) =>
      [...text.matchAll(/^import '([^']+)'/gm)].map(([, from]) => join(path, '..', from!)),
    );
    // What a chunk fills is all that it is for: the table of these is for tests.
    const chunks = [...sources.keys()].filter((path) => path.startsWith('src/compile/chunks/'));
    expect(chunks.length).toBeGreaterThan(10);
    wanted.push(...chunks);
    expect(wanted.filter((path) => !manifest.sideEffects.map(sourceOf).includes(path))).toEqual([]);
  });

  test('requires no package: peers are optional', () => {
    expect(manifest.dependencies ?? {}).toEqual({});
    const required = Object.keys(manifest.peerDependencies).filter(
      (name) => manifest.peerDependenciesMeta[name]?.optional !== true,
    );
    expect(required).toEqual([]);
  });

  test('installs nothing by a script of its own', () => {
    const hooks = ['preinstall', 'install', 'postinstall', 'prepare'];
    expect(hooks.filter((hook) => hook in manifest.scripts)).toEqual([]);
  });

  test('packs the documents, the examples and the build, of not too many bytes and files, and nothing else', () => {
    const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=silent'];
    const report = execFileSync('npm', args, { cwd: root, encoding: 'utf8' });
    const [packed] = JSON.parse(report) as [
      {
        readonly entryCount: number;
        readonly files: readonly { readonly path: string }[];
        readonly unpackedSize: number;
      },
    ];
    expect(packed.unpackedSize).toBeLessThan(7_000_000);
    expect(packed.entryCount).toBeLessThan(1_500);
    const paths = packed.files.map(({ path }) => path);
    const texts = ['LICENSE', 'README.md'];
    // What is about the sources stays with them: their history and design, the count of kernels, and lists made of the declarations.
    const documents = [
      ...texts,
      ...filesUnder('docs', '').filter(
        (path) => !/^docs\/(?:(?:design|ops)\/|(?:api|kernels|names|ops)\.md$)/.test(path),
      ),
      ...filesUnder('examples', ''),
      'package.json',
    ].sort();
    expect(paths.filter((path) => !path.startsWith('dist/')).sort()).toEqual(documents);
    expect(documents.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test('has examples that import the package by its name, as they have to where it is installed', () => {
    const foreign = filesUnder('examples', '.ts').flatMap((path) =>
      [...readText(path).matchAll(/from '(\.\.[^']*)'/g)].map(([, from]) => `${path}: ${from}`),
    );
    expect(foreign).toEqual([]);
  });
});

/** Where a name is declared, and what it is called there. */
interface Declared {
  readonly path: string;
  readonly name: string;
}

/** Names that a file exports, with the file that declares each, following `export … from`. */
function exportsOf(path: string): Map<string, Declared> {
  const { text } = sources.get(path)!;
  const found = new Map<string, Declared>();
  const lists = text.matchAll(/^export (?:type )?\{([^}]*)\}(?: from '([^']+)')?;/gm);
  for (const [, list, from] of lists) {
    const target = from === undefined ? path : join(path, '..', from);
    for (const item of list!.split(',').map((part) => part.trim().replace(/^type /, ''))) {
      if (item === '') continue;
      const [name, alias] = item.split(' as ') as [string, string?];
      const own = { path: target, name };
      found.set(alias ?? name, from === undefined ? own : (exportsOf(target).get(name) ?? own));
    }
  }
  for (const [, name] of text.matchAll(declaration)) found.set(name!, { path, name: name! });
  for (const [, from] of text.matchAll(/^export \* from '([^']+)';/gm))
    for (const [name, at] of exportsOf(join(path, '..', from!))) found.set(name, at);
  return found;
}

const declaration =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:const|function\*?|class|interface|type) (\w+)/gm;

describe('every public name', () => {
  const entries = points.map(
    ([name, { default: built }]) => [`sinter${name.slice(1)}`, sourceOf(built)] as const,
  );

  test.each(entries)('of %s has a comment where it is declared', (_, entry) => {
    const names = exportsOf(entry);
    expect(names.size).toBeGreaterThan(0);
    // What options are for is said by the function that takes them.
    const silent = [...names].flatMap(([exported, { path, name }]) => {
      if (exported.endsWith('Options')) return [];
      const { lines } = sources.get(path)!;
      const line = lines.findIndex((text) =>
        new RegExp(
          `^(?:(?:export|async|abstract|declare) )*(?:const|function\\*?|class|interface|type) ${name}\\b`,
        ).test(text),
      );
      if (line < 0) return [`${path}: ${name} is declared nowhere`];
      return lines[line - 1]?.trimEnd().endsWith('*/') === true ? [] : [`${path}:${line + 1}: ${name}`];
    });
    expect(silent).toEqual([]);
  });
});
