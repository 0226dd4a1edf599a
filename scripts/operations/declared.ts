// The operations as the sources declare them. An operation is an exported function of src/tensor/ops: its signature says what it takes
// and gives, and its comment says the rest: what it means, examples, and by tags where it is found. The lists of public names, the
// methods and their types, the documents and the table that coverage is measured by are all made of what this file reads.
//
// The tags of a comment:
//   @names a, linalg.b   public names, where they are not the function's own (in the folder of a namespace: its own name there)
//   @internal            it has no public name
//   @method [name]       it is a method of tensors too, called on the first operand
//   @getter name         it is a property of tensors
//   @torch a, b; @jax a  its names in those libraries, or `none`, where they do not follow the rule of peers.ts
//   @family Title        its family in the documents, where that is not the family of its file
//   @example             lines `const x = …;` and a call; all but the first of several have a <caption>

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, type ParseResult } from 'rolldown/utils';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The folder of operations. */
const folder = 'src/tensor/ops';

/**
 * The namespaces, and what they hold, in words. What a folder of the name of one exports is in it.
 */
export const namespaces: Readonly<Record<string, string>> = {
  distributions:
    'Distributions: each is made of its parameters, and has `sample`, `rsample`, `logProb`, `mean`, `variance`.',
  fft: 'Fourier transforms, as in torch.fft.',
  linalg: 'Linear algebra, as in torch.linalg.',
  masked: 'Operations over the elements where a mask is true, as in torch.masked.',
  sparse: 'Sparse matrices of compressed rows, compressed columns, or places one by one.',
  sparse24: 'Matrices with two elements in each group of four.',
  special: 'Special functions, as in torch.special.',
};

type Statement = ParseResult['program']['body'][number];
type Exported = Extract<Statement, { type: 'ExportNamedDeclaration' }>;
export type Declaration = NonNullable<Exported['declaration']>;

export interface Example {
  /** What tells it from the first one: `i64`; empty for the first. */
  readonly caption: string;
  /** Inputs by name. */
  readonly given: Readonly<Record<string, string>>;
  readonly call: string;
}

/** An exported declaration of a file of operations. */
export interface Operation {
  /** From the root: `src/tensor/ops/reduce/scan.ts`. */
  readonly path: string;
  /** The name that it has in its file. */
  readonly own: string;
  readonly kind: 'function' | 'class' | 'type';
  /** Public names; those of namespaces with it: `linalg.svd`. */
  readonly names: readonly string[];
  readonly method: string | undefined;
  readonly getter: string | undefined;
  readonly family: string | undefined;
  /** Its names in other libraries, where the comment says them; none where it has none there. */
  readonly peers: {
    readonly torch: readonly string[] | undefined;
    readonly jax: readonly string[] | undefined;
  };
  /** The comment without its tags. */
  readonly meaning: string;
  readonly examples: readonly Example[];
  /** Its declarations, several of a function with several signatures. */
  readonly declarations: readonly Declaration[];
}

/** A file of operations, parsed. */
export interface OperationFile {
  readonly path: string;
  readonly text: string;
  readonly body: readonly Statement[];
  readonly operations: readonly Operation[];
}

/** The comment that stands before a statement, without its stars. */
function commentBefore(text: string, start: number): string[] {
  const before = text.slice(0, start).replace(/(?:\/\* @__NO_SIDE_EFFECTS__ \*\/|\/\/[^\n]*|\s)*$/, '');
  if (!before.endsWith('*/')) return [];
  const opening = before.lastIndexOf('/*');
  if (!before.startsWith('/**', opening)) return [];
  return before
    .slice(opening + 3, -2)
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trim());
}

interface Comment {
  readonly meaning: string;
  readonly tags: ReadonlyMap<string, string>;
  readonly examples: readonly Example[];
}

function exampleOf(caption: string, lines: readonly string[], where: string): Example {
  const given: Record<string, string> = {};
  const calls: string[] = [];
  for (const line of lines.filter((each) => each !== '')) {
    const input = /^const (\w+) = (.*);$/.exec(line);
    if (input !== null && calls.length === 0) given[input[1]!] = input[2]!;
    else calls.push(line);
  }
  const call = calls.join(' ');
  if (!/^[^;]+;$/.test(call))
    throw new Error(`${where}: an example is lines 'const x = …;' and a call, got: ${call}`);
  return { caption, given, call: call.slice(0, -1) };
}

function commentOf(lines: readonly string[], where: string): Comment {
  const meaning: string[] = [];
  const tags = new Map<string, string>();
  const examples: Example[] = [];
  let example: { caption: string; lines: string[] } | undefined;
  const close = (): void => {
    if (example !== undefined) examples.push(exampleOf(example.caption, example.lines, where));
    example = undefined;
  };
  for (const line of lines) {
    const tag =
      /^(?<before>.*?)\s*@(?<name>names|internal|method|getter|family|torch|jax|example)\b\s*(?<value>.*)$/.exec(
        line,
      )?.groups;
    if (tag === undefined) {
      if (example !== undefined) example.lines.push(line);
      else meaning.push(line);
      continue;
    }
    close();
    meaning.push(tag['before']!);
    const { name = '', value = '' } = tag;
    if (name === 'example') {
      const caption = /^<caption>(.*)<\/caption>$/.exec(value)?.[1] ?? value;
      example = { caption, lines: [] };
    } else tags.set(name, value);
  }
  close();
  return { meaning: meaning.join('\n').trim(), tags, examples };
}

const nameOf = (declaration: Declaration): string => {
  if (declaration.type === 'VariableDeclaration') {
    const [first] = declaration.declarations;
    return first!.id.type === 'Identifier' ? first!.id.name : '';
  }
  const { id } = declaration as { readonly id?: { readonly name?: string } | null };
  return id?.name ?? '';
};

function kindOf({ type }: Declaration): Operation['kind'] {
  if (type === 'ClassDeclaration') return 'class';
  return type === 'TSInterfaceDeclaration' || type === 'TSTypeAliasDeclaration' ? 'type' : 'function';
}

function read(path: string): OperationFile {
  const text = readFileSync(join(root, path), 'utf8');
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  const found = new Map<string, { start: number; declarations: Declaration[] }>();
  for (const statement of program.body) {
    if (statement.type !== 'ExportNamedDeclaration' || statement.declaration === null) continue;
    const own = nameOf(statement.declaration);
    const seen = found.get(own);
    if (seen !== undefined) seen.declarations.push(statement.declaration);
    else found.set(own, { start: statement.start, declarations: [statement.declaration] });
  }
  const [inner = ''] = path.slice(folder.length + 1).split('/');
  const operations = [...found].map(([own, { start, declarations }]): Operation => {
    const { meaning, tags, examples } = commentOf(commentBefore(text, start), `${path}: ${own}`);
    const usual = Object.hasOwn(namespaces, inner) ? `${inner}.${own}` : own;
    const names = tags.get('names')?.split(/,\s*/) ?? (tags.has('internal') ? [] : [usual]);
    const method = tags.get('method');
    const listed = (tag: string): readonly string[] | undefined =>
      tags.get(tag) === 'none' ? [] : tags.get(tag)?.split(/,\s*/);
    return {
      path,
      own,
      kind: kindOf(declarations[0]!),
      names,
      method: method === '' ? own : method,
      getter: tags.get('getter'),
      family: tags.get('family'),
      peers: { torch: listed('torch')?.map((name) => name.replace(/^torch\./, '')), jax: listed('jax') },
      meaning,
      examples,
      declarations,
    };
  });
  return { path, text, body: program.body, operations };
}

let files: readonly OperationFile[] | undefined;

/** The files of operations. They are read once. */
export function operationFiles(): readonly OperationFile[] {
  files ??= readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .toSorted()
    .map(read);
  return files;
}

/** What the files of operations export. */
export function operations(): readonly Operation[] {
  return operationFiles().flatMap((file) => file.operations);
}
