// explain and lower: what a program becomes, told without running it and without a device.
//
// Runs on the sources: it tells frames of the sources from those of their users.

import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { explain, explainFor, lower } from '../src/explain/explain.ts';
import { callOf } from '../src/ir/origin/call-site.ts';
import * as sn from '../src/index.ts';
import { parse } from '../src/ir/text/parse.ts';
import { print } from '../src/ir/text/print.ts';
import * as nn from '../src/nn/index.ts';
import { gpuTarget, interpreterTarget, softwareTarget } from '../src/schedule/target.ts';
import { showBytes, showCount, table } from '../src/table.ts';
import { workloads } from '../src/workloads/all.ts';
import { spyDevice, vec } from './tensor/support.ts';

// A device that counts: none of these tests may reach it unless it says so.
let spy: ReturnType<typeof spyDevice>;
beforeEach(() => {
  spy = spyDevice();
});

describe('explain', () => {
  test('docs/explain.md has every field of the JSON', () => {
    const step = sn.compile((x: sn.Tensor) => x.exp().sum(), { memory: 1 << 20 });
    const json: unknown = JSON.parse(JSON.stringify(explain(step, sn.zeros([8, 32]))));
    const doc = readFileSync('docs/explain.md', 'utf8').split('## The JSON')[1]!;
    const named = new Set([...doc.matchAll(/`([^`]+)`/g)].flatMap(([, words]) => words!.split(/[^A-Za-z]+/)));
    const { kernels, nodes, totals, memory } = json as Record<string, Record<string, object>>;
    const parts = [json, kernels![0], nodes![0], totals, memory] as object[];
    expect(parts.flatMap((part) => Object.keys(part)).filter((key) => !named.has(key))).toEqual([]);
  });

  test('a function is traced, never run', () => {
    const { kernels, totals, graph } = explain((x: sn.Tensor) => x.exp().sum(1), sn.zeros([8, 32]));
    expect(kernels).toHaveLength(1);
    expect(kernels[0]).toMatchObject({
      kind: 'row-reduction',
      reads: [{ type: 'f32[8,32]', bytes: 1024, role: 'input' }],
      writes: [{ type: 'f32[8]', bytes: 32, role: 'output' }],
    });
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

  test('kernels are those for the device that would run', async () => {
    const double = (x: sn.Tensor): sn.Tensor => x.mul(2);
    const planned = (): string => explain(double, sn.zeros([4])).target;
    expect(planned(), 'the interpreter').toBe('wgsl');
    for (const [name, target] of [
      ['wasm', 'wasm'],
      ['wasm:2', 'wasm'],
      ['cuda:1', 'cuda'],
      ['webgpu', 'wgsl'],
      ['webgpu:software', 'wgsl:software'],
    ] as const) {
      sn.setDevice(name);
      expect(planned(), name).toBe(target);
    }
    sn.setDevice(undefined);
    vi.stubEnv('SINTER_DEVICE', 'wasm');
    expect(planned(), 'SINTER_DEVICE').toBe('wasm');
    expect(explain(double, sn.zeros([4], { dtype: 'f64' })).kernels).toHaveLength(1);
    expect(await sn.ones([1]).item()).toBe(1);
    expect(planned(), 'the open one').toBe('wasm');
    expect(explainFor(gpuTarget, double, sn.zeros([4])).target, 'another one').toBe('wgsl');
    vi.stubEnv('SINTER_DEVICE', '');
    sn.setDevice(undefined);
    expect(planned(), 'none').toBe('wgsl');
    vi.unstubAllEnvs();
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
    expect(kernels[0]!.reads.map(({ type }) => type)).toEqual(['f32[16]']);
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

  test('what a compiled function may overwrite is counted as written where it lies', () => {
    const append = (held: sn.Tensor, rows: sn.Tensor, at: sn.Tensor): [sn.Tensor, sn.Tensor] => {
      const next = sn.dynamicUpdateSlice(held, rows, [at, 0]);
      return [next, next.sum()];
    };
    const args = [sn.zeros([256, 64]), sn.zeros([2, 64]), sn.zeros([], { dtype: 'i32' })] as const;
    const copied = explain(sn.compile(append), ...args);
    const inPlace = explain(sn.compile(append, { donate: [0] }), ...args);
    const [whole, part] = [4 * 256 * 64, 4 * 2 * 64];
    expect(copied.memory.peak - inPlace.memory.peak).toBeGreaterThanOrEqual(whole);
    expect(copied.totals.bytes - inPlace.totals.bytes).toBe(2 * whole - part);
    expect(copied.totals.lowerBoundBytes - inPlace.totals.lowerBoundBytes).toBe(whole - part);
    // Where nothing else reads what is overwritten, a run need not read it either.
    const only = (held: sn.Tensor, rows: sn.Tensor, at: sn.Tensor): sn.Tensor => append(held, rows, at)[0];
    const { totals } = explain(sn.compile(only, { donate: [0] }), ...args);
    expect([totals.bytes, totals.lowerBoundBytes]).toEqual([2 * part, 2 * part]);
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
    expect(kernels.at(-1)!.writes).toMatchObject([{ type: 'f32[30]' }]);
    sn.setDevice('webgpu:software');
    expect([...(await sn.cat(parts).data())]).toEqual(parts.map((_, i) => i));
  });
});

describe('kernels are told in full', () => {
  const shown = explainFor(
    gpuTarget,
    (x: sn.Tensor, w: sn.Tensor, b: sn.Tensor) => x.mul(2).matmul(w).add(b).relu().softmax(),
    sn.zeros([128, 64]),
    sn.zeros([64, 32]),
    sn.zeros([32]),
  );
  const [dot, row] = shown.kernels;
  const names = (places: readonly number[]): string[] => places.map((place) => shown.nodes[place]!.label);

  test('what feeds the loops, runs in them, and follows from them', () => {
    expect(shown.kernels.map(({ kind }) => kind)).toEqual(['dot', 'row-reduction']);
    expect(names(dot!.prologue)).toContain('mul');
    expect(names(dot!.body)).toEqual(['dot']);
    expect(names(dot!.epilogue)).toEqual(expect.arrayContaining(['add', 'le', 'where']));
    expect(names(row!.prologue)).toEqual([]);
    expect(names(row!.body)).toEqual(expect.arrayContaining(['reduce max [1]', 'exp', 'reduce sum [1]']));
    expect(names(row!.epilogue)).toContain('div');
  });

  test('what is read and written, and where that comes from', () => {
    expect(dot!.reads.map(({ node, role }) => [shown.nodes[node]!.label, role])).toEqual([
      ['arg0', 'input'],
      ['arg1', 'input'],
      ['arg2', 'input'],
    ]);
    expect(dot!.writes).toMatchObject([{ role: 'intermediate', type: 'f32[128,32]', bytes: 4 * 128 * 32 }]);
    expect(row!.reads[0]!.node).toBe(dot!.writes[0]!.node);
    expect(row!.writes.map(({ node }) => node)).toEqual(shown.outputs);
  });

  test('bytes are those of the values; times follow from the model', () => {
    const { launch, bandwidth, arithmetic } = shown.model;
    for (const kernel of shown.kernels) {
      const moved = [...kernel.reads, ...kernel.writes].reduce((sum, { bytes }) => sum + bytes, 0);
      expect(kernel.bytes).toBe(moved);
      expect(kernel.intensity).toBeCloseTo(kernel.flops / kernel.bytes, 9);
      const [traffic, work] = [kernel.bytes / bandwidth, kernel.flops / arithmetic];
      expect(kernel.time).toBeCloseTo(launch + Math.max(traffic, work), 9);
      expect(kernel.boundShare).toBeCloseTo(kernel.bytes / shown.totals.lowerBoundBytes, 9);
    }
    expect(shown.kernels.reduce((sum, { timeShare }) => sum + timeShare, 0)).toBeCloseTo(1, 9);
    expect(shown.totals.time).toBeGreaterThanOrEqual(shown.totals.lowerBoundTime);
  });

  test('equal kernels share a pipeline', () => {
    const twice = explain(
      (x: sn.Tensor, y: sn.Tensor) => [x.softmax(), y.softmax()],
      // Large ones: small kernels would share a dispatch.
      sn.zeros([1024, 1024]),
      sn.zeros([1024, 1024]),
    );
    expect(twice.totals).toMatchObject({ kernels: 2, dispatches: 2, pipelines: 1 });
    expect(twice.kernels.map(({ pipeline }) => pipeline)).toEqual([0, 0]);
  });

  test('why two kernels are not one, in words', () => {
    expect(shown.fusionDiagnostics).toMatchObject([
      {
        relation: 'reads',
        first: 0,
        second: 1,
        value: dot!.writes[0]!.node,
        apart: [
          {
            rule: 'no-rows',
            text: expect.stringMatching(/^%\d+ \(reduce max \[1\]\) has to run over whole rows/) as string,
          },
        ],
        kept: { rule: 'source' },
      },
    ]);
  });

  test('every sentence names nodes of the recorded graph, and kernels that are there', () => {
    const { fusionDiagnostics, graph, kernels } = explain(
      sn.grad((w: sn.Tensor, x: sn.Tensor) => sn.layerNorm(x.matmul(w).softmax().matmul(w), 32).sum()),
      sn.zeros([32, 32]),
      sn.zeros([64, 32]),
    );
    const texts = fusionDiagnostics.flatMap(({ apart, kept }) => [
      ...apart,
      ...(kept === undefined ? [] : [kept]),
    ]);
    expect(texts.length).toBeGreaterThan(4);
    for (const { text } of texts) {
      for (const [name] of text.matchAll(/%\d+/g)) expect(graph).toContain(`  ${name} = `);
      for (const [, place] of text.matchAll(/kernel (\d+)/g)) expect(kernels[Number(place)]).toBeDefined();
    }
  });
});

describe('nodes lead back to the user’s code', () => {
  const sourcesOf = (subject: (...args: never[]) => unknown, ...args: readonly unknown[]): Set<string> => {
    const { nodes } = explain(subject, ...args);
    return new Set(
      nodes.flatMap(({ source, op }) =>
        source === undefined || op === 'constant'
          ? []
          : [`${source.gradient ? '∇' : ''}${[source.module, source.op].filter(Boolean).join(' ')}`],
      ),
    );
  };

  test('operations have their public names, called as functions or as methods', () => {
    const f = (x: sn.Tensor): sn.Tensor => sn.softmax(x).gelu().sqrt().add(x).sum(1);
    expect([...sourcesOf(f, sn.zeros([4, 8]))].sort()).toEqual(['add', 'gelu', 'softmax', 'sqrt', 'sum']);
  });

  test('a composed operation has one name for all its nodes', () => {
    const f = (x: sn.Tensor): sn.Tensor => sn.scaledDotProductAttention(x, x, x);
    expect([...sourcesOf(f, sn.zeros([2, 4, 8, 8]))]).toEqual(['scaledDotProductAttention']);
  });

  test('modules and optimizers are named', () => {
    const layer = new nn.Linear(8, 8);
    expect([...sourcesOf((x: sn.Tensor) => layer.forward(x).relu(), sn.zeros([4, 8]))].sort()).toEqual([
      'Linear.forward linear',
      'relu',
    ]);
  });

  test('gradients are those of an operation', () => {
    const f = sn.grad((x: sn.Tensor) => x.softmax().tanh().sum());
    const found = sourcesOf(f, sn.zeros([4, 8]));
    for (const name of ['softmax', '∇softmax', '∇tanh', 'grad']) expect(found).toContain(name);
  });

  test('with the line of the call', () => {
    const { nodes } = explain((x: sn.Tensor) => x.tanh(), sn.zeros([4]));
    const line = new Error().stack!.match(/explain\.test\.ts:(\d+)/)![1]!;
    const tanh = nodes.find(({ op }) => op === 'tanh')!;
    expect(tanh.source?.at).toMatch(/^explain\.test\.ts:\d+:\d+$/);
    expect(Number(tanh.source!.at!.split(':')[1])).toBe(Number(line) - 1);
  });

  test('stack traces of other engines are read, and of minified code nothing is made up', () => {
    const home = new URL('../src/', import.meta.url).href;
    const firefox = [
      `apply@${home}tensor/ops/operand.ts:23:9`,
      `softmax@${home}tensor/ops/reduce/softmax.ts:30:10`,
      'model@http://localhost/model.js:3:14',
    ];
    expect(callOf(firefox.join('\n'))).toEqual({ op: 'softmax', module: undefined, at: 'model.js:3:14' });
    const minified = [
      'Error',
      '    at a (http://localhost/bundle.js:1:2)',
      '    at b (http://localhost/bundle.js:1:9)',
    ];
    expect(callOf(minified.join('\n'))).toEqual({ op: undefined, module: undefined, at: 'bundle.js:1:2' });
    expect(callOf('')).toEqual({ op: undefined, module: undefined, at: undefined });
  });
});

describe('an explanation can be shown', () => {
  const shown = explainFor(
    gpuTarget,
    (x: sn.Tensor, w: sn.Tensor) => x.matmul(w).softmax(),
    sn.zeros([8, 8]),
    sn.zeros([8, 8]),
  );

  test('as text: the graph, a line per kernel, the reasons, the sum', () => {
    const lines = shown.toString().split('\n');
    expect(lines[0]).toBe('graph {');
    expect(lines.filter((line) => /^0 +dot_0 /.test(line))).toHaveLength(1);
    expect(lines).toContain('dot_0 → row_reduction_div_1: %2 dot f32[8,8]');
    expect(lines.at(-3)).toBe('2 kernels for wgsl: 2 pipelines, 2 dispatches');
    expect(lines.at(-2)).toMatch(/ flops, .* moved, at least .*; .* µs modelled, at least .* µs$/);
    expect(lines.at(-1)).toMatch(/^memory .*: inputs .*, outputs .*, scratch .*$/);
  });

  test('as text with every part', () => {
    const text = shown.toText({ details: true, sources: true });
    for (const part of ['schedule', 'counts', 'body', 'reads', 'writes', '@compute'])
      expect(text).toContain(part);
    expect(shown.toText({ reasons: false })).not.toContain('why kernels are separate');
  });

  test('as text that keeps to a width', () => {
    const words = shown.toText({ details: true, columns: 60 }).split('\n');
    // The last lines are sums, which terminals break themselves.
    for (const line of words.slice(0, -3)) expect(line.length, line).toBeLessThanOrEqual(60);
    expect(words.some((line) => /^0 +dot_0 +.*µs/.test(line))).toBe(true);
  });

  test('as JSON: plain data that reads back', () => {
    const plain = JSON.parse(JSON.stringify(shown)) as unknown;
    expect(plain).toEqual(shown.toJSON());
    expect(Object.keys(plain as object)).toEqual([
      'version',
      'target',
      'model',
      'graph',
      'nodes',
      'outputs',
      'kernels',
      'fusionDiagnostics',
      'totals',
      'memory',
      'sizes',
    ]);
  });
});

describe('docs/explain.md', () => {
  const guide = readFileSync(new URL('../docs/explain.md', import.meta.url), 'utf8');

  test('names every field of the JSON', () => {
    const { fn, args } = workloads.find(({ name }) => name === 'mlpTrainAdam')!;
    const fields = new Set<string>();
    const collect = (value: unknown): void => {
      if (Array.isArray(value)) value.forEach(collect);
      else if (typeof value === 'object' && value !== null) {
        for (const [key, inner] of Object.entries(value)) {
          fields.add(key);
          collect(inner);
        }
      }
    };
    collect(JSON.parse(JSON.stringify(explain(fn, ...args()))));
    const known = new Set(guide.match(/[a-zA-Z]+/g));
    expect([...fields].filter((field) => !known.has(field))).toEqual([]);
  });

  test('has a row for every rule', () => {
    const rules = readFileSync(new URL('../src/explain/reasons.ts', import.meta.url), 'utf8');
    const [, apart, kept] = /fusionDiagnosticText([\s\S]*)keptText([\s\S]*)loopsText/.exec(rules)!;
    const rows = (heading: string): string[] => {
      const [table] = new RegExp(`^\\| \`${heading}\`[\\s\\S]*?\\n\\n`, 'm').exec(guide)!;
      return [...table.matchAll(/^\| `([\w-]+)` /gm)].map(([, name]) => name!).slice(1);
    };
    const casesOf = (text: string): string[] =>
      [...text.matchAll(/case '([\w-]+)'/g)].map(([, name]) => name!);
    expect(rows('apart').sort()).toEqual(casesOf(apart!).sort());
    expect(rows('kept').sort()).toEqual(casesOf(kept!).sort());
  });
});

describe('lower', () => {
  const f = (x: sn.Tensor): sn.Tensor => sn.layerNorm(x, 64).matmul(sn.ones([64, 64]));

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
    expect(() => lower(f, [sn.zeros([16, 64])], { target: 'metal' })).toThrow(
      'lower: there is no target metal: expected one of wgsl, cuda, wasm',
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
