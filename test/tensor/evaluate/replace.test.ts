// Programs on the device `native` begin on WebAssembly, and are replaced by compiled C when they have run a few times. Values are
// those of WebAssembly, but for rounding, before and after.

import { afterAll, afterEach, beforeEach, expect, vi } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Linear, Sequential } from '../../../src/nn/index.ts';
import { Adam } from '../../../src/optim/index.ts';
import { CDevice } from '../../../src/runtime/native/device.ts';
import type { NativeProgram } from '../../../src/runtime/native/load.ts';
import { lawsUnless } from '../../runtime/law.ts';
import { compilerName, withoutCompiler } from '../../runtime/native/machine.ts';

const law = lawsUnless(withoutCompiler);

beforeEach(() => void vi.stubEnv('SINTER_CC', compilerName));
afterEach(() => void vi.restoreAllMocks());
afterAll(() => void sn.setDevice(undefined));

/** What the device loads from now on. */
function loadedPrograms(): NativeProgram[] {
  const programs: NativeProgram[] = [];
  const load = Reflect.get(CDevice.prototype, 'load') as CDevice['load'];
  vi.spyOn(CDevice.prototype, 'load').mockImplementation(function (this: CDevice, ...given) {
    const loaded = load.apply(this, given);
    programs.push(loaded);
    return loaded;
  });
  return programs;
}

/** Resolves when the compilers that were asked are done. */
async function settled(programs: readonly NativeProgram[]): Promise<void> {
  await new Promise((resolve) => void setImmediate(resolve));
  await Promise.all(programs.map((program) => program.settled));
}

/** Losses of so many steps of Adam on a perceptron; `after` is awaited after each. */
async function losses(device: string, after: (step: number) => Promise<void>): Promise<number[]> {
  sn.setDevice(device);
  sn.manualSeed(5);
  const model = new Sequential(new Linear(12, 16), sn.tanh, new Linear(16, 3));
  const optimizer = new Adam(model, { lr: 0.05 });
  const x = sn.sin(sn.arange(20 * 12).reshape([20, 12]));
  const labels = sn.tensor(
    Array.from({ length: 20 }, (_, i) => i % 3),
    { dtype: 'i32' },
  );
  const found: number[] = [];
  for (let i = 0; i < 12; i++) {
    const loss = sn.crossEntropy(model.forward(x), labels);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    found.push(Number(await loss.item()));
    await after(i);
  }
  return found;
}

law('a train step goes on where it was, as code of the machine', async () => {
  const expected = await losses('wasm:1', async () => {});
  const programs = loadedPrograms();
  const engines: string[] = [];
  const found = await losses('native:1', async (step) => {
    if (step < 2) engines.push(...programs.map(({ engine }) => engine));
    if (step === 5) await settled(programs);
  });
  expect(engines).toContain('wasm');
  expect(engines).not.toContain('c');
  expect(programs.map(({ failure }) => failure)).toEqual(programs.map(() => undefined));
  expect(programs.filter(({ engine }) => engine === 'c').length).toBeGreaterThan(0);
  // Before: the same program as on WebAssembly.
  expect(found.slice(0, 2)).toEqual(expected.slice(0, 2));
  found.forEach((loss, i) => expect(loss).toBeCloseTo(expected[i]!, 4));
  expect(found[11]).toBeLessThan(found[0]!);
});

law('profiles say which engine ran each kernel', async () => {
  sn.setDevice('native:1');
  const programs = loadedPrograms();
  const twice = sn.compile((x: sn.Tensor) => x.mul(3).add(1));
  const x = sn.arange(50);
  const taken = (): Promise<sn.Profile> => sn.profile(() => twice(x).data());
  const engines = ({ kernels }: sn.Profile): unknown[] => [...new Set(kernels.map(({ engine }) => engine))];
  await twice(x).data();
  const before = await taken();
  expect(engines(before)).toEqual(['wasm']);
  expect(String(before)).toMatch(/kernel +kind +engine [^]* WebAssembly /);
  for (let i = 0; i < 3; i++) await twice(x).data();
  await settled(programs);
  const after = await taken();
  expect(engines(after)).toEqual(['c']);
  expect(String(after)).toMatch(/ C +1 /);
  expect(Array.from((await after.value) as Float32Array)).toEqual(
    Array.from({ length: 50 }, (_, i) => 3 * i + 1),
  );
});

law('explanations show the kernels of C, and say what runs before', async () => {
  sn.setDevice('native:1');
  const text = String(sn.explain((x: sn.Tensor) => x.mul(3).sum(), sn.ones([50])));
  expect(text).toContain('1 kernel for native');
  expect(text).toContain('a program runs as WebAssembly until it has run three times');
  sn.setDevice('wasm:1');
  expect(String(sn.explain((x: sn.Tensor) => x.mul(3).sum(), sn.ones([50])))).not.toContain('three times');
});

law('what runs once stays on WebAssembly', async () => {
  sn.setDevice('native:1');
  const programs = loadedPrograms();
  const x = sn.ones([7, 5]);
  for (const add of [1, 2]) expect(await x.add(add).sum().item()).toBe(35 * (1 + add));
  await settled(programs);
  expect(programs.map(({ engine }) => engine)).toEqual(programs.map(() => 'wasm'));
});

law('what takes long is compiled after its first run', async () => {
  sn.setDevice('native:1');
  const programs = loadedPrograms();
  const square = sn.compile((x: sn.Tensor) => x.matmul(x).sum());
  const x = sn.eye(400);
  expect(await square(x).item()).toBe(400);
  await settled(programs);
  expect(await square(x).item()).toBe(400);
  expect(programs.map(({ engine }) => engine)).toContain('c');
});

law('runs are right between asking for C and having it', async () => {
  sn.setDevice('native:1');
  const programs = loadedPrograms();
  const twice = sn.compile((x: sn.Tensor) => x.mul(2).add(1));
  const x = sn.arange(100);
  const expected = Array.from({ length: 100 }, (_, i) => 2 * i + 1);
  for (let i = 0; i < 8; i++) expect(await twice(x).array()).toEqual(expected);
  await settled(programs);
  expect(await twice(x).array()).toEqual(expected);
});
