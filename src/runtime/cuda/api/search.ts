// Node only: where CUDA's libraries may lie, in the order in which they are tried. Plain names are
// left to the system's loader; files are looked at one by one. Nothing is opened here.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

/** One thing to try. */
export interface SearchPlace {
  /** A plain name for the loader, or a file. */
  readonly file: string;
  /** The environment variable that names it. */
  readonly from?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The oldest CUDA that Sinter works with. */
export const firstVersion = 12;

/** The newest CUDA, used where there is no driver that could say. */
export const latestVersion = 13;

/** The driver library: what SINTER_CUDA_DRIVER names and nothing else, or where systems keep it. */
export function driverPlaces(env: Environment, platform: NodeJS.Platform): SearchPlace[] {
  const named = env['SINTER_CUDA_DRIVER'];
  if (named) return [{ file: path.resolve(named), from: 'SINTER_CUDA_DRIVER' }];
  if (platform === 'win32') return [{ file: 'nvcuda.dll' }];
  const folders = [
    ...systemFolders(),
    // Containers where the driver is mounted but missing from the loader's cache.
    '/usr/local/nvidia/lib64',
    '/usr/lib/wsl/lib',
  ];
  // Never libcuda.so: that is a stub for linkers.
  const name = 'libcuda.so.1';
  return [{ file: name }, ...folders.map((folder) => ({ file: path.join(folder, name) }))];
}

/**
 * NVRTC for a driver of this major version: what NVRTC_PATH names and nothing else, or newest
 * first.
 */
export function* nvrtcPlaces(
  env: Environment,
  platform: NodeJS.Platform,
  driverMajor: number,
): Generator<SearchPlace> {
  const named = env['NVRTC_PATH'];
  if (named) {
    yield { file: path.resolve(named), from: 'NVRTC_PATH' };
    return;
  }
  const versions: number[] = [];
  for (let major = driverMajor; major >= firstVersion; major--) versions.push(major);
  const names = versions.map((major) => {
    return platform === 'win32' ? `nvrtc64_${major}0_0.dll` : `libnvrtc.so.${major}`;
  });
  if (platform !== 'win32') names.push('libnvrtc.so');
  for (const file of names) yield { file };

  const seen = new Set<string>();
  const within = function* (folders: readonly string[]): Generator<SearchPlace> {
    for (const folder of folders) {
      if (seen.has(folder)) continue;
      seen.add(folder);
      for (const name of names) yield { file: path.join(folder, name) };
    }
  };
  yield* within(toolkitHomes(env).flatMap((home) => toolkitFolders(home, platform)));
  yield* within(sitePackages(env).flatMap((site) => pipFolders(site, platform, versions)));
  yield* within(systemFolders());
  // Asked last, because it starts a process: Python knows further folders.
  yield* within(pythonSitePackages().flatMap((site) => pipFolders(site, platform, versions)));
}

/** Folders that the CUDA toolkit may be in. */
export function toolkitHomes(env: Environment): readonly string[] {
  const homes = [env['CUDA_HOME'], env['CUDA_PATH'], '/usr/local/cuda', '/opt/cuda'];
  return homes.flatMap((home) => (home ? [home] : []));
}

const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64';

function systemFolders(): string[] {
  return [`/usr/lib/${machine}-linux-gnu`, '/usr/lib64'];
}

/**
 * What was tried in vain, in words: plain names, folders that lack them, and what was found and
 * refused.
 */
export function triedInWords(tried: readonly { readonly file: string; readonly problem?: string }[]): string {
  const names = new Set<string>();
  const folders = new Set<string>();
  const refused: string[] = [];
  for (const { file, problem } of tried) {
    if (problem !== undefined) refused.push(`${file} ${problem}`);
    else if (path.isAbsolute(file)) folders.add(path.dirname(file));
    else names.add(file);
  }
  const unknown = names.size === 0 ? [] : [`the loader does not know ${[...names].join(', ')}`];
  const lacking = folders.size === 0 ? [] : [`not in ${[...folders].join(', ')}`];
  return [...unknown, ...lacking, ...refused].join('; ');
}

function toolkitFolders(home: string, platform: NodeJS.Platform): string[] {
  if (platform === 'win32') return [path.join(home, 'bin'), path.join(home, 'bin', 'x64')];
  const targets = process.arch === 'arm64' ? ['sbsa-linux', 'aarch64-linux'] : ['x86_64-linux'];
  return [path.join(home, 'lib64'), ...targets.map((target) => path.join(home, 'targets', target, 'lib'))];
}

/**
 * Wheels of CUDA 13 and later share a folder for each major version; those of CUDA 12 have one
 * each.
 */
function pipFolders(site: string, platform: NodeJS.Platform, versions: readonly number[]): string[] {
  const nvidia = path.join(site, 'nvidia');
  const shared = versions.filter((major) => major >= 13).map((major) => path.join(nvidia, `cu${major}`));
  const homes = [...shared, path.join(nvidia, 'cuda_nvrtc')];
  return homes.map((home) => path.join(home, platform === 'win32' ? 'bin' : 'lib'));
}

/** Folders of Python packages that can be told without Python. */
function sitePackages(env: Environment): string[] {
  const roots = [env['VIRTUAL_ENV'], env['CONDA_PREFIX'], path.join(os.homedir(), '.local'), '/usr/local'];
  const found = roots.flatMap((root) => {
    if (!root) return [];
    const lib = path.join(root, 'lib');
    return list(lib)
      .filter((name) => name.startsWith('python3'))
      .flatMap((name) => ['site-packages', 'dist-packages'].map((last) => path.join(lib, name, last)));
  });
  return [...found, '/usr/lib/python3/dist-packages'];
}

function pythonSitePackages(): string[] {
  const script =
    'import site, sysconfig; print(sysconfig.get_paths()["purelib"], *site.getsitepackages(), sep="\\n")';
  const { status, stdout } = spawnSync('python3', ['-c', script], { encoding: 'utf8', timeout: 5000 });
  return status === 0 ? stdout.split('\n').filter((line) => line !== '') : [];
}

function list(folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch {
    return [];
  }
}
