// What may go wrong between a program's text and its code: compilers that fail, files that are damaged,
// folders that take nothing. Results are right, or there is an error that says what happened.
//
// Runs on the sources: it stands in for node:fs, which modules of the build would import past it.

import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, vi } from 'vitest';
import type { Program } from '../../../src/runtime/program.ts';
import { beginNativeDevice, openNativeDevice, type NativeOptions } from '../../../src/runtime/native/node.ts';
import type { NativeProgram } from '../../../src/runtime/native/load.ts';
import type { CDevice } from '../../../src/runtime/native/device.ts';
import { failure } from '../failure.ts';
import { c, wasm, type Language } from '../languages.ts';
import { lawsUnless } from '../law.ts';
import { bytesOf, f32, floatsOf, program, ramp } from '../programs.ts';
import { compilerThat, keep, newFolder, removeFolders } from './compilers.ts';
import { withoutCompiler } from './machine.ts';

const law = lawsUnless(withoutCompiler);
const N = 64;

/** A folder that takes no byte, as a full disk does. */
const disk = vi.hoisted(() => ({ full: undefined as string | undefined }));
vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>();
  const writeFileSync: typeof real.writeFileSync = (file, data, options) => {
    if (disk.full !== undefined && String(file).startsWith(disk.full) && data !== '')
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    real.writeFileSync(file, data, options);
  };
  return { ...real, writeFileSync };
});

const devices: CDevice[] = [];
/** The machine's own compiler, by the name that all tests use. */
let compiler = compilerThat('');
afterEach(async () => {
  vi.restoreAllMocks();
  disk.full = undefined;
  compiler = compilerThat('');
  await Promise.all(devices.splice(0).map((device) => device.destroy()));
});
beforeAll(async () => {
  if (withoutCompiler !== undefined) return;
  const folder = newFolder();
  await (await open({ folder })).destroy();
  keep(folder);
});
afterAll(removeFolders);

async function open(options: NativeOptions): Promise<CDevice> {
  const { env } = compiler;
  const device = await openNativeDevice('native', { threads: 1, env, ...options });
  devices.push(device);
  return device;
}

/** `y = 2x + 1` in one language. */
function affine(language: Language): Program {
  return program({
    target: language.target,
    kernels: [language.affine('twice', N, 2, 1)],
    buffers: [f32('x', 'input', N), f32('y', 'output', N)],
    steps: [language.dispatch(0, [0, 1], N)],
  });
}
const alone = affine(c);
const first = affine(wasm);
const expected = ramp(N).map((x) => 2 * x + 1);

/** Loads the program of WebAssembly, and asks for code of the machine in its place. */
function replaced(device: CDevice, by: () => Program = () => alone): NativeProgram {
  const loaded = device.load(first);
  loaded.replace(async () => by());
  return loaded;
}

/** Runs a loaded program on fresh buffers. */
async function resultOf(device: CDevice, loaded: ReturnType<CDevice['load']>): Promise<number[]> {
  const [x, y] = [device.allocate(4 * N), device.allocate(4 * N)];
  device.write(x, bytesOf(ramp(N)));
  loaded.run([x], [y], []);
  return floatsOf(await device.read(y, 4 * N));
}

/** The package koffi, which opens no file of these folders, as where they are mounted without the right to run code. */
function koffiWithout(folders: readonly string[]): () => string {
  const real = createRequire(import.meta.url).resolve('koffi');
  const file = path.join(newFolder(), 'koffi.cjs');
  fs.writeFileSync(
    file,
    `const koffi = require(${JSON.stringify(real)});
module.exports = { ...koffi, load(file, ...more) {
  if (file !== null && ${JSON.stringify(folders)}.some((folder) => file.startsWith(folder))) throw new Error('failed to map segment');
  return koffi.load(file, ...more);
} };`,
  );
  return () => file;
}

/** A device before its compiler has been found. */
async function begin(options: NativeOptions): Promise<CDevice> {
  const { env } = compiler;
  const device = await beginNativeDevice('native', { threads: 1, env, ...options });
  devices.push(device);
  return device;
}

describe('a device that is not whole', () => {
  law('runs programs on WebAssembly, and those of C when it has found the compiler', async () => {
    const device = await begin({ folder: newFolder() });
    expect(device.facts).toMatchObject({ target: 'c', first: 'wasm', threads: 1 });
    expect(device.facts.description).toBe('C by the compiler of this machine, one thread');
    expect((await failure(() => device.load(alone))).message).toContain('await device.whole() before');
    const loaded = device.load(first, undefined, async () => alone);
    for (let i = 0; i < 3; i++) expect(await resultOf(device, loaded)).toEqual(expected);
    await loaded.settled;
    expect(await resultOf(device, loaded)).toEqual(expected);
    expect([loaded.engine, loaded.program.target]).toEqual(['c', 'c']);
    expect(device.facts.description).toMatch(/^C by \S.*\d, .*, one thread; programs begin on WebAssembly$/);
    expect(device.facts.features).toEqual(expect.arrayContaining(['simd128']));
    expect(device.load(alone).engine).toBe('c');
  });

  law('asks for no compiler before a program has run three times', async () => {
    const opened = vi.fn();
    const real = createRequire(import.meta.url).resolve('koffi');
    const resolve = (): string => {
      opened();
      return real;
    };
    const device = await begin({ folder: newFolder(), resolve });
    const before = opened.mock.calls.length;
    const light = { ...first, kernels: first.kernels.map((kernel) => ({ ...kernel, flops: N })) };
    const loaded = device.load(light, undefined, async () => alone);
    for (let i = 0; i < 2; i++) await resultOf(device, loaded);
    await loaded.settled;
    expect(opened.mock.calls.length).toBe(before);
    await resultOf(device, loaded);
    await loaded.settled;
    expect(opened.mock.calls.length).toBeGreaterThan(before);
  });

  law('stays on WebAssembly where the compiler does not work, and says so once', async () => {
    const file = path.join(newFolder(), 'broken');
    fs.writeFileSync(file, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    const device = await begin({ folder: newFolder(), env: { ...process.env, SINTER_CC: file } });
    const warned = vi.spyOn(console, 'warn').mockReturnValue();
    const loaded = [1, 2].map(() => replaced(device));
    await Promise.all(loaded.map(({ settled }) => settled));
    for (const one of loaded) expect(await resultOf(device, one)).toEqual(expected);
    expect(loaded.map(({ engine }) => engine)).toEqual(['wasm', 'wasm']);
    expect(warned.mock.calls).toEqual([[expect.stringContaining('there is no C compiler')]]);
    const error = await failure(() => device.whole());
    expect([error.code, error.message]).toEqual(['E_DEVICE', expect.stringContaining('ended with 1')]);
  });
});

describe('a compiler', () => {
  law('that reports errors: its first lines are told', async () => {
    const { env } = compilerThat(
      `for i in 1 2 3 4 5 6 7 8 9; do echo "kernel.c:$i: error: bad" >&2; done; exit 1`,
    );
    const device = await open({ env, folder: newFolder() });
    const error = await failure(() => device.load(alone));
    expect(error.code).toBe('E_DEVICE');
    expect(error.message).toMatch(
      /a program was not compiled: \S+ ended with 1\n {2}kernel\.c:1: error: bad/,
    );
    expect(error.message).not.toContain('kernel.c:9');
  });

  law('that is killed midway leaves nothing behind', async () => {
    const folder = newFolder();
    const { env } = compilerThat('kill -9 $$');
    const device = await open({ env, folder });
    const before = fs.readdirSync(folder).sort();
    expect((await failure(() => device.load(alone))).message).toContain('was ended by SIGKILL');
    expect(fs.readdirSync(folder).sort()).toEqual(before);
  });

  law('that hangs is ended', async () => {
    const folder = newFolder();
    compiler = compilerThat('sleep 1000');
    const device = await open({ env: compiler.env, folder, patience: 500 });
    expect((await failure(() => device.load(alone))).message).toContain('was ended after 0.5 s');
    const warned = vi.spyOn(console, 'warn').mockReturnValue();
    const loaded = replaced(device);
    await loaded.settled;
    expect(loaded.failure?.message).toContain('was ended after 0.5 s');
    expect(warned).toHaveBeenCalledTimes(1);
    expect(() => process.kill(compiler.process(), 0)).toThrow('ESRCH');
  });

  law('that fails leaves programs on WebAssembly, and is told of once', async () => {
    const { env, count } = compilerThat('echo broken >&2; exit 3');
    const device = await open({ env, folder: newFolder() });
    const warned = vi.spyOn(console, 'warn').mockReturnValue();
    const [one, other] = [replaced(device), replaced(device)];
    expect(await resultOf(device, one)).toEqual(expected);
    await Promise.all([one.settled, other.settled]);
    expect(await resultOf(device, other)).toEqual(expected);
    expect([one.engine, other.engine, count()]).toEqual(['wasm', 'wasm', 1]);
    expect(one.failure?.message).toContain('ended with 3\n  broken');
    expect(warned.mock.calls).toEqual([[expect.stringContaining('programs stay on WebAssembly: native: ')]]);
  });

  law('that says all is well and writes nothing is not believed', async () => {
    const { env } = compilerThat('exit 0');
    const device = await open({ env, folder: newFolder() });
    expect((await failure(() => device.load(alone))).message).toContain('ended well and wrote no object');
  });

  law('that is still at work ends with the device', async () => {
    compiler = compilerThat('sleep 1000');
    const device = await open({ env: compiler.env, folder: newFolder() });
    const loaded = replaced(device);
    await vi.waitFor(() => expect(compiler.count()).toBe(1), 20_000);
    await device.destroy();
    await loaded.settled;
    expect(() => process.kill(compiler.process(), 0)).toThrow('ESRCH');
  });
});

describe('a program', () => {
  law('begins on WebAssembly and goes on as code of the machine, on the same buffers', async () => {
    const device = await open({ folder: newFolder() });
    const loaded = replaced(device);
    const [x, y] = [device.allocate(4 * N), device.allocate(4 * N)];
    device.write(x, bytesOf(ramp(N)));
    loaded.run([x], [y], []);
    expect(loaded.engine).toBe('wasm');
    const first = await device.read(y, 4 * N);
    await loaded.settled;
    device.write(y, new Uint8Array(4 * N));
    loaded.run([x], [y], []);
    expect(loaded.engine).toBe('c');
    expect(await device.read(y, 4 * N)).toEqual(first);
    expect(floatsOf(first)).toEqual(expected);
  });

  law('is for C from the start where the device waits', async () => {
    const waiting = await open({ folder: newFolder(), wait: true });
    const usual = await open({ folder: newFolder() });
    expect([waiting.facts.first, usual.facts.first]).toEqual([undefined, 'wasm']);
    expect(waiting.load(alone).engine).toBe('c');
  });

  law('that cannot be made leaves the one that there is', async () => {
    const device = await open({ folder: newFolder() });
    const warned = vi.spyOn(console, 'warn').mockReturnValue();
    const loaded = replaced(device, () => {
      throw new Error('no such program');
    });
    await loaded.settled;
    expect(warned).toHaveBeenCalledTimes(1);
    expect(await resultOf(device, loaded)).toEqual(expected);
    expect([loaded.engine, loaded.failure?.message]).toEqual([
      'wasm',
      expect.stringContaining('no such program'),
    ]);
  });

  law('that is called differently does not replace another', async () => {
    const device = await open({ folder: newFolder() });
    const other = { ...alone, scalars: [{ name: 'f', dtype: 'f32' }] } as const;
    const warned = vi.spyOn(console, 'warn').mockReturnValue();
    const loaded = replaced(device, () => other);
    await loaded.settled;
    expect(warned).toHaveBeenCalledTimes(1);
    expect(await resultOf(device, loaded)).toEqual(expected);
    expect([loaded.failure?.code, loaded.failure?.message]).toEqual([
      'E_VALIDATION',
      expect.stringContaining('has other inputs, outputs, scalars or packs'),
    ]);
    const named = { ...alone.kernels[0]!, name: 'f(void); int x' };
    expect((await failure(() => device.load({ ...alone, kernels: [named] }))).message).toContain('none of C');
  });

  law('may be destroyed while it is being compiled', async () => {
    const device = await open({ folder: newFolder() });
    const loaded = replaced(device);
    loaded.destroy();
    await loaded.settled;
    const error = await failure(() => resultOf(device, loaded));
    expect(error.code).toBe('E_STATE');
  });
});

describe('an object', () => {
  law('is compiled once, and again when its file is damaged', async () => {
    const folder = newFolder();
    const { env, count } = compilerThat('');
    for (const damage of [undefined, undefined, 'not an object']) {
      if (damage !== undefined) {
        for (const name of fs.readdirSync(folder).filter((one) => one.endsWith('.so'))) {
          // Another file of the name: the old one is still mapped.
          fs.rmSync(path.join(folder, name));
          fs.writeFileSync(path.join(folder, name), damage);
        }
      }
      const device = await open({ env, folder });
      expect(await resultOf(device, device.load(alone))).toEqual(expected);
    }
    expect(count()).toBe(2);
  });

  law('is not taken from a folder that others may write to', async () => {
    const folder = newFolder();
    const { env, count } = compilerThat('');
    const first = await open({ env, folder });
    first.load(alone);
    fs.chmodSync(folder, 0o777);
    const second = await open({ env, folder });
    expect(await resultOf(second, second.load(alone))).toEqual(expected);
    expect(count()).toBe(2);
  });

  law('that two compile at once is right for both', async () => {
    const folder = newFolder();
    const pair = await Promise.all([open({ folder }), open({ folder })]);
    const loaded = pair.map((device) => replaced(device));
    await Promise.all(loaded.map(({ settled }) => settled));
    for (const [i, device] of pair.entries()) {
      expect(await resultOf(device, loaded[i]!)).toEqual(expected);
      expect(loaded[i]!.engine).toBe('c');
    }
    expect(fs.readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  law('lies in a folder of the process where the cache cannot be made', async () => {
    const file = path.join(newFolder(), 'file');
    fs.writeFileSync(file, 'no folder');
    const device = await open({ folder: path.join(file, 'native') });
    expect(await resultOf(device, device.load(alone))).toEqual(expected);
  });

  law('is copied there where its folder forbids to run code', async () => {
    const folder = newFolder();
    const { env, count } = compilerThat('');
    const resolve = koffiWithout([folder]);
    for (const _ of [1, 2]) {
      const device = await open({ env, folder, resolve });
      const loaded = [device.load(alone), replaced(device)];
      await loaded[1]!.settled;
      for (const one of loaded) {
        expect(await resultOf(device, one)).toEqual(expected);
        expect(one.engine).toBe('c');
      }
      await device.destroy();
    }
    // The folder keeps what was compiled all the same.
    expect(count()).toBe(1);
  });

  law('that may be opened nowhere is an error, or leaves programs on WebAssembly', async () => {
    const options = { folder: newFolder(), resolve: koffiWithout(['/']) };
    const error = await failure(() => open(options));
    expect([error.code, error.message]).toEqual([
      'E_DEVICE',
      expect.stringMatching(/cannot be opened: failed to map segment[^]*noexec/),
    ]);
    const device = await begin(options);
    const warned = vi.spyOn(console, 'warn').mockReturnValue();
    const loaded = replaced(device);
    await loaded.settled;
    expect(await resultOf(device, loaded)).toEqual(expected);
    expect([loaded.engine, warned.mock.calls.length]).toEqual(['wasm', 1]);
  });

  law('lies there too where the disk is full', async () => {
    const folder = newFolder();
    const { env, count } = compilerThat(
      `case "$*" in *${folder}*) echo 'No space left on device' >&2; exit 1 ;; esac`,
    );
    const device = await open({ env, folder });
    const before = fs.readdirSync(folder).length;
    disk.full = folder;
    expect(await resultOf(device, device.load(alone))).toEqual(expected);
    expect([count(), fs.readdirSync(folder).length]).toEqual([2, before]);
  });
});
