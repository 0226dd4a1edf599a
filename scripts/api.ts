// docs/api.md: every public name with its parameters and the first sentence of its comment, made of the sources by `npm run docs`. The
// sections are those of each entry's index file.

import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { namespaces } from './operations/declared.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const entries = [
  ['sinter', 'src/index.ts', 'Tensors, operations, derivatives, compiling, devices.'],
  ['sinter/nn', 'src/nn/index.ts', 'Layers, their parameters and initial values.'],
  ['sinter/optim', 'src/optim/index.ts', 'Optimizers as classes and as functions, schedules, clipping.'],
  [
    'sinter/data',
    'src/data/index.ts',
    'Datasets, loaders of batches, progress, and metrics that stay on the device.',
  ],
  [
    'metrics',
    'src/data/metrics/metrics.ts',
    'Metrics, a namespace of `sinter/data`: each is four functions of a state, which `Metric` keeps for them.',
  ],
  ['sinter/io', 'src/io/index.ts', 'Files of tensors.'],
  ['sinter/onnx', 'src/onnx/index.ts', 'Models in the ONNX format, in and out.'],
  ['sinter/train', 'src/train/index.ts', 'Trainings as a whole.'],
  ['sinter/distributed', 'src/distributed/index.ts', 'Worlds of several processes.'],
  ['sinter/ir', 'src/ir/index.ts', 'Graphs as text and data: build, parse, print, verify, interpret.'],
  ['sinter/notation', 'src/notation/index.ts', 'Kernels written by what each element is.'],
  [
    'sinter/runtime',
    'src/interop/index.ts',
    'Memory, layouts, fences, pools and backends, for other code on the same device.',
  ],
  [
    'sinter/pixels',
    'src/pixels/index.ts',
    'Pictures and frames of videos as tensors, and tensors on canvases.',
  ],
  ['sinter/llm', 'src/llm/index.ts', 'Language models: text, conversations, scores, embeddings.'],
  [
    'sinter/quant',
    'src/quant/index.ts',
    'Weights in blocks of a few bits, decoded where products read them.',
  ],
  ['sinter/explain', 'src/explain/index.ts', 'The page that shows what a program becomes.'],
] as const;

export interface Exported {
  readonly name: string;
  readonly isType: boolean;
  /** The file that declares it. */
  readonly path: string;
  /** What it is called there. */
  readonly own: string;
}

interface Section {
  readonly title: string;
  readonly names: readonly Exported[];
}

const list =
  /^(?:\/\/ (?<title>[^\n]+)\n)?export (?<type>type )?\{(?<items>[^}]*)\} from '(?<from>[^']+)';/gm;

const declaration =
  /^export (?:declare )?(?:abstract )?(?:async )?(?<kind>const|function\*?|class|interface|type) (?<name>\w+)/gm;
const ownList = /^export (?<type>type )?\{(?<items>[^}]*)\};/gm;

/** What a file declares itself, as lists of names from it. */
function declaredIn(path: string): string {
  const text = read(path);
  const own = [...text.matchAll(declaration)].map(({ groups = {} }) => {
    const isType = groups['kind'] === 'interface' || groups['kind'] === 'type';
    return `${isType ? 'type ' : ''}${groups['name']}`;
  });
  const listed = [...text.matchAll(ownList)].flatMap(({ groups = {} }) =>
    (groups['items'] ?? '').split(',').map((item) => `${groups['type'] ?? ''}${item.trim()}`),
  );
  const names = [...own, ...listed].filter((name) => name !== '' && name !== 'type ');
  return names.length === 0 ? '' : `export { ${names.join(', ')} } from './${path.split('/').at(-1)}';\n`;
}

/** The text of an index file, with that of the files that it exports whole; places are seen from the index file. */
function withLists(path: string): string {
  return read(path).replaceAll(/^export \* from '([^']+)';$/gm, (_, from: string) => {
    const file = join(path, '..', from);
    return `${withLists(file)}${declaredIn(file)}`.replaceAll(
      / from '([^']+)';/g,
      (__, inner: string) => ` from './${relative(dirname(path), join(file, '..', inner))}';`,
    );
  });
}

/** The namespaces among the names of an index file: what `export * as` names, its file, and what that says of itself. */
function namespacesOf(path: string): (readonly [name: string, path: string, about: string])[] {
  return [...withLists(path).matchAll(/^export \* as (\w+) from '([^']+)';$/gm)].map(([, name, from]) => {
    const file = join(path, '..', from!);
    return [name!, file, `${namespaces[name!] ?? ''} Of \`sinter\`: \`sn.${name}\`.`.trimStart()];
  });
}

const all = (): (readonly [name: string, path: string, about: string])[] =>
  entries.flatMap((entry) => [entry, ...namespacesOf(entry[1])]);

/** Every public name that is called, by how users reach it: `softmax`, `linalg.svd`, with how it is called and what it is. */
export function calledNames(): Map<string, { readonly call: string; readonly sentence: string }> {
  const [main] = entries;
  const spaces = [['', main[1]] as const, ...namespacesOf(main[1])];
  return new Map(
    spaces.flatMap(([space, path]) =>
      sectionsOf(path).flatMap(({ names }) =>
        names
          .filter(({ isType }) => !isType)
          .map((each) => {
            const told = { call: callOf(each), sentence: sentenceOf(each) };
            return [space === '' ? each.name : `${space}.${each.name}`, told] as const;
          }),
      ),
    ),
  );
}

/** The exports of an index file, a file of its own declarations too, under the comments that stand over them. */
function sectionsOf(path: string): Section[] {
  const sections: { title: string; names: Exported[] }[] = [];
  for (const { groups = {} } of `${withLists(path)}${declaredIn(path)}`.matchAll(list)) {
    const { title, type, items = '', from = '' } = groups;
    if (title !== undefined || sections.length === 0) sections.push({ title: title ?? '', names: [] });
    const file = join(path, '..', from);
    for (const item of items.split(',').map((part) => part.trim())) {
      if (item === '') continue;
      const [own, name = own] = item.replace(/^type /, '').split(' as ') as [string, string?];
      const isType = type !== undefined || item.startsWith('type ');
      sections.at(-1)?.names.push({ name, isType, ...declared(file, own) });
    }
  }
  return sections;
}

/** Where a name is declared, following files that hand it on. */
function declared(path: string, own: string): { path: string; own: string } {
  for (const { groups = {} } of read(path).matchAll(list)) {
    for (const item of (groups['items'] ?? '').split(',').map((part) => part.trim().replace(/^type /, ''))) {
      const [inner, outer = inner] = item.split(' as ') as [string, string?];
      if (outer === own) return declared(join(path, '..', groups['from'] ?? ''), inner);
    }
  }
  return { path, own };
}

/** The names of parameters in a list of them, optional ones with a question mark. */
function parameters(text: string): string[] {
  const parts: string[] = [];
  let [depth, part] = [0, ''];
  for (const [i, char] of [...text].entries()) {
    if ('([{<'.includes(char)) depth++;
    // The arrow of a function type closes nothing.
    if (')]}'.includes(char) || (char === '>' && text[i - 1] !== '=')) depth--;
    if (depth < 0) break;
    if (char === ',' && depth === 0) {
      parts.push(part);
      part = '';
    } else part += char;
  }
  return [...parts, part].flatMap((each) => {
    const name = /^\s*(?:(?:public|private|readonly) )*(\.\.\.)?(\w+)(\?)?(?:[^=]|=>)*(=)?/.exec(each);
    if (name === null) return [];
    const [, rest = '', word = '', optional, fallback] = name;
    return [`${rest}${word}${optional !== undefined || fallback !== undefined ? '?' : ''}`];
  });
}

/** The parameters of functions that are made, by their type. */
const operandsOf = {
  Unary: 'x',
  Binary: 'x, y',
  Polynomial: 'x, n, options?',
  OfOne: 'parameter?',
  OfShare: 'p',
  OfTwo: 'first?, second?',
  Along: 'x, options?',
  Several: 'x, options?',
} as const;

/** How it is called, for what is called: `softmax(x, axes?, options?)`. */
function callOf({ name, own, path }: Exported): string {
  const text = read(path);
  const made = new RegExp(`^export (?:abstract )?class ${own}\\b[^{]*\\{`, 'm').exec(text);
  if (made !== null) {
    const body = text.slice(made.index);
    const end = body.indexOf('\n}\n');
    const constructor = /^ {2}constructor\(/m.exec(body.slice(0, end));
    const taken =
      constructor === null
        ? constructorOfBase(text, made[0])
        : body.slice(constructor.index + constructor[0].length);
    return taken === undefined ? `class ${name}` : `new ${name}(${parameters(taken).join(', ')})`;
  }
  const called = new RegExp(`^(?:export )?(?:async )?function\\*? ${own}(?:<[^(]*>)?\\(`, 'm').exec(text);
  const operands = new RegExp(`^export const ${own}: (\\w+) = `, 'm').exec(text)?.[1];
  if (operands !== undefined && Object.hasOwn(operandsOf, operands))
    return `${name}(${operandsOf[operands as keyof typeof operandsOf]})`;
  if (called === null) return name;
  return `${name}(${parameters(text.slice(called.index + called[0].length)).join(', ')})`;
}

/** What stands after `new (` in the type of the base of a class, where a factory made that base. */
function constructorOfBase(text: string, heading: string): string | undefined {
  const base = /extends (\w+)/.exec(heading)?.[1];
  let type = new RegExp(`^const ${base}: (\\w+)`, 'm').exec(text)?.[1];
  while (type !== undefined) {
    const declared = new RegExp(`^type ${type}\\b[^;]*;`, 'm').exec(text)?.[0] ?? '';
    const start = declared.indexOf('new (');
    if (start >= 0) return declared.slice(start + 'new ('.length);
    // It is another such type, with arguments.
    type = / = (\w+)</.exec(declared)?.[1];
  }
  return undefined;
}

/** The first sentence of the comment over the declaration. */
function sentenceOf({ own, path }: Exported): string {
  const text = read(path);
  const at = new RegExp(
    `^(?:export )?(?:declare )?(?:abstract )?(?:async )?(?:const|function\\*?|class|interface|type) ${own}\\b`,
    'm',
  ).exec(text);
  const before = at === null ? '' : text.slice(0, at.index).trimEnd();
  if (!before.endsWith('*/')) return '';
  const comment = before
    .slice(before.lastIndexOf('/**') + 3, -2)
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trim())
    .join(' ')
    .trim();
  const sentence = /^.*?(?:[.](?= |$)|:(?= [A-Z`]|$))(?![^(]*\))/.exec(comment)?.[0] ?? comment;
  return sentence.replace(/:$/, '.');
}

/** The text of docs/api.md. */
export function apiReference(): string {
  const lines = [
    '# Names',
    '',
    'Every public name, how it is called, and what it is. Parameters with a question mark may be left out; options come last, as an object.',
    'Types and units stand in the comments that an editor shows. Made by `npm run docs`.',
    '',
    ...all().map(([name]) => `- [\`${name}\`](#${name.replace('/', '')})`),
  ];
  for (const [name, path, about] of all()) {
    lines.push('', `## ${name}`, '', about);
    for (const { title, names } of sectionsOf(path)) {
      const called = names.filter(({ isType }) => !isType);
      const types = names.filter(({ isType }) => isType).map((each) => `\`${each.name}\``);
      if (title !== '') lines.push('', `### ${title}`);
      lines.push('', ...called.map((each) => `- \`${callOf(each)}\`: ${sentenceOf(each)}`));
      if (types.length > 0) lines.push(`- Types: ${types.join(', ')}`);
    }
  }
  return `${lines.join('\n').replaceAll('\n\n\n', '\n\n')}\n`;
}
