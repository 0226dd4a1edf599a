// Compiled kernels on disk: found again by another process, whatever else was compiled with them; absent when a file is not whole.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Cubins, hashOf } from '../../src/runtime/cuda/modules/cubins.ts';
import type { CudaOptions } from '../../src/runtime/cuda/node.ts';
import type { Program } from '../../src/runtime/program.ts';
import { lawsUnless } from '../runtime/law.ts';
import { bytesOf, floatsOf, ramp } from '../runtime/programs.ts';
import { Machine, reasonWithout } from './machine.ts';
import { cudaChain } from './programs.ts';

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-cubins-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

const image = Uint8Array.from(ramp(1000), (i) => i % 256);
const key = hashOf('a source');

test('what is written is found, with its bytes', () => {
  new Cubins(folder).write(image, new Map([[key, 'soft_max']]));
  const cubins = new Cubins(folder);
  const found = cubins.find(key);
  expect(found).toEqual({ image: hashOf(image), entry: 'soft_max' });
  expect(Buffer.compare(cubins.read(found!.image)!, image)).toBe(0);
  expect(cubins.find(hashOf('another source'))).toBeUndefined();
  expect(fs.readdirSync(folder).filter((name) => !/^[0-9a-f]{64}\.(?:cubin|kernel)$/.test(name))).toEqual([]);
});

test('an entry that is cut short or altered counts as absent', () => {
  const cubins = new Cubins(folder);
  const file = path.join(folder, `${hashOf(image)}.cubin`);
  const altered = image.slice();
  altered[500]! ^= 1;
  for (const bytes of [image.subarray(0, 999), altered, new Uint8Array(0)]) {
    fs.writeFileSync(file, bytes);
    expect(cubins.read(hashOf(image))).toBeUndefined();
  }
  for (const text of [
    '',
    'sinter kernel 1\n',
    `sinter kernel 2\n${key}\nx\n`,
    `sinter kernel 1\n${key}\n../x\n`,
  ]) {
    fs.writeFileSync(path.join(folder, `${key}.kernel`), text);
    expect(cubins.find(key)).toBeUndefined();
  }
});

test('without a folder, or one that cannot be written, nothing is kept and nothing fails', () => {
  const file = path.join(folder, 'a file');
  fs.writeFileSync(file, '');
  for (const place of [undefined, path.join(file, 'below')]) {
    const cubins = new Cubins(place);
    cubins.write(image, new Map([[key, 'x']]));
    expect(cubins.find(key)).toBeUndefined();
  }
});

test('files that nobody used for months go when something is written', () => {
  const old = path.join(folder, 'old.cubin');
  fs.writeFileSync(old, 'old');
  const months = Date.now() / 1000 - 100 * 86_400;
  fs.utimesSync(old, months, months);
  new Cubins(folder).write(image, new Map([[key, 'x']]));
  expect(fs.existsSync(old)).toBe(false);
  expect(new Cubins(folder).find(key)).toBeDefined();
});

const missing = reasonWithout();

describe('a device', () => {
  let machine: Machine;
  beforeAll(() => {
    if (missing === undefined) machine = new Machine();
  });
  afterAll(() => {
    if (missing === undefined) machine.close();
  });
  const law = lawsUnless(missing);

  /** NVRTC programs that a fresh device compiles to run a program, and its result. */
  const compiled = async (program: Program, options: CudaOptions = {}): Promise<[number, number]> => {
    const device = await machine.open(options);
    const [x, y] = [device.allocate(4 * 64), device.allocate(4 * 64)];
    device.write(x, bytesOf(ramp(64)));
    // The stand-in builds when it compiles, and again when a module is loaded.
    const before = machine.get('compiles') - machine.get('modules');
    device.load(program).run([x], [y], []);
    const [result] = floatsOf(await device.read(y, 4));
    const calls = machine.get('compiles') - machine.get('modules') - before;
    const modules = machine.get('modules');
    device.destroy();
    while (machine.get('modules') === modules) await new Promise((resolve) => setImmediate(resolve));
    return [calls, result!];
  };

  law('compiles once what it finds on disk afterwards, whole programs and their parts', async () => {
    const four = cudaChain('kept', 64, [1, 2, 3, 4]);
    expect(await compiled(four)).toEqual([1, 10]);
    expect(await compiled(four)).toEqual([0, 10]);
    // Other names, other neighbours.
    expect(await compiled(cudaChain('renamed', 64, [4, 2]))).toEqual([0, 6]);
    expect(await compiled(cudaChain('renamed', 64, [4, 7]))).toEqual([1, 11]);
    expect(await compiled(four, { cubins: false })).toEqual([1, 10]);
  });

  law('compiles many kernels in few programs', async () => {
    expect((await compiled(cudaChain('many', 64, ramp(40, 100))))[0]).toBe(3);
  });

  law('compiles anew for other options, other NVRTCs, other GPUs', async () => {
    const two = cudaChain('varied', 64, [11, 12]);
    expect(await compiled(two)).toEqual([1, 23]);
    expect(await compiled(two, { env: { SINTER_CUDA_OPTIONS: '-lineinfo' } })).toEqual([1, 23]);
    machine.set('capability', 80);
    expect(await compiled(two)).toEqual([1, 23]);
    machine.set('capability', 90);
    const version = machine.get('nvrtc_version');
    machine.set('nvrtc_version', 12_080);
    expect(await compiled(two)).toEqual([1, 23]);
    machine.set('nvrtc_version', version);
    expect(await compiled(two)).toEqual([0, 23]);
  });

  law('compiles PTX for a GPU that is younger than NVRTC', async () => {
    machine.set('capability', 250);
    const device = await machine.open();
    expect(device.facts.description).toMatch(/, compute_\d+, /);
    expect(device.facts.features).not.toContain('sm_90a');
    device.destroy();
    const two = cudaChain('younger', 64, [41, 42]);
    expect(await compiled(two)).toEqual([1, 83]);
    expect(await compiled(two)).toEqual([0, 83]);
    machine.set('capability', 90);
  });

  law('compiles anew what is broken on disk', async () => {
    const two = cudaChain('damaged', 64, [21, 22]);
    await compiled(two);
    for (const name of fs.readdirSync(machine.cubins)) {
      if (name.endsWith('.cubin')) fs.truncateSync(path.join(machine.cubins, name), 10);
    }
    expect(await compiled(two)).toEqual([1, 43]);
    expect(await compiled(two)).toEqual([0, 43]);
  });

  law('compiles anew what the driver refuses', async () => {
    const two = cudaChain('refused', 64, [31, 32]);
    await compiled(two);
    machine.inject('cuModuleLoadData', 209);
    expect(await compiled(two)).toEqual([1, 63]);
    machine.heal();
  });
});
