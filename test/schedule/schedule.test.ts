// What shares a kernel: fusion counted on small graphs, without a device.

import { describe, expect, test } from 'vitest';

import { compileGraph } from '../../src/compile.ts';
import { add, binary, broadcast, mul, reduce, reduceKeep, sub, unary } from '../../src/ir/build.ts';
import { dims, type Node } from '../../src/ir/graph.ts';
import { scheduleGraph } from '../../src/schedule/schedule.ts';
import { gpuTarget, wasmTarget, type Target } from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';

function kinds(make: (s: Sketch) => readonly Node[], target: Target = gpuTarget): string[] {
  const sketch = new Sketch();
  return compileGraph(sketch.graph(make(sketch)), target, { check: true }).kernels.map(
    (kernel) => kernel.kind,
  );
}

const relu = (s: Sketch, x: Node): Node => binary(s.b, 'max', x, 0);

function layerNorm(s: Sketch, x: Node): Node {
  const width = dims(x).at(-1)!;
  const axis = dims(x).length - 1;
  const mean = (v: Node): Node =>
    broadcast(s.b, mul(s.b, reduceKeep(s.b, 'sum', v, [axis]), 1 / width), dims(x));
  const centred = sub(s.b, x, mean(x));
  const scale = unary(s.b, 'rsqrt', add(s.b, mean(mul(s.b, centred, centred)), 1e-5));
  const affine = [s.input([width]), s.input([width])].map((p) => broadcast(s.b, p, dims(x)));
  return add(s.b, mul(s.b, mul(s.b, centred, scale), affine[0]!), affine[1]!);
}

describe('one kernel', () => {
  test('any chain of elementwise ops and views', () => {
    expect(
      kinds((s) => {
        let x = s.input([8, 12]);
        for (let i = 0; i < 50; i++) x = add(s.b, x, mul(s.b, x, 0.5));
        const turned = s.b.add('permute', [x], { order: [1, 0] }) as Node;
        return [unary(s.b, 'exp', s.b.add('reshape', [turned], { shape: [4, 24] }) as Node)];
      }),
    ).toEqual(['map']);
  });

  test('softmax', () => expect(kinds((s) => [s.softmax(s.input([8, 100]), 1)])).toEqual(['row-reduction']));

  test('layer norm with affine', () =>
    expect(kinds((s) => [layerNorm(s, s.input([2, 8, 64]))])).toEqual(['row-reduction']));

  test('matmul, bias, activation, residual', () => {
    expect(
      kinds((s) => {
        const y = s.matmul(s.input([64, 32]), s.input([32, 48]));
        return [add(s.b, relu(s, add(s.b, y, broadcast(s.b, s.input([48]), [64, 48]))), s.input([64, 48]))];
      }),
    ).toEqual(['dot']);
  });

  test('convolution, bias, activation', () => {
    expect(
      kinds((s) => {
        const bias = broadcast(
          s.b,
          s.b.add('reshape', [s.input([16])], { shape: [16, 1, 1] }) as Node,
          [1, 16, 8, 8],
        );
        return [relu(s, add(s.b, s.conv(s.input([1, 8, 8, 8]), s.input([16, 8, 3, 3])), bias))];
      }),
    ).toEqual(['conv']);
  });

  test('an optimizer update of the weight gradient it needs', () => {
    expect(
      kinds((s) => {
        const gradient = s.dot(s.input([64, 32]), s.input([64, 48]), [], [], [0], [0]);
        const momentum = add(s.b, mul(s.b, s.input([32, 48]), 0.9), gradient);
        return [sub(s.b, s.input([32, 48]), mul(s.b, momentum, 0.1)), momentum];
      }),
    ).toEqual(['dot']);
  });

  test('two reductions of one input', () => {
    expect(
      kinds((s) => {
        const x = s.input([16, 64]);
        return [reduce(s.b, 'sum', x, [1]), reduce(s.b, 'max', mul(s.b, x, x), [1])];
      }),
    ).toEqual(['row-reduction']);
  });
});

describe('separate kernels', () => {
  test('a norm feeding a matmul is stored once', () => {
    expect(kinds((s) => [s.matmul(layerNorm(s, s.input([64, 64])), s.input([64, 64]))])).toEqual([
      'row-reduction',
      'dot',
    ]);
  });

  test('a value read at another point than its own is stored first', () => {
    expect(
      kinds((s) => {
        const y = s.matmul(s.input([16, 16]), s.input([16, 16]));
        return [add(s.b, y, s.b.add('permute', [y], { order: [1, 0] }) as Node)];
      }),
    ).toEqual(['dot', 'map']);
  });

  test('a long sum is two', () =>
    expect(kinds((s) => [reduce(s.b, 'sum', s.input([1 << 20]), [0])])).toEqual([
      'row-reduction',
      'row-reduction',
    ]));

  test('a long running sum is three', () => {
    expect(kinds((s) => [s.scan(s.input([1 << 20]), 0, 'sum')])).toEqual(['row-reduction', 'scan', 'scan']);
  });
});

test('what only its own kernel reads is not stored', () => {
  const sketch = new Sketch();
  const { b } = sketch;
  const long = sketch.input([512, 64, 64]);
  const attrs = { start: [7, 0, 0], size: [1, 64, 64], step: [1, 1, 1] };
  const gates = unary(b, 'exp', unary(b, 'tanh', b.add('slice', [long], attrs) as Node));
  const outputs = ['sin', 'cos', 'tan'].map((op) => unary(b, op as 'sin', gates));
  for (const target of [gpuTarget, wasmTarget]) {
    const { kernels, storage } = scheduleGraph(sketch.graph(outputs), target, new Map());
    expect(kernels.flatMap(({ writes }) => writes.map(({ node }) => node))).toEqual(outputs);
    expect([...storage.stored]).toEqual(expect.arrayContaining(outputs));
    expect(storage.stored.size).toBe(outputs.length);
  }
});

test('no kernel binds more buffers than the target allows', () => {
  const target = { ...gpuTarget, limits: { ...gpuTarget.limits, storageBuffers: 4 } };
  const sketch = new Sketch();
  const inputs = Array.from({ length: 23 }, () => sketch.input([8, 8]));
  let sum = sketch.matmul(inputs[0]!, inputs[1]!);
  const outputs: Node[] = [];
  for (const input of inputs.slice(2)) {
    sum = add(sketch.b, mul(sketch.b, sum, 0.5), input);
    if (outputs.length < 9) outputs.push(sum);
  }
  const { program } = compileGraph(sketch.graph([...outputs, sum]), target, { check: true });
  for (const kernel of program.kernels) expect(kernel.bindings.length).toBeLessThanOrEqual(4);
});

test('doubling by shifted sums is stored now and then instead of growing exponentially', () => {
  const sketch = new Sketch();
  let x = sketch.input([4096]);
  for (let shift = 1; shift <= 2048; shift *= 2) {
    const moved = sketch.b.add('pad', [x], { low: [shift], high: [0], interior: [0], value: 0 }) as Node;
    x = add(sketch.b, x, sketch.b.add('slice', [moved], { start: [0], size: [4096], step: [1] }) as Node);
    x = mul(sketch.b, x, x);
  }
  const { kernels } = compileGraph(sketch.graph([x]), gpuTarget, { check: true });
  expect(kernels.length).toBeLessThan(8);
  for (const kernel of kernels) expect(kernel.source.length).toBeLessThan(60_000);
});

test('equal layers share one generated kernel', () => {
  const sketch = new Sketch();
  let x = sketch.input([32, 32]);
  for (let i = 0; i < 6; i++) x = relu(sketch, sketch.matmul(x, sketch.input([32, 32])));
  const { program } = compileGraph(sketch.graph([x]), gpuTarget);
  expect(program.steps.length).toBe(6);
  expect(program.kernels.length).toBe(1);
});
