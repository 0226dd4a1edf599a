// A number among the arguments of a compiled function is what the number itself is in the function: the
// same dtypes, the same values, the same refusals, whatever it meets.

import * as fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import * as sn from '../../../src/index.ts';
import { recordEntry } from '../../../src/aot/entry.ts';
import { isComplex, isFloat, type DType } from '../../../src/ir/dtype.ts';
import { onCompile } from '../../../src/tensor/report/compiles.ts';
import { checkLawAsync } from '../../support/property.ts';

afterEach(() => sn.setDevice(undefined));

const counted = async (run: () => Promise<unknown>): Promise<number> => {
  const before = sn.stats().traces;
  await run();
  return sn.stats().traces - before;
};

type Op = (x: sn.Tensor, n: sn.TensorLike) => sn.Tensor;

const mask = (x: sn.Tensor): sn.Tensor => sn.arange(x.size).remainder(2).eq(0).reshape(x.shape);

const pairs = [
  'add sub mul div floorDivide remainder fmod trueDivide pow floatPower maximum minimum fmax fmin atan2 hypot',
  'eq ne lt le gt ge logicalAnd logicalOr logicalXor bitwiseAnd bitwiseOr bitwiseXor bitwiseLeftShift',
  'bitwiseRightShift gcd lcm copysign logaddexp xlogy heaviside nextafter isclose isin',
]
  .join(' ')
  .split(' ');

const inner = sn.compile((x: sn.Tensor, n: sn.TensorLike) => x.mul(n) as sn.Tensor);

/** Each in both orders, and what takes a number beside other operands. */
const operations: readonly (readonly [name: string, op: Op])[] = [
  ...pairs.flatMap((name): (readonly [string, Op])[] => {
    const fn = (
      sn as unknown as Record<string, ((x: sn.TensorLike, y: sn.TensorLike) => sn.Tensor) | undefined>
    )[name];
    expect(fn, name).toBeTypeOf('function');
    return [
      [`${name}(x, n)`, (x, n) => fn!(x, n)],
      [`${name}(n, x)`, (x, n) => fn!(n, x)],
    ];
  }),
  ['where(mask, x, n)', (x, n) => sn.where(mask(x), x, n)],
  ['where(mask, n, x)', (x, n) => sn.where(mask(x), n, x)],
  ['maskedFill', (x, n) => sn.maskedFill(x, mask(x), n)],
  ['fill', (x, n) => sn.fill(x, n)],
  ['clamp(x, n)', (x, n) => sn.clamp(x, n)],
  ['clamp(x, undefined, n)', (x, n) => sn.clamp(x, undefined, n)],
  ['clampMin', (x, n) => sn.clampMin(x, n)],
  ['bucketize', (x, n) => sn.bucketize(n, x.sort()[0]!)],
  ['indexFill', (x, n) => sn.indexFill(x, 0, sn.tensor([1], { dtype: 'i32' }), n)],
  ['setAt', (x, n) => x.setAt([1], n)],
  ['addAt', (x, n) => x.addAt([1], n)],
  ['add of a scalar', (x, n) => x.at(0).add(n)],
  ['add beside a scalar', (x, n) => x.add(sn.tensor(3, { dtype: 'u8' })).add(n)],
  ['of a product of numbers', (x, n) => x.add(sn.mul(n, 2))],
  ['in a compiled function', (x, n) => inner(x, n)],
  ['of a captured number in one', (x, n) => inner(x, 7).add(n) as sn.Tensor],
  [
    'in a loop',
    (x, n) => sn.foriLoop(0, 2, (_, y) => y.add(n) as never, x.cast(sn.add(x, n).dtype as 'f32')),
  ],
  [
    'in a branch',
    (x, n) =>
      sn.cond(
        sn.tensor(true),
        (y) => y.add(n) as sn.Tensor,
        (y) => y.sub(n) as sn.Tensor,
        x,
      ),
  ],
];

const dtypes: readonly DType[] = [
  'bool',
  'i8',
  'u8',
  'i16',
  'u16',
  'i32',
  'u32',
  'i64',
  'u64',
  'f16',
  'bf16',
  'f32',
  'f64',
  'c64',
  'c128',
];

const elements: Readonly<Record<string, readonly number[]>> = { bool: [1, 0, 1, 1], plain: [3, 250, 0, 7] };

const input = (dtype: DType): sn.Tensor => {
  const values = elements[dtype] ?? (dtype === 'i8' ? [3, 120, 0, 7] : elements['plain']!);
  return sn.tensor(values).cast(dtype as 'f32');
};

/** What a call gives: dtype, shape and elements, or the code of its refusal. */
async function told(run: () => sn.Tensor): Promise<unknown> {
  let result: sn.Tensor;
  try {
    result = run();
  } catch (error) {
    if (!(error instanceof sn.SinterError)) throw error;
    return error.code;
  }
  return [result.dtype, result.shape, [...((await result.data()) as Iterable<number | bigint>)]];
}

function expectSame(got: unknown, wanted: unknown, what: string): void {
  if (!Array.isArray(wanted) || !Array.isArray(got)) return expect(got, what).toEqual(wanted);
  const [dtype, , values] = wanted as [DType, unknown, (number | bigint)[]];
  expect(got.slice(0, 2), what).toEqual(wanted.slice(0, 2));
  // A power that is known is products; others are rounded otherwise.
  const tolerance =
    isFloat(dtype) || isComplex(dtype)
      ? /64|128/.test(dtype) && dtype !== 'c64'
        ? 1e-12
        : dtype === 'f16'
          ? 2e-3
          : dtype === 'bf16'
            ? 2e-2
            : 1e-5
      : 0;
  for (const [i, want] of values.entries()) {
    const value = (got[2] as (number | bigint)[])[i]!;
    if (Object.is(value, want)) continue;
    const far = Math.abs(Number(value) - Number(want));
    expect(
      typeof want === 'bigint' || !(far <= tolerance * Math.abs(Number(want))),
      `${what}: ${value} for ${want}`,
    ).toBe(false);
  }
}

const numbers = fc.oneof(
  fc.constantFrom(
    0,
    -0,
    1,
    -1,
    2,
    5,
    10,
    255,
    256,
    300,
    -129,
    65_535,
    2 ** 31,
    2 ** 32,
    2 ** 53,
    NaN,
    Infinity,
    -Infinity,
    0.1,
    2.5,
    -0.5,
    1e-60,
    1 + 2 ** -11 + 2 ** -40,
    16_777_217,
  ),
  fc.integer({ min: -300, max: 300 }),
  fc.integer({ min: -(2 ** 53), max: 2 ** 53 }),
  fc.double({ min: -1000, max: 1000, noNaN: true }),
);

describe.each([
  ['interpreter', 300],
  ['wasm', 30],
] as const)('on %s', (device, runs) => {
  test('any operation on any dtype', async () => {
    sn.setDevice(device);
    const cases = fc.tuple(fc.constantFrom(...operations), fc.constantFrom(...dtypes), numbers, numbers);
    vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    await checkLawAsync(runs, cases, async ([[name, op], dtype, first, second]) => {
      const x = input(dtype);
      const compiled = sn.compile((y: sn.Tensor, n: sn.TensorLike) => op(y, n));
      // The second finds what the first has left.
      for (const n of [first, second, first]) {
        const what = `${name} of ${dtype} and ${n}`;
        expectSame(await told(() => compiled(x, n)), await told(() => op(x, n)), what);
      }
    });
    vi.restoreAllMocks();
  });
});

describe('a program', () => {
  const u8 = (...values: number[]): sn.Tensor<'u8'> => sn.tensor(values, { dtype: 'u8' });
  const sum = (x: sn.Tensor, n: sn.TensorLike): sn.Tensor => x.add(n) as sn.Tensor;

  test('serves all whole numbers beside integers, and another one fractions', async () => {
    sn.setDevice('wasm');
    const add = sn.compile(sum);
    const traces = (...numbers: number[]): Promise<number> =>
      counted(async () => {
        for (const n of numbers) await add(u8(250), n).data();
      });
    expect(await traces(1, 2, 10, 3)).toBe(1);
    expect(await traces(0.5, 2.25)).toBe(1);
    expect(await traces(4, 0.25)).toBe(0);
    expect(await add(u8(250), 10).array()).toEqual([4]);
    expect(await add(u8(250), 0.5).array()).toEqual([250.5]);
    expect(() => add(u8(250), 300)).toThrow('add: 300 is not a value of u8');
    const wide = sn.tensor([2n ** 53n], { dtype: 'i64' });
    expect(await add(wide, 1).array()).toEqual([2n ** 53n + 1n]);
    expect(await add(wide, -(2 ** 40)).array()).toEqual([2n ** 53n - 2n ** 40n]);
  });

  test('beside floats serves every number', async () => {
    const scale = sn.compile((x: sn.Tensor, n: sn.TensorLike) => x.mul(n).add(n).sum());
    const traces = await counted(async () => {
      for (const n of [1, 0.5, 3, NaN]) await scale(sn.tensor([1, 2]), n).data();
    });
    expect(traces).toBe(1);
  });

  test('says why it is made', async () => {
    const reasons: string[] = [];
    const end = onCompile(({ why }) => reasons.push(why));
    const add = sn.compile((x: sn.Tensor, n: sn.TensorLike) => x.add(n) as sn.Tensor);
    for (const n of [2, 0.5]) await add(u8(1), n).data();
    end();
    expect(reasons.at(-1)).toBe('n meets integers, and is 0.5 now');
  });

  test('of a bundle refuses a number beside integers', () => {
    const record = (...inputs: unknown[]): unknown =>
      recordEntry({ name: 'sum', fn: sum, inputs } as Parameters<typeof recordEntry>[0], undefined);
    expect(() => record(u8(1), 2)).toThrow('build: a number that is an argument is combined with integers');
    expect(record(sn.ones([1]), 2)).toBeDefined();
  });
});

describe('a number that the function changes', () => {
  const dtypes = ['i8', 'u32', 'i64', 'f16', 'f32', 'f64', 'c64'] as const;

  test.each(dtypes)('is what it was changed to, beside %s', async (dtype) => {
    const f = sn.compile((n: sn.Tensor): sn.Tensor => {
      n.assign(n.mul(2));
      return sn.ones([1], { dtype }).add(n);
    }) as unknown as (n: number) => sn.Tensor;
    for (const n of [3, 5]) expect(await f(n).real().cast('f32').array()).toEqual([1 + 2 * n]);
  });

  const floats = ['f16', 'f32', 'f64'] as const;

  test.each(floats)('has the gradient of what it meets, beside %s, once it is a leaf', async (dtype) => {
    const f = sn.compile((n: sn.Tensor): sn.Tensor => {
      n.requiresGrad_();
      sn.tensor([1, 2], { dtype }).mul(n).sum().backward();
      return n.grad!;
    }) as unknown as (n: number) => sn.Tensor;
    expect(await f(4).item()).toBe(3);
  });

  test.each(floats)('is itself, beside %s, where it is no leaf any more', async (dtype) => {
    const f = sn.compile((n: sn.Tensor): sn.Tensor => {
      n.requiresGrad_().requiresGrad_(false);
      return sn.tensor([1, 2], { dtype }).mul(n);
    }) as unknown as (n: number) => sn.Tensor;
    expect(await f(4).array()).toEqual([4, 8]);
  });
});
