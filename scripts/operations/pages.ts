// docs/ops.md and docs/ops/*.md: every operation with its meaning, dtypes, gradient, and an example with what it gives. Made of the table
// of operations that coverage is measured by, of signatures and comments of the sources, and of what the reference interpreter computes.

import * as sn from '../../src/index.ts';
import { dtypes, isComplex, partType, type DType } from '../../src/ir/dtype.ts';
import { unpackBytes } from '../../src/ir/value.ts';
import type { HostTensor } from '../../src/io/host.ts';
import { toHostTensor } from '../../src/io/tensors.ts';
import {
  called,
  evaluate,
  givenOf,
  hasDtypes,
  inputsIn,
  tensorsIn,
} from '../../test/support/coverage/call.ts';
import { dtypesOf, outcomeOf } from '../../test/support/coverage/cells.ts';
import { catalogue } from '../../test/support/coverage/catalogue.ts';
import { lacking, refusedIn } from '../../test/support/coverage/refusals.ts';
import { calledNames } from '../api.ts';
import { operations as declared } from './declared.ts';
import { namesIn, peers } from './peers.ts';
import { rowFamilies, type Row, type RowFamily } from './rows.ts';

const columns = 136;

/** Names of groups of dtypes, where a group is whole. */
const groups: readonly (readonly [name: string, members: readonly DType[]])[] = [
  ['floats', ['f16', 'bf16', 'f32', 'f64']],
  ['integers', ['i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64']],
  ['complex', ['c64', 'c128']],
];

function grouped(found: readonly DType[]): string {
  const left = new Set(found);
  const words: string[] = [];
  for (const [name, members] of groups) {
    if (!members.every((dtype) => left.has(dtype))) continue;
    words.push(name);
    for (const dtype of members) left.delete(dtype);
  }
  return [...words, ...left].join(', ');
}

/** A number in at most four digits. */
function short(x: number | bigint): string {
  if (typeof x === 'bigint') return String(x);
  if (!Number.isFinite(x)) return Number.isNaN(x) ? 'NaN' : x > 0 ? '∞' : '−∞';
  return String(Number(x.toPrecision(4)));
}

/** `f32[2,2] [[1, 2], [3, 4]]`. */
function shown({ dtype, shape, data }: HostTensor): string {
  const width = isComplex(dtype) ? 2 : 1;
  const size = shape.reduce((product, n) => product * n, 1);
  const flat = unpackBytes(data, partType(dtype), [size * width]).data;
  const at = (i: number): string => {
    if (dtype === 'bool') return flat[i] === 0 ? 'false' : 'true';
    if (width === 1) return short(flat[i]!);
    const imaginary = short(flat[2 * i + 1]!);
    return `${short(flat[2 * i]!)}${imaginary.startsWith('-') ? '' : '+'}${imaginary}i`;
  };
  const nested = (axis: number, from: number): string => {
    if (axis === shape.length) return at(from);
    const step = shape.slice(axis + 1).reduce((product, n) => product * n, 1);
    const items = Array.from({ length: shape[axis]! }, (_, i) => nested(axis + 1, from + i * step));
    return `[${items.join(', ')}]`;
  };
  return `${dtype}[${shape.join(',')}] ${nested(0, 0)}`;
}

/** What a result prints, a line a tensor, by the names of its parts. */
async function printed(result: unknown, name = ''): Promise<string[]> {
  const before = name === '' ? '' : `${name}: `;
  if (result instanceof sn.Tensor) return [`${before}${shown(await toHostTensor(result))}`];
  if (typeof result !== 'object' || result === null) return [`${before}${String(result)}`];
  const parts = Object.entries(result).map(([key, part]) => {
    const own = Array.isArray(result) ? `[${key}]` : key;
    return printed(part, name === '' ? own : `${name}${own.startsWith('[') ? '' : '.'}${own}`);
  });
  return (await Promise.all(parts)).flat();
}

/** Lines of a comment. */
function commented(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const words = line.split(' ');
    const made = ['//'];
    for (const word of words) {
      if (made.at(-1)!.length + word.length + 1 > columns) made.push('//  ');
      made[made.length - 1] += ` ${word}`;
    }
    return made;
  });
}

/** The dtype that the text of a row is in. */
function ownDtype(given: Readonly<Record<string, HostTensor>>): DType | undefined {
  const all = Object.values(given).map(({ dtype }) => dtype);
  return all.find((dtype) => /^[bfc]/.test(dtype) && dtype !== 'bool') ?? all[0];
}

interface Facts {
  readonly example: readonly string[];
  readonly dtypes: string;
  readonly gradient: boolean;
}

async function resultOf(row: Row, values: Readonly<Record<string, sn.Tensor>>): Promise<unknown> {
  sn.manualSeed(7);
  return await evaluate(row.call, values);
}

/** What a row takes and gives, as the interpreter has it. */
async function factsOf(row: Row): Promise<Facts> {
  const given = await givenOf(row);
  const own = ownDtype(given) ?? 'f32';
  const values = tensorsIn(given, true);
  const outputs = await called(row, own, values);
  const gradient = outputs.some((output) => output.requiresGrad);
  const byResult = new Map<string, DType[]>();
  for (const dtype of dtypesOf(row, dtypes)) {
    if (!hasDtypes(row)) break;
    try {
      const [first] = await called(row, dtype, tensorsIn(await inputsIn(given, dtype), false));
      const gives = first === undefined || first.dtype === dtype ? '' : first.dtype;
      byResult.set(gives, [...(byResult.get(gives) ?? []), dtype]);
    } catch (error) {
      const outcome = outcomeOf(error);
      if (outcome.kind === 'failed') throw error;
    }
  }
  const parts = [...byResult].map(
    ([gives, found]) => `${grouped(found)}${gives === '' ? '' : ` → ${gives}`}`,
  );
  const inputs = Object.entries(row.given).map(([name, code]) => `const ${name} = ${code};`);
  const result = await resultOf(row, tensorsIn(given, false));
  const waits = row.sized !== undefined || row.eager !== undefined ? 'await ' : '';
  const call = `${waits}${row.call};`;
  return {
    example: [...inputs, call, ...commented(await printed(result))],
    dtypes: parts.join('; '),
    gradient,
  };
}

/** Rows of one operation: its name, then others of it. */
function operations(family: RowFamily): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const row of family.rows) {
    const name = row.name.split('/')[0]!;
    found.set(name, [...(found.get(name) ?? []), row]);
  }
  return found;
}

const anchor = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .replaceAll(' ', '-');

/** What an operation is called elsewhere: `PyTorch: torch.add`. */
function elsewhere(name: string): string[] {
  const own = declared().find(({ names }) => names.includes(name));
  if (own === undefined) return [];
  return peers.flatMap((peer) => {
    const names = namesIn(peer, own).map((each) => `\`${peer.prefix}${each}\``);
    return names.length === 0 ? [] : [`${peer.title}: ${names.join(', ')}`];
  });
}

async function operation(
  name: string,
  rows: readonly Row[],
  names: ReturnType<typeof calledNames>,
): Promise<string[]> {
  const told = names.get(name);
  const short = name.split('.').at(-1)!;
  const space = name.slice(0, name.length - short.length);
  const isMethod = told === undefined;
  const lines = ['', `### ${name}`, ''];
  const meaning = isMethod
    ? `A method of tensors: \`${rows[0]!.call}\`.`
    : `\`${space}${told.call}\`: ${told.sentence}`;
  lines.push(...filled(meaning.split(' ')), '');
  const all: Facts[] = [];
  for (const row of rows) all.push(await factsOf(row));
  const [first] = all;
  const lists = [first!.dtypes === '' ? [] : [`dtypes: ${first!.dtypes}`]].flat();
  const onnx = refusedIn('exported', name);
  lines.push(
    [
      ...lists,
      first!.gradient ? `gradient: ${refusedIn('differentiated', name) ?? 'yes'}` : 'gradient: none',
      ...(!isMethod && name in sn.Tensor.prototype ? ['a method too'] : []),
      ...elsewhere(name),
      ...(onnx === undefined ? [] : [`ONNX: not supported, because ${onnx.replace(/^which/, 'it')}`]),
    ].join(' · '),
  );
  lines.push('', '```ts');
  const seen = new Set<string>();
  const examples = all.map(({ example }) =>
    example.filter((line) => {
      const isNew = !seen.has(line);
      if (line.startsWith('const ')) seen.add(line);
      return isNew || !line.startsWith('const ');
    }),
  );
  lines.push(examples.map((example) => example.join('\n')).join('\n'), '```');
  return lines;
}

async function page(members: readonly RowFamily[], names: ReturnType<typeof calledNames>): Promise<string> {
  const lines = [
    `# ${members.map(({ title }) => title).join('; ')}`,
    '',
    'Made by `npm run docs`. [Operations](../ops.md) explains the lines of dtypes, and lists what targets lack.',
  ];
  for (const family of members) {
    lines.push('', `## ${family.title}`, '', ...filled(family.about.split(' ')));
    for (const [each, rows] of operations(family)) lines.push(...(await operation(each, rows, names)));
  }
  return `${lines.join('\n')}\n`;
}

function contents(pages: ReadonlyMap<string, readonly RowFamily[]>): string {
  const lines = [
    '# Operations',
    '',
    'This page lists every operation: how you call it, what it means, which dtypes it takes, whether it has a gradient, and an example.',
    '`npm run docs` makes it from the table that `npm run coverage:ops` measures on every target.',
    '',
    'A line of dtypes lists what an operation takes; `→ f32` is the dtype of the result if it differs. Any other dtype throws',
    'a `TensorError` (E_DTYPE) at the line of the call. *floats* are f16 bf16 f32 f64, *integers* i8 u8 i16 u16 i32 u32 i64 u64, *complex*',
    'c64 c128. Numbers in results are shown with four digits.',
    '',
    '| target | dtypes that it lacks |',
    '| --- | --- |',
    ...Object.entries(lacking).map(
      ([target, list]) => `| ${target} | ${list.length === 0 ? 'none' : list.join(' ')} |`,
    ),
    '',
    'If a target lacks a dtype, the first read throws E_UNSUPPORTED. Nothing is computed in less precision.',
    '',
    'Every operation is a function. The everyday ones are methods of tensors too, `x.add(y)` for `add(x, y)`, and their entries say so.',
    '',
    'Every operation runs alone, inside `compile`, in bundles built ahead of time, and as an ONNX model, unless its entry says otherwise.',
  ];
  for (const [name, members] of pages) {
    for (const family of members) {
      const known = [...operations(family).keys()].map((each) => `[${each}](ops/${name}.md#${anchor(each)})`);
      lines.push('', `## ${family.title}`, '', ...filled(known));
    }
  }
  lines.push('', `The catalogue that this list is compared with has ${catalogue.length} rows.`);
  return `${lines.join('\n')}\n`;
}

/** Words in lines of at most so many characters. */
function filled(words: readonly string[]): string[] {
  const lines = [''];
  for (const word of words) {
    if (lines.at(-1)!.length + word.length + 1 > columns) lines.push('');
    lines[lines.length - 1] = `${lines.at(-1)!} ${word}`.trim();
  }
  return lines;
}

/** The examples of a document, as a module. */
export function examplesOf(markdown: string): string {
  const blocks = [...markdown.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => `{\n${code}}`);
  return [`import * as sn from 'sinter';`, ...blocks].join('\n');
}

/** The documents of operations by path. */
export async function operationPages(): Promise<Map<string, string>> {
  sn.setDevice('interpreter');
  const state = sn.saveRngState();
  const pages = new Map<string, readonly RowFamily[]>();
  for (const family of rowFamilies()) pages.set(family.page, [...(pages.get(family.page) ?? []), family]);
  const names = calledNames();
  const made = new Map([['docs/ops.md', contents(pages)]]);
  for (const [name, members] of pages) made.set(`docs/ops/${name}.md`, await page(members, names));
  sn.restoreRngState(state);
  return made;
}
