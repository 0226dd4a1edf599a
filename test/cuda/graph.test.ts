// A run over buffers seen before is one graph launch; other buffers change the graph, and nothing is left behind: not by 10,000 runs, not by
// programs or devices that go with work under way.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.
// Runs alone: it measures the memory of the process.

import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Device, DeviceAllocation } from '../../src/runtime/device.ts';
import { planLimit } from '../../src/runtime/plans.ts';
import { lawsUnless } from '../runtime/law.ts';
import { bytesOf, dispatch, f32, floatsOf, ramp } from '../runtime/programs.ts';
import { collect, nativeBytes, settledAt } from '../support/collector.ts';
import { Machine, reasonWithout } from './machine.ts';
import { cudaChain, cudaKernel, cudaProgram } from './programs.ts';

const N = 64;
const missing = reasonWithout();
/** Counters of what a device holds in the driver. */
const held = ['live_buffers', 'pinned_buffers', 'modules', 'streams', 'events', 'graphs'] as const;

describe('graphs on CUDA', () => {
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

  law('a loop over the same buffers is one launch a run', async () => {
    const loaded = device.load(cudaChain('looped', N, [1, 2, 3, 4, 5]));
    const [x, y] = [upload(ramp(N)), device.allocate(4 * N)];
    const swap = (times: number): void => {
      for (let k = 0; k < times; k++) {
        loaded.run([x], [y], []);
        loaded.run([y], [x], []);
      }
    };
    swap(2);
    await device.finish();
    const calls = await machine.count('calls', async () => {
      expect(await machine.count('graph_launches', () => swap(50))).toBe(100);
    });
    // A hundred launches, each after the context is made current, and an event for every 32 of them.
    expect(calls).toBeLessThan(210);
    expect(await values(x)).toEqual(ramp(N, 15 * 104));
  });

  law('more sets of buffers than graphs change addresses and build nothing', async () => {
    const loaded = device.load(cudaChain('wandering', N, [1, 1, 1]));
    const sets = planLimit(3) + 3;
    const xs = ramp(sets).map((k) => upload(ramp(N, 10 * k)));
    const y = device.allocate(4 * N);
    const round = async (): Promise<void> => {
      for (const [k, x] of xs.entries()) {
        loaded.run([x], [y], []);
        expect(await values(y)).toEqual(ramp(N, 10 * k + 3));
      }
    };
    const back = async (): Promise<void> => {
      // The same set twice in a row gets its graph.
      for (const [k, x] of xs.entries()) {
        for (let again = 0; again < 2; again++) loaded.run([x], [y], []);
        expect(await values(y)).toEqual(ramp(N, 10 * k + 3));
      }
    };
    await back();
    const graphs = machine.get('graphs');
    const launches = await machine.count('graph_launches', async () => {
      await round();
      await back();
    });
    expect(launches).toBe(3 * sets);
    expect(machine.get('graphs')).toBe(graphs);
  });

  law('a graph changes with the arenas that other programs let grow', async () => {
    const own = await machine.open();
    const loaded = own.load(cudaChain('growing', N, [1, 2, 3]));
    const [x, y] = [upload(ramp(N), own), own.allocate(4 * N)];
    for (let k = 1; k <= 4; k++) {
      for (let again = 0; again < 3; again++) loaded.run([x], [y], []);
      expect(await values(y, own)).toEqual(ramp(N, 6));
      own.load(cudaChain(`large_${k}`, 1000 * 4 ** k, [1, 2]));
    }
    own.destroy();
  });

  law('what is independent is not chained, what depends waits, in any order that allows', async () => {
    machine.set('order', 2);
    const kernels = [
      cudaKernel('left', N, ['read', 'read_write'], 'b1[i] = b0[i] + 1.0f;'),
      cudaKernel('right', N, ['read', 'read_write'], 'b1[i] = b0[i] * 2.0f;'),
      cudaKernel('joined', N, ['read', 'read', 'read_write'], 'b2[i] = b0[i] - b1[i];'),
    ];
    const loaded = device.load(
      cudaProgram({
        kernels,
        buffers: [
          f32('x', 'input', N),
          f32('l', 'scratch', N, { arena: 0, offset: 0 }),
          f32('r', 'scratch', N, { arena: 0, offset: 256 }),
          f32('y', 'output', N),
        ],
        arenas: [512],
        // Twice, over the same scratch: the second round must wait for the readers of the first.
        steps: [0, 1].flatMap((round) => [
          dispatch(0, [round === 0 ? 0 : 3, 1], N),
          dispatch(1, [round === 0 ? 0 : 3, 2], N),
          dispatch(2, [1, 2, 3], N),
        ]),
      }),
    );
    const [x, y] = [upload(ramp(N)), device.allocate(4 * N)];
    for (let run = 0; run < 20; run++) {
      loaded.run([x], [y], []);
      // 1 - x, and of that again: x.
      expect(await values(y)).toEqual(ramp(N));
    }
    machine.set('order', 0);
  });

  law('10,000 runs over fresh buffers keep memory flat, in the driver and in the process', async () => {
    // What earlier laws have dropped is freed before, and not by and by; and memory that they gave back is not in this pool.
    await settledAt(() => held.reduce((sum, name) => sum + machine.get(name), 0));
    const own = await machine.open();
    const loaded = own.load(
      cudaProgram({
        kernels: [
          cudaKernel('flat', N, ['read', 'read_write'], 'b1[i] = b0[i] + __uint_as_float(s[0]);', true),
          cudaKernel('there', N, ['read_write'], 'b0[i] = b0[i] - 1.0f;'),
        ],
        buffers: [f32('x', 'input', N), f32('y', 'output', N)],
        steps: [dispatch(0, [0, 1], N), dispatch(1, [1], N)],
        scalars: [{ name: 'k', dtype: 'f32' }],
      }),
    );
    const run = async (rounds: number): Promise<void> => {
      let x = upload(ramp(N), own);
      for (let k = 0; k < rounds; k++) {
        const [y] = loaded.allocateOutputs();
        loaded.run([x], [y!], [k % 2 === 0 ? 2 : 1]);
        x.destroy();
        x = y!;
        if (k % 100 === 99) await own.finish();
      }
      expect((await values(x, own))[0]).toBe(rounds / 2);
      x.destroy();
    };
    await run(1000);
    const before = { ...own.memory(), counts: held.map((name) => machine.get(name)) };
    collect();
    const resident = nativeBytes();
    await run(10_000);
    const after = own.memory();
    expect(after.live).toBe(before.live);
    expect(after.pooled).toBe(before.pooled);
    expect(held.map((name) => machine.get(name))).toEqual(before.counts);
    collect();
    expect(nativeBytes() - resident).toBeLessThan(60 * 2 ** 20);
    own.destroy();
  });

  law('a program that is destroyed gives its graphs and scratch back, also with runs under way', async () => {
    const own = await machine.open();
    const [x, y] = [upload(ramp(N), own), own.allocate(4 * N)];
    await own.finish();
    const graphs = machine.get('graphs');
    const { live } = own.memory();
    for (let k = 0; k < 5; k++) {
      const loaded = own.load(cudaChain('passing', N, [1, 2, 3]));
      for (let again = 0; again < 3; again++) loaded.run([x], [y], []);
      loaded.destroy();
      loaded.destroy();
      expect(await values(y, own)).toEqual(ramp(N, 6));
    }
    expect(machine.get('graphs')).toBe(graphs);
    expect(own.memory().live).toBe(live);
    own.destroy();
  });

  law('a device that is destroyed with work under way leaves nothing in the driver', async () => {
    device.destroy();
    const empty = (): Promise<void> =>
      expect
        .poll(() => Object.fromEntries(held.map((name) => [name, machine.get(name)])))
        .toEqual(Object.fromEntries(held.map((name) => [name, 0])));
    await empty();
    for (let k = 0; k < 3; k++) {
      const gone = await machine.open();
      const loaded = gone.load(cudaChain('going', N, [1, 2, 3]));
      const [x, y] = [upload(ramp(N), gone), gone.allocate(4 * N)];
      for (let run = 0; run < 3; run++) loaded.run([x], [y], []);
      if (k > 0) expect(await values(y, gone)).toEqual(ramp(N, 6));
      const late = gone.read(y, 4).catch((error: unknown) => String(error));
      for (let run = 0; run < 3; run++) loaded.run([x], [y], []);
      gone.destroy();
      expect(await late).toContain('the device was destroyed');
      await empty();
    }
  });

  law('a device that failed gives its memory back, and another one can be opened', async () => {
    device = await machine.open();
    const loaded = device.load(cudaChain('failing', N, [1, 2, 3]));
    const [x, y] = [upload(ramp(N)), device.allocate(4 * N)];
    for (let run = 0; run < 3; run++) loaded.run([x], [y], []);
    expect(await values(y)).toEqual(ramp(N, 6));
    machine.inject('kernel', 719);
    loaded.run([x], [y], []);
    await expect(values(y)).rejects.toThrow('CUDA_ERROR_LAUNCH_FAILED');
    await expect.poll(() => machine.get('live_buffers')).toBe(0);
    for (const buffer of [x, y]) buffer.destroy();
    loaded.destroy();
    device = await machine.open();
    const again = device.load(cudaChain('failing', N, [1, 2, 3]));
    const [a, b] = [upload(ramp(N)), device.allocate(4 * N)];
    for (let run = 0; run < 3; run++) again.run([a], [b], []);
    expect(await values(b)).toEqual(ramp(N, 6));
  });
});
