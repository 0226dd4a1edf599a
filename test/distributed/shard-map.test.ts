// Functions that are written for one process: what the processes of a mesh make of them together, and what is refused.
// Runs on the sources: graphs are partitioned and run without devices.

import { describe, expect, test } from 'vitest';
import { mesh, type Spec } from '../../src/distributed/mesh.ts';
import { ringAttention } from '../../src/distributed/ring-attention.ts';
import { shard } from '../../src/distributed/shard.ts';
import {
  allGather,
  allReduce,
  allToAll,
  permuteRanks,
  rankIndex,
  reduceScatter,
  shardMap,
} from '../../src/distributed/shard-map.ts';
import * as sn from '../../src/index.ts';
import { dims, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { Mesh } from '../../src/ir/mesh/mesh.ts';
import { splitOf } from '../../src/distributed/mesh.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { partition, type CollectiveUse } from '../../src/sharding/partition.ts';
import { partOf, wholeOf } from '../support/ranks/mesh.ts';
import { simulate } from '../support/ranks/on-mesh.ts';
import { stackedRanks } from '../support/ranks/program.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import { expectClose } from '../support/random/graph.ts';
import { randomArray } from '../support/random/values.ts';
import { traceFunction } from '../../src/tensor/tracing.ts';

type Fn = (...args: sn.Tensor[]) => sn.Tensor | readonly sn.Tensor[];
type Shape = readonly number[];

/** What the processes of a mesh compute together, of random arguments that are held so. */
function onMesh(
  fn: Fn,
  grid: Mesh,
  shapes: readonly Shape[],
  specs: readonly Spec[] = [],
): {
  readonly results: readonly HostArray[];
  readonly inputs: readonly HostArray[];
  readonly collectives: readonly CollectiveUse[];
} {
  const { graph, order } = traced(fn, shapes);
  const inputs = shapes.map((shape, i) => randomArray('f64', shape, i + 1, 'tame'));
  const splits = order.map((i) => splitOf('test', grid, shapes[i]!, specs[i] ?? shapes[i]!.map(() => null)));
  const made = partition(graph, grid, { inputs: splits, outputs: graph.outputs.map(() => undefined) });
  const stacks = order.map((i, j) =>
    stackedRanks(Array.from({ length: grid.size }, (_, rank) => partOf(grid, inputs[i]!, splits[j]!, rank))),
  );
  const all = interpret(simulate(made.graph, grid), stacks);
  const results = graph.outputs.map((node: Node, i) =>
    wholeOf(grid, dims(node), partsOfStack(all[i]!), made.outputs[i]!),
  );
  return { results, inputs, collectives: made.collectives };
}

/** The graph of a function, and which argument each of its parameters is. */
function traced(
  fn: Fn,
  shapes: readonly Shape[],
): { readonly graph: Graph; readonly order: readonly number[] } {
  const given = shapes.map((shape) => sn.zeros(shape, { dtype: 'f64' }));
  const { graph, inputs } = traceFunction(fn as (...args: never[]) => unknown, given);
  const order = inputs.map(({ origin }) => (origin.kind === 'argument' ? origin.leaf : -1));
  return { graph, order };
}

function partsOfStack({ dtype, shape: [count, ...shape], data }: HostArray): HostArray[] {
  const size = sizeOf(shape);
  return Array.from({ length: count! }, (_, i) => ({
    dtype,
    shape,
    data: data.slice(i * size, (i + 1) * size),
  }));
}

/** What one process computes. */
function alone(fn: Fn, inputs: readonly HostArray[]): readonly HostArray[] {
  const { graph, order } = traced(
    fn,
    inputs.map(({ shape }) => shape),
  );
  return interpret(
    graph,
    order.map((i) => inputs[i]!),
  );
}

/** The gradients by all three arguments. */
const gradientOf =
  (of: Fn): Fn =>
  (...args) =>
    sn.grad((...at: sn.Tensor[]) => (of(...at) as sn.Tensor).square().sum(), { argnums: [0, 1, 2] })(...args);

function expectSame(
  fn: Fn,
  plain: Fn,
  grid: Mesh,
  shapes: readonly Shape[],
  specs: readonly Spec[] = [],
): readonly CollectiveUse[] {
  const { results, inputs, collectives } = onMesh(fn, grid, shapes, specs);
  alone(plain, inputs).forEach((value, i) => expectClose(results[i]!, value, 1e-9));
  return collectives;
}

const two = mesh({ data: 2 });
const grid = mesh({ data: 2, model: 3 });

describe('a function for one process', () => {
  test('gets parts, and its results are parts', () => {
    const shapes: number[][] = [];
    const fn = shardMap(
      (x: sn.Tensor, w: sn.Tensor) => {
        shapes.push([...x.shape], [...w.shape]);
        return allReduce(x.matmul(w), grid, 'model');
      },
      grid,
      [
        ['data', 'model'],
        ['model', null],
      ],
      ['data', null],
    );
    const used = expectSame(fn, (x, w) => x!.matmul(w!), grid, [
      [4, 6],
      [6, 5],
    ]);
    expect(shapes.slice(0, 2)).toEqual([
      [2, 2],
      [2, 5],
    ]);
    expect(used.map(({ kind, over, why }) => [kind, over, why])).toEqual([
      ['allReduce', ['model'], 'written in shardMap'],
    ]);
  });

  test('every collective', () => {
    const x: Spec = ['data', null];
    const cases: readonly (readonly [(part: sn.Tensor) => sn.Tensor, Spec, Fn])[] = [
      [(part) => allGather(part, two, 'data'), [null, null], (all) => all!.mul(1)],
      [
        (part) => reduceScatter(part, two, 'data'),
        ['data', null],
        (all) => all!.narrow(0, 0, 4).add(all!.narrow(0, 4, 4)),
      ],
      [
        (part) => allReduce(part, two, 'data', 'max'),
        [null, null],
        (all) => sn.maximum(all!.narrow(0, 0, 4), all!.narrow(0, 4, 4)),
      ],
      [
        (part) => permuteRanks(part, two, 'data', [[0, 1]]),
        ['data', null],
        (all) => sn.cat([sn.zerosLike(all!.narrow(0, 0, 4)), all!.narrow(0, 0, 4)], 0),
      ],
      [
        (part) => allToAll(part, two, 'data'),
        ['data', null],
        (all) =>
          sn.cat(
            [0, 4, 2, 6].map((at) => all!.narrow(0, at, 2)),
            0,
          ),
      ],
      [
        (part) => part.mul(rankIndex(two, 'data')),
        ['data', null],
        (all) => sn.cat([all!.narrow(0, 0, 4).mul(0), all!.narrow(0, 4, 4)], 0),
      ],
    ];
    for (const [fn, out, plain] of cases)
      expectSame(shardMap(fn, two, [x], out), plain, two, [[8, 3]], [['data', null]]);
  });

  test('trees are split by plans', () => {
    const fn = shardMap(
      (model: { readonly w: sn.Tensor; readonly b: sn.Tensor }, x: sn.Tensor) => ({
        y: allReduce(x.matmul(model.w), two, 'data').add(model.b),
      }),
      two,
      [(path) => (path === 'w' ? ['data', null] : undefined), [null, 'data']],
      [null, null],
    );
    const call: Fn = (w, b, x) => fn({ w: w!, b: b! }, x!).y;
    expectSame(call, (w, b, x) => x!.matmul(w!).add(b!), two, [[6, 2], [2], [3, 6]]);
  });

  test('derivatives go through it', () => {
    const fn = shardMap(
      (x: sn.Tensor, w: sn.Tensor, scale: sn.Tensor) =>
        allReduce(x.matmul(w).tanh(), grid, 'model').mul(scale),
      grid,
      [['data', 'model'], ['model', null], [null]],
      ['data', null],
    );
    // Each third of the features by itself, then added up.
    const plain: Fn = (x, w, scale) =>
      [0, 2, 4]
        .map((at) =>
          x!
            .narrow(1, at, 2)
            .matmul(w!.narrow(0, at, 2))
            .tanh(),
        )
        .reduce((a, b) => a.add(b))
        .mul(scale!);
    const shapes = [[4, 6], [6, 5], [5]];
    expectSame(fn, plain, grid, shapes);
    expectSame(gradientOf(fn as Fn), gradientOf(plain), grid, shapes);
    expectSame(gradientOf(fn as Fn), gradientOf(plain), grid, shapes, [[null, 'data'], [null, null], [null]]);
    const push =
      (of: Fn): Fn =>
      (...args) =>
        sn.jvp(
          (...at: sn.Tensor[]) => of(...at) as sn.Tensor,
          args,
          args.map((arg) => arg.mul(0.5)),
        ).tangent;
    expectSame(push(fn as Fn), push(plain), grid, shapes);
    const twice =
      (of: Fn): Fn =>
      (x, w, scale) => {
        const slope = (at: sn.Tensor): sn.Tensor =>
          sn.grad((one: sn.Tensor) => (of(one, w!, scale!) as sn.Tensor).sum())(at);
        return sn.grad((at: sn.Tensor) => slope(at).square().sum())(x!);
      };
    expectSame(twice(fn as Fn), twice(plain), grid, shapes);
  });

  test('is mapped over examples', () => {
    const fn = shardMap((x: sn.Tensor) => allReduce(x.sum(0), two, 'data'), two, [['data', null]], [null]);
    expectSame(sn.vmap(fn) as Fn, (x) => x!.sum(1), two, [[3, 4, 5]]);
  });

  test('stands among operations on whole tensors, and loops stand in it', () => {
    const fn = shardMap(
      (x: sn.Tensor) => sn.foriLoop(0, 3, (_, at: sn.Tensor) => allReduce(at, two, 'data', 'max').add(at), x),
      two,
      [['data', null]],
      ['data', null],
    );
    const plain: Fn = (x) => {
      let [a, b] = [x!.narrow(0, 0, 2).exp(), x!.narrow(0, 2, 2).exp()];
      for (let i = 0; i < 3; i++) {
        const greatest = sn.maximum(a, b);
        [a, b] = [a.add(greatest), b.add(greatest)];
      }
      return sn.cat([a, b], 0).sum(1);
    };
    const used = expectSame((x) => fn(x!.exp()).sum(1), plain, two, [[4, 3]]);
    expect(used[0]).toMatchObject({
      kind: 'allReduce',
      bytes: 3 * 2 * 3 * 8,
      why: 'written in shardMap, in 3 iterations',
    });
  });
});

describe('what is refused', () => {
  const out: Spec = ['data', null];
  const trace = (fn: Fn, shapes: readonly Shape[] = [[4, 3]]): unknown => onMesh(fn, two, shapes);

  test.each<readonly [string, Fn, string | RegExp]>([
    [
      'tensors that are no arguments',
      (x) => shardMap((part: sn.Tensor) => part.add(x!.sum()), two, [out], out)(x!),
      /reads a tensor that is no argument/,
    ],
    [
      'as many specs as arguments',
      (x) => shardMap((part: sn.Tensor) => part, two, [], out)(x!),
      /0 specs say how 1 arguments/,
    ],
    [
      'uneven parts',
      (x) => shardMap((part: sn.Tensor) => part, two, [[null, 'data']], out)(x!),
      /3 elements, which are not 2 equal parts/,
    ],
    [
      'axes that the mesh lacks',
      (x) => shardMap((part: sn.Tensor) => part, two, [out], ['model', null])(x!),
      /has no axis model/,
    ],
    [
      'results of another rank',
      (x) => shardMap((part: sn.Tensor) => part, two, [out], ['data'])(x!),
      /1 axes are named, and the tensor has 2/,
    ],
    [
      'one in another',
      (x) =>
        shardMap(
          (part: sn.Tensor) => shardMap((own: sn.Tensor) => own, two, [out], out)(part),
          two,
          [out],
          out,
        )(x!),
      /shardMap cannot be called in a function/,
    ],
    [
      'one in a loop',
      (x) =>
        sn.foriLoop(
          0,
          2,
          (_, at: sn.Tensor) => shardMap((own: sn.Tensor) => own.add(1), two, [out], out)(at),
          x!,
        ),
      /cannot be called in the body of a loop/,
    ],
    [
      'collectives of whole tensors',
      (x) => [allReduce(x!, two, 'data').add(1), shard(x!, two, out)],
      /other processes do not have/,
    ],
  ])('%s', (_, fn, problem) => {
    expect(() => trace(fn)).toThrow(problem);
  });
});

describe('ring attention', () => {
  const ring = mesh({ data: 2, sequence: 4 });
  const spec: Spec = ['data', null, 'sequence', null];
  const shapes = [
    [2, 3, 8, 4],
    [2, 3, 8, 4],
    [2, 3, 8, 5],
  ];

  test.each([false, true])('causal: %s', (isCausal) => {
    const fn: Fn = (q, k, v) => ringAttention(q!, k!, v!, ring, spec, { isCausal });
    const plain: Fn = (q, k, v) => sn.scaledDotProductAttention(q!, k!, v!, { isCausal });
    const used = expectSame(fn, plain, ring, shapes, [spec, spec, spec]);
    // Keys and values go three steps.
    expect(used.map(({ kind }) => kind)).toEqual(Array(6).fill('permuteRanks'));
    expectSame(gradientOf(fn), gradientOf(plain), ring, shapes, [spec, spec, spec]);
  });

  test('shapes that do not fit are refused', () => {
    const [q, v] = [sn.zeros([2, 8, 4]), sn.zeros([2, 6, 4])];
    const all: Spec = [null, 'sequence', null];
    expect(() => ringAttention(q, q, v, ring, all)).toThrow(/expects q and k \[.., S, d\]/);
    expect(() => ringAttention(q, q, q, ring, [null, null, 'sequence'])).toThrow(/last axis cannot be split/);
  });
});
