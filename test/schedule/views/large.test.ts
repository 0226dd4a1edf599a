// Views of large tensors, composed. Kernels find places in 32 bits, and in a chain of reshapes and permutations these are places that
// only larger numbers would find directly: every element is compared with one that was moved view by view.
// SINTER_VIEW_RUNS=1000 npx vitest run test/schedule/views/large.test.ts looks further; SINTER_SEED repeats a run.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sizeOf, stridesOf } from '../../../src/ir/shape.ts';
import { device, setDevice, synchronize } from '../../../src/tensor/device.ts';
import * as sn from '../../../src/operations/index.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { seed } from '../../support/property.ts';

const runs = Number(process.env['SINTER_VIEW_RUNS'] ?? 25);

type View =
  | { readonly kind: 'reshape'; readonly shape: readonly number[] }
  | { readonly kind: 'permute'; readonly order: readonly number[] }
  | { readonly kind: 'flip'; readonly axis: number };

/** Elements on the host, and how they lie. */
interface Placed {
  readonly data: Float32Array;
  readonly shape: readonly number[];
}

/** The view as a copy. */
function moved({ data, shape }: Placed, view: View): Placed {
  if (view.kind === 'reshape') return { data, shape: view.shape };
  const strides = stridesOf(shape);
  const isFlip = view.kind === 'flip';
  const order = isFlip ? shape.map((_, axis) => axis) : view.order;
  const steps = order.map((axis) => (isFlip && axis === view.axis ? -strides[axis]! : strides[axis]!));
  const to = order.map((axis) => shape[axis]!);
  const out = new Float32Array(data.length);
  const at = to.map(() => 0);
  let from = isFlip ? (shape[view.axis]! - 1) * strides[view.axis]! : 0;
  for (let i = 0; i < out.length; i++) {
    out[i] = data[from]!;
    for (let axis = to.length - 1; axis >= 0; axis--) {
      at[axis]! += 1;
      from += steps[axis]!;
      if (at[axis]! < to[axis]!) break;
      from -= steps[axis]! * to[axis]!;
      at[axis] = 0;
    }
  }
  return { data: out, shape: to };
}

function viewed(x: Tensor, view: View): Tensor {
  switch (view.kind) {
    case 'reshape':
      return sn.reshape(x, view.shape);
    case 'permute':
      return sn.permute(x, view.order);
    case 'flip':
      return sn.flip(x, view.axis);
    default:
      return view satisfies never;
  }
}

async function check(shape: readonly number[], views: readonly View[]): Promise<void> {
  const data = Float32Array.from({ length: sizeOf(shape) }, (_, i) => i);
  const wanted = views.reduce<Placed>(moved, { data, shape });
  const got = await views.reduce(viewed, sn.tensor(data, { shape })).data();
  const wrong = wanted.data.reduce((count, value, i) => (value === got[i] ? count : count + 1), 0);
  expect(wrong).toBe(0);
}

/** Views that read a table of a×b by columns, over and over. */
function riffle(a: number, b: number, times: number): View[] {
  return Array.from({ length: times }, (): View[] => [
    { kind: 'reshape', shape: [a, b] },
    { kind: 'permute', order: [1, 0] },
    { kind: 'reshape', shape: [a * b] },
  ]).flat();
}

const shapes = [
  [2, 3, 5, 7, 11, 13],
  [64, 100, 30],
  [256, 300],
  [224, 224, 3, 4],
  [1000, 1024],
  [17, 19, 23, 29],
  [1, 3, 512, 512],
  [32, 12, 64, 16],
  [8, 197, 96],
  [50, 31, 33, 7],
];

/** The prime factors of a number. */
function factorsOf(n: number): number[] {
  const factors: number[] = [];
  for (let rest = n, by = 2; rest > 1;) {
    if (rest % by === 0) {
      factors.push(by);
      rest /= by;
    } else by += 1;
  }
  return factors;
}

const chain = fc
  .record({
    shape: fc.constantFrom(...shapes),
    length: fc.integer({ min: 2, max: 4 }),
    dice: fc.array(fc.nat({ max: 5039 }), { minLength: 120, maxLength: 120 }),
  })
  .map(({ shape, length, dice }) => {
    const roll = [...dice];
    const next = (sides: number): number => (roll.pop() ?? 0) % sides;
    const views: View[] = [];
    for (let i = 0; i < length; i++) {
      const to = Array.from({ length: 2 + next(2) }, () => 1);
      for (const factor of factorsOf(sizeOf(shape))) to[next(to.length)]! *= factor;
      views.push({ kind: 'reshape', shape: to });
      const order = to.map((_, axis) => axis).sort(() => next(3) - 1);
      views.push({ kind: 'permute', order });
      if (next(3) === 0) views.push({ kind: 'flip', axis: next(to.length) });
    }
    return { shape, views };
  });

describe.each(['wasm', 'webgpu:software'])('views of views on %s', (name) => {
  beforeAll(() => setDevice(name));

  afterAll(async () => {
    await synchronize();
    (await device()).destroy();
  });

  test.each([
    ['300×700, four times by columns', [210_000], riffle(300, 700, 4)],
    ['256×300, five times by columns', [76_800], riffle(256, 300, 5)],
    [
      'four axes as three',
      [17, 19, 23, 29],
      [
        { kind: 'permute', order: [0, 2, 3, 1] },
        { kind: 'reshape', shape: [437, 29, 17] },
        { kind: 'permute', order: [2, 0, 1] },
      ],
    ],
    [
      'three axes as three others',
      [64, 100, 300],
      [
        { kind: 'permute', order: [0, 2, 1] },
        { kind: 'reshape', shape: [625, 48, 64] },
        { kind: 'permute', order: [2, 1, 0] },
      ],
    ],
  ] as const)('%s', async (_, shape, views) => check(shape, views));

  test(`${runs} random chains`, async () => {
    console.log(`random inputs from SINTER_SEED=${seed}`);
    const law = fc.asyncProperty(chain, ({ shape, views }) => check(shape, views));
    await fc.assert(law, { numRuns: runs, seed });
  });
});
