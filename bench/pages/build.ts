// Builds the pages for production, each by itself, as its author would: a page that shares a build with others would share
// chunks with them too, and download what they need. Goes out: the files to serve, and what of each source a script holds.

import * as fs from 'node:fs';
import * as path from 'node:path';
import * as esbuild from 'esbuild';
import { build, type Rolldown } from 'vite';
import { bytesBySource } from './makeup.ts';

/** A page that is built, ready to be served. */
export interface BuiltPage {
  /** Bytes by path, `index.html` among them. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** The script that the page begins with. */
  readonly entry: string;
  /** For each script, how many of its bytes come from which module; empty unless asked for. */
  readonly makeup: ReadonlyMap<string, ReadonlyMap<string, number>>;
}

/** The head of a page whose script is `script`. Nobody asks for an icon. */
export function htmlOf(script: string): string {
  return `<!doctype html><title>Page</title><link rel="icon" href="data:,"><script type="module" src="${script}"></script>\n`;
}

/** Writes `index.html` and `main.js` of a program, given as JavaScript, into `folder`. */
export function writePage(folder: string, program: string): void {
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'main.js'), program);
  fs.writeFileSync(path.join(folder, 'index.html'), htmlOf('./main.js'));
}

/** A file of `programs/` as JavaScript. */
export async function programOf(file: string): Promise<string> {
  const source = fs.readFileSync(path.join(import.meta.dirname, 'programs', file), 'utf8');
  return (await esbuild.transform(source, { loader: 'ts', target: 'es2022' })).code;
}

/** Builds the page in `folder` by Vite, with its defaults. */
export async function buildPage(folder: string, withMakeup = false): Promise<BuiltPage> {
  const result = await build({
    root: folder,
    configFile: false,
    envFile: false,
    publicDir: false,
    mode: 'production',
    logLevel: 'silent',
    build: { write: false, reportCompressedSize: false, sourcemap: withMakeup && 'hidden' },
  });
  const outputs = (Array.isArray(result) ? result : [result]) as readonly Rolldown.RolldownOutput[];
  const made = outputs.flatMap(({ output }) => output).filter(({ fileName }) => !fileName.endsWith('.map'));
  const files = new Map(
    made.map((file) => [file.fileName, Buffer.from(file.type === 'chunk' ? file.code : file.source)]),
  );
  const chunks = made.filter((file) => file.type === 'chunk');
  const makeup = chunks.flatMap(({ fileName, code, map }) =>
    map === null
      ? []
      : [[fileName, bytesBySource(code, map, path.join(folder, path.dirname(fileName)))] as const],
  );
  return { files, entry: chunks.find(({ isEntry }) => isEntry)!.fileName, makeup: new Map(makeup) };
}
