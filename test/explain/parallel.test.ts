// What explanations say of programs that processes share: of tensors that are split, and of functions that say how values are held.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fromPart, mesh, shard } from '../../src/distributed/index.ts';
import { explain, explainFor, lower } from '../../src/explain/explain.ts';
import { explanationPage } from '../../src/explain/index.ts';
import * as sn from '../../src/index.ts';
import { gpuTarget } from '../../src/schedule/target.ts';

const grid = mesh({ data: 2, model: 2 });
const rows = (): sn.Tensor =>
  fromPart(sn.tensor(new Float32Array(64), { shape: [8, 8] }), grid, ['data', null]);
const columns = (): sn.Tensor =>
  fromPart(sn.tensor(new Float32Array(32), { shape: [8, 4] }), grid, [null, 'model']);
const layer = (x: sn.Tensor, w: sn.Tensor): sn.Tensor => x.matmul(w).relu().sum(1);

test('the program is that of this process, over its parts', () => {
  const { kernels, nodes, parallel, graph } = explain(layer, rows(), columns());
  const dot = nodes.find(({ op }) => op === 'dot')!;
  expect([dot.type, dot.sharding]).toEqual(['f32[8,4]', { split: '[data, model]', whole: 'f32[16,8]' }]);
  // Names and calls are those of the recorded graph, which is over whole tensors.
  expect(graph).toContain('f32[16,8]');
  expect(nodes.filter(({ op }) => op === 'parameter').map(({ name, label }) => `${name} ${label}`)).toEqual([
    '%0 arg0',
    '%1 arg1',
  ]);
  expect(kernels.flatMap(({ reads }) => reads.map(({ type }) => type)).slice(0, 2)).toEqual([
    'f32[8,8]',
    'f32[8,4]',
  ]);
  const [step] = parallel!.steps;
  expect(step).toMatchObject({ kind: 'allReduce', collective: 0, after: kernels.length });
  expect(nodes[step!.reads.node]!.sharding).toEqual({
    split: '[data]',
    whole: 'f32[16]',
    partial: 'sum over model',
  });
  expect(nodes[step!.writes.node]!.sharding).toEqual({ split: '[data]', whole: 'f32[16]' });
  expect(lower(layer, [rows(), columns()]).map(({ name }) => name)).toEqual(kernels.map(({ name }) => name));
});

test('a result that takes the memory of an argument is held as that is', () => {
  const add = (x: sn.Tensor): sn.Tensor => shard(x, grid, [null, 'model']).add(1);
  const held = (fn: (x: sn.Tensor) => sn.Tensor): unknown => explain(fn, rows()).parallel!.outputs[0]!.split;
  expect(held(sn.compile(add))).toBe('[data, model]');
  expect(held(sn.compile(add, { donate: [0] }))).toBe('[data, null]');
});

test('a pending value that a call reads and assigns to is whole, as it is once the call has computed it', () => {
  const state = sn.ones([16, 8]).mul(2);
  const step = sn.compile((x: sn.Tensor): sn.Tensor => {
    state.assign(state.mul(0.9).add(x));
    return x.sum();
  });
  const { outputs, collectives } = explain(step, rows()).parallel!;
  expect(outputs.map(({ split }) => split)).toEqual(['[]', '[null, null]']);
  expect(collectives.map(({ kind }) => kind)).toContain('allGather');
});

test('programs that are not shared have nothing of it', () => {
  const explained = explain(layer, sn.zeros([8, 8]), sn.zeros([8, 8]));
  expect(Object.keys(explained.toJSON())).not.toContain('parallel');
  expect(explained.nodes.some((node) => 'sharding' in node)).toBe(false);
  expect(explanationPage(explained)).not.toContain('Processes');
});

test('a program for many sizes is refused as calls are', () => {
  const varying = sn.compile((x: sn.Tensor) => x.mul(2), { dims: { x: [sn.dim('n', { max: 32 }), 8] } });
  expect(() => explain(varying, rows())).toThrow(/one for many sizes/);
});

test('pairs of kernels that are not one are named by their places among the kernels', () => {
  const fn = (x: sn.Tensor, w: sn.Tensor): sn.Tensor =>
    x.matmul(w).softmax(1).matmul(w.transpose()).softmax(1);
  const { kernels, fusionDiagnostics } = explain(fn, rows(), columns());
  expect(fusionDiagnostics.length).toBeGreaterThan(0);
  for (const { relation, first, second, value } of fusionDiagnostics) {
    expect(kernels[second]!.reads.map(({ node }) => node)).toContain(value);
    const ends = relation === 'reads' ? kernels[first]!.writes : kernels[first]!.reads;
    expect(ends.map(({ node }) => node)).toContain(value);
  }
});

test('the page has the mesh, what processes hold and what they send on a tab', () => {
  const page = explanationPage(explain(layer, rows(), columns()));
  expect(page).toContain('id="tab-processes"');
  for (const part of [
    'mesh data=2 model=2: 4 processes',
    '<td>[null, model]</td>',
    'the result is laid out so',
    '<small>[data, model] of f32[16,8]',
  ])
    expect(page).toContain(part);
});

test('docs/explain.md has every field of what is shared', () => {
  const json = JSON.parse(JSON.stringify(explain(layer, rows(), columns()))) as ReturnType<typeof explain>;
  const { parallel, nodes } = json;
  const doc = readFileSync('docs/explain.md', 'utf8').split('## The JSON')[1]!;
  const named = new Set([...doc.matchAll(/`([^`]+)`/g)].flatMap(([, words]) => words!.split(/[^A-Za-z]+/)));
  const shardings = nodes.flatMap(({ sharding }) => sharding ?? []);
  const { steps, inputs, collectives } = parallel!;
  const parts = [parallel!, steps[0]!, inputs[0]!, collectives[0]!, ...shardings];
  expect(parts.flatMap((part) => Object.keys(part)).filter((key) => !named.has(key))).toEqual([]);
});

test('the text', () => {
  const text = explainFor(gpuTarget, layer, rows(), columns()).toText({ reasons: false, details: true });
  expect(text.replaceAll(/ \(\S+:\d+:\d+\)/g, '')).toBe(expected);
});

const expected = `#  kernel           kind           nodes  flops  bytes  /bound  flops/B     time  share  limit
─  ───────────────  ─────────────  ─────  ─────  ─────  ──────  ───────  ───────  ─────  ──────
0  dot_where_0      dot                5    576  512 B   123 %     1.13  5.00 µs   50 %  launch
1  row_reduction_1  row-reduction      1     32  160 B    38 %     0.20  5.00 µs   50 %  launch

0  dot_where_0
  schedule  dot kernel; [1] 8x8 by 8x4, 1x4 a register tile
  counts    576 flops, 512 B moved (123 % of the program's lower bound), 1.13 flops per byte, 5.00
            µs modelled (50 %), most of it launch
  body      matmul: %2 dot
  epilogue  relu: %4 broadcast, %5 le, %6 where
  reads     %0 arg0  f32[8,8]  [data, null] of f32[16,8]  256 B  input
            %1 arg1  f32[8,4]  [null, model] of f32[8,8]  128 B  input
  writes    %6 where  f32[8,4]  [data, model] of f32[16,8]  128 B  for kernel 1

1  row_reduction_1
  schedule  row-reduction kernel; 8 rows of 4, lanes along column, 1 invocation a row
  counts    32 flops, 160 B moved (38 % of the program's lower bound), 0.20 flops per byte, 5.00 µs
            modelled (50 %), most of it launch
  body      sum: %7 reduce sum [1]
  reads     %6 where  f32[8,4]  [data, model] of f32[16,8]  128 B  from kernel 0
  writes    %7 reduce sum [1]  f32[8]  [data] of f32[16], a part of the sum over model  32 B  for
            allReduce 0

mesh data=2 model=2: 4 processes, this is rank 0

argument  whole      split          each process
────────  ─────────  ─────────────  ────────────
arg0      f32[16,8]  [data, null]   f32[8,8]
arg1      f32[8,8]   [null, model]  f32[8,4]

result    whole    split   each process
────────  ───────  ──────  ────────────
result 0  f32[16]  [data]  f32[8]

1 collective: each process sends 32 B in 4.54 µs, modelled on H100 GPUs: allReduce model 32 B
0  allReduce f32[8] over model (2 ranks), after all kernels, sends 32 B, 4.54 µs
   the result is laid out so

2 kernels for wgsl: 2 pipelines, 2 dispatches
608 flops, 672 B moved, at least 416 B (1.62×); 10.0 µs modelled, at least 5.00 µs
memory 976 B: inputs 416 B, outputs 48 B, scratch 512 B`;
