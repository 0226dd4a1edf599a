// The default device of a process of its own, on a machine without a GPU: compiled C where a compiler is there, and WebAssembly where
// there is none. Nobody hears of either.

import { execFile } from 'node:child_process';
import * as path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { lawsUnless } from '../law.ts';
import { newFolder, removeFolders } from './compilers.ts';
import { compilerName, withoutCompiler } from './machine.ts';

const child = path.join(import.meta.dirname, '../children/train.ts');
const isLinux = process.platform === 'linux' ? undefined : 'native is the default on Linux only';
const law = lawsUnless(withoutCompiler ?? isLinux);
let folder: string;
beforeAll(() => {
  folder = newFolder();
});
afterAll(removeFolders);

interface Trained {
  readonly first: string;
  readonly last: string;
  readonly values: readonly string[];
}

/** What it prints; rejects where it ends with another code than 0. */
async function train(way: 'all' | 'part', environment: Readonly<Record<string, string>>): Promise<Trained> {
  const nothing = { SINTER_DEVICE: '', SINTER_CUDA_DRIVER: '/no/driver', SINTER_CACHE: folder };
  const env = { ...process.env, ...nothing, ...environment };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--import', 'tsx', child, way], {
    env,
  });
  expect(stderr).toBe('');
  return JSON.parse(stdout) as Trained;
}

const compiler = { SINTER_CC: compilerName };

describe('without a GPU', () => {
  law('a program begins on WebAssembly and goes on as compiled C, with the same results', async () => {
    const here = await train('all', compiler);
    const there = await train('part', { ...compiler, SINTER_DEVICE: 'interpreter' });
    expect(here).toEqual({ first: 'wasm', last: 'c', values: there.values });
  });

  law('a process ends while its programs are being compiled', async () => {
    expect(await train('part', compiler)).toMatchObject({ first: 'wasm' });
  });

  law('without a compiler it is WebAssembly', async () => {
    expect(await train('part', { SINTER_CC: 'none' })).toMatchObject({ last: 'the only one' });
  });
});
