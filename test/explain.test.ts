// explain and lower: what a program becomes, told without running it and without a device.

import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { explain, explainFor, lower } from '../src/explain.ts';
import * as sn from '../src/index.ts';
import { parse } from '../src/ir/parse.ts';
import { print } from '../src/ir/print.ts';
import { gpuTarget, interpreterTarget, softwareTarget } from '../src/schedule/target.ts';
import { showBytes, showCount, table } from '../src/table.ts';
import { spyDevice, vec } from './tensor/support.ts';

// A device that counts: none of these tests may reach it unless it says so.
let spy: ReturnType<typeof spyDevice>;
beforeEach(() => {
  spy = spyDevice();
});

describe('explain', () => {
  test('a function is traced, never run', () => {
    const { kernels, totals, graph } = explain((x: sn.Tensor) => x.exp().sum(1), sn.zeros([8, 32]));
    expect(kernels).toHaveLength(1);
    expect(kernels[0]).toMatchObject({ kind: 'row', reads: ['f32[8,32]'], writes: ['f32[8]'] });
    expect(totals).toMatchObject({ kernels: 1, bytes: 4 * (256 + 8), lowerBoundBytes: 4 * (256 + 8) });
    expect(graph).toContain('reduce');
    expect(spy.count).toMatchObject({ load: 0, run: 0 });
  });

  test('a pending tensor stays pending, and computes what was said', async () => {
    const x = vec(1, 2, 3);
    const y = x.mul(2).add(1);
    const { kernels } = explain(y);
    expect(kernels.map(({ kind }) => kind)).toEqual(['map']);
    expect(spy.count).toMatchObject({ load: 0, run: 0 });
    expect(String(y)).toContain('(pending)');
    expect(await y.array()).toEqual([3, 5, 7]);
    expect(spy.count.run).toBe(1);
  });

  test('a computed tensor takes no kernels', async () => {
    const y = vec(1, 2).mul(3);
    await y.data();
    expect(explain(y).totals).toMatchObject({ kernels: 0, bytes: 0 });
  });

  test('parameters are named after the arguments they come from', () => {
    const bias = vec(1, 2);
    const f = (p: { layers: { w: sn.Tensor }[] }, x: sn.Tensor, scale: sn.TensorLike): sn.Tensor =>
      x.matmul(p.layers[0]!.w).add(bias).mul(scale);
    const { graph } = explain(f, { layers: [{ w: sn.zeros([3, 2]) }] }, sn.zeros([4, 3]), 0.5);
    for (const name of ['arg0.layers[0].w', 'arg1', 'arg2']) expect(graph).toContain(`name: "${name}"`);
    expect(graph).toMatch(/name: "captured\d"/);
  });

  test('numbers are run-time scalars: no memory is read for them', () => {
    const { kernels } = explain((x: sn.Tensor, k: sn.TensorLike) => x.mul(k), sn.zeros([16]), 3);
    expect(kernels[0]!.reads).toEqual(['f32[16]']);
  });

  test('the graph is IR text that reads back', () => {
    const { graph } = explain((x: sn.Tensor) => x.softmax(), sn.zeros([4, 4]));
    expect(print(parse(graph))).toBe(graph);
  });

  test('memory counts inputs, outputs and scratch', () => {
    const { memory } = explain(
      (x: sn.Tensor, w: sn.Tensor) => x.softmax().matmul(w),
      sn.zeros([64, 64]),
      sn.zeros([64, 16]),
    );
    expect(memory.inputs).toBeGreaterThanOrEqual(4 * (64 * 64 + 64 * 16));
    expect(memory.outputs).toBeGreaterThanOrEqual(4 * 64 * 16);
    expect(memory.scratch).toBeGreaterThanOrEqual(4 * 64 * 64);
    expect(memory.peak).toBe(memory.inputs + memory.outputs + memory.scratch);
  });

  test('totals are the sums of the kernels', () => {
    const { kernels, totals } = explain(
      sn.grad((w: sn.Tensor, x: sn.Tensor) => x.matmul(w).tanh().sum()),
      sn.zeros([32, 8]),
      sn.zeros([16, 32]),
    );
    expect(totals.kernels).toBe(kernels.length);
    expect(totals.flops).toBe(kernels.reduce((sum, { flops }) => sum + flops, 0));
    expect(totals.bytes).toBe(kernels.reduce((sum, { bytes }) => sum + bytes, 0));
    expect(totals.flops).toBeGreaterThan(2 * 16 * 32 * 8 * 2);
  });

  test('bytes never fall below the lower bound where every input is read whole', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 40 }),
        fc.constantFrom('softmax', 'exp', 'cumsum', 'matmul'),
        (rows, columns, op) => {
          const f = (x: sn.Tensor): sn.Tensor => {
            if (op === 'matmul') return x.matmul(x.transpose());
            return op === 'cumsum' ? x.cumsum(1) : x[op as 'softmax' | 'exp']();
          };
          const { totals } = explain(f, sn.zeros([rows, columns]));
          expect(totals.bytes).toBeGreaterThanOrEqual(totals.lowerBoundBytes);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('another target has other schedules, the interpreter no kernels', () => {
    const f = (x: sn.Tensor): sn.Tensor => x.softmax();
    const [gpu, software] = [gpuTarget, softwareTarget].map((target) =>
      explainFor(target, f, sn.zeros([256, 1024])),
    );
    expect(gpu!.target).toBe('wgsl');
    expect(software!.target).toBe('wgsl:software');
    expect(software!.kernels[0]!.schedule).not.toBe(gpu!.kernels[0]!.schedule);
    expect(explainFor(interpreterTarget, f, sn.zeros([2, 2])).kernels).toEqual([]);
  });

  test('joining more tensors than a kernel may bind is a tree of kernels', async () => {
    const parts = Array.from({ length: 30 }, (_, i) => vec(i));
    const { kernels } = explain((list: sn.Tensor[]) => sn.cat(list), parts);
    expect(kernels.every(({ reads }) => reads.length < gpuTarget.limits.storageBuffers)).toBe(true);
    expect(kernels.at(-1)!.writes).toEqual(['f32[30]']);
    sn.setDevice('webgpu:software');
    expect([...(await sn.cat(parts).data())]).toEqual(parts.map((_, i) => i));
  });
});

describe('an explanation can be shown', () => {
  const shown = explain(
    (x: sn.Tensor, w: sn.Tensor) => x.matmul(w).relu(),
    sn.zeros([8, 8]),
    sn.zeros([8, 8]),
  );

  test('as text: the graph, a line per kernel, the sum', () => {
    const lines = shown.toString().split('\n');
    expect(lines[0]).toBe('graph {');
    expect(lines.filter((line) => /^0 +dot_/.test(line))).toHaveLength(1);
    expect(lines.at(-1)).toMatch(/^1 kernel for wgsl: .* flops, .* moved, at least .*; memory .* scratch$/);
  });

  test('as JSON: plain data that reads back', () => {
    const plain = JSON.parse(JSON.stringify(shown)) as unknown;
    expect(plain).toEqual(shown.toJSON());
    expect(Object.keys(plain as object)).toEqual(['target', 'graph', 'kernels', 'totals', 'memory']);
  });

  test('as a page: complete, self-contained, every name escaped', () => {
    const page = shown.toHTML();
    expect(page).toMatch(/^<!doctype html>/);
    expect(page).toContain(shown.kernels[0]!.name);
    // WGSL is full of angle brackets.
    expect(shown.kernels[0]!.source).toContain('array<');
    expect(page).not.toContain('array<');
    expect(page).toContain('array&lt;');
    expect(page).not.toMatch(/<script|<link|https?:/);
  });
});

describe('lower', () => {
  const f = (x: sn.Tensor): sn.Tensor => x.layerNorm(64).matmul(sn.ones([64, 64]));

  test('gives the sources of the kernels that explain lists', () => {
    const args = [sn.zeros([16, 64])];
    const { kernels } = explain(f, ...args);
    expect(lower(f, args, { target: 'wgsl' })).toEqual(
      kernels.map(({ name, kind, source }) => ({ name, kind, source })),
    );
    for (const { name, source } of lower(f, args)) expect(source).toContain(`fn ${name}(`);
  });

  test('equal functions have equal sources, whatever was recorded before', () => {
    const first = lower(f, [sn.zeros([16, 64])]);
    sn.zeros([3]).add(1);
    expect(lower(f, [sn.zeros([16, 64])])).toEqual(first);
  });

  test('a language without a generator is refused by name', () => {
    expect(() => lower(f, [sn.zeros([16, 64])], { target: 'cuda' })).toThrow(
      'lower: there is no target cuda: expected wgsl',
    );
  });
});

describe('text tables', () => {
  test('columns are as wide as their widest cell', () => {
    expect(
      table(
        ['name', 'n'],
        [
          ['a', '10'],
          ['longer', '7'],
        ],
        [1],
      ),
    ).toBe(['name     n', '──────  ──', 'a       10', 'longer   7'].join('\n'));
  });

  test('quantities keep three digits', () => {
    expect([0, 1, 999, 1000, 1234, 99_960, 999_999, 2.5e9].map(showCount)).toEqual([
      '0',
      '1',
      '999',
      '1.00 k',
      '1.23 k',
      '100 k',
      '1.00 M',
      '2.50 G',
    ]);
    expect([0, 1023, 1024, 16 * 2 ** 20].map(showBytes)).toEqual(['0 B', '1023 B', '1.00 KiB', '16.0 MiB']);
  });
});
