// Small sums of several processes that become one: the same bits, of as many bytes.

import { describe, expect, test } from 'vitest';

import { allGather, allReduce } from '../../src/ir/collectives.ts';
import { add, mul, reshape } from '../../src/ir/build.ts';
import { collectiveOf, dims, GraphBuilder, topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { meshOf } from '../../src/ir/mesh/mesh.ts';
import type { Monoid } from '../../src/ir/ops.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';
import { bucketCollectives } from '../../src/sharding/buckets.ts';
import { runOnMesh } from '../support/ranks/mesh.ts';

const mesh = meshOf([
  { name: 'data', size: 2 },
  { name: 'model', size: 2 },
]);

class Program {
  readonly b = new GraphBuilder();
  readonly parameters: Node[] = [];

  input(...shape: readonly number[]): Node {
    const attrs = {
      index: this.parameters.length,
      name: `x${this.parameters.length}`,
      dtype: 'f32',
      shape,
    } as const;
    const node = this.b.add('parameter', [], attrs) as Node;
    this.parameters.push(node);
    return node;
  }

  sum(x: Node, over: readonly string[] = ['data'], monoid: Monoid = 'sum'): Node {
    return allReduce(this.b, x, mesh, over, monoid);
  }

  graph(...outputs: readonly Node[]): Graph {
    return { parameters: this.parameters as unknown as Graph['parameters'], outputs };
  }
}

const collectives = (graph: Graph): readonly string[] =>
  topological(graph.outputs).flatMap((node) => {
    const one = collectiveOf(node);
    return one === undefined ? [] : [`${one.op} ${one.attrs.over} ${node.dtype}[${dims(node).join()}]`];
  });

/** Numbers whose sums depend on the order in which they are added. */
function values(graph: Graph): HostArray[][] {
  const value =
    (i: number, rank: number) =>
    (k: number): number =>
      Math.sin(7 * rank + 3 * i + k) * 10 ** (k % 5);
  return Array.from({ length: mesh.size }, (_, rank) =>
    graph.parameters.map((node, i) => {
      const data = Float32Array.from(Array(sizeOf(dims(node as Node))).keys(), value(i, rank));
      return { dtype: 'f32', shape: dims(node as Node), data };
    }),
  );
}

/** Joins the sums of a program, and compares the values of all processes bit for bit. */
function joined(graph: Graph): readonly string[] {
  const { graph: after } = bucketCollectives(graph);
  verify(after);
  const own = values(graph);
  expect(runOnMesh(after, own)).toEqual(runOnMesh(graph, own));
  return collectives(after);
}

describe('sums that become one', () => {
  test('independent ones do, whatever their shapes', () => {
    const p = new Program();
    const graph = p.graph(p.sum(p.input(3, 2)), p.sum(p.input()), p.sum(mul(p.b, p.input(4), p.input(4))));
    expect(joined(graph)).toEqual(['allReduce data f32[11]']);
    expect(bucketCollectives(graph).buckets.map(({ length }) => length)).toEqual([3]);
  });

  test('those of other processes and other monoids do not', () => {
    const p = new Program();
    const sums = [
      p.sum(p.input(3)),
      p.sum(p.input(3), ['model']),
      p.sum(p.input(3), ['data'], 'max'),
      p.sum(p.input(2)),
    ];
    expect(joined(p.graph(...sums))).toEqual([
      'allReduce data f32[5]',
      'allReduce model f32[3]',
      'allReduce data f32[3]',
    ]);
  });

  test('one that follows from another does not, even by another collective', () => {
    const p = new Program();
    const [first, side] = [p.sum(p.input(4)), p.sum(p.input(2))];
    const gathered = allGather(p.b, first, mesh, ['model']);
    const later = p.sum(gathered);
    expect(joined(p.graph(later, side, first))).toEqual([
      'allReduce data f32[6]',
      'allGather model f32[8]',
      'allReduce data f32[8]',
    ]);
  });

  test('pairs that would wait for each other crosswise do not', () => {
    const p = new Program();
    const [a, b] = [p.sum(p.input(4)), p.sum(p.input(4), ['model'])];
    const [c, d] = [p.sum(add(p.b, a, a), ['model']), p.sum(add(p.b, b, b))];
    expect(joined(p.graph(c, d)).length).toBe(4);
  });

  test('large ones do not, and a bucket has an end', () => {
    const p = new Program();
    const large = p.input(800_000);
    const graph = p.graph(p.sum(large), p.sum(p.input(3)), p.sum(p.input(3)));
    expect(collectives(bucketCollectives(graph).graph)).toEqual([
      'allReduce data f32[800000]',
      'allReduce data f32[6]',
    ]);
    const many = new Program();
    const sums = Array.from({ length: 10 }, () => many.sum(many.input(500_000)));
    expect(bucketCollectives(many.graph(...sums)).buckets.map(({ length }) => length)).toEqual([10]);
  });

  test('a program without any stays as it is', () => {
    const p = new Program();
    const graph = p.graph(reshape(p.b, p.sum(p.input(4)), [2, 2]));
    expect(bucketCollectives(graph).graph).toBe(graph);
  });
});
