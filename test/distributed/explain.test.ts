// What processes send each other, counted and compared with what the papers say.

import { expect, test } from 'vitest';

import { splitsBy } from '../../src/distributed/explain.ts';
import {
  byName,
  explainParallel,
  fullySharded,
  mesh,
  shard,
  type Mesh,
  type ShardPlan,
} from '../../src/distributed/index.ts';
import { explainShared, type Explanation } from '../../src/explain/explain.ts';
import { gpuTarget } from '../../src/schedule/target.ts';
import { flatten } from '../../src/tensor/tree.ts';
import { checkpoint, compile, treeLeaves, valueAndGrad, zeros } from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import { parseMesh } from '../../src/ir/mesh/mesh.ts';
import { links, timeOfCollective } from '../../src/sharding/cost.ts';
import {
  gptDataParallel,
  gptFullySharded,
  gptTensorParallel,
  type ParallelWorkload,
} from '../../src/workloads/parallel.ts';
import { expectSame, gradientOf, type Fn } from './together.ts';

const bytesOf = (tensors: readonly Tensor[]): number => tensors.reduce((sum, { size }) => sum + 4 * size, 0);

function counted({ fn, mesh, plans, args }: ParallelWorkload): ReturnType<typeof explainParallel> {
  return explainParallel(fn, mesh, plans(), ...args());
}

test('data parallel sends each gradient once, as a sum: 2(n − 1)/n of its bytes', () => {
  const { bytesByCollective, collectives } = counted(gptDataParallel);
  const params = treeLeaves(gptDataParallel.args()[0]);
  const n = gptDataParallel.mesh.size;
  const loss = (2 * (n - 1) * 4) / n;
  expect(bytesByCollective).toEqual({ 'allReduce data': (2 * (n - 1) * bytesOf(params)) / n + loss });
  // All of them and the loss are small: they are added up as one.
  expect(collectives.length).toBe(1);
  expect(collectives[0]!.why).toMatch(`${params.length + 1} together`);
});

test('each collective has its modelled time, by the links that its axes cross', () => {
  const { collectives, time } = counted(gptDataParallel);
  const inOneNode = collectives.map(({ kind, ranks, whole }) =>
    timeOfCollective(kind, ranks, whole, links.nvlink4),
  );
  expect(collectives.map((use) => use.time)).toEqual(inOneNode);
  expect(time).toBeCloseTo(
    inOneNode.reduce((sum, one) => sum + one, 0),
    12,
  );
});

test('fully sharded gathers each parameter once and scatters the sum of each gradient: (n − 1)/n each', () => {
  const { bytesByCollective } = counted(gptFullySharded);
  const params = bytesOf(treeLeaves(gptFullySharded.args()[0]));
  const n = gptFullySharded.mesh.size;
  expect(bytesByCollective).toEqual({
    'allGather data': ((n - 1) * params) / n,
    'reduceScatter data': ((n - 1) * params) / n,
    'allReduce data': (2 * (n - 1) * 4) / n,
  });
});

type Params = Readonly<Record<'up' | 'down', Tensor>>;

/** A train step of layers of two products each, fully sharded over four processes. */
function layersOf(
  wrap: typeof checkpoint | undefined,
): ParallelWorkload & { readonly params: readonly Params[] } {
  const grid = mesh({ data: 4 });
  const plain = (x: Tensor, { up, down }: Params): Tensor => x.matmul(up).tanh().matmul(down);
  const layer = wrap?.(plain) ?? plain;
  const params = Array.from({ length: 4 }, () => ({ up: zeros([64, 256]), down: zeros([256, 64]) }));
  return {
    name: 'layers',
    about: '',
    mesh: grid,
    params,
    fn: (given: readonly Params[], x: Tensor): unknown => {
      const loss = (own: readonly Params[]): Tensor => own.reduce(layer, x).square().mean();
      const { value, grad } = valueAndGrad(loss)(given);
      return [
        value,
        given.map(({ up, down }, i) => ({ up: up.sub(grad[i]!.up), down: down.sub(grad[i]!.down) })),
      ];
    },
    args: () => [params, zeros([4096, 64])],
    plans: () => [fullySharded(grid, 'data'), () => ['data', null]],
  };
}

test('checkpointed layers gather their parameters again instead of keeping them whole', () => {
  const [kept, again] = [layersOf(undefined), layersOf(checkpoint)];
  const once = (3 / 4) * bytesOf(treeLeaves(kept.params));
  expect(counted(kept).bytesByCollective['allGather data']).toBe(once);
  expect(counted(again).bytesByCollective['allGather data']).toBe(2 * once);
  expect(counted(again).bytesByCollective['reduceScatter data']).toBe(once);
  // Of four layers one or two are whole at a time.
  expect(told(kept).memory.peak - told(again).memory.peak).toBeGreaterThan(once / 2);
});

test('checkpointed layers have the gradients of one process, however parameters are split', () => {
  const grid = parseMesh('data=2,model=2')!;
  const layer: Fn = (x, up, down) => x!.matmul(up!).tanh().matmul(down!);
  const twice =
    (one: Fn): Fn =>
    (x, up, down) =>
      one(one(x!, up!, down!) as Tensor, up!, down!);
  const wrapped = checkpoint(layer as never) as unknown as Fn;
  for (const specs of [
    [
      ['data', null],
      [null, 'data'],
      ['data', null],
    ],
    [
      ['data', null],
      [null, 'model'],
      ['model', null],
    ],
    [
      ['data', 'model'],
      ['data', 'model'],
      [null, null],
    ],
  ])
    expectSame(
      gradientOf(twice(wrapped)),
      gradientOf(twice(layer)),
      grid,
      [
        [8, 4],
        [4, 12],
        [12, 4],
      ],
      specs,
    );
});

test('tensor parallel adds up the activations twice a layer forward, and twice backward', () => {
  const { collectives } = counted(gptTensorParallel);
  const [layers, x] = gptTensorParallel.args() as [unknown[], Tensor];
  const sums = collectives.filter(({ value }) => value === `f32[${x.shape.join()}]`);
  expect(sums.map(({ kind }) => kind)).toEqual(Array.from({ length: 4 * layers.length }, () => 'allReduce'));
  // Besides, the loss alone.
  expect(collectives.length).toBe(4 * layers.length);
});

/** What `explain` says of a program of these processes. */
function told({ fn, mesh, plans, args }: ParallelWorkload): Explanation {
  const own = args();
  const splits = splitsBy('test', mesh, plans(), flatten(own, 'test'));
  return explainShared(gpuTarget, { mesh, splits }, fn, own);
}

/** A train step of two layers, split so by a mesh. */
const perceptron = (grid: Mesh, plan: ShardPlan | undefined): ParallelWorkload => ({
  name: 'perceptron',
  about: '',
  mesh: grid,
  fn: (params: Params, x: Tensor): unknown => {
    const loss = ({ up, down }: Params): Tensor => x.matmul(up).relu().matmul(down).square().mean();
    const { value, grad } = valueAndGrad(loss)(params);
    return [value, params.up.sub(grad.up), params.down.sub(grad.down)];
  },
  args: () => [{ up: zeros([8, 32]), down: zeros([32, 8]) }, zeros([16, 8])],
  plans: () => [plan, () => ['data', null]],
});

const overData = mesh({ data: 4 });
const inTwo = mesh({ data: 2, model: 2 });
const byModel = byName({ up: [null, 'model'], down: ['model', null] });

test.each([
  ['data', perceptron(overData, undefined), '[null, null]', '[null, null]'],
  ['fsdp', perceptron(overData, fullySharded(overData, 'data')), '[null, data]', '[data, null]'],
  ['tensor', perceptron(inTwo, byModel), '[null, model]', '[model, null]'],
] as const)('explain says how %s parallel holds arguments and results', (_, program, up, down) => {
  const { parallel } = told(program);
  expect(parallel!.inputs.map(({ name, split }) => `${name} ${split}`)).toEqual([
    'arg1 [data, null]',
    `arg0.up ${up}`,
    `arg0.down ${down}`,
  ]);
  expect(parallel!.outputs.map(({ split }) => split)).toEqual(['[]', up, down]);
});

test.each([
  ['data', gptDataParallel],
  ['fsdp', gptFullySharded],
  ['tensor', gptTensorParallel],
  ['perceptron', perceptron(inTwo, byModel)],
] as const)('explain and explainParallel say the same of %s', (_, program) => {
  const { parallel, nodes, kernels } = told(program);
  const { steps, rank, ...communication } = parallel!;
  expect(communication).toEqual(counted(program));
  expect(rank).toBe(0);
  // Each is a step among the kernels, once.
  expect(steps.map(({ collective }) => collective).toSorted((a, b) => a! - b!)).toEqual([
    ...communication.collectives.keys(),
  ]);
  for (const { kind, collective, after } of steps) {
    expect(communication.collectives[collective!]!.kind).toBe(kind);
    expect(after).toBeLessThanOrEqual(kernels.length);
  }
  // A part has the shape that its split makes of the whole.
  const held = nodes.filter(({ sharding }) => sharding !== undefined);
  expect(held.length).toBeGreaterThan(nodes.length / 4);
  for (const { type, sharding } of held) {
    const sizes = (text: string): number[] => Array.from(text.matchAll(/\d+(?=[,\]])/g), Number);
    const parts = splitParts(program.mesh, sharding!.split);
    expect(sizes(sharding!.whole).map((size, axis) => size / parts[axis]!)).toEqual(sizes(type));
  }
});

test('a result that takes the memory of an argument is held as that is, by both', () => {
  const add = (x: Tensor): Tensor => shard(x, inTwo, [null, 'model']).add(1);
  const program = (fn: ParallelWorkload['fn']): ParallelWorkload => ({
    name: 'add',
    about: '',
    mesh: inTwo,
    fn,
    args: () => [zeros([8, 8])],
    plans: () => [() => ['data', null]],
  });
  const [plain, donating] = [program(compile(add)), program(compile(add, { donate: [0] }))];
  const held = (one: ParallelWorkload): unknown[] =>
    [counted(one), told(one).parallel!].map(({ outputs }) => outputs[0]!.split);
  expect(held(plain)).toEqual(['[data, model]', '[data, model]']);
  expect(held(donating)).toEqual(['[data, null]', '[data, null]']);
});

/** By axis into how many parts a split as it is shown makes a value. */
function splitParts({ axes }: Mesh, split: string): readonly number[] {
  const text = split.slice(1, -1);
  if (text === '') return [];
  return Array.from(text.matchAll(/\[[^\]]*\]|\w+/g), ([names]) =>
    axes.reduce(
      (product, { name, size }) => (new RegExp(`\\b${name}\\b`).test(names) ? product * size : product),
      1,
    ),
  );
}

test('a sum is added up before a cast to more bytes', () => {
  const grid = mesh({ model: 4 });
  const fn = (x: Tensor, w: Tensor): Tensor => x.matmul(w).to('f32').square();
  const [x, w] = [zeros([8, 16], { dtype: 'bf16' }), zeros([16, 8], { dtype: 'bf16' })];
  const { collectives } = explainParallel(fn, grid, [() => [null, 'model'], () => ['model', null]], x, w);
  expect(collectives.map(({ kind, value }) => `${kind} ${value}`)).toEqual(['allReduce bf16[8,8]']);
});
