import { describe, expect, test } from 'vitest';

import { CompilerBug } from '../../src/errors.ts';
import { GraphBuilder, type Graph, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { verify } from '../../src/ir/verify.ts';
import { checkLaw } from '../support/property.ts';
import { randomProgram } from '../support/random/graph.ts';

const b = new GraphBuilder();
const x = b.add('parameter', [], { index: 0, name: 'x', dtype: 'f32', shape: [2, 3] });
const y = b.add('parameter', [], { index: 1, name: 'y', dtype: 'f32', shape: [2, 3] });
const sum = b.add('add', [x as Node, y as Node], {}) as Node;

/** A node as a broken pass could make it: no builder has checked it. */
function forge(node: object, changes: object): Node {
  return { ...node, ...changes } as Node;
}

function constant(value: number | bigint, dtype: string): Graph {
  const good = b.add('constant', [], { value: 1, dtype: 'f32' });
  return { parameters: [], outputs: [forge(good, { attrs: { value, dtype }, dtype })] };
}

const broken: readonly (readonly [law: string, graph: Graph, problem: RegExp])[] = [
  [
    'parameters stand in the order of their indices',
    { parameters: [y, x], outputs: [sum] },
    /parameter y has index 1 but stands at 0/,
  ],
  [
    'only parameters are parameters',
    { parameters: [x, sum as unknown as NodeOf<'parameter'>], outputs: [sum] },
    /add\(.*\) : f32\[2,3\] stands among the parameters/,
  ],
  [
    'every parameter an output needs is listed',
    { parameters: [x], outputs: [sum] },
    /needs a parameter that is not listed: .*name: "y"/,
  ],
  [
    'inputs are older than their readers',
    { parameters: [x, y], outputs: [forge(sum, { id: x.id })] },
    /input %\d+ was made later/,
  ],
  [
    'the type is the one the rule gives',
    { parameters: [x, y], outputs: [forge(sum, { dtype: 'i32' })] },
    /the type must be f32\[2,3\]: .* : i32\[2,3\]/,
  ],
  [
    'inputs fit the op',
    { parameters: [x, y], outputs: [forge(sum, { inputs: [x] })] },
    /add: expects 2 input\(s\), got 1: f32\[2,3\]: /,
  ],
  ['the op exists', { parameters: [x, y], outputs: [forge(sum, { op: 'plus' })] }, /unknown op/],
  [
    'attributes are those of the op',
    { parameters: [x, y], outputs: [forge(sum, { attrs: { axis: 1 } })] },
    /add has no attribute axis/,
  ],
  [
    'attributes have their form',
    {
      parameters: [x],
      outputs: [
        forge(b.add('reduce', [x as Node], { monoid: 'sum', axes: [0] }), {
          attrs: { monoid: 'sum', axes: [0.5] },
        }),
      ],
    },
    /attribute axes must be a list of integers/,
  ],
  ['an i8 constant lies in −128…127', constant(128, 'i8'), /i8 cannot hold the value/],
  ['a u32 constant is not negative', constant(-1, 'u32'), /u32 cannot hold the value/],
  ['an integer constant is whole', constant(0.5, 'i32'), /i32 cannot hold the value/],
  ['a bool constant is 0 or 1', constant(2, 'bool'), /bool cannot hold the value/],
  ['an i64 constant is a bigint', constant(1, 'i64'), /i64 cannot hold the value/],
  ['an f32 constant is no bigint', constant(1n, 'f32'), /f32 cannot hold the value/],
];

describe('a broken invariant is a bug of the pass that broke it', () => {
  test.each(broken)('%s', (_, graph, problem) => {
    let thrown: unknown;
    try {
      verify(graph, 'someNewPass');
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(CompilerBug);
    const { pass, code, message } = thrown as CompilerBug;
    expect([pass, code]).toEqual(['someNewPass', 'E_BUG']);
    expect(message).toMatch(/^compiler bug in someNewPass: /);
    expect(message).toMatch(problem);
    expect(message).toMatch(/\ngraph \{\n[^]*\n\}\n$/);
  });
});

test('what builders make is valid', () => {
  checkLaw(300, randomProgram({ values: 'special' }), ({ graph }) => verify(graph));
});
