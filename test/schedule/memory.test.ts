// The memory plan: intermediates share memory when their lifetimes do not meet, and donated inputs are written in place only
// where that is safe.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import { add, broadcast, mul, reduce, sub, unary } from '../../src/ir/build.ts';
import type { Node } from '../../src/ir/graph.ts';
import { mostLive, placeBlocks, type ArenaBlock } from '../../src/schedule/memory/arena.ts';
import { cTarget, cudaTarget, gpuTarget, softwareTarget, type Target } from '../../src/schedule/target.ts';
import { showType } from '../../src/ir/infer.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { Sketch } from '../codegen/cases.ts';
import { runLoops } from '../support/execute.ts';
import { checkLaw } from '../support/property.ts';
import { expectClose, randomProgram } from '../support/random/graph.ts';
import { randomArray } from '../support/random/values.ts';
import { casesOf } from '../support/sample.ts';

function sum(list: readonly number[]): number {
  return list.reduce((total, item) => total + item, 0);
}

test('a chain of products alternates between two places, in two buffers', () => {
  const sketch = new Sketch();
  let x = sketch.input([32, 32]);
  for (let i = 0; i < 9; i++) x = sketch.matmul(x, sketch.input([32, 32]));
  const { program, live } = compileGraph(sketch.graph([x]), gpuTarget);
  expect(program.arenas.length).toBe(2);
  expect(sum(program.arenas)).toBe(live);
});

test('no dispatch binds one buffer both ways, nor writes what it binds twice', () => {
  checkLaw(200, randomProgram({ values: 'tame' }), ({ graph }) => {
    const { program } = compileGraph(graph, gpuTarget);
    for (const step of program.steps) {
      if (step.kind !== 'dispatch') continue;
      const { bindings } = program.kernels[step.kernel]!;
      const bound = step.buffers.map((index, i) => ({ ...program.buffers[index]!, access: bindings[i]! }));
      for (const [i, one] of bound.entries()) {
        for (const other of bound.slice(0, i)) {
          if (one.arena === undefined || one.arena !== other.arena) continue;
          expect(one.access).toBe(other.access);
          const [a, b] = [one.offset!, other.offset!];
          const apart = a + one.bytes <= b || b + other.bytes <= a;
          expect(apart || one.access === 'read').toBe(true);
        }
      }
    }
  });
});

test('where parts of a buffer are bound apart, what a kernel does not write is only read', () => {
  checkLaw(200, randomProgram({ values: 'tame' }), ({ graph }) => {
    for (const target of [cudaTarget, cTarget]) {
      const { program } = compileGraph(graph, target);
      for (const step of program.steps) {
        if (step.kind !== 'dispatch') continue;
        const { bindings } = program.kernels[step.kernel]!;
        const bound = step.buffers.map((index, i) => ({ ...program.buffers[index]!, access: bindings[i]! }));
        for (const [i, one] of bound.entries()) {
          for (const other of bound.slice(0, i)) {
            if (one.arena === undefined || one.arena !== other.arena) continue;
            const [a, b] = [one.offset!, other.offset!];
            const apart = a + one.bytes <= b || b + other.bytes <= a;
            expect(apart || (one.access === 'read' && other.access === 'read')).toBe(true);
          }
        }
      }
    }
  });
});

test('a product reads what it reads, whatever arena its result lies in', () => {
  const sketch = new Sketch();
  let x = sketch.input([32, 32]);
  for (let i = 0; i < 4; i++) x = sketch.matmul(x, x);
  const accesses = (target: Target): readonly string[] =>
    compileGraph(sketch.graph([x]), target).program.kernels.map(({ bindings }) => bindings.join());
  const [written] = new Set(accesses(cudaTarget));
  expect(written).toBe('read,read_write');
  expect(new Set([...accesses(cudaTarget), ...accesses(cTarget)]).size).toBe(1);
});

test('a value takes the place of one that its kernel reads for the last time, element for element', () => {
  const sketch = new Sketch();
  const x = sketch.matmul(sketch.input([32, 32]), sketch.input([32, 32]));
  const residual = add(sketch.b, sketch.matmul(sketch.input([32, 32]), sketch.input([32, 32])), x);
  const { program, live } = compileGraph(sketch.graph([sketch.matmul(residual, residual)]), gpuTarget);
  const [first, second] = program.buffers.filter(({ role }) => role === 'scratch');
  expect([second!.arena, second!.offset]).toEqual([first!.arena, first!.offset]);
  expect(live).toBe(Math.ceil(first!.bytes / 256) * 256);
});

test('a value that its kernel reads at other points keeps its place', () => {
  const sketch = new Sketch();
  const x = sketch.matmul(sketch.input([32, 32]), sketch.input([32, 32]));
  const { live, program } = compileGraph(sketch.graph([sketch.matmul(sketch.matmul(x, x), x)]), gpuTarget);
  const [first] = program.buffers.filter(({ role }) => role === 'scratch');
  expect(live).toBeGreaterThanOrEqual(2 * first!.bytes);
});

const extent = fc.record({ blocks: fc.integer({ min: 1, max: 40 }), from: fc.nat(20), steps: fc.nat(8) });
const blocks = fc.array(fc.array(extent, { minLength: 1, maxLength: 4 }), { maxLength: 40 }).map((list) =>
  list.map((parts): ArenaBlock => {
    let offset = 0;
    const extents = parts.map(({ blocks: size, from, steps }) => {
      offset += 256 * size;
      return { offset: offset - 256 * size, bytes: 256 * size, from, to: from + steps };
    });
    return { bytes: offset, extents };
  }),
);

test('what lives at the same time never overlaps, and lies in one arena', () => {
  checkLaw(
    casesOf(300, 60),
    fc.tuple(blocks, fc.constantFrom(256 * 160, 256 * 300, 2 ** 40)),
    ([list, largest]) => {
      const { places, sizes } = placeBlocks(list, largest);
      const placed = list.flatMap(({ extents, bytes }, i) => {
        const { arena, offset } = places[i]!;
        expect(offset % 256).toBe(0);
        expect(offset + bytes).toBeLessThanOrEqual(sizes[arena]!);
        return extents.map((one) => ({ ...one, arena, block: i, offset: offset + one.offset }));
      });
      for (const size of sizes) expect(size).toBeLessThanOrEqual(largest);
      for (const [i, one] of placed.entries()) {
        for (const other of placed.slice(0, i)) {
          if (one.arena !== other.arena || one.block === other.block) continue;
          const never = one.to < other.from || other.to < one.from;
          const apart = one.offset + one.bytes <= other.offset || other.offset + other.bytes <= one.offset;
          expect(never || apart).toBe(true);
        }
      }
      expect(sum(sizes)).toBeGreaterThanOrEqual(mostLive(list));
    },
  );
});

test('a donated parameter is overwritten by its update', () => {
  const sketch = new Sketch();
  const [p, g] = [sketch.input([8, 8]), sketch.input([8, 8])];
  const graph = sketch.graph([sub(sketch.b, p, mul(sketch.b, g, 0.1))]);
  const { program } = compileGraph(graph, gpuTarget, { donate: new Map([[0, 0]]) });
  expect(program.donated).toEqual([{ output: 0, input: 0 }]);
  expect(program.outputs[0]).toBe(program.inputs[0]);
});

test('random programs that may write over their inputs compute the same', () => {
  checkLaw(250, randomProgram({ values: 'tame' }), ({ graph, inputs }) => {
    const donate = new Map<number, number>();
    graph.parameters.forEach((parameter, i) => {
      const output = graph.outputs.findIndex(
        (node, k) =>
          showType(node) === showType(parameter) &&
          node.op !== 'parameter' &&
          ![...donate.values()].includes(k) &&
          graph.outputs.indexOf(node) === k,
      );
      if (output >= 0 && !graph.outputs.includes(parameter as Node)) donate.set(i, output);
    });
    const expected = interpret(graph, inputs);
    for (const target of [gpuTarget, softwareTarget]) {
      runLoops(target, graph, inputs, undefined, donate).forEach((got, i) =>
        expectClose(got, expected[i]!, got.dtype === 'bf16' ? 2e-2 : got.dtype === 'f16' ? 4e-3 : 1e-3),
      );
    }
  });
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

test('a donated parameter that a later sweep of the same kernel reads keeps its buffer', () => {
  const sketch = new Sketch();
  const { b } = sketch;
  const [x, p] = [sketch.input([5, 70]), sketch.input([5])];
  const rows = reduce(b, 'sum', x, [1]);
  const spread = (row: Node): Node =>
    broadcast(b, b.add('reshape', [row], { shape: [5, 1] }) as Node, [5, 70]);
  const graph = sketch.graph([add(b, p, rows), mul(b, mul(b, x, spread(rows)), spread(p))]);
  const inputs = graph.parameters.map(({ dtype, shape }, i) =>
    randomArray(dtype, shape as number[], i + 1, 'tame'),
  );
  const donate = new Map([[1, 0]]);
  for (const target of [gpuTarget, softwareTarget]) {
    const { program } = compileGraph(graph, target, { donate });
    expect(program.steps.length).toBe(1);
    expect(program.donated).toEqual([]);
    const expected = interpret(graph, inputs);
    runLoops(target, graph, inputs, undefined, donate).forEach((got, i) =>
      expectClose(got, expected[i]!, 1e-4),
    );
  }
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
