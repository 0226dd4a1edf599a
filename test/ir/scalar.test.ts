import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  dtypeBytes,
  dtypeKind,
  realDTypes as dtypes,
  integerRange,
  isInteger,
  isWide,
  type DType,
} from '../../src/ir/dtype.ts';
import { erf } from '../../src/ir/interpret/erf.ts';
import { givesBool, isElementwise, monoids, opNames, type BinaryOp, type UnaryOp } from '../../src/ir/ops.ts';
import { combineMonoid, compileScalar, evaluateScalar } from '../../src/ir/interpret/scalar.ts';
import { bf16FromBits, f16FromBits, fromInteger, roundF16, type Scalar } from '../../src/ir/value.ts';

type Rows = Readonly<Record<string, string>>;
const torch = JSON.parse(
  readFileSync(new URL('../fixtures/torch-elementwise.json', import.meta.url), 'utf8'),
) as { readonly unary: Rows; readonly binary: Rows };
const numbers = (text: string): number[] => text.split(' ').map(Number);

/** Equal, or both within a few units of the last place; below 1e-300 libraries differ in flushing to zero. */
function agrees(actual: number, expected: number): boolean {
  if (Object.is(actual, expected)) return true;
  const bound = Math.max(Math.abs(expected) * 2e-15, 1e-300);
  return actual !== 0 && Number.isFinite(actual) && Math.abs(actual - expected) <= bound;
}

const integers = dtypes.filter(isInteger);
const bitsOf = (dtype: DType): bigint => BigInt(dtypeBytes(dtype) * 8);
const element = (dtype: DType, x: bigint): Scalar => (isWide(dtype) ? x : Number(x));
const wrapped = (dtype: DType, x: bigint): bigint =>
  dtypeKind(dtype) === 'int'
    ? BigInt.asIntN(Number(bitsOf(dtype)), x)
    : BigInt.asUintN(Number(bitsOf(dtype)), x);

/** Integers of a dtype with the ends of its range, 0 and ±1 often among them. */
function integerOf(dtype: DType): fc.Arbitrary<bigint> {
  const [min, max] = integerRange(dtype);
  const edges = [min, min + 1n, 0n, 1n, 2n, max - 1n, max, ...(min < 0n ? [-1n] : [])];
  return fc.oneof(fc.constantFrom(...edges), fc.bigInt({ min, max }), fc.bigInt({ min: 0n, max: 70n }));
}

const single = new Float32Array(1);
const singleBits = new Int32Array(single.buffer);
const f32Edges = [
  0,
  -0,
  1,
  -1,
  Infinity,
  -Infinity,
  NaN,
  2 ** -149,
  2 ** -126,
  3.4028234663852886e38,
  1 + 2 ** -23,
];
const f32 = fc.oneof(fc.float(), fc.constantFrom(...f32Edges));

/** erf x = 2/√π · e^{−x²} · Σ 2ⁿx²ⁿ⁺¹/(2n+1)!! */
const series = (x: number): number => {
  let [sum, term] = [0, x];
  for (let n = 1; sum + term !== sum; n++) {
    sum += term;
    term *= (2 * x * x) / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
};
const sample = (dtype: DType): fc.Arbitrary<Scalar> => {
  if (dtype === 'bool') return fc.constantFrom(0, 1);
  if (isInteger(dtype)) return integerOf(dtype).map((x) => element(dtype, x));
  return dtype === 'f16'
    ? fc.nat(0xffff).map(f16FromBits)
    : f32.map((x) => (dtype === 'bf16' ? bf16FromBits(x & 0xffff) : x));
};
/** Every f32 is a whole number of 2⁻¹⁴⁹, so products and sums are whole numbers of 2⁻²⁹⁸. */
const whole = (x: number): bigint => BigInt(x * 2 ** 149);
const distance = (a: bigint, b: bigint): bigint => (a > b ? a - b : b - a);
const shiftOut = (count: bigint, bits: bigint): boolean => count < 0n || count >= bits;
const castWide = (x: bigint, to: DType): Scalar => evaluateScalar('cast', [x], 'i64', to);

describe('against PyTorch on NaN, infinities, signed zeros, subnormals and ordinary numbers', () => {
  const unary = numbers(torch.unary['arguments']!);
  test.each(Object.keys(torch.unary).filter((op) => op !== 'arguments'))('%s', (op) => {
    const f = compileScalar(op as UnaryOp, 'f64', op === 'isNan' ? 'bool' : 'f64');
    numbers(torch.unary[op]!).forEach((expected, i) => {
      const actual = f(unary[i]!) as number;
      expect(agrees(actual, expected), `${op}(${unary[i]}) = ${actual}, PyTorch gives ${expected}`).toBe(
        true,
      );
    });
  });

  const binary = numbers(torch.binary['arguments']!);
  test.each(Object.keys(torch.binary).filter((op) => op !== 'arguments'))('%s', (op) => {
    const f = compileScalar(op as BinaryOp, 'f64', ['lt', 'le', 'eq', 'ne'].includes(op) ? 'bool' : 'f64');
    // PyTorch leaves open which zero min and max give; ours order −0 below 0.
    const zeros = op === 'min' || op === 'max' ? (x: number) => x + 0 : (x: number) => x;
    numbers(torch.binary[op]!).forEach((expected, i) => {
      const [a, b] = [binary[Math.floor(i / binary.length)]!, binary[i % binary.length]!];
      const actual = f(a, b) as number;
      expect(
        agrees(zeros(actual), zeros(expected)),
        `${op}(${a}, ${b}) = ${actual}, PyTorch gives ${expected}`,
      ).toBe(true);
    });
  });

  test('every elementwise op on floats has a row', () => {
    const listed = new Set([...Object.keys(torch.unary), ...Object.keys(torch.binary)]);
    const integerOps = ['not', 'and', 'or', 'xor', 'shl', 'shr', 'mulhi'];
    const ownTests = ['cast', 'bitcast', 'where', 'fma'];
    const missing = opNames.filter((op) => isElementwise(op) && !listed.has(op));
    expect(missing.sort()).toEqual([...integerOps, ...ownTests].sort());
  });
});

describe('floats', () => {
  test('erf equals its everywhere positive series within 4e-15', () => {
    const wrong: number[] = [];
    for (let step = -6500; step <= 6500; step++) {
      const x = step / 1000;
      if (!(Math.abs(erf(x) - series(x)) <= 4e-15 * Math.abs(series(x)))) wrong.push(x);
    }
    expect(wrong).toEqual([]);
  });

  test('f32 results are the double result rounded once; 16-bit ones are rounded from f32', () => {
    const half = fc.nat(0xffff).map(f16FromBits);
    const brain = fc.nat(0xffff).map(bf16FromBits);
    for (const op of ['add', 'mul', 'div', 'atan2', 'pow'] as const) {
      const exact = compileScalar(op, 'f64', 'f64');
      fc.assert(
        fc.property(f32, f32, (a, b) => {
          expect(evaluateScalar(op, [a, b], 'f32', 'f32')).toBe(Math.fround(exact(a, b) as number));
        }),
      );
      const single = compileScalar(op, 'f32', 'f32');
      for (const [dtype, values] of [['f16', half] as const, ['bf16', brain] as const]) {
        const round = compileScalar('cast', 'f32', dtype);
        fc.assert(
          fc.property(values, values, (a, b) => {
            expect(evaluateScalar(op, [a, b], dtype, dtype)).toBe(round(single(a, b)));
          }),
        );
      }
    }
  });

  test('fma on f32 is the exact value rounded once, ties to even', () => {
    const finite = fc.oneof(
      fc.float({ noNaN: true, noDefaultInfinity: true }),
      fc.float({ noNaN: true, min: -2, max: 2 }),
      fc.constantFrom(0, 2 ** -149, 1 + 2 ** -12, 1 + 2 ** -23, -(1 + 2 ** -22), 2 ** -80, -(2 ** -80)),
    );
    fc.assert(
      fc.property(finite, finite, finite, (a, b, c) => {
        const result = evaluateScalar('fma', [a, b, c], 'f32', 'f32') as number;
        fc.pre(Number.isFinite(result) && result !== 0);
        const exact = whole(a) * whole(b) + (whole(c) << 149n);
        const error = distance(whole(result) << 149n, exact);
        single[0] = result;
        const bits = singleBits[0]!;
        for (const neighbour of [bits - 1, bits + 1]) {
          singleBits[0] = neighbour;
          if (!Number.isFinite(single[0])) continue;
          const other = distance(whole(single[0]!) << 149n, exact);
          expect(error < other || (error === other && bits % 2 === 0)).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
    // Rounding to double first loses the last addend and then breaks the tie the wrong way.
    expect(evaluateScalar('fma', [1 + 2 ** -12, 1 + 2 ** -12, 2 ** -80], 'f32', 'f32')).toBe(
      1 + 2 ** -11 + 2 ** -23,
    );
    expect(evaluateScalar('fma', [-1 - 2 ** -12, 1 + 2 ** -12, -(2 ** -80)], 'f32', 'f32')).toBe(
      -1 - 2 ** -11 - 2 ** -23,
    );
    expect(evaluateScalar('fma', [Infinity, 0, 1], 'f32', 'f32')).toBeNaN();
    expect(evaluateScalar('fma', [3e38, 10, -Infinity], 'f32', 'f32')).toBe(-Infinity);
  });

  test('fma on f64 keeps the product exact', () => {
    const x = 1 + 2 ** -30;
    expect(evaluateScalar('fma', [x, x, -(1 + 2 ** -29)], 'f64', 'f64')).toBe(2 ** -60);
    expect(evaluateScalar('fma', [1e300, 1e300, -Infinity], 'f64', 'f64')).toBe(-Infinity);
    expect(evaluateScalar('fma', [1e300, 2, 1], 'f64', 'f64')).toBe(2e300);
    expect(evaluateScalar('fma', [2 ** 512, 2 ** 512, -(2 ** 1023)], 'f64', 'f64')).toBe(2 ** 1023);
    expect(evaluateScalar('fma', [1e200, 1e200, 1], 'f64', 'f64')).toBe(Infinity);
    expect(evaluateScalar('fma', [-0, 1, -0], 'f64', 'f64')).toBe(-0);
    expect(evaluateScalar('fma', [NaN, 1, 1], 'f64', 'f64')).toBeNaN();
  });

  test('comparisons with NaN are false but for ne', () => {
    for (const [op, expected] of [
      ['lt', 0],
      ['le', 0],
      ['eq', 0],
      ['ne', 1],
    ] as const) {
      for (const pair of [
        [NaN, 1],
        [1, NaN],
        [NaN, NaN],
      ]) {
        expect(evaluateScalar(op, pair, 'f32', 'bool')).toBe(expected);
      }
    }
    expect(evaluateScalar('eq', [-0, 0], 'f32', 'bool')).toBe(1);
  });

  test('where takes the chosen operand unchanged', () => {
    const where = compileScalar('where', 'f32', 'f32');
    expect(where(1, -0, NaN)).toBe(-0);
    expect(where(0, -0, NaN)).toBeNaN();
    expect(compileScalar('where', 'i64', 'i64')(0, 1n, 2n)).toBe(2n);
  });

  test('f16 overflows to infinity and underflows gradually', () => {
    expect(evaluateScalar('add', [65504, 16], 'f16', 'f16')).toBe(Infinity);
    expect(evaluateScalar('add', [65504, 15], 'f16', 'f16')).toBe(65504);
    expect(evaluateScalar('div', [2 ** -14, 2], 'f16', 'f16')).toBe(2 ** -15);
    expect(evaluateScalar('div', [2 ** -24, 2], 'f16', 'f16')).toBe(0);
  });
});

describe('integers equal exact arithmetic wrapped to the width', () => {
  type Exact = (a: bigint, b: bigint, bits: bigint) => bigint;
  const laws: Readonly<Record<string, Exact>> = {
    neg: (a) => -a,
    abs: (a) => (a < 0n ? -a : a),
    sign: (a) => (a > 0n ? 1n : a < 0n ? -1n : 0n),
    not: (a) => -a - 1n,
    add: (a, b) => a + b,
    sub: (a, b) => a - b,
    mul: (a, b) => a * b,
    // BigInt division truncates; WGSL gives x/0 = x and x%0 = 0.
    div: (a, b) => (b === 0n ? a : a / b),
    mod: (a, b) => (b === 0n ? 0n : a - b * (a / b)),
    min: (a, b) => (a < b ? a : b),
    max: (a, b) => (a < b ? b : a),
    and: (a, b) => a & b,
    or: (a, b) => a | b,
    xor: (a, b) => a ^ b,
    shl: (a, b, bits) => (shiftOut(b, bits) ? 0n : a * 2n ** b),
    shr: (a, b, bits) => a >> (shiftOut(b, bits) ? bits : b),
    mulhi: (a, b, bits) => (a * b) >> bits,
    lt: (a, b) => (a < b ? 1n : 0n),
    le: (a, b) => (a <= b ? 1n : 0n),
    eq: (a, b) => (a === b ? 1n : 0n),
    ne: (a, b) => (a !== b ? 1n : 0n),
  };
  test.each(Object.keys(laws))('%s', (name) => {
    const op = name as UnaryOp | BinaryOp;
    for (const dtype of integers) {
      const bool = givesBool(op);
      const f = compileScalar(op, dtype, bool ? 'bool' : dtype);
      fc.assert(
        fc.property(integerOf(dtype), integerOf(dtype), (a, b) => {
          const expected = wrapped(dtype, laws[name]!(a, b, bitsOf(dtype)));
          const actual = f(element(dtype, a), element(dtype, b));
          expect(actual, `${op} ${dtype} ${a} ${b}`).toBe(bool ? Number(expected) : element(dtype, expected));
        }),
      );
    }
  });

  test('shifts past the width leave the sign', () => {
    expect(evaluateScalar('shr', [-5, 32], 'i32', 'i32')).toBe(-1);
    expect(evaluateScalar('shr', [-5, -1], 'i32', 'i32')).toBe(-1);
    expect(evaluateScalar('shr', [0xffffffff, 32], 'u32', 'u32')).toBe(0);
    expect(evaluateScalar('shl', [1, 32], 'i32', 'i32')).toBe(0);
  });

  test('mulhi is exact where the product of doubles would round up', () => {
    // The product is one below a multiple of 2³², and too long for a double.
    const [a, b] = [0xfffffffd, 0xaaaaaaab];
    expect(evaluateScalar('mulhi', [a, b], 'u32', 'u32')).toBe(Number((BigInt(a) * BigInt(b)) >> 32n));
    expect(Math.floor((a * b) / 2 ** 32)).not.toBe(Number((BigInt(a) * BigInt(b)) >> 32n));
  });

  test('bool is a one-bit integer', () => {
    const truth = {
      and: [0, 0, 0, 1],
      or: [0, 1, 1, 1],
      xor: [0, 1, 1, 0],
      eq: [1, 0, 0, 1],
      lt: [0, 1, 0, 0],
    } as const;
    for (const op of ['and', 'or', 'xor', 'eq', 'lt'] as const) {
      const f = compileScalar(op, 'bool', 'bool');
      expect([f(0, 0), f(0, 1), f(1, 0), f(1, 1)], op).toEqual(truth[op]);
    }
    expect([0, 1].map((x) => evaluateScalar('not', [x], 'bool', 'bool'))).toEqual([1, 0]);
  });

  test('an op without meaning on a dtype is refused', () => {
    expect(() => compileScalar('exp', 'i32', 'i32')).toThrow(/exp has no meaning on i32/);
    expect(() => compileScalar('and', 'f32', 'f32')).toThrow(/and has no meaning on f32/);
  });
});

describe('casts', () => {
  test('float to integer truncates, saturates, and takes NaN to 0', () => {
    for (const dtype of integers) {
      const [min, max] = integerRange(dtype);
      const f = compileScalar('cast', 'f64', dtype);
      fc.assert(
        fc.property(
          fc.oneof(fc.double({ noNaN: true }), fc.double({ min: -300, max: 70000, noNaN: true })),
          (x) => {
            const whole = x === Infinity ? max : x === -Infinity ? min : BigInt(Math.trunc(x));
            expect(f(x)).toBe(element(dtype, whole < min ? min : whole > max ? max : whole));
          },
        ),
      );
      for (const edge of [Number(max), Number(max) + 1, Number(min), Number(min) - 1]) {
        const exact = BigInt(edge);
        expect(f(edge)).toBe(element(dtype, exact > max ? max : exact < min ? min : exact));
      }
      expect(f(NaN)).toBe(element(dtype, 0n));
      expect(f(-0.5)).toBe(element(dtype, 0n));
    }
  });

  test('integer to integer keeps the low bits', () => {
    for (const from of integers) {
      for (const to of integers) {
        fc.assert(
          fc.property(integerOf(from), (x) => {
            expect(evaluateScalar('cast', [element(from, x)], from, to)).toBe(element(to, wrapped(to, x)));
          }),
          { numRuns: 30 },
        );
      }
    }
  });

  test('integer to float rounds once, ties to even', () => {
    // Through double, the first would round to a tie and then down.
    expect(castWide(2n ** 60n + 2n ** 36n + 1n, 'f32')).toBe(2 ** 60 + 2 ** 37);
    expect(castWide(2n ** 60n + 2n ** 36n, 'f32')).toBe(2 ** 60);
    expect(castWide(-(2n ** 60n) - 2n ** 36n - 1n, 'f32')).toBe(-(2 ** 60) - 2 ** 37);
    expect(castWide(2n ** 53n + 1n, 'f64')).toBe(2 ** 53);
    expect(castWide(65519n, 'f16')).toBe(65504);
    expect(castWide(65520n, 'f16')).toBe(Infinity);
    // 16-bit floats are made of f32, as PyTorch's are: torch.tensor(2**60 + 2**52 + 1).to(torch.bfloat16) is 2**60.
    expect(castWide(2n ** 60n + 2n ** 52n + 1n, 'bf16')).toBe(2 ** 60);
    expect(castWide(2n ** 60n + 2n ** 52n + 2n ** 37n, 'bf16')).toBe(2 ** 60 + 2 ** 53);
    expect(evaluateScalar('cast', [16777217], 'i32', 'f32')).toBe(16777216);
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (x) => {
        const near = BigInt(castWide(x, 'f32') as number);
        const gap = near > x ? near - x : x - near;
        const size = x < 0n ? -x : x;
        const ulp = size < 2n ** 24n ? 1n : 2n ** BigInt(size.toString(2).length - 24);
        expect(gap * 2n <= ulp).toBe(true);
      }),
    );
  });

  test('bool is x ≠ 0, NaN being true, and casts back to 0 and 1', () => {
    expect([0, -0, 0.1, NaN, -Infinity].map((x) => evaluateScalar('cast', [x], 'f32', 'bool'))).toEqual([
      0, 0, 1, 1, 1,
    ]);
    expect([0n, 2n ** 32n].map((x) => evaluateScalar('cast', [x], 'i64', 'bool'))).toEqual([0, 1]);
    for (const to of dtypes) {
      const one = isWide(to) ? [0n, 1n] : [0, 1];
      expect([0, 1].map((x) => evaluateScalar('cast', [x], 'bool', to))).toEqual(one);
    }
  });

  test('narrowing floats rounds to nearest even and keeps NaN', () => {
    expect(evaluateScalar('cast', [2049], 'f32', 'f16')).toBe(2048);
    expect(evaluateScalar('cast', [2051], 'f32', 'f16')).toBe(2052);
    expect(evaluateScalar('cast', [1 + 2 ** -8], 'f32', 'bf16')).toBe(1);
    expect(evaluateScalar('cast', [1e39], 'f64', 'f32')).toBe(Infinity);
    expect(evaluateScalar('cast', [NaN], 'f32', 'bf16')).toBeNaN();
    // By way of f32, where this is a tie: torch.tensor(1 + 2**-11 + 2**-40, dtype=torch.double).half() is 1.
    expect(evaluateScalar('cast', [1 + 2 ** -11 + 2 ** -40], 'f64', 'f16')).toBe(1);
  });

  test('bitcast there and back is the identity', () => {
    const pairs: readonly (readonly [DType, DType])[] = [
      ['i32', 'f32'],
      ['i32', 'u32'],
      ['i64', 'f64'],
      ['u16', 'f16'],
    ];
    for (const [from, to] of [
      ...pairs,
      ['i16', 'bf16'] as const,
      ['u8', 'i8'] as const,
      ['u64', 'i64'] as const,
    ]) {
      fc.assert(
        fc.property(integerOf(from), (x) => {
          const there = evaluateScalar('bitcast', [element(from, x)], from, to);
          fc.pre(!Number.isNaN(there));
          expect(evaluateScalar('bitcast', [there], to, from)).toBe(element(from, x));
        }),
      );
    }
    expect(evaluateScalar('bitcast', [1], 'f32', 'u32')).toBe(0x3f800000);
    expect(evaluateScalar('bitcast', [-2], 'f64', 'u64')).toBe(0xc000000000000000n);
    expect(evaluateScalar('bitcast', [0xc000], 'u16', 'f16')).toBe(-2);
    expect(evaluateScalar('bitcast', [-0], 'bf16', 'i16')).toBe(-32768);
  });
});

describe('monoids', () => {
  test('the identity is neutral on both sides', () => {
    for (const monoid of monoids) {
      const logical = monoid === 'and' || monoid === 'or';
      for (const dtype of dtypes.filter((other) =>
        logical ? other === 'bool' || isInteger(other) : other !== 'bool',
      )) {
        const { identity, combine } = combineMonoid(monoid, dtype);
        fc.assert(
          fc.property(sample(dtype), (x) => {
            // 0 + −0 is 0: a zero's sign is not part of the law.
            expect([combine(identity, x), combine(x, identity)].map((y) => (y === 0 ? 0 : y))).toEqual(
              x === 0 ? [0, 0] : [x, x],
            );
          }),
          { numRuns: 30 },
        );
      }
    }
  });

  test('min and max let NaN win and start at the ends of the range', () => {
    for (const monoid of ['min', 'max'] as const) {
      const { combine } = combineMonoid(monoid, 'f32');
      expect(combine(NaN, 1)).toBeNaN();
      expect(combine(1, NaN)).toBeNaN();
    }
    expect(combineMonoid('min', 'f16').identity).toBe(Infinity);
    expect(combineMonoid('max', 'f64').identity).toBe(-Infinity);
    expect(combineMonoid('min', 'u32').identity).toBe(0xffffffff);
    expect(combineMonoid('max', 'i64').identity).toBe(-(2n ** 63n));
  });

  test('sums round or wrap after each step', () => {
    expect(combineMonoid('sum', 'f16').combine(2048, 1)).toBe(roundF16(2049));
    expect(combineMonoid('sum', 'i8').combine(127, 1)).toBe(fromInteger('i8')(128));
    expect(combineMonoid('sum', 'i8').combine(127, 1)).toBe(-128);
  });
});
