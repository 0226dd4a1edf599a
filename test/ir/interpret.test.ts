import { describe, expect, test } from 'vitest';
import { add, constant, mul, neg, bounded } from '../../src/ir/build.ts';
import { realDTypes as dtypes } from '../../src/ir/dtype.ts';
import { GraphBuilder, type Graph, type Node } from '../../src/ir/graph.ts';
import { factor } from '../../src/ir/interpret/factor/factor.ts';
import { evaluateNode, interpret } from '../../src/ir/interpret/interpret.ts';
import type { FixedShape } from '../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { graphOf, run, list, counting, expectSame } from './arrays.ts';

describe('inputs and outputs', () => {
  const x = counting('f32', [2, 2]);

  test('a graph runs its nodes in order and gives every output', () => {
    const graph = graphOf([x], (b, p) => [add(b, mul(b, p!, p!), 1), neg(b, p!), p!, p!]);
    const [square, negated, same, again] = interpret(graph, [x]);
    expect(list(square!)).toEqual([2, 5, 10, 17]);
    expect(list(negated!)).toEqual([-1, -2, -3, -4]);
    expect(same).toBe(x);
    expect(again).toBe(x);
  });

  test('parameters that nothing reads are accepted and checked', () => {
    const graph = graphOf([x, x], (b, p) => [neg(b, p!)]);
    expect(list(interpret(graph, [x, x])[0]!)).toEqual([-1, -2, -3, -4]);
    expect(() => interpret(graph, [x, counting('f32', [3])])).toThrow(
      /parameter p1 is f32\[2,2\], got f32\[3\]/,
    );
  });

  test('wrong counts, dtypes, shapes and lengths are the caller’s mistakes', () => {
    const graph = graphOf([x], (b, p) => [neg(b, p!)]);
    expect(() => interpret(graph, [])).toThrow(expect.objectContaining({ code: 'E_VALUE' }));
    expect(() => interpret(graph, [counting('i32', [2, 2])])).toThrow(
      expect.objectContaining({ code: 'E_DTYPE' }),
    );
    expect(() => interpret(graph, [counting('f32', [4])])).toThrow(
      expect.objectContaining({ code: 'E_SHAPE' }),
    );
    expect(() => interpret(graph, [{ ...x, data: new Float32Array(3) }])).toThrow(/3 element/);
  });

  test('a chain of 100,000 nodes runs', () => {
    const graph = graphOf([hostArray('i32', [], [0])], (b, p) => {
      let node = p!;
      for (let i = 0; i < 100_000; i++) node = b.add('add', [node, p!], {}) as Node;
      return [b.add('add', [node, constant(b, 7, 'i32')], {}) as Node];
    });
    expect(list(interpret(graph, [hostArray('i32', [], [1])])[0]!)).toEqual([100_008]);
  });

  test('one node evaluates as the graph around it would', () => {
    const graph = graphOf([x], (b, p) => [mul(b, p!, 3)]);
    const node = graph.outputs[0]!;
    expectSame(
      evaluateNode(node, [x, evaluateNode(node.inputs[1]!, [hostArray('f32', [], [3])])]),
      interpret(graph, [x])[0]!,
    );
    expect(() => evaluateNode(graph.parameters[0] as Node, [])).toThrow(/has no value/);
  });

  test('inputs are never written to', () => {
    const [operand, index, updates] = [
      counting('f32', [4]),
      hostArray('i32', [2], [0, 1]),
      counting('f32', [2], 9),
    ];
    run(
      [operand, index, updates],
      (b, o, i, u) => b.add('scatter', [o!, i!, u!], { axis: 0, mode: 'add' }) as Node,
    );
    expect(list(operand)).toEqual([1, 2, 3, 4]);
    const wide = counting('f64', [4]);
    run(
      [wide, index, counting('f64', [2], 9)],
      (b, o, i, u) => b.add('scatter', [o!, i!, u!], { axis: 0, mode: 'set' }) as Node,
    );
    expect(list(wide)).toEqual([1, 2, 3, 4]);
  });
});

describe('elementwise', () => {
  test('ops map over elements of every dtype', () => {
    for (const dtype of dtypes.filter((other) => other !== 'bool')) {
      const [x, y] = [counting(dtype, [2, 3]), counting(dtype, [2, 3], 2)];
      const sum = run([x, y], (b, p, q) => b.add('add', [p!, q!], {}) as Node);
      expectSame(sum, hostArray(dtype, [2, 3], [3, 5, 7, 9, 11, 13]));
      const less = run([x, y], (b, p, q) => b.add('lt', [p!, q!], {}) as Node);
      expectSame(less, hostArray('bool', [2, 3], [1, 1, 1, 1, 1, 1]));
      const chosen = run(
        [hostArray('bool', [2], [1, 0]), counting(dtype, [2]), counting(dtype, [2], 5)],
        (b, ...nodes) => b.add('where', nodes, {}) as Node,
      );
      expectSame(chosen, hostArray(dtype, [2], [1, 6]));
    }
  });

  test('fma and casts take part', () => {
    const x = hostArray('f32', [3], [1.5, -2.5, NaN]);
    expectSame(
      run([x], (b, p) => b.add('fma', [p!, p!, p!], {}) as Node),
      hostArray('f32', [3], [3.75, 3.75, NaN]),
    );
    expectSame(
      run([x], (b, p) => b.add('cast', [p!], { dtype: 'i64' }) as Node),
      hostArray('i64', [3], [1n, -2n, 0n]),
    );
  });

  test('bitcast keeps every bit, NaN payloads included', () => {
    const words = hostArray('u32', [3], [0x7fa12345, 0xffffffff, 0x80000000]);
    const back = run(
      [words],
      (b, p) =>
        b.add('bitcast', [b.add('bitcast', [p!], { dtype: 'f32' }) as Node], { dtype: 'u32' }) as Node,
    );
    expectSame(back, words);
  });

  test('constants take their dtype', () => {
    for (const dtype of dtypes) {
      const one = run([], (b) => constant(b, 1, dtype));
      expectSame(one, { dtype, shape: [], data: hostArray(dtype, [], [1]).data });
    }
  });

  test('markers are the identity on their first input', () => {
    const [x, y] = [counting('f32', [2]), counting('f32', [3])];
    expectSame(
      run([x], (b, p) => b.add('stopGradient', [p!], {}) as Node),
      x,
    );
    expectSame(
      run([x, y], (b, p, q) => b.add('customVjp', [p!, q!], { rule: 0 }) as Node),
      x,
    );
  });

  test('what is beyond a bound is 0, whatever it is, and bounds may be any number', () => {
    const x = hostArray('f32', [2, 3], [1, NaN, 3, 4, 5, Infinity]);
    const at = (axis: number, n: number): HostArray =>
      run([x, hostArray('i32', [], [n])], (b, p, q) => bounded(b, p!, axis, q!));
    expectSame(at(1, 2), hostArray('f32', [2, 3], [1, NaN, 0, 4, 5, 0]));
    expectSame(at(0, 1), hostArray('f32', [2, 3], [1, NaN, 3, 0, 0, 0]));
    for (const axis of [0, 1]) {
      for (const n of [0, -1, -2147483648])
        expectSame(at(axis, n), hostArray('f32', [2, 3], [0, 0, 0, 0, 0, 0]));
      for (const n of [3, 2147483647]) expectSame(at(axis, n), x);
    }
    const z = hostArray('c64', [2], [1, 2, 3, 4]);
    expectSame(
      run([z, hostArray('i32', [], [1])], (b, p, q) => bounded(b, p!, 0, q!)),
      hostArray('c64', [2], [1, 2, 0, 0]),
    );
    expect(() => at(2, 1)).toThrow('axis 2 is out of range');
    expect(() => run([x, hostArray('f32', [], [1])], (b, p, q) => bounded(b, p!, 0, q!))).toThrow(
      'the bound must be an i32',
    );
    expect(() => run([x, hostArray('i32', [1], [1])], (b, p, q) => bounded(b, p!, 0, q!))).toThrow('rank 0');
  });

  test('a symbolic size is refused by name', () => {
    const b = new GraphBuilder();
    const shape = [{ name: 'seq', min: 1, max: 8 }];
    const p = b.add('parameter', [], { index: 0, name: 'p', dtype: 'f32', shape });
    const graph: Graph = { parameters: [p], outputs: [b.add('neg', [p as Node], {}) as Node] };
    expect(() => interpret(graph, [counting('f32', [3])])).toThrow(/parameter p is f32\[seq:1\.\.8\]/);
  });
});

describe('sources', () => {
  test('iota counts along its axis', () => {
    for (const dtype of dtypes.filter((other) => other !== 'bool')) {
      const rows = run([], (b) => b.add('iota', [], { shape: [3, 2], axis: 0, dtype }) as Node);
      expectSame(rows, hostArray(dtype, [3, 2], [0, 0, 1, 1, 2, 2]));
      const columns = run([], (b) => b.add('iota', [], { shape: [2, 3], axis: 1, dtype }) as Node);
      expectSame(columns, hostArray(dtype, [2, 3], [0, 1, 2, 0, 1, 2]));
    }
    const bytes = run([], (b) => b.add('iota', [], { shape: [300], axis: 0, dtype: 'u8' }) as Node);
    expect(list(bytes).slice(255, 258)).toEqual([255, 0, 1]);
  });

  const words = [0xdeadbeef, 42, 0xffffffff, 7].map((word) => hostArray('u32', [], [word]));
  const randomBits = (counter: readonly HostArray[], shape: FixedShape): HostArray =>
    run([words[0]!, words[1]!, ...counter], (b, ...nodes) => b.add('randomBits', nodes, { shape }) as Node);
  test('randomBits are Philox words, and a later counter continues the stream', () => {
    const zeros = Array.from({ length: 4 }, () => hostArray('u32', [], [0]));
    const first = run(zeros, (b, ...nodes) => b.add('randomBits', nodes, { shape: [2, 2] }) as Node);
    expectSame(first, hostArray('u32', [2, 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]));
    const long = randomBits(words.slice(2), [5, 3]);
    const rest = randomBits([hostArray('u32', [], [0]), hostArray('u32', [], [8])], [11]);
    expect(list(rest)).toEqual(list(long).slice(4));
  });
});

describe('matrix algorithms', () => {
  const elements = [4, -1, 2.5, -3, 0.5, 7, 1, 6, -2];
  const positive = [4, 0, 0, 1, 5, 0, -2, 0.5, 6];
  const real = (data: readonly number[]): HostArray => hostArray('f64', [1, 3, 3], [...data]);
  const complex = (data: readonly number[]): HostArray => ({
    dtype: 'c128',
    shape: [1, 3, 3],
    data: Float64Array.from(data.flatMap((value) => [value, 0])),
  });
  const other = [2, 1, 0, -1, 3, 2, 0, 0.25, 1];

  test.each([
    ['cholesky', [positive]],
    ['lowerSolve', [positive, other]],
    ['unitLowerSolve', [positive, other]],
    ['lu', [elements]],
    ['householder', [elements]],
    ['qr', [elements]],
  ] as const)('%s gives of real numbers what it gives of them as complex ones', (kind, operands) => {
    const ofReal = [...(factor(operands.map(real), kind).data as Float64Array)];
    const ofComplex = [...(factor(operands.map(complex), kind).data as Float64Array)];
    expect(ofReal.some((value) => value !== 0)).toBe(true);
    ofReal.forEach((value, i) => {
      expect(ofComplex[2 * i]!, `element ${i}`).toBeCloseTo(value, 12);
      expect(ofComplex[2 * i + 1]!).toBeCloseTo(0, 12);
    });
  });
});
