// Repeated places, ties and spread operands, of every operation that reads or writes at places or chooses among elements: the derivative
// forwards is the transpose of the one backwards (vᵀ·(J·u) and (Jᵀ·v)·u), nested ones agree, and both are differences where there are any.

import { describe, expect, test } from 'vitest';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { seed } from '../../support/property.ts';
import { randomNumbers } from '../differences.ts';
import { checkNested } from './check.ts';
import type { Sample } from './sample.ts';

type Call = (x: Tensor, source: Tensor) => Tensor;

const places = (...at: number[]): Tensor => sn.tensor(at, { dtype: 'i32' });
/** Places of one axis, repeated and not in order, for a source of [3, 2]. */
const rows = places(2, 0, 2);
const each = sn.tensor(
  [
    [1, 1],
    [1, 0],
    [1, 3],
  ],
  { dtype: 'i32' },
);

/** x is [4, 2], the source [3, 2]. */
const writes: Readonly<Record<string, Call>> = {
  setAt: (x, source) => x.setAt([rows], source),
  'setAt, one source for all': (x, source) => x.setAt([rows], source.at(0)),
  'setAt, pairs': (x, source) => x.setAt([rows, places(1, 1, 1)], source.select(1, 0)),
  addAt: (x, source) => x.addAt([rows], source),
  mulAt: (x, source) => sn.mulAt(x, [rows], source),
  minAt: (x, source) => sn.minAt(x, [rows], source),
  maxAt: (x, source) => sn.maxAt(x, [rows], source),
  scatter: (x, source) => sn.scatter(x, 0, each, source),
  'scatter along rows': (x, source) =>
    sn.scatter(x, 1, places(1, 1, 0).reshape([1, 3]), source.at(0).at(0).reshape([1, 1]).expand([1, 3])),
  scatterAdd: (x, source) => sn.scatterAdd(x, 0, each, source),
  put: (x, source) => sn.put(x, places(5, 5, 0, 7, 5, 0), source.flatten()),
  'put, accumulated': (x, source) =>
    sn.put(x, places(5, 5, 0, 7, 5, 0), source.flatten(), { accumulate: true }),
  indexPut: (x, source) => sn.indexPut(x, [rows], source),
  indexCopy: (x, source) => sn.indexCopy(x, 0, rows, source),
  indexAdd: (x, source) => sn.indexAdd(x, 0, rows, source),
  asStridedScatter: (x, source) => sn.asStridedScatter(x, source, [3, 2], [1, 1], 2),
  'asStridedScatter, steps of 0': (x, source) => sn.asStridedScatter(x, source, [3, 2], [0, 2], 1),
  sliceWrite: (x, source) => sn.sliceWrite(x, 0, 1, source),
  dynamicUpdateSlice: (x, source) => sn.dynamicUpdateSlice(x, source, [sn.tensor(1, { dtype: 'i32' }), 0]),
  maskedScatter: (x, source) => sn.maskedScatter(x, x.detach().gt(0), sn.cat([source, source]).flatten()),
  ...Object.fromEntries(
    (['sum', 'prod', 'mean', 'amax', 'amin'] as const).flatMap((fold) =>
      [true, false].flatMap((includeSelf) => [
        [
          `scatterReduce, ${fold}, ${includeSelf}`,
          (x: Tensor, source: Tensor) => sn.scatterReduce(x, 0, each, source, fold, { includeSelf }),
        ],
        ...(fold === 'sum'
          ? []
          : [
              [
                `indexReduce, ${fold}, ${includeSelf}`,
                (x: Tensor, source: Tensor) => sn.indexReduce(x, 0, rows, source, fold, { includeSelf }),
              ] as const,
            ]),
      ]),
    ),
  ),
};

const reads: Readonly<Record<string, Call>> = {
  take: (x) => sn.take(x, places(5, 5, 0, 5)),
  gather: (x) => sn.gather(x, 0, each),
  at: (x) => x.at(rows),
  indexSelect: (x) => sn.indexSelect(x, 0, rows),
  embedding: (x) => sn.embedding(rows, x),
  segmentSum: (x) => sn.segmentSum(x, places(1, 0, 1, 1), 2),
  sort: (x) => sn.sort(x, 0)[0],
  topk: (x) => sn.topk(x, 2, 0)[0],
  median: (x) => sn.median(x, 0),
  cummax: (x) => sn.cummax(x, 0)[0],
  max: (x) => sn.max(x, 0),
  min: (x) => sn.min(x, 0),
  amax: (x) => sn.amax(x, [0, 1]),
  aminmax: (x) => sn.aminmax(x)[0],
  prod: (x) => sn.prod(x, 0),
  cumprod: (x) => sn.cumprod(x, 0),
  logcumsumexp: (x) => sn.logcumsumexp(x, 0),
  norm: (x) => sn.norm(x, Infinity),
  maxPool1d: (x) => sn.maxPool1d(x.transpose().unsqueeze(0), 2, { stride: 1 }),
};

const spread: Readonly<Record<string, Call>> = {
  maximum: (x, source) => sn.maximum(x, source.at(0)),
  minimum: (x, source) => sn.minimum(x, source.at(0)),
  fmax: (x, source) => sn.fmax(x, source.at(0)),
  where: (x, source) => sn.where(x.detach().gt(0), x, source.at(0)),
  clamp: (x, source) => sn.clamp(x, source.at(0), source.at(1).abs().add(2)),
  mul: (x, source) => sn.mul(x, source.at(0)),
  atan2: (x, source) => sn.atan2(x.add(3), source.at(0)),
  hypot: (x, source) => sn.hypot(x.add(3), source.at(0)),
  lerp: (x, source) => sn.lerp(x, source.at(0), source.at(1)),
  matmul: (x, source) => sn.matmul(x, source.at(0)),
};

/** Points with ties: a few values many times. */
function point(shape: readonly number[], random: () => number): HostArray {
  const size = shape.reduce((product, dim) => product * dim, 1);
  return hostArray(
    'f64',
    shape,
    Array.from({ length: size }, () => [-1, 1, 1, 2][Math.floor(random() * 4)]!),
  );
}

/** Points without, where differences say what the derivative is. */
function apart(shape: readonly number[], random: () => number): HostArray {
  const size = shape.reduce((product, dim) => product * dim, 1);
  return hostArray(
    'f64',
    shape,
    Array.from({ length: size }, () => Math.round(random() * 4096) / 1024 - 2 + 1 / 8192),
  );
}

describe.each(Object.entries({ ...writes, ...reads, ...spread }))('%s', (name, call) => {
  test('derivatives forwards and backwards are each other’s transposes', () => {
    const random = randomNumbers(seed);
    let compared = 0;
    // Random points without ties may still lie too close for differences: then others are drawn.
    for (let round = 0; round < 2 || (compared === 0 && round < 12); round++) {
      const make = round === 0 ? point : apart;
      const sample: Sample = {
        name,
        inputs: [make([4, 2], random), make([3, 2], random)],
        wrt: [0, 1],
        call: ([x, source]) => [call(x!, source!)],
      };
      compared += checkNested(sample, random)?.compared ?? 0;
    }
    expect(compared).toBeGreaterThan(0);
  });
});

test('the median of three equal elements has slopes along lines and no derivative', () => {
  const random = randomNumbers(3);
  const inputs = [hostArray('f64', [4, 2], [1, 2, 1, 2, 1, 2, 3, 3])];
  const sample: Sample = { name: 'median', inputs, wrt: [0], call: ([x]) => [sn.median(x!, 0)] };
  const compared = Array.from({ length: 8 }, () => checkNested(sample, random)?.compared);
  expect(compared).toContain(0);
});

test('of several values set at one place only the last has a gradient, however derivatives are nested', async () => {
  const at = places(0, 0);
  const f = (v: Tensor): Tensor => sn.zeros([2]).setAt([at], v).sum();
  const v = sn.tensor([5, 7]);
  expect(await sn.grad(f)(v).data()).toEqual(Float32Array.of(0, 1));
  expect(await sn.jacfwd(f)(v).data()).toEqual(Float32Array.of(0, 1));
  const compiled = sn.compile((x: Tensor) => sn.grad(f)(x));
  expect(await (await compiled(v)).data()).toEqual(Float32Array.of(0, 1));
  const batch = sn.tensor([
    [5, 7],
    [1, 2],
  ]);
  expect(
    await sn
      .vmap((x: Tensor) => sn.grad(f)(x))(batch)
      .data(),
  ).toEqual(Float32Array.of(0, 1, 0, 1));
  const twice = (x: Tensor): Tensor =>
    f(
      sn
        .grad((y: Tensor) => f(y).square())(x)
        .mul(x),
    );
  // f(v) = v₁, so the gradient of f² is (0, 2·v₁), times v (0, 2·v₁²), and of that by v (0, 4·v₁).
  expect(await sn.grad(twice)(v).data()).toEqual(Float32Array.of(0, 28));
});
