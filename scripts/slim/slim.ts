// Makes the build as small as what is published may be: code without comments, indented by tabs, and declarations in few
// files (declarations.ts). Part of `npm run build`, after the compiler and scripts/prune.ts;
// `tsx scripts/slim/slim.ts [DIR]` does it to another folder of that layout.

import { readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';
import { parseSync } from 'rolldown/experimental';
import { joinDeclarations, visit } from './declarations.ts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** Folders of classes whose names are in messages: layers, optimizers, datasets. */
const namedFolders = ['nn', 'optim', 'data', 'quant', 'llm'];

/**
 * Code whose classes keep their names in pages, where bundlers rename classes. A getter, because bundlers may
 * leave out a class that nothing uses only if defining it runs nothing.
 */
export function withNames(code: string): string {
  return code.replace(
    /^((?:export )?class (\w+)(?: extends \w+)? \{)(\}?)$/gm,
    (_, head: string, name: string, end: string) =>
      `${head}\n  static get name() {\n    return "${name}";\n  }${end && `\n${end}`}`,
  );
}

/** Makes what the compiler wrote into `built` small. */
export async function slim(built: string): Promise<void> {
  joinDeclarations(built, publicTypes(built));
  const names = readdirSync(built, { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => name.endsWith('.js')).map((name) => path.join(built, name));
  const named = namedFolders.map((folder) => path.join(built, folder, path.sep));
  const codes = await Promise.all(
    files.map(async (file) => {
      const code = await shortened(file);
      return withTabs(named.some((folder) => file.startsWith(folder)) ? withNames(code) : code);
    }),
  );
  const imports = new Map(files.map((file, i) => [file, importsOf(file, codes[i]!)]));
  const imported = new Set([...replacements(built), ...[...imports.values()].flat()]);
  // scripts/bundle-runtimes.ts bundles these modules of their sources; few of them are imported by others too.
  const bundled = path.join(built, 'bundle-runtime', path.sep);
  const wanted = new Set(files.filter((file) => !file.startsWith(bundled)));
  for (const file of wanted) for (const other of imports.get(file) ?? []) wanted.add(other);
  for (const [i, file] of files.entries()) {
    // A module of types alone leaves no code.
    const isEmpty = codes[i]!.trim() === 'export {};' && !imported.has(file);
    if (isEmpty || !wanted.has(file)) unlinkSync(file);
    else writeFileSync(file, codes[i]!);
  }
}

/** The modules of the package that a module imports, at once or later. */
function importsOf(file: string, code: string): readonly string[] {
  const imports = /(?:from|import) ?\(?"(\.[^"]+)"/g;
  return [...code.matchAll(imports)].map(([, other]) => path.join(file, '..', other!));
}

/** Code as it is, and readable where an error points at it, without comments but for annotations for bundlers. */
async function shortened(file: string): Promise<string> {
  const options = { target: 'es2022', charset: 'utf8', legalComments: 'none' } as const;
  return (await transform(readFileSync(file, 'utf8'), options)).code;
}

/**
 * Code whose lines begin with a tab for every two spaces, and branches of one statement behind their conditions, but for lines
 * inside of texts.
 */
export function withTabs(code: string): string {
  const texts: (readonly [start: number, end: number])[] = [];
  visit(parseSync('code.js', code).program.body, ({ end, start, type }) => {
    if (type === 'TemplateElement') texts.push([start, end]);
  });
  const isText = (at: number): boolean => texts.some(([start, end]) => start < at && at <= end);
  const branch = /(?<=^ *(?:\} )?(?:(?:else )?(?:if|for|while) \(.*\)|else))\n +(?=\S)|^(?: {2})+/gm;
  return code.replace(branch, (spaces, at: number) => {
    if (isText(at)) return spaces;
    return spaces.startsWith('\n') ? ' ' : '\t'.repeat(spaces.length / 2);
  });
}

interface Manifest {
  readonly exports: Readonly<Record<string, { readonly types: string } | string>>;
  readonly browser: Readonly<Record<string, string | false>>;
}

function manifest(): Manifest {
  return JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as Manifest;
}

/** The files of declarations that package.json names, in `built`. */
export function publicTypes(built: string): readonly string[] {
  return Object.values(manifest().exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [path.join(built, path.relative('dist', entry.types))],
  );
}

/** What a page gets in place of other modules, in `built`. */
function replacements(built: string): readonly string[] {
  return Object.values(manifest().browser).flatMap((other) =>
    other === false ? [] : [path.join(built, path.relative('dist', other))],
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await slim(path.resolve(process.argv[2] ?? path.join(root, 'dist')));
