// The memory plan: intermediates share memory when their lifetimes do not meet, and donated inputs are written in place only
// where that is safe.

import { expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import { add, mul, sub, unary } from '../../src/ir/build.ts';
import type { Node } from '../../src/ir/graph.ts';
import { gpuTarget } from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';

test('a chain of stored values needs two slots', () => {
  const sketch = new Sketch();
  let x = sketch.input([32, 32]);
  for (let i = 0; i < 9; i++) x = sketch.matmul(x, sketch.input([32, 32]));
  const { program } = compileGraph(sketch.graph([x]), gpuTarget);
  expect(program.arenas.length).toBe(2);
});

test('no kernel reads and writes one buffer through two bindings', () => {
  const sketch = new Sketch();
  const x = sketch.input([32, 32]);
  const parts = Array.from({ length: 6 }, () => sketch.matmul(x, sketch.input([32, 32])));
  const y = parts.reduce((sum, part) => sketch.matmul(sum, part));
  const { program } = compileGraph(sketch.graph([y]), gpuTarget);
  for (const step of program.steps) {
    if (step.kind !== 'dispatch') continue;
    const places = step.buffers.map((index) => {
      const { arena } = program.buffers[index]!;
      return arena === undefined ? `buffer ${index}` : `arena ${arena}`;
    });
    expect(new Set(places).size).toBe(places.length);
  }
});

test('a donated parameter is overwritten by its update', () => {
  const sketch = new Sketch();
  const [p, g] = [sketch.input([8, 8]), sketch.input([8, 8])];
  const graph = sketch.graph([sub(sketch.b, p, mul(sketch.b, g, 0.1))]);
  const { program } = compileGraph(graph, gpuTarget, { donate: new Map([[0, 0]]) });
  expect(program.donated).toEqual([{ output: 0, input: 0 }]);
  expect(program.outputs[0]).toBe(program.inputs[0]);
});

test('a donated parameter that is read at other points keeps its buffer', () => {
  const sketch = new Sketch();
  const p = sketch.input([8, 8]);
  const turned = sketch.b.add('permute', [p], { order: [1, 0] }) as Node;
  const { program } = compileGraph(sketch.graph([add(sketch.b, p, turned)]), gpuTarget, {
    donate: new Map([[0, 0]]),
  });
  expect(program.donated).toEqual([]);
});

test('a donated parameter that a later kernel reads keeps its buffer', () => {
  const sketch = new Sketch();
  const p = sketch.input([8, 8]);
  const updated = unary(sketch.b, 'exp', p);
  const later = sketch.matmul(sketch.matmul(updated, p), p);
  const { program } = compileGraph(sketch.graph([updated, later]), gpuTarget, { donate: new Map([[0, 0]]) });
  expect(program.donated).toEqual([]);
});

test('a parameter returned as it is cannot be overwritten', () => {
  const sketch = new Sketch();
  const p = sketch.input([8, 8]);
  const graph = sketch.graph([unary(sketch.b, 'exp', p), p]);
  expect(compileGraph(graph, gpuTarget, { donate: new Map([[0, 0]]) }).program.donated).toEqual([]);
});

test('a weight is overwritten after the kernels that still need it, whatever the order of recording', () => {
  const sketch = new Sketch();
  const [w, x] = [sketch.input([16, 16]), sketch.input([16, 16])];
  const h = sketch.matmul(x, w);
  // The update needs no more than h; the second product needs the old weight.
  const updated = sub(sketch.b, w, mul(sketch.b, sketch.dot(x, h, [], [], [0], [0]), 0.1));
  const back = sketch.dot(h, w, [], [], [1], [1]);
  const { program } = compileGraph(sketch.graph([updated, back]), gpuTarget, { donate: new Map([[0, 0]]) });
  expect(program.donated).toEqual([{ output: 0, input: 0 }]);
});
