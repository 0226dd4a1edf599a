// The lists that are made of the declarations of operations, `npm run operations`: the public names in src/operations/index.ts, those of
// namespaces beside it, and the methods of tensors with their types in src/operations/methods.ts. A test compares them with the sources.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { namespaces, operationFiles, operations, type Operation, type OperationFile } from './declared.ts';
import { families } from './families.ts';
import { methodsOf } from './methods.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = 'src/operations';

const made = 'Made by `npm run operations` of the comments in src/tensor/ops.';

/** The name of a public name within the namespace: `svd` of `linalg.svd`; undefined where it is not there. */
function inside(space: string, name: string): string | undefined {
  const parts = name.split('.');
  if (space === '') return parts.length === 1 ? name : undefined;
  return parts[0] === space ? parts[1] : undefined;
}

/** `export { … } from '…';` of what a file has in a namespace; empty where there is nothing. */
function exported(space: string, { path, operations: all }: OperationFile): string {
  const items = all.flatMap((operation) =>
    operation.names.flatMap((name) => {
      const short = inside(space, name);
      if (short === undefined) return [];
      const type = operation.kind === 'type' ? 'type ' : '';
      return [`${type}${operation.own}${short === operation.own ? '' : ` as ${short}`}`];
    }),
  );
  if (items.length === 0) return '';
  const [types, values] = [true, false].map((isType) =>
    items.filter((item) => item.startsWith('type ') === isType).toSorted(),
  );
  const from = relative(folder, path);
  return `export {\n  ${[...values!, ...types!].join(',\n  ')},\n} from '${from}';`;
}

/** The files of a family. */
type FamilyFiles = readonly [title: string, files: readonly OperationFile[]];

/** The files of each family; a file that no family names is an error. */
function byFamily(): FamilyFiles[] {
  const files = new Map(operationFiles().map((file) => [file.path, file]));
  const listed = families.map(({ title, files: names }) => {
    const own = names.map((name) => {
      const path = `src/tensor/ops/${name}.ts`;
      const file = files.get(path);
      if (file === undefined) throw new Error(`families.ts: there is no file ${path}`);
      files.delete(path);
      return file;
    });
    return [title, own] as const;
  });
  const left = [...files.values()].filter((file) => file.operations.some(({ names }) => names.length > 0));
  if (left.length > 0)
    throw new Error(`families.ts: no family has ${left.map(({ path }) => path).join(', ')}`);
  return listed;
}

function listOf(space: string, all: readonly FamilyFiles[]): string {
  const sections = all.flatMap(([title, files]) => {
    const lists = files.map((file) => exported(space, file)).filter((text) => text !== '');
    return lists.length === 0 ? [] : [`// ${title}\n${lists.join('\n')}`];
  });
  if (space !== '')
    return `// \`sn.${space}\`. ${namespaces[space]}\n// ${made}\n\n${sections.join('\n\n')}\n`;
  const spaces = Object.keys(namespaces).map((name) => `export * as ${name} from './${name}.ts';`);
  const about = 'The public operations of `sinter`, family by family.';
  return `// ${about}\n// ${made}\n\n${sections.join('\n\n')}\n\n// Namespaces\n${spaces.join('\n')}\n`;
}

/** Two operations of one public name are an error. */
function checkNames(all: readonly Operation[]): void {
  const owners = new Map<string, Operation>();
  for (const operation of all) {
    for (const name of operation.names) {
      const other = owners.get(name);
      if (other !== undefined)
        throw new Error(`'${name}' is declared twice, in ${other.path} and in ${operation.path}`);
      owners.set(name, operation);
      const [space, short] = name.split('.');
      if (short !== undefined && !Object.hasOwn(namespaces, space!))
        throw new Error(`${operation.path}: there is no namespace '${space}' for '${name}'`);
    }
  }
}

/** The lists by path, unformatted. */
export function operationLists(): Map<string, string> {
  checkNames(operations());
  const all = byFamily();
  const spaces = Object.keys(namespaces).map(
    (space) => [`${folder}/${space}.ts`, listOf(space, all)] as const,
  );
  return new Map([
    [`${folder}/index.ts`, listOf('', all)],
    ...spaces,
    [`${folder}/methods.ts`, methodsOf(operationFiles(), folder)],
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of operationLists()) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}
