// Sinter as a page's author gets it: the published package (what `npm run build` makes, and package.json) laid out in a folder
// of its own without any optional peer, and programs bundled against it by Vite, minified. Goes out: the files to serve, and
// every module that went into them.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Plugin, type Rolldown } from 'vite';

const project = path.resolve(import.meta.dirname, '../../..');

/** Lays the package out at `folder`/node_modules/sinter, from the sources as they are; gives that path. */
export function stagePackage(folder: string): string {
  const home = path.join(folder, 'node_modules', 'sinter');
  fs.mkdirSync(home, { recursive: true });
  fs.copyFileSync(path.join(project, 'package.json'), path.join(home, 'package.json'));
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  const compiler = path.join(project, 'node_modules', 'typescript', 'bin', 'tsc');
  const config = path.join(project, 'tsconfig.build.json');
  // Whether the types agree is `npm run check`'s business.
  const options = ['-p', config, '--noCheck', '--outDir', path.join(home, 'dist')];
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, ...options], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`tsc gave ${status}:\n${stdout}${stderr}`);
  return home;
}

/** What a bundler made of some entries. */
export interface Bundle {
  /** Code by file name; an entry `page` is `page.js`. */
  readonly files: ReadonlyMap<string, string>;
  /** Paths of the modules that left code in the files; virtual ones by the bundler's names. */
  readonly modules: readonly string[];
  /** What the files import besides each other. */
  readonly imports: readonly string[];
  /** Bytes of all files, each gzipped. */
  readonly gzip: number;
}

/**
 * Bundles entries (name to path) for browsers. Sources that import `src/index.ts`, or the index of a folder under `src`, get
 * the package staged in `folder` in its stead. Entries export what their sources do, or with `signatures: false` whatever suits
 * the bundler, as Vite has it for a page.
 */
export async function bundle(
  folder: string,
  entries: Readonly<Record<string, string>>,
  signatures: 'strict' | false = 'strict',
): Promise<Bundle> {
  const result = await build({
    root: folder,
    configFile: false,
    envFile: false,
    publicDir: false,
    logLevel: 'silent',
    plugins: [publishedNames(folder)],
    build: {
      write: false,
      target: 'es2022',
      modulePreload: false,
      reportCompressedSize: false,
      rolldownOptions: {
        input: { ...entries },
        preserveEntrySignatures: signatures,
        output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
      },
    },
  });
  const outputs = (Array.isArray(result) ? result : [result]) as readonly Rolldown.RolldownOutput[];
  const chunks = outputs.flatMap(({ output }) => output).filter((file) => file.type === 'chunk');
  const files = new Map(chunks.map(({ fileName, code }) => [fileName, code]));
  const imported = chunks.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports]);
  return {
    files,
    modules: chunks.flatMap(({ modules }) => Object.keys(modules)),
    imports: imported.filter((name) => !files.has(name)),
    gzip: [...files.values()].reduce((total, code) => total + gzipSync(code, { level: 9 }).length, 0),
  };
}

/** Reads `../../src/index.ts` as `sinter` and `../../src/nn/index.ts` as `sinter/nn`, both from the staged package. */
function publishedNames(folder: string): Plugin {
  return {
    name: 'published-names',
    enforce: 'pre',
    resolveId(source) {
      const name = /\/src\/(?:(\w+)\/)?index\.ts$/.exec(source);
      if (name === null) return null;
      const specifier = name[1] === undefined ? 'sinter' : `sinter/${name[1]}`;
      return this.resolve(specifier, path.join(folder, 'package.json'), { skipSelf: true });
    },
  };
}
