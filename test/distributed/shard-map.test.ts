// Functions that are written for one process: what the processes of a mesh make of them together, and what is refused.
// Runs on the sources: graphs are partitioned and run without devices.

import { describe, expect, test } from 'vitest';
import { mesh, type Spec } from '../../src/distributed/mesh.ts';
import { pipelined, type StagedParams } from '../../src/distributed/pipeline.ts';
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
import { isQuick } from '../support/sample.ts';
import { expectSame, gradientOf, onMesh, type Fn, type Shape } from './together.ts';

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

describe('a pipeline', () => {
  type Params = StagedParams<
    { readonly table: sn.Tensor },
    { readonly w: sn.Tensor; readonly b: sn.Tensor },
    { readonly head: sn.Tensor }
  >;
  const model = {
    first: ({ table }: Params['first'], x: sn.Tensor) => x.matmul(table),
    layer: ({ w, b }: Params['layers'], x: sn.Tensor) => x.matmul(w).add(b).tanh(),
    last: ({ head }: Params['last'], x: sn.Tensor, y: sn.Tensor) => x.matmul(head).sub(y).square().mean(),
  };
  const asParams = ([table, w, b, head]: readonly sn.Tensor[]): Params => ({
    first: { table: table! },
    layers: { w: w!, b: b! },
    last: { head: head! },
  });
  const list = (value: sn.Tensor, { first, layers, last }: Params): sn.Tensor[] => [
    value,
    first.table,
    layers.w,
    layers.b,
    last.head,
  ];
  const plain: Fn = (...args) => {
    const [x, y] = args.slice(4) as [sn.Tensor, sn.Tensor];
    const { value, grad } = sn.valueAndGrad(({ first, layers, last }: Params) => {
      let h = model.first(first, x);
      for (let i = 0; i < layers.w.shape[0]!; i++)
        h = model.layer({ w: layers.w.select(0, i), b: layers.b.select(0, i) }, h);
      return model.last(last, h, y);
    })(asParams(args));
    return list(value, grad);
  };
  const shapes = (layers: number): Shape[] => [
    [3, 4],
    [layers, 4, 4],
    [layers, 4],
    [4, 2],
    [8, 3],
    [8, 2],
  ];
  const held: Spec[] = [
    [null, null],
    ['stage', null, null],
    ['stage', null],
  ];

  const sizes = [
    [2, 4, 4],
    [1, 1, 2],
    [2, 1, 2],
    [3, 2, 3],
    [4, 8, 4],
    [4, 2, 8],
  ] as const;
  // Simulated loops of loops take seconds each.
  test.each(isQuick ? sizes.slice(0, 1) : sizes)(
    '%i stages, %i microbatches, %i layers',
    (stages, microbatches, layers) => {
      const line = mesh({ stage: stages });
      const fn: Fn = (...args) => {
        const made = pipelined(model, { mesh: line, axis: 'stage', microbatches })(
          asParams(args),
          args[4]!,
          args[5]!,
        );
        return list(made.value, made.grad);
      };
      expectSame(fn, plain, line, shapes(layers), held);
    },
  );

  test('data parallel as well', () => {
    const both = mesh({ data: 2, stage: 2 });
    const fn: Fn = (...args) => {
      const options = { mesh: both, axis: 'stage', microbatches: 2, batch: 'data' };
      const made = pipelined(model, options)(asParams(args), args[4]!, args[5]!);
      return list(made.value, made.grad);
    };
    expectSame(fn, plain, both, shapes(4), [...held, [null, null], ['data', null], ['data', null]]);
  });

  test('what does not fit is refused', () => {
    const args = [
      [3, 4],
      [3, 4, 4],
      [3, 4],
      [4, 2],
      [8, 3],
      [8, 2],
    ].map((shape) => sn.zeros(shape));
    const options = { mesh: mesh({ stage: 2 }), axis: 'stage', microbatches: 2 };
    const run = (change: object): unknown =>
      pipelined(model, { ...options, ...change })(asParams(args), args[4]!, args[5]!);
    expect(() => run({})).toThrow(/2 stages cannot have equal parts of layers whose tensors have 3/);
    expect(() => run({ microbatches: 3 })).toThrow(/a batch of 8 is not 3 equal microbatches/);
    expect(() => run({ axis: 'stages' })).toThrow(/has no axis stages/);
  });
});
