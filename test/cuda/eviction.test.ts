// Programs come and go: kernels of those that are gone are let go but for the last, and their images are unloaded behind the work that
// runs them; what is wanted again is loaded or compiled again.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest';
import type { Device, DeviceAllocation, LoadedProgram } from '../../src/runtime/device.ts';
import type { Program } from '../../src/runtime/program.ts';
import { mostIdle } from '../../src/runtime/shared.ts';
import { lawsUnless } from '../runtime/law.ts';
import { bytesOf, floatsOf, ramp } from '../runtime/programs.ts';
import { Machine, reasonWithout } from './machine.ts';
import { cudaChain } from './programs.ts';

const N = 64;
const missing = reasonWithout();
const few = cudaChain('few', N, ramp(12));
/** As many kernels as are kept, and some, each another one. */
const many = cudaChain('many', N, ramp(mostIdle + 10, 100));
const sumOf = (program: Program): number =>
  (program === few ? ramp(12) : program === many ? ramp(mostIdle + 10, 100) : [1000]).reduce(
    (a, b) => a + b,
    0,
  );

describe('kernels of programs that are gone', () => {
  let machine: Machine;
  let device: Device;
  beforeAll(() => {
    if (missing === undefined) machine = new Machine();
  });
  beforeEach(async () => {
    if (missing === undefined) device = await machine.open();
  });
  afterEach(async () => {
    if (missing !== undefined) return;
    device.destroy();
    while (machine.get('modules') > 0) await new Promise((resolve) => setImmediate(resolve));
  });
  afterAll(() => {
    if (missing === undefined) machine.close();
  });
  const law = lawsUnless(missing);

  const buffers = (): [DeviceAllocation, DeviceAllocation] => {
    const [x, y] = [device.allocate(4 * N), device.allocate(4 * N)];
    device.write(x, bytesOf(ramp(N, 5)));
    return [x, y];
  };
  /** What a chain of kernels adds to 5. */
  const added = async (loaded: LoadedProgram): Promise<number> => {
    const [x, y] = buffers();
    loaded.run([x], [y], []);
    const [first] = floatsOf(await device.read(y, 4));
    return first! - 5;
  };
  /** Loads a program, runs it and destroys it when it has run; gives the number of images that this loads. */
  const visit = (program: Program): Promise<number> =>
    machine.count('modules', async () => {
      const loaded = device.load(program);
      expect(await added(loaded)).toBe(sumOf(program));
      loaded.destroy();
    });

  law('are let go with their images, and made again', async () => {
    const images = await visit(few);
    expect(images).toBeGreaterThan(0);
    expect(await visit(few)).toBe(0);
    const others = device.load(many);
    await added(others);
    const all = machine.get('modules');
    expect(all).toBeGreaterThan(images);
    others.destroy();
    expect(machine.get('modules')).toBe(all - images);
    // Found on disk this time.
    const compiles = machine.get('compiles') - machine.get('modules');
    expect(await visit(few)).toBe(images);
    expect(machine.get('compiles') - machine.get('modules')).toBe(compiles);
  });

  law('stay while another program runs them', async () => {
    const held = device.load(few);
    await added(held);
    await visit(many);
    expect(await visit(few)).toBe(0);
    expect(await added(held)).toBe(sumOf(few));
    held.destroy();
    const all = machine.get('modules');
    // The first of many were the first to go, and are the first to come: they push the few out.
    await visit(many);
    expect(machine.get('modules')).toBeLessThan(all);
  });

  law('are not unloaded before they have run', async () => {
    const [x, y] = buffers();
    const [one, others] = [device.load(few), device.load(many)];
    await added(one);
    await added(others);
    const images = machine.get('modules');
    one.run([x], [y], []);
    one.destroy();
    // Nothing is waited for, so nothing may be unloaded either.
    expect(await machine.count('blocks', () => others.destroy())).toBe(0);
    expect(machine.get('modules')).toBe(images);
    expect(floatsOf(await device.read(y, 4))).toEqual([5 + sumOf(few)]);
    // Whatever is loaded next unloads them first.
    expect(await visit(cudaChain('next', N, [1000]))).toBeLessThan(1);
  });

  law('that still compile when they are let go leave no image', async () => {
    device.destroy();
    device = await machine.open({ cubins: false });
    const [one, others] = [device.load(few), device.load(many)];
    one.destroy();
    others.destroy();
    const compiles = machine.get('compiles');
    const last = device.load(many);
    expect(await added(last)).toBe(sumOf(many));
    expect(machine.get('compiles')).toBeGreaterThan(compiles);
    last.destroy();
    // Those of most of many. The first of them had gone before they were compiled, and were compiled again.
    expect(machine.get('modules')).toBe(3);
  });
});
