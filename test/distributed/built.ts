// The programs of ranks as JavaScript: Node 20 reads no TypeScript on threads, and a program of one file starts fast.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-ranks-'));
process.once('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

/** Puts a module that programs start as a thread beside them: a path from this folder. */
export async function builtThread(file: string): Promise<void> {
  const name = path.basename(file, '.ts');
  const entryPoints = [path.join(import.meta.dirname, file)];
  await build({
    entryPoints,
    outfile: path.join(folder, `${name}.js`),
    bundle: true,
    platform: 'node',
    format: 'cjs',
    logLevel: 'error',
    target: 'node20',
  });
}

/** The address of one of the programs in `children`, built. */
export async function builtChild(name: string): Promise<URL> {
  const outfile = path.join(folder, `${name}.mjs`);
  await build({
    entryPoints: [path.join(import.meta.dirname, 'children', `${name}.ts`)],
    outfile,
    bundle: true,
    // The compiler is made of modules that are loaded for what they do.
    ignoreAnnotations: true,
    logLevel: 'error',
    platform: 'node',
    format: 'esm',
    target: 'node20',
  });
  return pathToFileURL(outfile);
}
