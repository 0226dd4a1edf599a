// Types, refusals and texts of collectives, and what complex numbers become in them.

import { describe, expect, test } from 'vitest';

import {
  allGather,
  allReduce,
  allToAll,
  broadcastRank,
  permuteRanks,
  rankIndex,
  reduceScatter,
} from '../../src/ir/collectives.ts';
import type { DType } from '../../src/ir/dtype.ts';
import { GraphBuilder, type Graph, type Node } from '../../src/ir/graph.ts';
import { showType } from '../../src/ir/infer.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { parseMesh } from '../../src/ir/mesh/mesh.ts';
import { monoids, type Attrs, type CollectiveOp } from '../../src/ir/ops.ts';
import { lowerComplex } from '../../src/ir/passes/lower-complex.ts';
import { parse } from '../../src/ir/text/parse.ts';
import { print } from '../../src/ir/text/print.ts';
import { hostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';

const mesh = parseMesh('data=2,model=3')!;
const b = new GraphBuilder();
const parameter = (dtype: DType, shape: readonly number[]) =>
  b.add('parameter', [], { index: 0, name: 'x', dtype, shape });
const x = parameter('f32', [6, 5]);

const made: readonly (readonly [node: Node, type: string])[] = [
  [allReduce(b, x as Node, mesh, ['data'], 'max'), 'f32[6,5]'],
  [allReduce(b, parameter('f32', []) as Node, mesh, ['data', 'model'], 'sum'), 'f32[]'],
  [allGather(b, x as Node, mesh, ['data']), 'f32[12,5]'],
  [allGather(b, x as Node, mesh, ['model', 'data']), 'f32[36,5]'],
  [reduceScatter(b, x as Node, mesh, ['model'], 'sum'), 'f32[2,5]'],
  [reduceScatter(b, x as Node, mesh, ['model', 'data'], 'prod'), 'f32[1,5]'],
  [allToAll(b, x as Node, mesh, ['model']), 'f32[6,5]'],
  [
    permuteRanks(
      b,
      x as Node,
      mesh,
      ['model'],
      [
        [0, 1],
        [1, 2],
      ],
    ),
    'f32[6,5]',
  ],
  [permuteRanks(b, x as Node, mesh, ['model'], []), 'f32[6,5]'],
  [broadcastRank(b, x as Node, mesh, ['data'], 1), 'f32[6,5]'],
  [rankIndex(b, mesh, ['model']), 'i32[]'],
];

test.each(made.map(([node, type]) => [node.op, type, node] as const))('%s is %s', (_, type, node) => {
  expect(showType(node)).toBe(type);
});

test('a group along no axes is one process, of which nothing is asked', () => {
  const own = x as Node;
  expect(allReduce(b, own, mesh, [], 'sum')).toBe(own);
  expect(allGather(b, own, mesh, [])).toBe(own);
  expect(reduceScatter(b, own, mesh, [], 'sum')).toBe(own);
  expect(allToAll(b, own, mesh, [])).toBe(own);
  expect(permuteRanks(b, own, mesh, [], [])).toBe(own);
  expect(broadcastRank(b, own, mesh, [], 0)).toBe(own);
  expect(rankIndex(b, mesh, []).attrs).toEqual({ value: 0, dtype: 'i32' });
});

test('the text of a graph with collectives is read back', () => {
  const graph: Graph = {
    parameters: [x],
    outputs: made.map(([node]) => node).filter(({ inputs }) => inputs.every((input) => input === x)),
  };
  expect(graph.outputs.length).toBe(made.length - 1);
  verify(graph);
  const text = print(graph);
  expect(text).toContain('permuteRanks(%0) {mesh: "data=2,model=3", over: "model", from: [0,1], to: [1,2]}');
  expect(print(parse(text))).toBe(text);
});

describe('what does not fit is refused', () => {
  const at = { mesh: 'data=2,model=3', over: 'model' };
  const refused: readonly (readonly [CollectiveOp, Node, Attrs, RegExp])[] = [
    ['allGather', x as Node, { mesh: 'data', over: 'data' }, /E_VALUE.*'data' is no mesh, such as/s],
    ['allGather', x as Node, { mesh: 'a=2,a=2', over: 'a' }, /E_VALUE.*'a=2,a=2' is no mesh/s],
    ['allGather', x as Node, { ...at, over: 'rows' }, /E_AXIS.*'rows' are no different axes of the mesh/s],
    ['allGather', x as Node, { ...at, over: 'data,data' }, /E_AXIS.*'data,data' are no different axes/s],
    ['allGather', x as Node, { ...at, over: '' }, /E_AXIS/],
    ['allGather', parameter('f32', []) as Node, at, /E_SHAPE.*a single number has no leading axis/s],
    ['reduceScatter', parameter('f32', []) as Node, { ...at, monoid: 'sum' }, /E_SHAPE.*single number/s],
    ['allToAll', parameter('f32', []) as Node, at, /E_SHAPE.*a single number/s],
    ['reduceScatter', parameter('f32', [4]) as Node, { ...at, monoid: 'sum' }, /E_SHAPE.*3 equal parts/s],
    ['allToAll', parameter('f32', [4]) as Node, at, /E_SHAPE.*cannot be cut into 3 equal parts: f32\[4\]/s],
    ['permuteRanks', x as Node, { ...at, from: [0, 0], to: [1, 2] }, /E_VALUE.*place 0 is twice/s],
    ['permuteRanks', x as Node, { ...at, from: [0, 1], to: [2, 2] }, /E_VALUE.*place 2 is twice/s],
    ['permuteRanks', x as Node, { ...at, from: [0], to: [] }, /E_VALUE.*1 places cannot be paired with 0/s],
    ['permuteRanks', x as Node, { ...at, from: [0], to: [3] }, /E_VALUE.*the group of 3 has no place 3/s],
    ['broadcastRank', x as Node, { ...at, root: -1 }, /E_VALUE.*no place -1/s],
    ['broadcastRank', x as Node, { ...at, root: 3 }, /E_VALUE.*no place 3/s],
  ];
  test.each(refused)('%s %#', (op, input, attrs, message) => {
    let thrown: unknown;
    try {
      b.add(op, [input], attrs);
    } catch (error) {
      thrown = error;
    }
    const { code, message: text } = thrown as { readonly code: string; readonly message: string };
    expect(`${code}: ${text}`).toMatch(message);
  });

  test('and combinations without meaning', () => {
    const taken = (dtype: DType) =>
      monoids.filter((monoid) => {
        try {
          allReduce(b, parameter(dtype, [6]) as Node, mesh, ['model'], monoid);
          reduceScatter(b, parameter(dtype, [6]) as Node, mesh, ['model'], monoid);
          return true;
        } catch {
          return false;
        }
      });
    const ofNumbers = ['sum', 'prod', 'min', 'max'];
    expect(['bool', 'i8', 'u64', 'bf16', 'f64', 'c64'].map((dtype) => taken(dtype as DType))).toEqual([
      ['and', 'or'],
      ofNumbers,
      ofNumbers,
      ofNumbers,
      ofNumbers,
      ['sum'],
    ]);
  });
});

test('complex numbers travel as pairs of their parts, in one collective', () => {
  const z = parameter('c64', [6, 5]);
  const graph = lowerComplex({ parameters: [z], outputs: [allGather(b, z as Node, mesh, ['model'])] });
  verify(graph);
  expect(print(graph)).toBe(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[6,5,2]
  %1 = allGather(%0) {mesh: "data=2,model=3", over: "model"} : f32[18,5,2]
  return %1
}
`);
});

test('the interpreter asks for the other processes', () => {
  const run = (node: Node) => () =>
    interpret({ parameters: [x], outputs: [node] }, [
      hostArray('f32', [6, 5], new Array<number>(30).fill(1)),
    ]);
  for (const [node] of made.filter(([{ inputs }]) => inputs[0] === x)) {
    expect(run(node)).toThrow(/needs the other processes of its mesh/);
    expect(run(node)).toThrow(expect.objectContaining({ code: 'E_STATE' }) as Error);
  }
});
