// What every source file keeps: a size to read at one sitting, a header that says what it is, no escape from the type system.

import { expect, test } from 'vitest';
import { bareCode, filesUnder, readText, sources } from './source.ts';

const most = 600;
/** Lines that half of the files have at most. */
const median = 130;

/** Longer than that, and why. */
const tables: Readonly<Record<string, string>> = {
  'src/operations/index.ts': 'the public names of operations, one by one',
  'src/operations/methods.ts': 'the methods of tensors, one by one',
};

function offenders(found: (path: string, text: string) => readonly string[]): string[] {
  return [...sources.values()].flatMap(({ path, text }) =>
    found(path, text).map((what) => `${path}: ${what}`),
  );
}

/** Lines of code (comments and strings aside) that match, with their numbers. */
function matches(text: string, pattern: RegExp): string[] {
  return bareCode(text)
    .split('\n')
    .flatMap((line, i) => (pattern.test(line) ? [`${i + 1}: ${line.trim()}`] : []));
}

test(`no file is longer than ${most} lines, tables aside`, () => {
  const long = [...sources.values()].filter(({ path, lines }) => lines.length > most && !(path in tables));
  expect(long.map(({ path, lines }) => `${path}: ${lines.length} lines`)).toEqual([]);
});

test('no folder of code has more than 20 files', () => {
  const rooms = ['src', 'test', 'bench', 'scripts', 'examples'];
  const counts = new Map<string, number>();
  for (const path of rooms.flatMap((room) => filesUnder(room, ''))) {
    if (path.startsWith('test/fixtures/')) continue;
    const folder = path.slice(0, path.lastIndexOf('/'));
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  expect(counts.size).toBeGreaterThan(50);
  expect([...counts].filter(([, count]) => count > 20)).toEqual([]);
});

test(`half of the files have at most ${median} lines`, () => {
  const lengths = [...sources.values()].map(({ lines }) => lines.length).toSorted((a, b) => a - b);
  expect(lengths[Math.floor(lengths.length / 2)]).toBeLessThanOrEqual(median);
});

test('every file opens by saying what it is', () => {
  const silent = [...sources.values()].filter(({ lines }) => {
    const first = lines[0]!.startsWith('#!') ? 1 : 0;
    return !/^\/\/ \S+/.test(lines[first]!);
  });
  expect(silent.map(({ path }) => path)).toEqual([]);
});

test('file names are nouns in lower case', () => {
  const odd = [...sources.keys()].filter(
    (path) =>
      !/^src\/(?:[a-z]+(?:-[a-z]+)*\/)*[a-z0-9]+(?:-[a-z0-9]+)*\.ts$/.test(path) ||
      /util|helper|misc|common/.test(path),
  );
  expect(odd).toEqual([]);
});

/** What machines get wrong is spelled where their language is written, so that no other machine pays for it. */
test('only WGSL and its runtime know whose shader compilers and adapters there are', () => {
  const names = /swiftshader|\bmetal\b|\btint\b|\bnaga\b|\bdawn\b|lavapipe|llvmpipe/i;
  const told = offenders((path, text) =>
    /^src\/(?:codegen\/emit\/wgsl|runtime\/webgpu)\//.test(path)
      ? []
      : text.split('\n').filter((line) => names.test(line)),
  );
  expect(told).toEqual([]);
});

/** The one place that names the checker's dynamic type, which a tensor of unknown dtype is made of. */
const dynamic = 'src/tensor/inferred.ts';

test('no code says any', () => {
  expect(
    offenders((path, text) =>
      path === dynamic ? [] : matches(text, /[:<|&,(]\s*any\b|\bas any\b|\bany\[\]/),
    ),
  ).toEqual([]);
});

test('every option says its default', () => {
  // An option is an optional property of an exported interface that is named so.
  const option = /((?:^ *(?:\/\*\*|\*).*\n)*)^  readonly (\w+)\?:/gm;
  const untold = [...sources.values()].flatMap(({ path, text }) =>
    [...text.matchAll(/^export interface (\w+Options)\b[^]*?^}/gm)].flatMap(([body, name]) =>
      [...body.matchAll(option)]
        .filter(([, comment]) => !/\bdefaults?\b/i.test(comment!))
        .map(([, , property]) => `${path}: ${name}.${property}`),
    ),
  );
  // What lowering is told by templates is nobody's option.
  expect(untold.filter((one) => !one.startsWith('src/codegen/'))).toEqual([]);
});

/**
 * Names of types that several files export. Those of the package's own names belong to parts that are imported apart
 * (`sinter/nn`, `sinter/onnx`, …); the others are to be renamed, so that a name means one thing.
 */
const shared: Readonly<Record<'public' | 'internal', readonly string[]>> = {
  public: [
    'BufferOptions',
    'CheckpointOptions',
    'ClassOptions',
    'Dim',
    'ElementType',
    'GraphBuilder',
    'LinearOptions',
    'LoadOptions',
    'ModelInput',
    'Nonlinearity',
    'TextOptions',
  ],
  internal: ['Value'],
};

test('a type that is exported has a name of its own', () => {
  const files = new Map<string, Set<string>>();
  for (const { path, text } of sources.values()) {
    // What bundles declare to their pages stands there as text.
    if (path === 'src/aot/texts.ts') continue;
    for (const [, name] of bareCode(text).matchAll(
      /^export (?:declare )?(?:abstract )?(?:interface|type|class) ([A-Z]\w*)/gm,
    ))
      files.set(name!, (files.get(name!) ?? new Set()).add(path));
  }
  expect(files.size).toBeGreaterThan(1500);
  const found = [...files].filter(([, paths]) => paths.size > 1).map(([name]) => name);
  expect(found.toSorted()).toEqual([...shared.public, ...shared.internal].toSorted());
});

test('nothing is exported by default, no enum or namespace is declared', () => {
  const pattern = /^export default\b|^(?:export )?(?:declare )?(?:const )?enum\b|^(?:export )?namespace\b/;
  expect(offenders((_, text) => matches(text, pattern))).toEqual([]);
});

test('no check of types or style is switched off', () => {
  const pattern = /@ts-(?:ignore|nocheck|expect-error)|oxlint-disable|eslint-disable/;
  const found = offenders((_, text) => text.split('\n').filter((line) => pattern.test(line)));
  expect(found).toEqual([`${dynamic}: // oxlint-disable-next-line typescript/no-explicit-any`]);
});

test('nothing is left for later', () => {
  const marks = /\b(?:TODO|FIXME|XXX|HACK)\b/;
  const others = ['test', 'scripts', 'examples', 'bench'].flatMap((folder) => filesUnder(folder));
  const left = [...sources.keys(), ...others]
    .filter((path) => path !== 'test/structure/files.test.ts')
    .flatMap((path) =>
      readText(path)
        .split('\n')
        .flatMap((line, i) => (marks.test(line) ? [`${path}:${i + 1}`] : [])),
    );
  expect(left).toEqual([]);
});
