// The device `native` of tests: it compiles each program before the first run, so that every test runs machine code. What it
// compiles is kept for all test files and later runs in one folder.

import { mkdirSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setDevice } from '../../../src/index.ts';
import { openNativeDevice } from '../../../src/runtime/native/node.ts';
import { CDevice } from '../../../src/runtime/native/device.ts';
import { openDevice, registerBackend } from '../../../src/runtime/registry.ts';
import { compilerEnv, withoutCompiler } from './machine.ts';
import { compilesTogether, type Rehearse } from './together.ts';
import { pruneFolder } from '../../cuda/standin/prune.ts';

/** From here on the device `native` of this process compiles before it runs; false where nothing compiles C. */
export function useNative(): boolean {
  if (withoutCompiler !== undefined) return false;
  const folder = join(tmpdir(), `sinter-native-tests-${userInfo().uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  pruneFolder(folder);
  registerBackend({
    name: 'native',
    // One thread: the test machine's cores are other workers'. test/runtime/native/ tests several. A compiler may wait long for its turn.
    open: () =>
      openNativeDevice('native', { threads: 1, wait: true, folder, env: compilerEnv, patience: 900_000 }),
  });
  return true;
}

/**
 * Sets the device by its name: on `native` every run is one of machine code, the first one too, and what is rehearsed with the
 * result is compiled together. Undefined for other devices, where nothing is rehearsed.
 */
export async function chooseDevice(name: string): Promise<Rehearse | undefined> {
  if (name === 'native' && !useNative()) throw new Error(withoutCompiler);
  setDevice(name);
  if (name !== 'native') return undefined;
  const device = await openDevice(name);
  if (!(device instanceof CDevice)) throw new Error(`another device has the name ${name}`);
  return compilesTogether(device);
}
