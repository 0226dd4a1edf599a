// What the package's names mean in this repository: the files of its sources, as `paths` of tsconfig.json says.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

const { compilerOptions } = JSON.parse(readFileSync(path.join(root, 'tsconfig.json'), 'utf8')) as {
  readonly compilerOptions: { readonly paths: Readonly<Record<string, readonly [file: string]>> };
};

/** Names and absolute paths, both with one `*` at most; what comes first holds. */
export const sourcePaths: readonly (readonly [name: string, file: string])[] = Object.entries(
  compilerOptions.paths,
).map(([name, [file]]) => [name, path.join(root, file)]);
