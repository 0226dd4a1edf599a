// The documents say what is so: their code runs and prints what they show, their counts are the compiler's, and the names of
// files, passes, scripts and commands in them exist.

import { existsSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { apiReference } from '../../scripts/api.ts';
import { budgetTable, methodNames, withSection } from '../../scripts/docs.ts';
import { checkExamples, examplesOf, runExamples } from '../../scripts/examples.ts';
import { softmaxFigure } from '../../scripts/figure.ts';
import { runCli } from '../../src/cli/commands.ts';
import { filesUnder, readText, root, sources } from './source.ts';

const readme = readText('README.md');
const architecture = readText('ARCHITECTURE.md');
const documents = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...filesUnder('docs', '.md'),
];
const guides = [
  'docs/nn.md',
  'docs/training.md',
  'docs/functions/transforms.md',
  'docs/functions/control-flow.md',
].map((path) => readText(path));
const examples = { readme: examplesOf(readme), guides: guides.flatMap(examplesOf) };

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

  test('counts kernels and bytes as the compiler does', () => {
    expect(withSection(readme, 'budget', budgetTable()), stale).toBe(readme);
  });

  test('shows the kernel that the compiler generates', () => {
    expect(readText('docs/figures/softmax.svg'), stale).toBe(softmaxFigure());
  });

  test('names commands that exist', async () => {
    const named = new Set([...readme.matchAll(/`sinter ([a-z]+)`/g)].map(([, name]) => name!));
    expect(named.size).toBeGreaterThan(0);
    for (const name of named) {
      const lines: string[] = [];
      const write = (text: string): void => void lines.push(text);
      const output = { columns: undefined, line: write, part: write, note: write, live: write, mark: write };
      expect(await runCli([name, '--help'], output), lines.join('\n')).toBe(0);
      expect(lines.join('\n')).toContain(`usage: sinter ${name}`);
    }
  });
});

describe('the guides to models, training, transforms and loops', () => {
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

  test.each(['docs/pytorch.md', 'docs/jax.md'])(
    'for users of other libraries names what is there: %s',
    async (page) => {
      const [main, nn, optim, io, onnx, data, train] = await Promise.all([
        import('../../src/index.ts'),
        import('../../src/nn/index.ts'),
        import('../../src/optim/index.ts'),
        import('../../src/io/index.ts'),
        import('../../src/onnx/index.ts'),
        import('../../src/data/index.ts'),
        import('../../src/train/index.ts'),
      ]);
      const known = new Set(
        [main, nn, optim, io, onnx, data, data.metrics, train].flatMap((entry) => Object.keys(entry)),
      );
      const methods = new Set(Object.getOwnPropertyNames(main.Tensor.prototype));
      // Calls in the right columns: `where(…)`, `x.select(…)`, `new Linear(…)`.
      const cells = readText(page).matchAll(/^\|[^|]+\|([^|]+)\|$/gm);
      const calls = [...cells].flatMap(([, cell]) =>
        [...cell!.matchAll(/`[^`]*`/g)].flatMap(([code]) => [
          ...code.matchAll(/(\w+\.)?(\w+)(?=\()|^`(\w+)`$/g),
        ]),
      );
      expect(calls.length).toBeGreaterThan(30);
      const lost = calls.filter(([, of, called, alone]) =>
        of !== undefined && !known.has(called!)
          ? !methods.has(called!) && !['optimizer', 'model'].includes(of.slice(0, -1))
          : !known.has(called ?? alone!),
      );
      expect(lost.map(([text]) => text)).toEqual([]);
    },
  );
});

describe('ARCHITECTURE.md', () => {
  test('names source files that exist', () => {
    const named = [...architecture.matchAll(/[\w/{},.*-]+\.ts\b/g)].flatMap(([path]) => alternatives(path));
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
