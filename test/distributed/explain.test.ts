// What processes send each other, counted and compared with what the papers say.

import { expect, test } from 'vitest';

import { explainParallel, mesh } from '../../src/distributed/index.ts';
import { treeLeaves, zeros } from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import { links, timeOfCollective } from '../../src/sharding/cost.ts';
import {
  gptDataParallel,
  gptFullySharded,
  gptTensorParallel,
  type ParallelWorkload,
} from '../../src/workloads/parallel.ts';

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
  expect(collectives[0]!.why).toMatch(`${params.length + 1} sums together`);
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

test('tensor parallel adds up the activations twice a layer forward, and twice backward', () => {
  const { collectives } = counted(gptTensorParallel);
  const [layers, x] = gptTensorParallel.args() as [unknown[], Tensor];
  const sums = collectives.filter(({ value }) => value === `f32[${x.shape.join()}]`);
  expect(sums.map(({ kind }) => kind)).toEqual(Array.from({ length: 4 * layers.length }, () => 'allReduce'));
  // Besides, the loss alone.
  expect(collectives.length).toBe(4 * layers.length);
});

test('a sum is added up before a cast to more bytes', () => {
  const grid = mesh({ model: 4 });
  const fn = (x: Tensor, w: Tensor): Tensor => x.matmul(w).to('f32').square();
  const [x, w] = [zeros([8, 16], { dtype: 'bf16' }), zeros([16, 8], { dtype: 'bf16' })];
  const { collectives } = explainParallel(fn, grid, [() => [null, 'model'], () => ['model', null]], x, w);
  expect(collectives.map(({ kind, value }) => `${kind} ${value}`)).toEqual(['allReduce bf16[8,8]']);
});
