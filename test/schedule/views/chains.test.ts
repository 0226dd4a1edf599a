// Random chains of views, arithmetic, reductions, scans, stacks and joins of a value with itself: what each step doubles, a dozen of them
// multiplies by thousands. Whatever the chain is, a kernel's work is bounded, compiling takes no longer than its length, and what
// is computed is what a model in plain loops computes, step by step.
// SINTER_CHAIN_RUNS=3000 npx vitest run test/schedule/views/chains.test.ts looks further; SINTER_SEED repeats a run.
//
// Runs alone: it measures time.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compileGraph, lowerGraph, optimise } from '../../../src/compile.ts';
import { topological, type Graph } from '../../../src/ir/graph.ts';
import { sizeOf, stridesOf } from '../../../src/ir/shape.ts';
import { divisionLimit, workLimit } from '../../../src/schedule/fusion/inline.ts';
import { softwareTarget, wasmTarget } from '../../../src/schedule/target.ts';
import { device, setDevice, synchronize } from '../../../src/tensor/device.ts';
import * as sn from '../../../src/operations/index.ts';
import { nodeOf } from '../../../src/tensor/record.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { cpuTime } from '../../support/cpu-time.ts';
import { seed } from '../../support/property.ts';

const runs = Number(process.env['SINTER_CHAIN_RUNS'] ?? 40);

/** A software adapter takes a while to make pipelines. */
const runsOn: Readonly<Record<string, number>> = { wasm: runs, 'webgpu:software': Math.ceil(runs / 8) };

/** Milliseconds of processor time that compiling a chain of a dozen steps or two may take. */
const mostTime = 2000;

/** Whole numbers below this: sums of a few are exact in f32, whatever the order. */
const modulus = 97;

interface Placed {
  readonly data: readonly number[];
  readonly shape: readonly number[];
}

/** A step on a tensor, and the same in plain loops. Shapes stay of one size, so that any step can follow any other. */
interface Step {
  readonly name: string;
  readonly tensor: (x: Tensor) => Tensor;
  readonly model: (x: Placed) => Placed;
}

/** Every element from a place that depends on where it is. */
function gathered(shape: readonly number[], from: (at: readonly number[]) => number): number[] {
  const strides = stridesOf(shape);
  return Array.from({ length: sizeOf(shape) }, (_, flat) =>
    from(strides.map((stride, axis) => Math.floor(flat / stride) % shape[axis]!)),
  );
}

const flatOf = (at: readonly number[], shape: readonly number[]): number =>
  stridesOf(shape).reduce((sum, stride, axis) => sum + stride * at[axis]!, 0);

/** Values stay small whole numbers: 0 to 96, by a remainder that is exact. */
const small = (x: Tensor): Tensor => sn.remainder(x, modulus);
const smallNumber = (value: number): number => ((value % modulus) + modulus) % modulus;

const reshaped = (shape: readonly number[]): Step => ({
  name: `reshape ${shape.join('×')}`,
  tensor: (x) => sn.reshape(x, shape),
  model: ({ data }) => ({ data, shape }),
});

function permuted(order: readonly number[]): Step {
  return {
    name: `permute ${order.join()}`,
    tensor: (x) => sn.permute(x, order),
    model: ({ data, shape }) => {
      const to = order.map((axis) => shape[axis]!);
      const back = shape.map((_, axis) => order.indexOf(axis));
      return {
        shape: to,
        data: gathered(
          to,
          (at) =>
            data[
              flatOf(
                back.map((i) => at[i]!),
                shape,
              )
            ]!,
        ),
      };
    },
  };
}

const flipped = (axis: number): Step => ({
  name: `flip ${axis}`,
  tensor: (x) => sn.flip(x, axis),
  model: ({ data, shape }) => ({
    shape,
    data: gathered(shape, (at) => data[flatOf(at.with(axis, shape[axis]! - 1 - at[axis]!), shape)]!),
  }),
});

const rolled = (axis: number, by: number): Step => ({
  name: `x + roll ${axis} by ${by}`,
  tensor: (x) => small(sn.add(x, sn.roll(x, by, axis))),
  model: ({ data, shape }) => ({
    shape,
    data: gathered(shape, (at) => {
      const n = shape[axis]!;
      return smallNumber(
        data[flatOf(at, shape)]! + data[flatOf(at.with(axis, (((at[axis]! - by) % n) + n) % n), shape)]!,
      );
    }),
  }),
});

/** Halves along an axis as their sum and difference, one after the other or in turns: a step of a fast transform. */
const butterfly = (axis: number, inTurns: boolean): Step => ({
  name: `butterfly ${axis}${inTurns ? ' in turns' : ''}`,
  tensor: (x) => {
    const half = x.shape[axis]! / 2;
    const [a, b] = [sn.slice(x, axis, 0, half), sn.slice(x, axis, half, 2 * half)];
    const both = [small(sn.add(a, b)), small(sn.sub(a, b))];
    return inTurns ? sn.reshape(sn.stack(both, axis + 1), x.shape) : sn.cat(both, axis);
  },
  model: ({ data, shape }) => {
    const half = shape[axis]! / 2;
    return {
      shape,
      data: gathered(shape, (at) => {
        const [which, i] = inTurns
          ? [at[axis]! % 2, at[axis]! >> 1]
          : [Math.floor(at[axis]! / half), at[axis]! % half];
        const [a, b] = [i, i + half].map((place) => data[flatOf(at.with(axis, place), shape)]!);
        return smallNumber(which === 0 ? a! + b! : a! - b!);
      }),
    };
  },
});

/** The first half of an axis twice. */
const doubled = (axis: number): Step => ({
  name: `double ${axis}`,
  tensor: (x) => {
    const half = sn.slice(x, axis, 0, x.shape[axis]! / 2);
    return sn.cat([half, half], axis);
  },
  model: ({ data, shape }) => ({
    shape,
    data: gathered(shape, (at) => data[flatOf(at.with(axis, at[axis]! % (shape[axis]! / 2)), shape)]!),
  }),
});

const centred = (axis: number): Step => ({
  name: `x + sum ${axis}`,
  tensor: (x) => small(sn.add(x, sn.sum(x, axis, { keepdim: true }))),
  model: ({ data, shape }) => ({
    shape,
    data: gathered(shape, (at) => {
      let sum = data[flatOf(at, shape)]!;
      for (let i = 0; i < shape[axis]!; i++) sum += data[flatOf(at.with(axis, i), shape)]!;
      return smallNumber(sum);
    }),
  }),
});

const scanned = (axis: number): Step => ({
  name: `cumsum ${axis}`,
  tensor: (x) => small(sn.cumsum(x, axis)),
  model: ({ data, shape }) => ({
    shape,
    data: gathered(shape, (at) => {
      let sum = 0;
      for (let i = 0; i <= at[axis]!; i++) sum += data[flatOf(at.with(axis, i), shape)]!;
      return smallNumber(sum);
    }),
  }),
});

const squared: Step = {
  name: 'x·x + 1',
  tensor: (x) => small(sn.add(sn.mul(x, x), 1)),
  model: ({ data, shape }) => ({ shape, data: data.map((value) => smallNumber(value * value + 1)) }),
};

/** Shapes of as many elements each: 48 in ways that share no axes. */
const shapes = [
  [48],
  [6, 8],
  [8, 6],
  [4, 12],
  [12, 4],
  [2, 24],
  [24, 2],
  [2, 4, 6],
  [4, 6, 2],
  [6, 2, 4],
  [2, 2, 2, 6],
];

interface Chain {
  readonly shape: readonly number[];
  readonly steps: readonly Step[];
}

const chain: fc.Arbitrary<Chain> = fc
  .record({
    start: fc.constantFrom(...shapes),
    dice: fc.array(fc.tuple(fc.nat({ max: 9 }), fc.nat({ max: 5039 }), fc.nat({ max: 5039 })), {
      minLength: 3,
      maxLength: 24,
    }),
  })
  .map(({ start, dice }) => {
    let shape: readonly number[] = start;
    const steps = dice.map(([kind, one, two]): Step => {
      const axis = one % shape.length;
      const even = shape[axis]! % 2 === 0 ? axis : shape.findIndex((size) => size % 2 === 0);
      switch (kind) {
        case 0:
        case 1: {
          shape = shapes[two % shapes.length]!;
          return reshaped(shape);
        }
        case 2:
        case 3: {
          const order = shape.map((_, i) => (i + 1 + (two % shape.length)) % shape.length);
          shape = order.map((i) => shape[i]!);
          return permuted(order);
        }
        case 4:
          return flipped(axis);
        case 5:
          return rolled(axis, 1 + (two % 3));
        case 6:
          return butterfly(even, two % 2 === 0);
        case 7:
          return two % 2 === 0 ? doubled(even) : squared;
        case 8:
          return centred(axis);
        default:
          return two % 3 === 0 ? scanned(axis) : squared;
      }
    });
    return { shape: start, steps };
  });

const startOf = (shape: readonly number[]): Placed => ({
  shape,
  data: Array.from({ length: sizeOf(shape) }, (_, i) => (7 * i + 3) % modulus),
});

function tensorOf({ shape, steps }: Chain): Tensor {
  return steps.reduce<Tensor>((x, step) => step.tensor(x), sn.tensor([...startOf(shape).data], { shape }));
}

function graphOf(x: Tensor): Graph {
  const node = nodeOf(x);
  const parameters = topological([node]).filter((one) => one.op === 'parameter');
  return { parameters: parameters as unknown as Graph['parameters'], outputs: [node] };
}

const textOf = ({ shape, steps }: Chain): string =>
  [shape.join('×'), ...steps.map(({ name }) => name)].join('; ');

describe.each(['wasm', 'webgpu:software'])('on %s', (name) => {
  beforeAll(() => setDevice(name));

  afterAll(async () => {
    await synchronize();
    (await device()).destroy();
  });

  const count = runsOn[name]!;
  test(`${count} chains compute what loops compute`, async () => {
    console.log(`random inputs from SINTER_SEED=${seed}`);
    const law = fc.asyncProperty(chain, async (given) => {
      const wanted = given.steps.reduce((x, step) => step.model(x), startOf(given.shape));
      const got = await tensorOf(given).data();
      expect([...got], textOf(given)).toEqual(wanted.data);
    });
    await fc.assert(law, { numRuns: count, seed });
  });
});

test.each([wasmTarget, softwareTarget])(`compiling any of ${runs} chains takes no time: $name`, (target) => {
  setDevice('interpreter');
  let slowest = { time: 0, text: '' };
  fc.assert(
    fc.property(chain, (given) => {
      const graph = graphOf(tensorOf(given));
      // The first of several that is fast enough counts: the collector may run in any of them.
      let time = Infinity;
      for (let attempt = 0; attempt < 3 && time > mostTime; attempt++)
        time = Math.min(
          time,
          cpuTime(() => compileGraph(graph, target)),
        );
      if (time > slowest.time) slowest = { time, text: textOf(given) };
      expect(time, textOf(given)).toBeLessThan(mostTime);
      const { schedule } = lowerGraph(optimise(graph, target), target, new Map(), new Map());
      for (const { pool, kind } of schedule.kernels) {
        if (kind === 'map') expect(pool.work, textOf(given)).toBeLessThanOrEqual(4 * workLimit);
      }
    }),
    { numRuns: runs, seed },
  );
  console.log(`${target.name}: ${slowest.time.toFixed(0)} ms at most: ${slowest.text}`);
});

/** Steps that multiply what they are given, as often as is asked for. */
const growing: Readonly<Record<string, (n: number) => Tensor>> = {
  'a table read by columns': (n) => {
    let x = sn.cast(sn.arange(60), 'f32');
    for (let i = 0; i < n; i++) x = sn.reshape(sn.permute(sn.reshape(x, [3, 4, 5]), [2, 0, 1]), [60]);
    return x;
  },
  'a value joined with itself': (n) => {
    let x = sn.tensor([1, 2]);
    for (let i = 0; i < n; i++) x = sn.cat([x, x]);
    return sn.sum(x);
  },
  'sums and differences of halves': (n) => {
    let x = sn.rand([2 ** n]);
    for (let i = 0; i < n; i++) {
      const [a, b] = [0, 1].map((half) => sn.select(sn.reshape(x, [2, -1]), 0, half)) as [Tensor, Tensor];
      x = sn.reshape(sn.stack([sn.add(a, b), sn.sub(a, b)], 1), [2 ** n]);
    }
    return x;
  },
};

test.each(Object.entries(growing))('%s: kernels grow in number, not in size', (_, make) => {
  setDevice('interpreter');
  const measure = (n: number): { kernels: number; work: number; divisions: number } => {
    const { schedule } = lowerGraph(optimise(graphOf(make(n)), wasmTarget), wasmTarget, new Map(), new Map());
    const places = [...schedule.fusion.places.values()].filter((place) => place.kind === 'free');
    return {
      kernels: schedule.kernels.length,
      work: Math.max(...schedule.kernels.map(({ pool }) => pool.work)),
      divisions: Math.max(0, ...places.map((place) => place.divisions)),
    };
  };
  const [few, many] = [measure(9), measure(18)];
  expect(many.kernels).toBeGreaterThan(few.kernels);
  expect(many.kernels).toBeLessThanOrEqual(2 * few.kernels + 2);
  for (const { work, divisions } of [few, many]) {
    expect(work).toBeLessThanOrEqual(4 * workLimit);
    expect(divisions).toBeLessThanOrEqual(divisionLimit);
  }
});
