// The programs of ranks as JavaScript: Node 20 reads no TypeScript on threads, and a program of one file starts fast.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-ranks-'));
process.once('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

/** The address of one of the programs in `children`, built. */
export async function builtChild(name: string): Promise<URL> {
  const outfile = path.join(folder, `${name}.mjs`);
  await build({
    entryPoints: [path.join(import.meta.dirname, 'children', `${name}.ts`)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  });
  return pathToFileURL(outfile);
}
