// The pages that are measured, what each has to print, and the folder in which they are built: Sinter as it is published, and
// jax-js in a folder of its own where the registry can be reached.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { stagePackage } from '../../test/support/browser/package.ts';
import { programOf, writePage } from './build.ts';

/** Pages of ours: one computation, a perceptron that is trained, and one that keeps every export. */
export const pageNames = ['one', 'mlp', 'every'] as const;
export type PageName = (typeof pageNames)[number];

/** What a page may cost until its first result; bytes gzipped, requests with the page itself. */
export interface Bar {
  readonly bytes: number;
  readonly requests?: number;
}

/** What the pages are to come to. */
export const bars: Readonly<Record<PageName, Bar>> = {
  one: { bytes: 150_000, requests: 8 },
  mlp: { bytes: 200_000, requests: 8 },
  every: { bytes: 320_000 },
};

/**
 * What the pages print. The rows of `one` are softmax([-0.8, 1.2]) and softmax([-1.1, 2.4]), of which the first elements are
 * 1/(1+e^2) and 1/(1+e^3.5); the loss of `mlp` is what the program gives in Node, where it begins at 1.86.
 */
export const expected: Readonly<Record<PageName, readonly number[]>> = {
  one: [2, 3.5].flatMap((gap) => [1 / (1 + Math.exp(gap)), 1 / (1 + Math.exp(-gap))]),
  mlp: [0.23245],
  every: [2, 3, 4],
};

/** Whether a page printed what it should, to four digits: devices round differently. */
export function isExpected(name: PageName, values: readonly number[]): boolean {
  const known = expected[name];
  return values.length === known.length && known.every((value, i) => Math.abs(values[i]! - value) < 1e-4);
}

/** A fresh folder in which pages of ours can be built. */
export interface Site {
  /** The folder of a page, ready to be built. */
  folderOf(name: PageName): Promise<string>;
  /** The folder of the page of jax-js, and its version; a text says why there is none. */
  jax(): Promise<{ readonly folder: string; readonly version: string } | string>;
  remove(): void;
}

/** Lays the package out in a temporary folder. */
export function openSite(): Site {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-pages-'));
  stagePackage(root);
  return {
    async folderOf(name) {
      const folder = path.join(root, name);
      if (!fs.existsSync(folder)) writePage(folder, await programOf(`${name}.ts`));
      return folder;
    },
    async jax() {
      const folder = path.join(root, 'jax');
      writePage(folder, await programOf('jax.js'));
      fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
      // Within `npm run`, npm would take the project's folder and silence from its environment.
      const options = ['--prefix', folder, '--loglevel', 'error', '--fetch-retries', '1'];
      options.push('--ignore-scripts', '--no-audit', '--no-fund');
      const { status, stderr, error } = spawnSync('npm', ['install', ...options, '@jax-js/jax'], {
        cwd: folder,
        encoding: 'utf8',
        timeout: 120_000,
      });
      if (status !== 0) {
        const why = /^npm (?:error|ERR!) (?!code |syscall |errno )(.*\S)/m.exec(stderr ?? '')?.[1];
        return `npm could not install it (${why ?? error?.message ?? `status ${status}`})`;
      }
      const manifest = path.join(folder, 'node_modules/@jax-js/jax/package.json');
      const { version } = JSON.parse(fs.readFileSync(manifest, 'utf8')) as { version: string };
      return { folder, version };
    },
    remove: () => fs.rmSync(root, { recursive: true, force: true }),
  };
}
