// More threads compute what one computes, to the last bit, and leave nothing behind.

import * as fc from 'fast-check';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { compileGraph } from '../../src/compile.ts';
import { add, binary, broadcast } from '../../src/ir/build.ts';
import { realDTypes as dtypes } from '../../src/ir/dtype.ts';
import type { Graph } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import type { Device } from '../../src/runtime/device.ts';
import type { ProgramKernel } from '../../src/runtime/program.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { cutsOf, type JobCut, type Grain } from '../../src/runtime/wasm/cut.ts';
import { WasmDevice } from '../../src/runtime/wasm/device.ts';
import { targetOf } from '../../src/schedule/target.ts';
import { randomModel } from '../codegen/random/models.ts';
import { Sketch } from '../codegen/cases.ts';
import { runOnDevice } from '../support/execute.ts';
import { seed } from '../support/property.ts';
import { randomProgram } from '../support/random/graph.ts';
import { bytesOf, floatsOf, ramp } from '../runtime/programs.ts';
import { programOf, twicePlusOne } from './modules.ts';

/** Every workgroup may go to another thread, however small it is. */
const finest: Grain = { program: 0, dispatch: 0, share: 0, piece: 0 };
const devices = await Promise.all(
  [1, 2, 3].map((threads) => WasmDevice.open(`wasm:${threads}`, { threads, grain: finest })),
);
afterAll(() => devices.forEach((device) => device.destroy()));

/** What each device makes of a graph. */
async function onEach(graph: Graph, inputs: readonly HostArray[]): Promise<HostArray[][]> {
  const results: HostArray[][] = [];
  for (const device of devices) {
    results.push(await runOnDevice(device, targetOf(device.facts), graph, inputs));
    await device.finish();
  }
  return results;
}

test('the devices say how many threads they have', () => {
  expect(devices.map(({ facts }) => [facts.name, facts.threads, facts.description])).toEqual([
    ['wasm:1', 1, 'WebAssembly SIMD, one thread'],
    ['wasm:2', 2, 'WebAssembly SIMD, 2 threads'],
    ['wasm:3', 3, 'WebAssembly SIMD, 3 threads'],
  ]);
});

test('a kernel may bind as many buffers as the device says, and numbers beside them', async () => {
  const s = new Sketch();
  const scale = s.input([]);
  const outputs = Array.from({ length: 128 }, (_, i) => {
    const x = s.input([64]);
    return binary(s.b, 'add', binary(s.b, 'mul', x, broadcast(s.b, scale, [64])), i);
  });
  const graph = s.graph(outputs);
  const inputs = graph.parameters.map(({ shape }, i) =>
    hostArray('f32', shape as number[], shape.length === 0 ? [2] : ramp(64, i)),
  );
  const target = targetOf(devices[1]!.facts);
  const { kernels } = compileGraph(graph, target).program;
  expect(kernels.map(({ bindings, usesScalars }) => [bindings.length, usesScalars])).toEqual([[256, true]]);
  expect(target.limits.storageBuffers).toBe(256);
  const want = interpret(graph, inputs).map(({ data }) => data);
  for (const results of await onEach(graph, inputs)) expect(results.map(({ data }) => data)).toEqual(want);
});

test('every workgroup runs once, whatever their number', async () => {
  for (const groups of [1, 2, 3, 5, 7, 64, 97, 1000, 12_345]) {
    const x = ramp(groups);
    for (const device of devices) {
      const loaded = device.load(programOf('twicePlusOne', groups, twicePlusOne));
      const [from, to] = [device.allocate(4 * groups), device.allocate(4 * groups)];
      device.write(from, bytesOf(x));
      loaded.run([from], [to], []);
      expect(floatsOf(await device.read(to, 4 * groups))).toEqual(x.map((value) => 2 * value + 1));
      loaded.destroy();
    }
  }
});

test('every thread has scratch memory of its own', async () => {
  const groups = 1000;
  // Fills 4096 words of scratch with the number of the group, waits, and adds them up.
  const body = `
    (local.set $i (i32.const 0))
    (loop $fill
      (i32.store (i32.add (local.get $s) (local.get $i)) (local.get $group))
      (br_if $fill (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 16384))))
    (local.set $sum (i32.const 0))
    (loop $add
      (local.set $i (i32.sub (local.get $i) (i32.const 4)))
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.add (local.get $s) (local.get $i)))))
      (br_if $add (local.get $i)))
    (f32.store (i32.add (local.get $y) (i32.shl (local.get $group) (i32.const 2)))
      (f32.convert_i32_s (local.get $sum)))`;
  for (const device of devices) {
    const loaded = device.load(programOf('scratch', groups, body, 16_384));
    const [x, y] = [device.allocate(4 * groups), device.allocate(4 * groups)];
    for (let k = 0; k < 20; k++) loaded.run([x], [y], []);
    expect(floatsOf(await device.read(y, 4 * groups))).toEqual(ramp(groups).map((value) => 4096 * value));
    loaded.destroy();
  }
});

test('a kernel binds as many buffers as the device says, on all threads', async () => {
  const { storageBuffers } = devices[1]!.facts.limits;
  const s = new Sketch();
  const inputs = Array.from({ length: 150 }, () => s.input([40_000]));
  const graph = s.graph([inputs.reduce((x, y) => add(s.b, x, y))]);
  const { program } = compileGraph(graph, targetOf(devices[1]!.facts));
  expect(program.kernels.map(({ bindings }) => bindings.length)).toEqual([151]);
  expect(storageBuffers).toBeGreaterThan(150);
  const values = graph.parameters.map((_, i) =>
    hostArray(
      'f32',
      [40_000],
      ramp(40_000).map((x) => x + i),
    ),
  );
  for (const [sum] of await onEach(graph, values)) expect(sum!.data[7]).toBe(150 * 7 + (149 * 150) / 2);
});

test('random programs give the same bits on one, two and three threads', async () => {
  await fc.assert(
    fc.asyncProperty(randomProgram({ values: 'tame', dtypes: [...dtypes] }), async ({ graph, inputs }) => {
      const [one, two, three] = await onEach(graph, inputs);
      expect(two).toEqual(one);
      expect(three).toEqual(one);
    }),
    { numRuns: 150, seed },
  );
});

test('random models give the same bits on one, two and three threads', async () => {
  await fc.assert(
    fc.asyncProperty(randomModel(7), async ({ graph, inputs }) => {
      const [one, two, three] = await onEach(graph, inputs);
      expect(two).toEqual(one);
      expect(three).toEqual(one);
    }),
    { numRuns: 25, seed },
  );
});

describe('updates that meet in one place', () => {
  const [updates, slots] = [100_003, 5];
  const at: HostArray = {
    dtype: 'i32',
    shape: [updates],
    data: Int32Array.from({ length: updates }, (_, i) => (i * i) % slots),
  };
  const accumulated = (dtype: 'i32' | 'i64' | 'f32'): Graph => {
    const s = new Sketch();
    const inputs = [s.input([updates], 'i32'), s.input([updates], dtype)];
    return s.graph([s.b.add('scatterAddAtomic', inputs, { axis: 0, size: slots }) as never]);
  };

  test('are all added, integers by many threads at once', async () => {
    const sums = new Int32Array(slots);
    const data = Int32Array.from({ length: updates }, (_, i) => i % 7);
    data.forEach((value, i) => (sums[at.data[i] as number]! += value));
    for (const [result] of await onEach(accumulated('i32'), [at, { dtype: 'i32', shape: [updates], data }])) {
      expect(result!.data).toEqual(sums);
    }
    const large = 2n ** 40n;
    const wide: HostArray = {
      dtype: 'i64',
      shape: [updates],
      data: BigInt64Array.from(data, (value) => large * BigInt(value)),
    };
    for (const [result] of await onEach(accumulated('i64'), [at, wide])) {
      expect(result!.data).toEqual(BigInt64Array.from(sums, (sum) => large * BigInt(sum)));
    }
  });

  test('are added in one order where the order shows', async () => {
    const data = Float32Array.from({ length: updates }, (_, i) => Math.sin(i) * 10 ** (i % 9));
    const results = await onEach(accumulated('f32'), [at, { dtype: 'f32', shape: [updates], data }]);
    expect(results[1]).toEqual(results[0]);
    expect(results[2]).toEqual(results[0]);
  });
});

describe('how work is cut', () => {
  /** The cut of a program's only step. */
  function cutOf(kernel: Partial<ProgramKernel>, groups: number, threads: number): JobCut | undefined {
    const program = programOf('any', groups, '');
    return [...cutsOf({ ...program, kernels: [{ ...program.kernels[0]!, ...kernel }] }, threads).values()][0];
  }

  test('small work stays on the thread that asks', () => {
    expect(cutOf({}, 100, 8)).toBeDefined();
    expect(cutOf({ flops: 1000, bytes: 1000 }, 100, 8)).toBeUndefined();
    expect(cutOf({}, 1, 8)).toBeUndefined();
    expect(cutOf({}, 100, 1)).toBeUndefined();
    expect(cutOf({ serial: true }, 100, 8)).toBeUndefined();
  });

  test('no piece is empty, and every thread begins with as many', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 2 ** 30 }),
        fc.integer({ min: 2, max: 64 }),
        fc.double({ min: 0, max: 1e12, noNaN: true }),
        (groups, threads, flops) => {
          const cut = cutOf({ flops }, groups, threads);
          if (cut === undefined) return;
          expect(cut.pieces).toBeLessThanOrEqual(groups);
          expect(cut.pieces % cut.share).toBe(0);
          expect(cut.pieces / cut.share).toBeLessThanOrEqual(threads);
        },
      ),
    );
  });
});

describe('names', () => {
  test('say how many threads a device has', async () => {
    const device: Device = await openDevice('wasm:2');
    expect(device.facts).toMatchObject({ name: 'wasm:2', threads: 2 });
    expect(await openDevice('wasm:2')).toBe(device);
    device.destroy();
  });

  test.each(['wasm:0', 'wasm:65', 'wasm:x', 'wasm:', 'wasm:02'])('%s is no device', async (name) => {
    await expect(openDevice(name)).rejects.toMatchObject({ code: 'E_DEVICE' });
  });
});

describe('SINTER_THREADS', () => {
  test.each(['1', '2', '3'])('%s is how many threads there are', async (threads) => {
    vi.stubEnv('SINTER_THREADS', threads);
    const device = await WasmDevice.open('wasm');
    expect(device.facts.threads).toBe(Number(threads));
    device.destroy();
  });

  test.each(['0', '-1', '2.5', 'two', '1e3', '65', ' 2'])("'%s' is refused", async (threads) => {
    vi.stubEnv('SINTER_THREADS', threads);
    await expect(WasmDevice.open('wasm')).rejects.toMatchObject({
      code: 'E_DEVICE',
      message: expect.stringContaining(`wasm: SINTER_THREADS is '${threads}': expected 1 to 64`) as string,
    });
  });

  test('is refused by the name of the device that was asked for', async () => {
    vi.stubEnv('SINTER_THREADS', 'many');
    await expect(WasmDevice.open('native')).rejects.toThrow("native: SINTER_THREADS is 'many'");
  });
});
