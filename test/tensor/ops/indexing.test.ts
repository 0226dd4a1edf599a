// `at`, `slice` and their kin against a model that walks every position, and PyTorch's rule for where gathered axes go.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import * as sn from '../../../src/operations/index.ts';
import { setChecks } from '../../../src/tensor/debug.ts';
import type { Index } from '../../../src/tensor/ops/shape/indexing.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import { build, element, holds, plain, ramp, read, toTensor, type Plain } from './support.ts';

beforeAll(() => setDevice('interpreter'));

/** Python's slice of 0 … size−1. */
function pythonSlice(size: number, start: number | null, stop: number | null, step: number): number[] {
  const wrap = (end: number): number => (end < 0 ? end + size : end);
  const out: number[] = [];
  if (step > 0) {
    const [from, to] = [Math.max(0, wrap(start ?? 0)), Math.min(size, wrap(stop ?? size))];
    for (let i = from; i < to; i += step) out.push(i);
  } else {
    const from = Math.min(size - 1, start === null ? size - 1 : wrap(start));
    const to = stop === null ? -1 : Math.max(-1, wrap(stop));
    for (let i = from; i > to; i += step) out.push(i);
  }
  return out;
}

type ModelEntry =
  | { readonly kind: 'new' }
  | { readonly kind: 'drop'; readonly at: number }
  | { readonly kind: 'list'; readonly at: readonly number[] };

/** Indexing by lists per axis; no gathers that broadcast. */
function model(x: Plain, entries: readonly ModelEntry[]): Plain {
  const shape = entries.flatMap((entry) =>
    entry.kind === 'new' ? [1] : entry.kind === 'list' ? [entry.at.length] : [],
  );
  return build(shape, (position) => {
    let out = 0;
    const source = entries.flatMap((entry) => {
      if (entry.kind === 'drop') return [entry.at];
      const here = position[out++]!;
      return entry.kind === 'new' ? [] : [entry.at[here]!];
    });
    return element(x, source);
  });
}

const end = fc.option(fc.integer({ min: -7, max: 7 }), { nil: null });
const step = fc.integer({ min: -3, max: 3 }).filter((n) => n !== 0);

/** An index entry for an axis of `size`, and what it means. */
function entryFor(size: number): fc.Arbitrary<readonly [Index, ModelEntry]> {
  const whole = Array.from({ length: size }, (_, i) => i);
  const choices: fc.Arbitrary<readonly [Index, ModelEntry]>[] = [
    fc.constant([':', { kind: 'list', at: whole }] as const),
    fc.tuple(end, end, step).map(
      ([start, stop, by]) =>
        [
          { start, stop, step: by },
          { kind: 'list', at: pythonSlice(size, start, stop, by) },
        ] as const,
    ),
  ];
  if (size > 0) {
    const position = fc.integer({ min: -size, max: size - 1 });
    choices.push(position.map((at) => [at, { kind: 'drop', at: at < 0 ? at + size : at }] as const));
  }
  return fc.oneof(...choices);
}

const cases = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 0, maxLength: 4 }).chain((shape) =>
  fc.tuple(...shape.map(entryFor)).chain((entries) =>
    fc.array(fc.integer({ min: 0, max: entries.length }), { maxLength: 2 }).map((places) => {
      const all = [...entries] as (readonly [Index, ModelEntry])[];
      for (const place of places) all.splice(place, 0, [null, { kind: 'new' }]);
      return { shape, all };
    }),
  ),
);

describe('basic indices', () => {
  test('numbers, ranges and new axes select what a walk over positions selects', async () => {
    await holds(300, cases, async ({ shape, all }) => {
      const x = ramp(shape);
      const found = await plain(sn.at(toTensor(x), ...all.map(([index]) => index)));
      expect(found).toEqual(
        model(
          x,
          all.map(([, meaning]) => meaning),
        ),
      );
    });
  });

  test('... stands for the axes not named', async () => {
    const x = ramp([2, 3, 4, 5]);
    const found = await plain(sn.at(toTensor(x), 1, '...', { start: 1 }));
    expect(found).toEqual(build([3, 4, 4], ([i, j, k]) => element(x, [1, i!, j!, k! + 1])));
  });

  test('slice is one range, narrow and select take positions that are there', async () => {
    const x = ramp([3, 5]);
    expect(await read(sn.slice(toTensor(x), 1, -2))).toEqual([3, 4, 8, 9, 13, 14]);
    expect(await read(sn.narrow(toTensor(x), 0, -1, 1))).toEqual([10, 11, 12, 13, 14]);
    expect(await plain(sn.select(toTensor(x), -1, -5))).toEqual({ shape: [3], data: [0, 5, 10] });
  });
});

describe('lists and tensors as indices', () => {
  const x = ramp([3, 4, 5, 2]);

  test('one list gathers in place of its axis', async () => {
    const found = await plain(sn.at(toTensor(x), ':', [3, 0, -1, 3]));
    const list = [3, 0, 3, 3];
    expect(found).toEqual(build([3, 4, 5, 2], ([i, j, k, l]) => element(x, [i!, list[j!]!, k!, l!])));
  });

  test('a tensor of rank 2 puts its axes in place of the one it indexes', async () => {
    const index = sn.tensor(
      [
        [0, 4],
        [2, -1],
        [1, 1],
      ],
      { dtype: 'i32' },
    );
    const places = [
      [0, 4],
      [2, 4],
      [1, 1],
    ];
    const found = await plain(sn.at(toTensor(x), ':', ':', index));
    expect(found).toEqual(
      build([3, 4, 3, 2, 2], ([i, j, p, q, l]) => element(x, [i!, j!, places[p!]![q!]!, l!])),
    );
  });

  test('neighbouring tensors broadcast together and stay in place', async () => {
    const rows = sn.tensor([[0], [3]], { dtype: 'i32' });
    const found = await plain(sn.at(toTensor(x), ':', rows, [4, 1, 0]));
    const columns = [4, 1, 0];
    expect(found).toEqual(
      build([3, 2, 3, 2], ([i, p, q, l]) => element(x, [i!, [0, 3][p!]!, columns[q!]!, l!])),
    );
  });

  test('tensors apart from each other put their axes in front', async () => {
    const found = await plain(sn.at(toTensor(x), [0, 2], ':', [1, 3]));
    expect(found).toEqual(build([2, 4, 2], ([p, j, l]) => element(x, [[0, 2][p!]!, j!, [1, 3][p!]!, l!])));
  });

  test('without checks, an index tensor outside of its axis reads 0, also as one of several', async () => {
    setDevice('wasm');
    setChecks(false);
    onTestFinished(() => {
      setDevice('interpreter');
      setChecks(true);
    });
    const square = ramp([3, 3]);
    const wild = sn.tensor([1, 5, -4], { dtype: 'i32' });
    expect(await read(sn.at(toTensor(square), wild))).toEqual([3, 4, 5, 0, 0, 0, 0, 0, 0]);
    expect(await read(sn.at(toTensor(square), wild, [2, 0, 0]))).toEqual([5, 0, 0]);
  });

  test('the gradient of a repeated position adds up', async () => {
    const leaf = toTensor(ramp([4])).requiresGrad_();
    sn.sum(sn.mul(sn.at(leaf, [1, 1, 3]), toTensor({ shape: [3], data: [10, 20, 30] }))).backward();
    expect(await read(leaf.grad!)).toEqual([0, 30, 0, 30]);
  });
});
