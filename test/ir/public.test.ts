// `sinter/ir` as users call it: what is no graph, node, type or host array is refused by name before anything is made of it, and
// what passes means what the compiler's own functions mean.

import { describe, expect, test } from 'vitest';
import * as ir from '../../src/ir/index.ts';
import { refusal } from '../support/refusal.ts';

const builder = new ir.GraphBuilder();
const x = builder.add('parameter', [], { index: 0, name: 'x', dtype: 'f32', shape: [2] });
const y = builder.add('neg', [x], {}) as ir.Node;
const graph: ir.Graph = { parameters: [x], outputs: [y] };
const two = ir.hostArray('f32', [2], [1, -2]);

test('what is given to a graph is printed, parsed, verified and interpreted', () => {
  expect([...ir.interpret(graph, [two])[0]!.data]).toEqual([-1, 2]);
  const again = ir.parse(ir.print(graph));
  expect(ir.print(again)).toBe(ir.print(graph));
  expect(() => ir.verify(again)).not.toThrow();
  expect([...ir.evaluateNode(y, [two]).data]).toEqual([-1, 2]);
  expect(ir.topological([y])).toEqual([x, y]);
  expect(ir.printNode(y, () => '%n')).toBe('%n = neg(%n) : f32[2]');
  expect(ir.infer('neg', [x], {})).toEqual({ dtype: 'f32', shape: [2] });
  const abs = ir.rewrite(graph, (node, inputs, at) =>
    node.op === 'neg' ? (at.add('abs', inputs, {}) as ir.Node) : undefined,
  );
  expect([...ir.interpret(abs, [two])[0]!.data]).toEqual([1, 2]);
});

describe('is refused by name', () => {
  const attrs = (given: object): never => given as never;
  const cases: readonly (readonly [string, () => unknown, RegExp])[] = [
    [
      'an unknown operation',
      () => builder.add('negg' as 'neg', [x], {}),
      /^GraphBuilder.add: no operation is called 'negg'[^]*try: neg$/,
    ],
    [
      'a name that every object has',
      () => ir.facts('toString' as 'neg'),
      /^facts: no operation is called 'toString'/,
    ],
    [
      'an unknown attribute',
      () => builder.add('neg', [x], attrs({ axis: 0 })),
      /^GraphBuilder.add: neg: neg has no attribute axis/,
    ],
    [
      'a missing attribute',
      () => builder.add('gather', [x, x], attrs({})),
      /^GraphBuilder.add: gather: [^]*needs the attribute axis[^]*try: \{ axis \}/,
    ],
    [
      'a number that the dtype has not',
      () => builder.add('constant', [], { value: 1.5, dtype: 'i32' }),
      /^GraphBuilder.add: i32 cannot hold 1.5/,
    ],
    [
      'a bigint for a narrow dtype',
      () => builder.add('constant', [], { value: 1n, dtype: 'i32' }),
      /^GraphBuilder.add: i32 cannot hold 1n/,
    ],
    ['inputs that are too few', () => builder.add('add', [x], {}), /^add: expects 2 input\(s\), got 1/],
    [
      'a tree of what is no node',
      () => ir.print({ parameters: [], outputs: [{ ...y, inputs: [{}] } as unknown as ir.Node] }),
      /^print: the graph must be a graph/,
    ],
    [
      'a host array in the wrong kind of array',
      () => ir.interpret(graph, [{ ...two, data: Int32Array.of(1, 2) }]),
      /^interpret: the inputs\[0\] must be a host array/,
    ],
    [
      'elements that are too few',
      () => ir.interpret(graph, [ir.hostArray('f32', [1], [1])]),
      /^interpret: parameter x is f32\[2\], got f32\[1\]/,
    ],
    [
      'inputs of another type',
      () => ir.evaluateNode(y, [ir.hostArray('f32', [1], [1])]),
      /^evaluateNode: neg is of \(f32\[2\]\), given \(f32\[1\]\)/,
    ],
    [
      'a parameter without a value',
      () => ir.evaluateNode(x, []),
      /^evaluateNode: the parameter x has no value/,
    ],
    [
      'a replacement that is no node',
      () => ir.rewrite(graph, () => 3 as never),
      /^rewrite: what the function gives must be a node, [^]*got 3/,
    ],
    [
      'a shape with a hole',
      () => ir.hostArray('f32', Object.assign(new Array<number>(2), { 1: 1 }), [1]),
      /^hostArray: sizes must be non-negative integers/,
    ],
    [
      'text among the values',
      () => ir.hostArray('f32', [1], ['1'] as never),
      /^hostArray: the values must be an array of numbers or bigints/,
    ],
    [
      'a graph that breaks the rules',
      () => ir.verify({ parameters: [], outputs: [y] }),
      /^compiler bug in verify: an output needs a parameter/,
    ],
    [
      'a node with a type of its own making',
      () => ir.interpret({ parameters: [x], outputs: [{ ...y, shape: [3] } as ir.Node] }, [two]),
      /^compiler bug in interpret: the type must be f32\[2\]/,
    ],
  ];

  test.each(cases)('%s', (_, run, message) => expect(refusal(run)).toMatch(message));

  test.each([null, 3, ['f32'], Symbol('f32'), { toString: () => 'f32' }])(
    'no dtype and no op is %o',
    (name) => {
      expect([ir.isDType(name as string), ir.isOp(name as string)]).toEqual([false, false]);
    },
  );
});

test('a deep graph is looked at without recursion, and each node once', () => {
  let at = x as ir.Node;
  for (let i = 0; i < 20_000; i++) at = builder.add(i % 2 === 0 ? 'neg' : 'abs', [at], {}) as ir.Node;
  expect(ir.topological([at])).toHaveLength(20_001);
});
