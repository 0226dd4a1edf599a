// Programs on a CUDA device (the stand-in), beyond what every device does: arguments, graphs, shared memory, several devices. The stand-in
// does nothing before it is waited for, and no address is given twice, so what is used too early or too late is seen.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Device, DeviceAllocation, LoadedProgram } from '../../src/runtime/device.ts';
import { lawsUnless } from '../runtime/law.ts';
import { bytesOf, dispatch, f32, floatsOf, ramp } from '../runtime/programs.ts';
import { Machine, reasonWithout } from './machine.ts';
import { cudaChain, cudaKernel, cudaMap, cudaProgram } from './programs.ts';

const N = 300;
const missing = reasonWithout();

describe('programs on CUDA', () => {
  let machine: Machine;
  let device: Device;
  beforeAll(async () => {
    if (missing !== undefined) return;
    machine = new Machine();
    device = await machine.open();
  });
  afterAll(() => {
    if (missing !== undefined) return;
    device.destroy();
    machine.close();
  });
  const law = lawsUnless(missing);

  const upload = (values: ArrayLike<number>, to: Device = device): DeviceAllocation => {
    const buffer = to.allocate(4 * values.length);
    to.write(buffer, bytesOf(values));
    return buffer;
  };
  const values = async (buffer: DeviceAllocation, from: Device = device): Promise<number[]> =>
    floatsOf(await from.read(buffer, buffer.bytes));

  law('the device says what it is', async () => {
    expect(device.facts.name).toBe('cuda');
    expect(device.facts.description).toMatch(/stand-in.*, sm_90a, .*CUDA 13\.0, NVRTC 13\.\d+$/);
    expect(device.facts.features).toEqual(expect.arrayContaining(['sm_80', 'sm_90', 'sm_90a']));
    expect(device.facts.subgroups).toEqual({ min: 32, max: 32 });
    expect(device.facts.limits.workgroupInvocations).toBe(1024);
  });

  law('what is larger than the staging memory goes in pieces', async () => {
    const expected = new Uint8Array(40_000_003).map((_, i) => i % 251);
    const data = expected.slice();
    const buffer = device.allocate(40_000_004);
    device.write(buffer, data);
    const back = device.read(buffer, data.length);
    data.fill(0); // The bytes were taken before `write` returned.
    expect(Buffer.compare(await back, expected)).toBe(0);
    buffer.destroy();
  });

  law('arguments keep their order, 24 buffers and scalars behind them', async () => {
    const count = 24;
    const bindings = [...ramp(count - 1).map(() => 'read' as const), 'read_write' as const];
    const sum = ramp(count - 1)
      .map((k) => `${k + 1}.0f * b${k}[i]`)
      .join(' + ');
    const loaded = device.load(
      cudaProgram({
        kernels: [
          cudaKernel(
            'weighted',
            N,
            bindings,
            `b23[i] = ${sum} + __uint_as_float(s[0]) + (float)(int)s[1];`,
            true,
          ),
        ],
        buffers: [...ramp(count - 1).map((k) => f32(`x${k}`, 'input', N)), f32('y', 'output', N)],
        steps: [dispatch(0, ramp(count), N)],
        scalars: [
          { name: 'f', dtype: 'f32' },
          { name: 'n', dtype: 'i32' },
        ],
      }),
    );
    const xs = ramp(count - 1).map((k) => upload(ramp(N, k)));
    const y = device.allocate(4 * N);
    loaded.run(xs, [y], [0.5, -3]);
    const weights = ramp(count - 1, 1);
    const total = weights.reduce((a, b) => a + b, 0);
    const offset = weights.reduce((a, w) => a + w * (w - 1), 0) - 2.5;
    expect(await values(y)).toEqual(ramp(N).map((v) => total * v + offset));
  });

  const affine = (): LoadedProgram =>
    device.load(
      cudaProgram({
        kernels: [
          cudaKernel(
            'affine',
            N,
            ['read', 'read_write'],
            'b1[i] = b0[i] * __uint_as_float(s[0]) + (float)(int)s[1] + (float)s[2] + (s[3] != 0u ? 0.5f : 0.0f);',
            true,
          ),
          cudaKernel('shift', N, ['read_write'], 'b0[i] = b0[i] + __uint_as_float(s[0]);', true),
        ],
        buffers: [f32('x', 'input', N), f32('y', 'output', N)],
        steps: [dispatch(0, [0, 1], N), dispatch(1, [1], N)],
        scalars: [
          { name: 'f', dtype: 'f32' },
          { name: 'n', dtype: 'i32' },
          { name: 'u', dtype: 'u32' },
          { name: 'on', dtype: 'bool' },
        ],
      }),
    );

  law('scalars belong to their run, however many runs are queued', async () => {
    const loaded = affine();
    const x = upload(ramp(N));
    const given = ramp(120).map((k) => [k / 2, -k, 3_000_000 + k, k % 2] as const);
    for (const same of [true, false]) {
      // Over the same buffers each time, and over fresh ones.
      const one = device.allocate(4 * N);
      const seen = given.map((scalars) => {
        const y = same ? one : device.allocate(4 * N);
        loaded.run([x], [y], scalars);
        return values(y);
      });
      const all = await Promise.all(seen);
      given.forEach(([f, n, u, on], k) => {
        const expected = ramp(N).map((v) => Math.fround(v * f + n + u + on / 2) + f);
        expect(all[k]).toEqual(expected);
      });
    }
  });

  law('the scalar of an input is what the input holds when the run starts', async () => {
    const loaded = device.load(
      cudaProgram({
        kernels: [
          cudaKernel(
            'scaled',
            N,
            ['read', 'read_write'],
            'b1[i] = b0[i] * __uint_as_float(s[1]) + __uint_as_float(s[0]);',
            true,
          ),
        ],
        buffers: [f32('x', 'input', N), f32('rate', 'input', 1), f32('y', 'output', N)],
        steps: [dispatch(0, [0, 2], N)],
        scalars: [
          { name: 'shift', dtype: 'f32' },
          { name: 'rate', dtype: 'f32', input: 1 },
        ],
      }),
    );
    const [x, rate, y] = [upload(ramp(N)), device.allocate(4), device.allocate(4 * N)];
    const seen = ramp(6, 1).map((k) => {
      device.write(rate, bytesOf([k]));
      loaded.run([x, rate], [y], [10 * k]);
      return values(y);
    });
    expect(await Promise.all(seen)).toEqual(ramp(6, 1).map((k) => ramp(N).map((v) => v * k + 10 * k)));
  });

  law(
    'buffers that overlap although the program takes them for different ones are used in order',
    async () => {
      const loaded = device.load(
        cudaProgram({
          kernels: [
            cudaKernel('first', N, ['read', 'read_write'], 'b1[i] = b0[i] + 1.0f;'),
            cudaKernel('second', N, ['read', 'read_write'], 'b1[i] = b0[i] * 10.0f;'),
          ],
          buffers: [f32('a', 'input', N), f32('b', 'input', N), f32('y', 'output', N), f32('z', 'output', N)],
          steps: [dispatch(0, [0, 2], N), dispatch(1, [1, 3], N)],
        }),
      );
      const [a, z] = [upload(ramp(N)), device.allocate(4 * N)];
      for (let run = 0; run < 4; run++) {
        const y = upload(ramp(N, 500));
        // The second kernel reads what the first one wrote.
        for (let again = 0; again < 3; again++) loaded.run([a, y], [y, z], []);
        expect(await values(z)).toEqual(ramp(N).map((v) => 10 * (v + 1)));
      }
    },
  );

  law('dynamic shared memory is as large as the kernel asks, above 48 KiB too', async () => {
    const words = 20_000;
    const source = `namespace mirror_module {
extern "C" __global__ void __launch_bounds__(64) mirror(const float *__restrict__ x, float *y) {
  extern __shared__ unsigned char dynamic_bytes[];
  float *kept = (float *)dynamic_bytes;
  for (unsigned i = threadIdx.x; i < ${words}u; i += 64u) kept[i] = x[i];
  __syncthreads();
  for (unsigned i = threadIdx.x; i < ${words}u; i += 64u) y[i] = kept[${words - 1}u - i];
}
}`;
    const base = cudaMap('mirror', words, 'v');
    const kernels = [{ ...base.kernels[0]!, source, sharedBytes: 4 * words }];
    const loaded = device.load({ ...base, kernels, steps: [dispatch(0, [0, 1], 64)] });
    const y = device.allocate(4 * words);
    loaded.run([upload(ramp(words))], [y], []);
    expect(await values(y)).toEqual(ramp(words).reverse());
  });

  law('two devices keep their programs and buffers apart', async () => {
    machine.set('devices', 2);
    const second = await machine.open({ ordinal: 1 });
    expect(second.facts.name).toBe('cuda:1');
    expect(second.facts.description).toContain('device 1 of 2');
    const program = cudaChain('on_both', N, [1, 2]);
    const pairs = [device, second].map((on) => {
      return { on, loaded: on.load(program), x: upload(ramp(N), on), y: on.allocate(4 * N) };
    });
    for (let k = 0; k < 3; k++) for (const { loaded, x, y } of pairs) loaded.run([x], [y], []);
    for (const { on, y } of pairs) expect(await values(y, on)).toEqual(ramp(N, 3));
    expect(() => pairs[0]!.loaded.run([pairs[1]!.x], [pairs[0]!.y], [])).toThrow('another device');
    second.destroy();
    expect(await values(pairs[0]!.y)).toEqual(ramp(N, 3));
    machine.set('devices', 1);
    await expect(machine.open({ ordinal: 1 })).rejects.toThrow('there are 1 CUDA devices');
  });

  law('a measurement is of what was queued in it', async () => {
    const loaded = device.load(cudaMap('timed', N, 'v + 1.0f'));
    const [x, y] = [upload(ramp(N)), device.allocate(4 * N)];
    loaded.run([x], [y], []);
    const nothing = await device.measure!(() => undefined);
    const much = await device.measure!(() => {
      for (let k = 0; k < 200; k++) loaded.run([x], [y], []);
    });
    expect(nothing).toBeGreaterThanOrEqual(0);
    expect(much).toBeGreaterThan(nothing!);
    await device.finish();
  });

  law('waiting leaves the event loop its turns', async () => {
    const loaded = device.load(cudaMap('waited', N, 'v + 2.0f'));
    const [x, y] = [upload(ramp(N)), device.allocate(4 * N)];
    loaded.run([x], [y], []);
    await device.finish();
    // The first ten questions are answered with not ready.
    machine.inject('cuEventQuery', 600, 0, 10);
    let turns = 0;
    const count = (): void => void ((turns += 1), setImmediate(count).unref());
    count();
    loaded.run([x], [y], []);
    expect(await values(y)).toEqual(ramp(N, 2));
    expect(turns).toBeGreaterThanOrEqual(10);
    machine.heal();
  });
});
