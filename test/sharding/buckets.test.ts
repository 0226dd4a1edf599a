// Small collectives of several processes that become one, and when they begin: the same bits, of as many bytes.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { allGather, allReduce, reduceScatter } from '../../src/ir/collectives.ts';
import { add, mul, permute, reshape, slice } from '../../src/ir/build.ts';
import '../../src/compile/all.ts';
import { compileGraph } from '../../src/compile/compile.ts';
import { cTarget, cudaTarget, gpuTarget, wasmTarget, type Target } from '../../src/schedule/target.ts';
import { sharedProgram } from '../../src/distributed/explain.ts';
import { gptFullySharded } from '../../src/workloads/parallel.ts';
import type { DType } from '../../src/ir/dtype.ts';
import { collectiveOf, dims, GraphBuilder, topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { meshOf } from '../../src/ir/mesh/mesh.ts';
import type { Monoid } from '../../src/ir/ops.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';
import { bucketCollectives } from '../../src/sharding/buckets.ts';
import { checkLaw } from '../support/property.ts';
import { runOnMesh } from '../support/ranks/mesh.ts';

const mesh = meshOf([
  { name: 'data', size: 2 },
  { name: 'model', size: 2 },
]);

class Program {
  readonly b = new GraphBuilder();
  readonly parameters: Node[] = [];

  input(...shape: readonly number[]): Node {
    return this.inputOf('f32', shape);
  }

  inputOf(dtype: DType, shape: readonly number[]): Node {
    const attrs = {
      index: this.parameters.length,
      name: `x${this.parameters.length}`,
      dtype,
      shape,
    } as const;
    const node = this.b.add('parameter', [], attrs) as Node;
    this.parameters.push(node);
    return node;
  }

  sum(x: Node, over: readonly string[] = ['data'], monoid: Monoid = 'sum'): Node {
    return allReduce(this.b, x, mesh, over, monoid);
  }

  gather(x: Node, over: readonly string[] = ['data']): Node {
    return allGather(this.b, x, mesh, over);
  }

  scatter(x: Node, over: readonly string[] = ['data']): Node {
    return reduceScatter(this.b, x, mesh, over, 'sum');
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

/** How many collectives became one, for each that there is now. */
const counts = (graph: Graph): readonly number[] =>
  bucketCollectives(graph).buckets.map(({ length }) => length);

describe('sums that become one', () => {
  test('independent ones do, whatever their shapes', () => {
    const p = new Program();
    const graph = p.graph(p.sum(p.input(3, 2)), p.sum(p.input()), p.sum(mul(p.b, p.input(4), p.input(4))));
    expect(joined(graph)).toEqual(['allReduce data f32[11]']);
    expect(counts(graph)).toEqual([3]);
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
    expect(counts(many.graph(...sums))).toEqual([4, 4, 2]);
  });

  test('a program without any stays as it is', () => {
    const p = new Program();
    const graph = p.graph(reshape(p.b, p.input(4), [2, 2]));
    expect(bucketCollectives(graph).graph).toBe(graph);
  });
});

describe('gathers and scatters that become one', () => {
  test('gathers do, along any axis of their values', () => {
    const p = new Program();
    const turned = (x: Node): Node => permute(p.b, x, [1, 0]);
    const along = turned(allGather(p.b, turned(p.input(3, 2)), mesh, ['data']));
    const graph = p.graph(along, allGather(p.b, p.input(5), mesh, ['data']), p.gather(p.input(2, 3, 2)));
    expect(joined(graph)).toEqual(['allGather data f32[46]']);
  });

  test('scatters do, and gathers over two axes of the mesh', () => {
    const p = new Program();
    const scatters = [p.scatter(p.input(4, 3)), p.scatter(p.input(2)), p.scatter(p.input(6, 1))];
    const gathers = [p.input(2), p.input(3, 3)].map((x) => p.gather(x, ['data', 'model']));
    expect(joined(p.graph(...scatters, ...gathers))).toEqual([
      'reduceScatter data f32[10]',
      'allGather data,model f32[44]',
    ]);
  });

  test('random programs compute the same bits', () => {
    const kinds = fc.constantFrom('sum', 'gather', 'scatter', 'product', 'add');
    const steps = fc.array(fc.tuple(kinds, fc.nat(), fc.nat(), fc.boolean()), {
      minLength: 2,
      maxLength: 14,
    });
    checkLaw(60, steps, (list) => {
      const p = new Program();
      const all = [p.input(4, 2), p.input(4, 2), p.input(4, 2)];
      for (const [kind, i, j, isModel] of list) {
        const [x, y] = [all[i % all.length]!, all[j % all.length]!];
        const over = [isModel ? 'model' : 'data'];
        // Values keep their shape, so that each can follow from each.
        if (kind === 'sum') all.push(p.sum(x, over));
        if (kind === 'gather') all.push(slice(p.b, p.gather(x, over), [2, 0], [4, 2]));
        if (kind === 'scatter') all.push(p.scatter(p.b.add('concat', [x, y], { axis: 0 }) as Node, over));
        if (kind === 'product') all.push(mul(p.b, x, y));
        if (kind === 'add') all.push(add(p.b, x, y));
      }
      joined(p.graph(...all.slice(3)));
    });
  });
});

describe('the order of collectives', () => {
  /** Layers of products by weights of which each process has a half. */
  function layers(count: number, width: number): Graph {
    const p = new Program();
    let x = p.input(8, width);
    for (let layer = 0; layer < count; layer++) {
      const weight = p.gather(p.input(width / 2, width));
      const attrs = { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0], dtype: 'f32' } as const;
      x = p.b.add('dot', [x, weight], attrs) as Node;
    }
    return p.graph(x);
  }

  test('weights are gathered while those of the layer before are read', () => {
    const { graph } = bucketCollectives(layers(4, 1024));
    verify(graph);
    const order = topological(graph.outputs).map(({ op }) => op);
    expect(order.filter((op) => op === 'dot' || op === 'allGather')).toEqual([
      'allGather',
      'allGather',
      'dot',
      'allGather',
      'dot',
      'allGather',
      'dot',
      'dot',
    ]);
    // The first two are there from the start; each of the others waits for a product.
    const barriers = topological(graph.outputs).filter(({ op }) => op === 'barrier');
    expect(barriers.map(({ inputs }) => inputs[1]!.op)).toEqual(['dot', 'dot']);
  });

  test('so two layers are in memory, not all', () => {
    const { program } = compileGraph(bucketCollectives(layers(8, 1024)).graph, wasmTarget);
    const bytes = program.arenas.reduce((sum, arena) => sum + arena, 0);
    const weight = 4 * 1024 * 1024;
    expect(bytes).toBeGreaterThan(2 * weight);
    // And the half of one that the last was gathered from, which kernels beside that must not overwrite.
    expect(bytes).toBeLessThan(3.5 * weight);
  });

  test('sums come when their values are there, whatever the order of results', () => {
    const p = new Program();
    let x = p.input(1024, 1024);
    const sums: Node[] = [];
    const attrs = { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0], dtype: 'f32' } as const;
    for (let layer = 0; layer < 3; layer++) {
      x = p.b.add('dot', [x, x], attrs) as Node;
      sums.push(x);
    }
    // Recorded behind everything, the last first, as gradients are.
    const results = sums.toReversed().map((value) => p.sum(value));
    const { graph } = bucketCollectives(p.graph(...results));
    const order = topological(graph.outputs).map(({ op }) => op);
    expect(order.filter((op) => op === 'dot' || op === 'allReduce')).toEqual([
      'dot',
      'allReduce',
      'dot',
      'allReduce',
      'dot',
      'allReduce',
    ]);
  });
});

describe('the train step of a small GPT whose parameters are split', () => {
  const { fn, mesh: shards, plans, args } = gptFullySharded;
  const { graph } = sharedProgram(fn, shards, plans(), args());
  const hopper: Target = { ...cudaTarget, name: 'sm_90a', warpgroups: true };

  test.for([gpuTarget, cudaTarget, hopper, cTarget, wasmTarget])(
    'has three collectives on $name',
    (target) => {
      const { program } = compileGraph(graph, target, { rank: 0, check: true });
      const meetings = program.steps.flatMap((step) =>
        step.kind === 'collective' ? [`${step.action.kind} of ${step.takes} bytes`] : [],
      );
      expect(meetings.map((one) => one.replace(/ of .*/, '')).sort()).toEqual([
        'allGather',
        'allReduce',
        'reduceScatter',
      ]);
    },
  );

  test('copies tiles of weights that were gathered together', () => {
    const p = new Program();
    const at = { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0], dtype: 'bf16' } as const;
    const products = [0, 1].map(() => {
      const weight = p.gather(p.inputOf('bf16', [256, 512]));
      return p.b.add('dot', [p.inputOf('bf16', [512, 512]), weight], at) as Node;
    });
    const { graph: joinedGraph } = bucketCollectives(p.graph(...products));
    expect(collectives(joinedGraph)).toEqual(['allGather data bf16[524288]']);
    const { kernels } = compileGraph(joinedGraph, hopper).program;
    expect(kernels.filter(({ tileMaps = [] }) => tileMaps.length === 2).length).toBeGreaterThan(0);
  });
});
