// Sinter as a page's author gets it: the published package (what `npm run build` makes, and package.json) laid out in a folder
// of its own without any optional peer, and programs bundled against it by Vite, minified. Goes out: the files to serve, and
// every module that went into them.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
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
  // The runner tests what was built before it started, here too.
  const underRunner = process.env['SINTER_TEST_TIER'] !== undefined;
  linkFolder(underRunner ? path.join(project, 'dist') : builtOnce(), path.join(home, 'dist'));
  return home;
}

/** Files under another name; copies where the other folder lies on another disk. Nobody writes to them. */
function linkFolder(from: string, to: string): void {
  fs.mkdirSync(to);
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) {
      linkFolder(source, target);
      continue;
    }
    try {
      fs.linkSync(source, target);
    } catch {
      fs.copyFileSync(source, target);
    }
  }
}

const compiler = path.join(project, 'node_modules', 'typescript', 'bin', 'tsc');
const tsx = path.join(project, 'node_modules', 'tsx', 'dist', 'cli.mjs');
const slim = ['slim.ts', 'declarations.ts'].map((name) => path.join(project, 'scripts', 'slim', name));
const configs = ['tsconfig.build.json', 'tsconfig.json'].map((name) => path.join(project, name));

/** Where the build of the sources as they are lies: made once, for all files of tests that need it. */
function builtOnce(): string {
  const cache = path.join(project, 'node_modules', '.cache', 'sinter-package');
  const place = path.join(cache, keyOfSources());
  if (fs.existsSync(place)) return place;
  // What was built of other sources is of no use any more; somebody may be reading the newest of it.
  const others = fs.existsSync(cache) ? fs.readdirSync(cache).map((name) => path.join(cache, name)) : [];
  const old = Date.now() - 3_600_000;
  for (const one of others)
    if (fs.statSync(one).mtimeMs < old) fs.rmSync(one, { recursive: true, force: true });
  fs.mkdirSync(cache, { recursive: true });
  const mine = fs.mkdtempSync(path.join(cache, 'build-'));
  // Whether the types agree is `npm run check`'s business.
  for (const args of [
    [compiler, '-p', configs[0]!, '--noCheck', '--outDir', mine],
    [tsx, slim[0]!, mine],
  ]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${args.join(' ')} gave ${status}:\n${stdout}${stderr}`);
  }
  try {
    fs.renameSync(mine, place);
  } catch (error) {
    // Another process was quicker.
    fs.rmSync(mine, { recursive: true, force: true });
    if (!fs.existsSync(place)) throw error;
  }
  return place;
}

/** A name for the sources and for how they are built. */
function keyOfSources(): string {
  const sources = fs
    .readdirSync(path.join(project, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.join(parentPath, name))
    .toSorted();
  const hash = createHash('sha256');
  for (const file of [
    ...configs,
    ...slim,
    path.join(project, 'package.json'),
    path.join(path.dirname(compiler), '..', 'package.json'),
    ...sources,
  ])
    hash.update(`\0${path.relative(project, file)}\0`).update(fs.readFileSync(file));
  return hash.digest('hex').slice(0, 24);
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
