// What the driver refuses becomes an error with CUDA's name for it, the kernel, and what was being done; it is told to the reads that
// came after it. What a context survives leaves the device usable; what it does not survive loses the device.
//
// Runs in a process of its own: its faults end the CUDA device for the whole process.

import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import { DeviceError } from '../../src/errors.ts';
import type { Device, DeviceAllocation } from '../../src/runtime/device.ts';
import { failure } from '../runtime/failure.ts';
import { lawsUnless } from '../runtime/law.ts';
import { bytesOf, dispatch, f32, floatsOf, ramp } from '../runtime/programs.ts';
import { Machine, reasonWithout } from './machine.ts';
import { cudaChain, cudaKernel, cudaMap, cudaProgram } from './programs.ts';

const N = 64;
const missing = reasonWithout();
const broken = cudaMap('broken', N, 'v + nonsense');
const sound = cudaMap('sound', N, 'v + 1.0f');

describe('failures on CUDA', () => {
  let machine: Machine;
  let device: Device;
  let x: DeviceAllocation;
  let y: DeviceAllocation;
  beforeAll(() => {
    if (missing === undefined) machine = new Machine();
  });
  beforeEach(async () => {
    if (missing !== undefined) return;
    machine.heal();
    if (device !== undefined && !device.lost) return;
    device = await machine.open();
    [x, y] = [device.allocate(4 * N), device.allocate(4 * N)];
    device.write(x, bytesOf(ramp(N)));
    device.load(sound).run([x], [y], []);
    await device.finish();
  });
  afterAll(() => {
    if (missing !== undefined) return;
    machine.heal();
    device.destroy();
    machine.close();
  });
  const law = lawsUnless(missing);
  const expectUsable = async (): Promise<void> => {
    expect(device.lost).toBe(false);
    device.write(x, bytesOf(ramp(N)));
    device.load(sound).run([x], [y], []);
    expect(floatsOf(await device.read(y, 4 * N))).toEqual(ramp(N, 1));
  };

  law('CUDA C that does not compile is reported with kernel, line and source', async () => {
    device.load(broken).run([x], [y], []);
    const error = await failure(() => device.read(y, 4));
    expect([error.code, error.kernel]).toEqual(['E_VALIDATION', 'broken']);
    expect(error.message).toMatch(/^cuda in kernel broken: CUDA C does not compile: line 5: .*nonsense/);
    expect(error.message).toContain('5 |   if (i < 64u) { const float v = b0[i]; b1[i] = v + nonsense; }');
    await expectUsable();
  });

  law('one broken kernel of many is named, and the others compile', async () => {
    const good = cudaChain('among', N, [1, 2, 3, 4, 5, 6]);
    const kernels = good.kernels.map((kernel, k) =>
      k === 4 ? { ...kernel, source: kernel.source.replace('b0[i] +', 'b0[i] + missing_one +') } : kernel,
    );
    device.load({ ...good, kernels }).run([x], [y], []);
    const error = await failure(() => device.finish());
    expect(error.kernel).toBe('among_4');
    expect(error.message).toContain('missing_one');
    const compiles = await machine.count('compiles', async () => {
      device.load(good).run([x], [y], []);
      expect(floatsOf(await device.read(y, 4 * N))).toEqual(ramp(N, 21));
    });
    // One program of one kernel, compiled and loaded: the other five were there already.
    expect(compiles).toBe(2);
  });

  law('a broken program that is never run fails nothing', async () => {
    device.load(cudaMap('unused', N, 'v + more_nonsense'));
    await device.finish();
    await expectUsable();
  });

  law('a failure is told to every read that waited behind it, and to none before it', async () => {
    device.load(sound).run([x], [y], []);
    const before = device.read(y, 4);
    device.load(cudaMap('broken_behind', N, 'v + absent')).run([x], [y], []);
    const behind = Promise.allSettled([device.read(y, 4), device.read(x, 4), device.finish()]);
    expect(floatsOf(await before)).toEqual([1]);
    for (const result of await behind) {
      expect(result.status === 'rejected' && (result.reason as DeviceError).kernel).toBe('broken_behind');
    }
    await expectUsable();
  });

  law('an entry point that is not in its source is named', async () => {
    const base = cudaMap('misnamed', N, 'v');
    const source = base.kernels[0]!.source.replace('misnamed(', 'other(');
    device.load({ ...base, kernels: [{ ...base.kernels[0]!, source }] }).run([x], [y], []);
    const error = await failure(() => device.read(y, 4));
    expect(error.kernel).toBe('misnamed');
    expect(error.message).toContain('CUDA_ERROR_NOT_FOUND (500)');
    await expectUsable();
  });

  law('a launch that is refused names its kernel, with the name CUDA has for it', async () => {
    const refused = device.load(cudaMap('refused', N, 'v + 3.0f'));
    await device.finish();
    machine.inject('cuLaunchKernel', 701);
    refused.run([x], [y], []);
    const error = await failure(() => device.read(y, 4));
    expect([error.code, error.kernel]).toEqual(['E_VALIDATION', 'refused']);
    expect(error.message).toBe(
      'cuda in kernel refused: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701): too many resources requested for launch, in cuLaunchKernel while launching it',
    );
    await expectUsable();
  });

  law('a graph that cannot be built, or launched, is reported, and the next run works', async () => {
    const chain = device.load(cudaChain('graphed', N, [1, 2]));
    for (const call of ['cuGraphAddKernelNode_v2', 'cuGraphInstantiateWithFlags', 'cuGraphLaunch']) {
      for (let k = 0; k < 2; k++) {
        chain.run([x], [y], []);
        await device.finish();
      }
      machine.inject(call, 1);
      const fresh = device.load(cudaChain(`at_${call}`, N, [1, 2]));
      fresh.run([x], [y], []);
      await device.finish();
      fresh.run([x], [y], []);
      const error = await failure(() => device.read(y, 4));
      expect(error.code).toBe('E_VALIDATION');
      expect(error.message).toContain(`CUDA_ERROR_INVALID_VALUE (1): invalid argument, in ${call} while`);
      machine.heal();
      fresh.run([x], [y], []);
      expect(floatsOf(await device.read(y, 4 * N))).toEqual(ramp(N, 3));
      fresh.destroy();
    }
    await expectUsable();
  });

  law('memory that runs out is E_OOM, after what was freed has been taken back', async () => {
    const MiB = 2 ** 20;
    machine.inject('cuMemAllocAsync', 2);
    device.allocate(3 * MiB).destroy(); // Refused once: the pools give way, and it fits.
    machine.inject('cuMemAllocAsync', 2, 0, 9);
    const error = await failure(() => device.allocate(5 * MiB));
    expect(error.code).toBe('E_OOM');
    expect(error.message).toContain('CUDA_ERROR_OUT_OF_MEMORY (2): out of memory');
    expect(error.message).toContain(`allocating ${5 * MiB} bytes`);
    expect(error.message).toContain('try: dispose of tensors');
    machine.heal();
    await expectUsable();
  });

  law('page-locked memory that runs out fails the copy that wants it', async () => {
    const big = device.allocate(2 ** 26);
    machine.inject('cuMemHostAlloc', 2);
    const error = await failure(() => device.read(big, 2 ** 26));
    expect(error.code).toBe('E_OOM');
    expect(error.message).toContain('of host memory');
    big.destroy();
    await expectUsable();
  });

  law('a budget is kept', async () => {
    const MiB = 2 ** 20;
    const small = await machine.open({ budget: 64 * MiB });
    const held = ramp(6).map(() => small.allocate(10 * MiB));
    const error = await failure(() => small.allocate(10 * MiB));
    expect(error.message).toContain('in 6 live buffers: the budget is 67108864');
    for (const buffer of held) buffer.destroy();
    small.allocate(40 * MiB).destroy();
    expect(small.memory().pooled).toBeLessThanOrEqual(64 * MiB);
    small.destroy();
  });

  law('a kernel that faults loses the device, and is named where it can be', async () => {
    const program = cudaChain('faulty', N, [1, 2]);
    const loaded = device.load(program);
    for (let k = 0; k < 2; k++) loaded.run([x], [y], []);
    await device.finish();
    machine.inject('kernel', 700, 1);
    loaded.run([x], [y], []);
    const waiting = [device.read(y, 4), device.read(x, 4), device.finish()];
    for (const result of await Promise.allSettled(waiting)) {
      const error = (result as PromiseRejectedResult).reason as DeviceError;
      expect(error.code).toBe('E_DEVICE_LOST');
      expect(error.message).toMatch(
        /CUDA_ERROR_ILLEGAL_ADDRESS \(700\).*queued were faulty_0, faulty_1\n {2}try: SINTER_CUDA_SYNC=1/,
      );
    }
    expect(device.lost).toBe(true);
    expect((await failure(() => device.allocate(4))).code).toBe('E_DEVICE_LOST');
    loaded.destroy();
    x.destroy();
  });

  law('a program of one kernel that faults is that kernel', async () => {
    const loaded = device.load(cudaMap('only_one', N, 'v + 5.0f'));
    await device.finish();
    machine.inject('kernel', 719);
    loaded.run([x], [y], []);
    const error = await failure(() => device.finish());
    expect([error.code, error.kernel]).toEqual(['E_DEVICE_LOST', 'only_one']);
    expect(error.message).toContain('CUDA_ERROR_LAUNCH_FAILED (719)');
  });

  law('a kernel that reads past the end of memory is a fault, without anything injected', async () => {
    const loaded = device.load(cudaMap('wild', N, 'b0[i + 1000000000u] + v'));
    loaded.run([x], [y], []);
    const error = await failure(() => device.read(y, 4));
    expect([error.code, error.kernel]).toEqual(['E_DEVICE_LOST', 'wild']);
  });

  law('with SINTER_CUDA_SYNC=1 the kernel that fails is named among many', async () => {
    const careful = await machine.open({ env: { SINTER_CUDA_SYNC: '1' } });
    const [a, b] = [careful.allocate(4 * N), careful.allocate(4 * N)];
    careful.write(a, bytesOf(ramp(N)));
    const loaded = careful.load(cudaChain('watched', N, [1, 2, 3]));
    for (let k = 0; k < 3; k++) loaded.run([a], [b], []);
    expect(floatsOf(await careful.read(b, 4 * N))).toEqual(ramp(N, 6));
    machine.inject('kernel', 716, 1);
    loaded.run([a], [b], []);
    const error = await failure(() => careful.read(b, 4));
    expect([error.code, error.kernel]).toEqual(['E_DEVICE_LOST', 'watched_1']);
    expect(error.message).toContain('CUDA_ERROR_MISALIGNED_ADDRESS (716)');
    // Both devices are contexts of one broken machine.
    device.destroy();
  });

  law('launches beyond the limits are refused when they are loaded', async () => {
    const [kernel] = sound.kernels;
    const wide = { ...sound, kernels: [{ ...kernel!, workgroup: [2048, 1, 1] as const }] };
    expect((await failure(() => device.load(wide))).message).toContain('2048 exceeds the limit 1024');
    const greedy = { ...sound, kernels: [{ ...kernel!, sharedBytes: 300_000 }] };
    const shared = await failure(() => device.load(greedy));
    expect([shared.code, shared.kernel]).toEqual(['E_LIMIT', 'sound']);
    expect(shared.message).toContain('shared memory 300000 exceeds the limit 232448');
  });

  law('a kernel that writes what it also reads elsewhere is refused by name', async () => {
    device.load(sound).run([x], [x], []);
    const outside = await failure(() => device.finish());
    expect([outside.code, outside.kernel]).toEqual(['E_VALIDATION', 'sound']);
    expect(outside.message).toContain('x and y overlap, bound both read and read_write');
    const two = cudaProgram({
      kernels: [cudaKernel('pair', N, ['read_write', 'read_write'], 'b0[i] = 1.0f; b1[i] = 2.0f;')],
      buffers: [
        f32('a', 'scratch', N, { arena: 0, offset: 0 }),
        f32('b', 'scratch', N, { arena: 0, offset: 0 }),
      ],
      arenas: [512],
      steps: [dispatch(0, [0, 1], N)],
    });
    device.load(two).run([], [], []);
    expect((await failure(() => device.finish())).message).toContain('a and b overlap and are both written');
    await expectUsable();
  });

  law('a machine whose driver has no device, or an older CUDA, says so', async () => {
    machine.set('devices', 0);
    const none = await failure(() => machine.open());
    expect(none.message).toBe(
      'cuda: the CUDA driver has no device: cuInit gave CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected',
    );
    machine.set('devices', 1);
    machine.set('driver_version', 11_080);
    expect((await failure(() => machine.open())).message).toContain('CUDA 11.8: 12 is the oldest');
    machine.set('driver_version', 12_040);
    expect((await failure(() => machine.open())).message).toContain('is version 13.');
    machine.set('driver_version', 13_000);
    await expectUsable();
  });
});
