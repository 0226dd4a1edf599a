// A copy of the checkout in a temporary folder, to add things to: what the type checker and the tests say there when a place
// of a recipe is left out.

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { thrifty } from '../../../scripts/examples.ts';
import { root } from '../source.ts';

/** One place of a recipe: text that goes into a file before or after what stands there once, or a file of its own. */
export interface Place {
  /** What the recipe calls it. */
  readonly what: string;
  readonly file: string;
  /** `whole`: the file is new. */
  readonly at: 'whole' | { readonly before: string } | { readonly after: string };
  readonly text: string;
}

const copied = ['src', 'test', 'scripts', 'docs', 'examples', 'bench'];
const files = [
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
  'ARCHITECTURE.md',
  'README.md',
  'CONTRIBUTING.md',
];

export class Checkout {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'sinter-recipes-'));

  constructor() {
    const isNeeded = (path: string): boolean => !/\/test\/(?:fixtures|golden|browser)$/.test(path);
    for (const name of copied)
      cpSync(join(root, name), join(this.folder, name), { recursive: true, filter: isNeeded });
    for (const name of files) cpSync(join(root, name), join(this.folder, name));
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'), 'junction');
    const config = JSON.parse(this.#read('tsconfig.json')) as { compilerOptions: object; include: unknown };
    const compilerOptions = {
      ...config.compilerOptions,
      incremental: true,
      tsBuildInfoFile: 'build.tsbuildinfo',
    };
    this.#write(
      'tsconfig.json',
      JSON.stringify({ ...config, compilerOptions, include: ['src', 'test/autograd/trials.ts'] }),
    );
  }

  /** Adds the places, runs, and takes them away again. */
  with<T>(places: readonly Place[], run: () => T): T {
    const before = new Map<string, string | undefined>();
    for (const { file, at, text } of places) {
      const isNew = at === 'whole';
      const old = isNew ? undefined : this.#read(file);
      if (!before.has(file)) before.set(file, old);
      this.#write(file, isNew ? text : inserted(file, old!, at, text));
    }
    try {
      return run();
    } finally {
      for (const [file, text] of before) {
        if (text === undefined) rmSync(join(this.folder, file));
        else this.#write(file, text);
      }
    }
  }

  /** What the type checker finds, a line each; empty when nothing. */
  typeErrors(): readonly string[] {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const args = [tsc, '-p', 'tsconfig.json', ...thrifty.options];
    const env = { ...process.env, ...thrifty.env };
    const { stdout, status } = spawnSync(process.execPath, args, { ...this.#options, env });
    const lines = stdout.split('\n').filter((line) => line !== '');
    return status === 0 ? [] : lines;
  }

  /** What vitest prints of the tests in some files whose names match. */
  test(files: readonly string[], names: string): string {
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    const args = [vitest, 'run', ...files, '-t', names, '--reporter', 'verbose', '--maxWorkers', '1'];
    const { stdout, stderr } = spawnSync(process.execPath, args, this.#options);
    return stripVTControlCharacters(stdout + stderr);
  }

  /** Makes the lists of operations anew; they stay so. */
  makeLists(): void {
    execFileSync(process.execPath, ['--import', 'tsx', 'scripts/operations/lists.ts'], this.#options);
  }

  /** What a script prints as JSON. */
  run(script: string): unknown {
    this.#write('script.mts', script);
    const args = ['--import', 'tsx', 'script.mts'];
    return JSON.parse(execFileSync(process.execPath, args, this.#options));
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  get #options(): { readonly cwd: string; readonly encoding: 'utf8'; readonly maxBuffer: number } {
    return { cwd: this.folder, encoding: 'utf8', maxBuffer: 2 ** 26 };
  }

  #read(path: string): string {
    return readFileSync(join(this.folder, path), 'utf8');
  }

  #write(path: string, text: string): void {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true });
    writeFileSync(join(this.folder, path), text);
  }
}

function inserted(file: string, text: string, at: Exclude<Place['at'], 'whole'>, added: string): string {
  const anchor = 'before' in at ? at.before : at.after;
  const first = text.indexOf(anchor);
  if (first < 0 || text.includes(anchor, first + 1)) throw new Error(`${file} should have once: ${anchor}`);
  const place = 'before' in at ? first : first + anchor.length;
  return text.slice(0, place) + added + text.slice(place);
}
