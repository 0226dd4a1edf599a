// Bundles for tests: built from a module, written to a temporary folder, with bundle runtimes made from the sources as they are.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import {
  bundleOf,
  modulesOf,
  type Bundle,
  type BundleOptions,
  type BundleRuntime,
} from '../../src/aot/bundle.ts';
import type { EntryPoint } from '../../src/aot/entry.ts';
import type { OpenPoint } from '../../src/aot/sizes.ts';
import type { BundleTarget } from '../../src/bundle-runtime/manifest.ts';

const project = path.resolve(import.meta.dirname, '../..');
let runtimes: string | undefined;

/** The code that runs bundles for these targets. */
export function bundleRuntime(targets: readonly BundleTarget[]): BundleRuntime {
  if (runtimes === undefined) {
    runtimes = temporary();
    const script = path.join(project, 'scripts', 'bundle-runtimes.ts');
    const loader = path.join(project, 'node_modules', 'tsx', 'dist', 'cli.mjs');
    const made = spawnSync(process.execPath, [loader, script, runtimes], { encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`runtimes gave ${made.status}:\n${made.stderr}`);
  }
  const folder = runtimes;
  const read = (name: string): string => fs.readFileSync(path.join(folder, name), 'utf8');
  return {
    script: read(`${targets.join('-')}.js`),
    modules: new Map(modulesOf(targets).map((name) => [name, read(`modules/${name}`)])),
  };
}

const made: string[] = [];

/** A folder that `removeFolders` removes. */
export function temporary(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-bundle-'));
  made.push(folder);
  return folder;
}

export function removeFolders(): void {
  for (const folder of made.splice(0)) fs.rmSync(folder, { recursive: true, force: true });
  runtimes = undefined;
}

/** Builds functions for both targets. */
export function built(
  points: readonly (EntryPoint | OpenPoint)[],
  options: Partial<BundleOptions> = {},
): Promise<Bundle> {
  const { targets = ['webgpu', 'wasm'] } = options;
  return bundleOf(points, {
    producer: 'sinter',
    title: 'test',
    runtime: bundleRuntime(targets),
    ...options,
    targets,
  });
}

/** Writes a bundle to a folder of its own. */
export function written({ files }: Bundle): string {
  const folder = temporary();
  for (const [name, content] of files) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), content);
  }
  return folder;
}
