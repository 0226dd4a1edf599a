// What all iterations of a loop compute alike is computed before it, and results keep every bit.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { add, broadcast, mul, reduceKeep, unary } from '../../../src/ir/build.ts';
import { iterate } from '../../../src/ir/control/iterate.ts';
import { Parameters } from '../../../src/ir/control/parameters.ts';
import { GraphBuilder, topological, type Graph, type Node, type NodeOf } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hoistInvariants } from '../../../src/ir/passes/hoist-invariants.ts';
import { graphOf, regionOf } from '../../../src/ir/text/region.ts';
import { print } from '../../../src/ir/text/print.ts';
import { verify } from '../../../src/ir/verify.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';

interface Shapes {
  readonly carry: readonly number[];
  readonly stack: readonly number[];
  readonly invariants: readonly (readonly number[])[];
  readonly trips?: number;
}

/** A loop whose body gives the next carry; results are the last carry and all of them. */
function loopOf(
  { carry, stack, invariants, trips = 5 }: Shapes,
  make: (b: GraphBuilder, carry: Node, x: Node, invariants: readonly Node[]) => Node,
): Graph {
  const inside = new GraphBuilder();
  const parameters = new Parameters(inside);
  parameters.add('count', 'i32', []);
  const [first, x] = [parameters.add('carry0', 'f32', carry), parameters.add('x0', 'f32', stack)];
  const fixed = invariants.map((shape, i) => parameters.add(`w${i}`, 'f32', shape));
  const next = make(inside, first, x, fixed);
  const body = regionOf({ parameters: parameters.list, outputs: [next, next] });
  const b = new GraphBuilder();
  const inputs = [carry, [trips, ...stack], ...invariants].map(
    (shape, index) => b.add('parameter', [], { index, name: `p${index}`, dtype: 'f32', shape }) as Node,
  );
  const attrs = { body, carries: 1, stacked: 1, trips, reverse: false, recompute: false, guard: -1 };
  return { parameters: inputs as NodeOf<'parameter'>[], outputs: iterate(b, inputs, attrs) };
}

/** The operations that iterations run, and those before them. */
function opsOf(graph: Graph): { readonly inside: string[]; readonly before: string[] } {
  const nodes = topological(graph.outputs);
  const loops = nodes.filter((node) => node.op === 'iterate') as readonly NodeOf<'iterate'>[];
  const opsIn = (all: readonly Node[]): string[] =>
    all.map(({ op }) => op).filter((op) => op !== 'parameter');
  const [body] = new Set(loops.map(({ attrs }) => graphOf(attrs.body)));
  const before = topological(loops[0]!.inputs);
  return { inside: opsIn(topological(body!.outputs)), before: opsIn(before) };
}

function expectSame(graph: Graph, changed: Graph): void {
  verify(changed, 'hoistInvariants');
  const inputs = graph.parameters.map(({ shape }, i) => randomArray('f32', shape as number[], i + 1, 'tame'));
  const expected = interpret(graph, inputs);
  interpret(changed, inputs).forEach((got, i) => expectClose(got, expected[i]!, 0));
}

const square: Shapes = {
  carry: [8, 8],
  stack: [8, 8],
  invariants: [
    [8, 8],
    [8, 8],
  ],
};

describe('hoisted', () => {
  test('work on invariants alone, once for all results', () => {
    const graph = loopOf(square, (b, carry, x, [w]) =>
      mul(b, add(b, carry, x), unary(b, 'exp', unary(b, 'tanh', w!))),
    );
    const changed = hoistInvariants(graph, false);
    expect(opsOf(changed)).toEqual({ inside: ['add', 'mul'], before: ['tanh', 'exp'] });
    expect(changed.outputs.map((node) => node.inputs)).toEqual([
      changed.outputs[0]!.inputs,
      changed.outputs[0]!.inputs,
    ]);
    // Of the two invariants, iterations read none as it was.
    expect(changed.outputs[0]!.inputs).toHaveLength(3);
    expectSame(graph, changed);
  });

  test('what views are views of, and of a value that is too large what it is made of', () => {
    const shapes: Shapes = {
      carry: [64, 64],
      stack: [64, 64],
      invariants: [
        [64, 1],
        [1, 64],
      ],
    };
    const graph = loopOf(shapes, (b, carry, x, [v, w]) => {
      const whole = (node: Node): Node => broadcast(b, unary(b, 'exp', node), [64, 64]);
      return add(b, add(b, carry, x), add(b, whole(v!), whole(w!)));
    });
    const changed = hoistInvariants(graph, false);
    expect(opsOf(changed).before).toEqual(['exp', 'exp']);
    expect(opsOf(changed).inside).toEqual(expect.arrayContaining(['broadcast', 'broadcast', 'add']));
    expectSame(graph, changed);
  });

  test('an operand of few rows that would be turned around in every iteration, where operands are packed', () => {
    const shapes: Shapes = { carry: [4, 8], stack: [4, 8], invariants: [[8, 8]] };
    const graph = loopOf(shapes, (b, carry, x, [w]) => {
      const turned = b.add('permute', [w!], { order: [1, 0] }) as Node;
      const attrs = { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0], dtype: 'f32' as const };
      return add(b, b.add('dot', [carry, turned], attrs) as Node, x);
    });
    expect(opsOf(hoistInvariants(graph, true))).toEqual({ inside: ['dot', 'add'], before: ['permute'] });
    expectSame(graph, hoistInvariants(graph, true));
    expect(print(hoistInvariants(graph, false))).toBe(print(graph));
  });
});

test.each<[string, Shapes, (b: GraphBuilder, w: Node) => Node]>([
  ['a loop of few iterations', { ...square, trips: 3 }, (b, w) => unary(b, 'exp', w)],
  ['a view', square, (b, w) => b.add('permute', [w], { order: [1, 0] }) as Node],
  ['a number', { ...square, invariants: [[1, 1]] }, (b, w) => broadcast(b, unary(b, 'exp', w), [8, 8])],
])('left in the loop: %s', (_, shapes, make) => {
  const graph = loopOf(shapes, (b, carry, x, [w]) => mul(b, add(b, carry, x), make(b, w!)));
  expect(print(hoistInvariants(graph, true))).toBe(print(graph));
});

test('random bodies keep every bit', () => {
  const step = fc.record({
    op: fc.constantFrom('tanh', 'add', 'mul', 'sum', 'turn', 'dot'),
    left: fc.nat(),
    right: fc.nat(),
  });
  checkLaw(100, fc.array(step, { minLength: 3, maxLength: 14 }), (steps) => {
    const graph = loopOf(square, (b, carry, x, invariants) => {
      const values = [carry, x, ...invariants];
      for (const { op, left, right } of steps) {
        const [p, q] = [values[left % values.length]!, values[right % values.length]!];
        const attrs = {
          lhsBatch: [],
          rhsBatch: [],
          lhsContract: [1],
          rhsContract: [0],
          dtype: 'f32' as const,
        };
        const made: Readonly<Record<typeof op, () => Node>> = {
          tanh: () => unary(b, 'tanh', p),
          add: () => add(b, p, q),
          mul: () => mul(b, p, q),
          sum: () => broadcast(b, reduceKeep(b, 'sum', p, [1]), [8, 8]),
          turn: () => b.add('permute', [p], { order: [1, 0] }) as Node,
          dot: () => unary(b, 'tanh', b.add('dot', [p, q], attrs) as Node),
        };
        values.push(made[op]());
      }
      return unary(b, 'sin', values.at(-1)!);
    });
    for (const turnsOperands of [false, true]) expectSame(graph, hoistInvariants(graph, turnsOperands));
  });
});
