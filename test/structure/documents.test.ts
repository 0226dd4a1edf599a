// The documents say what is so: their code runs and prints what they show, their counts are the compiler's, and the names of
// files, passes, scripts and commands in them exist.

import { existsSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { apiReference } from '../../scripts/api.ts';
import { comparisonSection, measurements } from '../../bench/compare/readme.ts';
import { budgetTable, guides, methodNames, modelTable, withSection } from '../../scripts/docs.ts';
import { checkExamples, examplesOf, runExamples } from '../../scripts/examples.ts';
import { softmaxFigure } from '../../scripts/figure.ts';
import { runCli } from '../../src/cli/commands.ts';
import { filesUnder, readText, root, sources } from './source.ts';

const readme = readText('README.md');
const architecture = readText('ARCHITECTURE.md');
/** The pages of the design, which say in detail what that page maps. */
const design = filesUnder('docs/design', '.md');
const documents = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...filesUnder('docs', '.md'),
];
const examples = { readme: examplesOf(readme), guides: guides.flatMap((path) => examplesOf(readText(path))) };

let checked: Promise<string> | undefined;
/** What the type checker says against examples of all documents, which it reads at once: most of its time goes into the sources. */
async function saidOf(which: keyof typeof examples): Promise<string[]> {
  checked ??= checkExamples([...examples.readme, ...examples.guides]);
  const isOfReadme = (line: string): boolean =>
    Number(/example(\d+)\.ts/.exec(line)?.[1] ?? 0) < examples.readme.length;
  const lines = (await checked).split('\n').filter((line) => line !== '');
  return lines.filter((line) => isOfReadme(line) === (which === 'readme'));
}

const stale = 'out of date: npm run docs';

describe('README.md', () => {
  test('has examples that print what stands under them', async () => {
    const outputs = await runExamples(examples.readme);
    expect(outputs).toEqual(examples.readme.map(({ expected }) => expected));
  });

  test('has examples that the type checker accepts', async () => {
    expect(await saidOf('readme')).toEqual([]);
  });

  test('shows what was measured of other libraries', () => {
    expect(withSection(readme, 'comparison', comparisonSection(measurements())), stale).toBe(readme);
  });

  test('has at most 9,000 bytes', () => {
    expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(9000);
  });

  test('shows the kernel that the compiler generates', () => {
    expect(readText('docs/figures/softmax.svg'), stale).toBe(softmaxFigure());
  });
});

describe('docs/', () => {
  test('counts kernels and bytes as the compiler does', () => {
    const kernels = readText('docs/kernels.md');
    const table = budgetTable();
    expect(withSection(kernels, 'budget', table), stale).toBe(kernels);
    expect(withSection(kernels, 'model', modelTable()), stale).toBe(kernels);
    const rows = table.split('\n').length - 2;
    expect(readme).toContain(`counts the kernels and bytes of ${rows} workloads`);
  });

  test('names every command of the command line, and no other', async () => {
    const run = async (...args: readonly string[]): Promise<string> => {
      const lines: string[] = [];
      const write = (text: string): void => void lines.push(text);
      const output = { columns: undefined, line: write, part: write, note: write, live: write, mark: write };
      expect(await runCli(args, output), lines.join('\n')).toBe(0);
      return lines.join('\n');
    };
    const named = [...readText('docs/cli.md').matchAll(/^\| `sinter ([a-z]+)`/gm)].map(([, name]) => name!);
    const there = [...(await run('--help')).matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name]) => name!);
    expect(named).toEqual(there);
    for (const name of named) {
      const help = await run(name, '--help');
      expect(help).toContain(`usage: sinter ${name}`);
      // What a careless edit leaves: `means means of images`.
      expect(help, name).not.toMatch(/\b([a-z]+(?: [a-z]+)?) \1(?![\w.])/);
    }
  });

  test('names every module and optional package', () => {
    const { exports, peerDependencies } = JSON.parse(readText('package.json')) as {
      readonly exports: Readonly<Record<string, unknown>>;
      readonly peerDependencies: Readonly<Record<string, string>>;
    };
    const modules = Object.keys(exports).filter((path) => path !== './package.json');
    const cells = (text: string): string[] =>
      [...text.matchAll(/^\|([^|]*)\|/gm)].flatMap(([, cell]) =>
        [...cell!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!),
      );
    const section = (page: string, title: string): string =>
      new RegExp(`^## ${title}\n([^]*?)(?=^## |$(?![^]))`, 'm').exec(readText(page))![1]!;
    expect(cells(section('docs/guide.md', 'Modules')).toSorted()).toEqual(
      modules.map((path) => `sinter${path.slice(1)}`).toSorted(),
    );
    expect(cells(section('docs/devices.md', 'Optional packages')).toSorted()).toEqual(
      Object.keys(peerDependencies).toSorted(),
    );
  });

  test('leads from its index to every page', () => {
    const linked = [...readText('docs/index.md').matchAll(/\]\(([^)#]+)/g)].map(([, file]) =>
      posix.join('docs', file!),
    );
    const pages = filesUnder('docs', '.md').filter((path) => !path.startsWith('docs/ops/'));
    expect(pages.filter((path) => path !== 'docs/index.md' && !linked.includes(path))).toEqual([]);
  });
});

describe('the guides', () => {
  test('have examples that print what stands under them', async () => {
    expect(await runExamples(examples.guides)).toEqual(examples.guides.map(({ expected }) => expected));
  });

  test('have examples that the type checker accepts', async () => {
    expect(await saidOf('guides')).toEqual([]);
  });
});

describe('the reference', () => {
  test('has every name with its parameters, as the sources say', () => {
    expect(readText('docs/api.md'), stale).toBe(apiReference());
  });

  test('says which operations are methods', () => {
    const page = readText('docs/pytorch.md');
    expect(withSection(page, 'methods', methodNames()), stale).toBe(page);
  });

  test.each(['docs/pytorch.md', 'docs/jax.md', 'docs/tensorflow.md'])(
    'for users of other libraries names what is there: %s',
    async (page) => {
      const { known, methods, members } = await publicNames();
      const text = readText(page);
      // Calls in the columns of Sinter, `where(…)`, `x.select(…)`, `new Linear(…)`, `fft.rfft(x)`, and names alone.
      const calls = sinterCells(text).flatMap((cell) =>
        [...cell.matchAll(/`[^`]*`/g)].flatMap(([code]) => [
          ...code.matchAll(/(\w+)?\.?\b(\w+)(?=\()|^`(\w+)`$/g),
        ]),
      );
      expect(calls.length).toBeGreaterThan(30);
      const isThere = ([, of, called, alone]: readonly (string | undefined)[]): boolean => {
        const name = called ?? alone!;
        if (of === undefined) return known.has(name);
        if (members.has(of)) return members.get(of)!.has(name);
        return known.has(name) || methods.has(name) || ['optimizer', 'model'].includes(of);
      };
      expect(calls.filter((call) => !isThere(call)).map(([code]) => code)).toEqual([]);
    },
  );

  test('for users of TensorFlow.js lists names that are there', async () => {
    const { known } = await publicNames();
    const [, list] = /These have the same name[^\n]*\n\n([^]*?)\n\n/.exec(readText('docs/tensorflow.md'))!;
    const names = [...list!.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
    expect(names.length).toBeGreaterThan(50);
    expect(names.filter((name) => !known.has(name))).toEqual([]);
  });
});

/** The names that the entry points export, the methods of tensors, and the members of namespaces such as `fft`. */
async function publicNames(): Promise<{
  readonly known: ReadonlySet<string>;
  readonly methods: ReadonlySet<string>;
  readonly members: ReadonlyMap<string, ReadonlySet<string>>;
}> {
  const [main, ...others] = await Promise.all([
    import('../../src/index.ts'),
    import('../../src/nn/index.ts'),
    import('../../src/optim/index.ts'),
    import('../../src/io/index.ts'),
    import('../../src/onnx/index.ts'),
    import('../../src/data/index.ts'),
    import('../../src/train/index.ts'),
    import('../../src/pixels/index.ts'),
  ]);
  const exported = [main, ...others].flatMap((entry) => Object.entries(entry as Record<string, unknown>));
  const namespaces = exported.filter(([, value]) => typeof value === 'object' && value !== null);
  return {
    known: new Set(exported.map(([name]) => name)),
    methods: new Set(Object.getOwnPropertyNames(main.Tensor.prototype)),
    members: new Map(namespaces.map(([name, value]) => [name, new Set(Object.keys(value as object))])),
  };
}

/** The cells below the head `Sinter` of every table of two columns. */
function sinterCells(markdown: string): string[] {
  const tables = markdown.matchAll(/(?:^\|.*\|\n)+/gm);
  return [...tables].flatMap(([table]) => {
    const rows = table
      .trimEnd()
      .split('\n')
      .map((row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim()));
    const column = rows[0]!.findIndex((title) => /^Sinter\b/.test(title));
    return column < 0 ? [] : rows.slice(2).map((row) => row[column]!);
  });
}

describe('ARCHITECTURE.md and docs/design', () => {
  test('are short: a map of at most 14,000 bytes, and pages of at most 8,200', () => {
    expect(Buffer.byteLength(architecture)).toBeLessThanOrEqual(14_000);
    const long = design.filter((path) => Buffer.byteLength(readText(path)) > 8200);
    expect(long).toEqual([]);
  });

  test('every page of the design is on the map', () => {
    expect(design.filter((path) => !architecture.includes(`](${path})`))).toEqual([]);
  });

  test('name source files that exist', () => {
    const texts = [architecture, ...['CONTRIBUTING.md', ...design].map(readText)].join('\n');
    const named = [...texts.matchAll(/[\w/{},.*-]+\.ts\b/g)].flatMap(([path]) => alternatives(path));
    expect(named.length).toBeGreaterThan(50);
    const known = [
      ...sources.keys(),
      ...['test', 'bench', 'scripts'].flatMap((folder) => filesUnder(folder)),
    ];
    const lost = named.filter((path) => {
      const pattern = new RegExp(`(?:^|/)${path.replaceAll('.', '\\.').replaceAll('*', '[\\w-]+')}$`);
      return !known.some((file) => pattern.test(file));
    });
    expect(lost).toEqual([]);
  });

  test('has a line for every folder and file at the top of the source tree', () => {
    const map = architecture.slice(architecture.indexOf('## Folders'));
    const rooms = new Set([...sources.keys()].map((path) => path.split('/')[1]!));
    expect([...rooms].filter((room) => !map.includes(room))).toEqual([]);
  });
});

describe('links and scripts', () => {
  const scripts = Object.keys(
    (JSON.parse(readText('package.json')) as { scripts: Readonly<Record<string, string>> }).scripts,
  );

  test.each(documents)('of %s exist', (path) => {
    const text = readText(path);
    const run = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!);
    expect(run.filter((name) => !scripts.includes(name))).toEqual([]);
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)];
    for (const [link, file, anchor] of links) {
      const target = file === '' ? path : posix.join(dirname(path), file!);
      expect(existsSync(join(root, target)), link).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(readText(target)), link).toContain(anchor);
    }
  });
});

/** `schedule/{plan,body}.ts` as its two paths. */
function alternatives(path: string): string[] {
  const braces = /^(.*)\{([^}]*)\}(.*)$/.exec(path);
  if (braces === null) return [path];
  const [, before, list, after] = braces;
  return list!.split(',').map((item) => `${before}${item}${after}`);
}

function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  );
}
