import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  dtypeBytes,
  realDTypes as dtypes,
  integerRange,
  isFloat,
  isInteger,
  isWide,
  type DType,
} from '../../src/ir/dtype.ts';
import {
  bf16FromBits,
  bf16ToBits,
  castArray,
  emptyData,
  f16FromBits,
  f16ToBits,
  hostArray,
  packBytes,
  roundBf16,
  roundF16,
  roundHalfEven,
  sameArray,
  unpackBytes,
  type HostArray,
} from '../../src/ir/value.ts';

const formats = [
  {
    name: 'f16',
    fromBits: f16FromBits,
    toBits: f16ToBits,
    round: roundF16,
    infinity: 0x7c00,
    quietNaN: 0x7e00,
  },
  {
    name: 'bf16',
    fromBits: bf16FromBits,
    toBits: bf16ToBits,
    round: roundBf16,
    infinity: 0x7f80,
    quietNaN: 0x7fc0,
  },
] as const;

describe.each(formats)('$name', ({ fromBits, toBits, round, infinity, quietNaN }) => {
  test('bits → value → bits is the identity on all numbers', () => {
    const wrong: number[] = [];
    for (let bits = 0; bits <= 0xffff; bits++) {
      const nan = (bits & 0x7fff) > infinity;
      if (toBits(fromBits(bits)) !== (nan ? quietNaN : bits)) wrong.push(bits);
    }
    expect(wrong).toEqual([]);
  });

  test('every midpoint of neighbours rounds to the even one, and either side of it to the nearer', () => {
    const wrong: number[] = [];
    for (let bits = 0; bits < infinity; bits++) {
      const low = fromBits(bits);
      // The step past the largest number is where infinity would continue the row.
      const last = bits + 1 === infinity;
      const high = last ? low + (low - fromBits(bits - 1)) : fromBits(bits + 1);
      const above = last ? Infinity : high;
      const middle = (low + high) / 2;
      for (const sign of [1, -1]) {
        const right =
          round(sign * middle) === sign * (bits % 2 === 0 ? low : above) &&
          round(sign * middle * (1 - 2 ** -50)) === sign * low &&
          round(sign * middle * (1 + 2 ** -50)) === sign * above &&
          Object.is(round(sign * low), sign * low);
        if (!right) wrong.push(sign * bits);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('NaN, infinities and signed zeros survive', () => {
    expect(round(NaN)).toBeNaN();
    expect(fromBits(quietNaN)).toBeNaN();
    for (const x of [Infinity, -Infinity, 0, -0]) {
      expect(round(x)).toBe(x);
      expect(fromBits(toBits(x))).toBe(x);
    }
    expect(round(-1e-300)).toBe(-0);
    expect(round(Number.MAX_VALUE)).toBe(Infinity);
  });
});

test('known half-precision bits', () => {
  expect([1, -2, 65504, 2 ** -14, 2 ** -24, 0.333251953125].map(f16ToBits)).toEqual([
    0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x3555,
  ]);
  expect([1, -2, 3.140625, 2 ** -133].map(bf16ToBits)).toEqual([0x3f80, 0xc000, 0x4049, 0x0001]);
});

test('rounding to integers takes ties to even and keeps −0', () => {
  expect([0.5, 1.5, 2.5, -0.5, -1.5, -0, 0.49999999999999994, 2 ** 52 + 1].map(roundHalfEven)).toEqual([
    0,
    2,
    2,
    -0,
    -2,
    -0,
    0,
    2 ** 52 + 1,
  ]);
});

/** A random array of any dtype, special values included. */
const anyArray: fc.Arbitrary<HostArray> = fc
  .tuple(fc.constantFrom(...dtypes), fc.array(fc.nat(4), { maxLength: 3 }))
  .chain(([dtype, shape]) => {
    const size = shape.reduce((product, dim) => product * dim, 1);
    const lengths = { minLength: size, maxLength: size };
    if (isFloat(dtype))
      return fc.array(fc.double(), lengths).map((values) => hostArray(dtype, shape, values));
    const [min, max] = integerRange(dtype);
    return fc.array(fc.bigInt({ min, max }), lengths).map((values) => hostArray(dtype, shape, values));
  });

const packedOne = (dtype: DType, value: number | bigint): number[] => [
  ...packBytes(hostArray(dtype, [], [value])),
];

describe('complex host arrays', () => {
  test('hold the parts of each element by turns, and pack to as many bytes', () => {
    const z = hostArray('c64', [2], [1, -2, 0.5, NaN]);
    expect(emptyData('c64', 2)).toEqual(new Float32Array(4));
    expect(emptyData('c128', 2)).toEqual(new Float64Array(4));
    expect(packBytes(z).length).toBe(16);
    expect(sameArray(unpackBytes(packBytes(z), 'c64', [2]), z)).toBe(true);
    expect(() => hostArray('c64', [2], [1, 2])).toThrow(/takes 4 values/);
  });

  test('cast part by part; real dtypes keep the real part, bool asks both', () => {
    const z = hostArray('c64', [3], [1.5, -2, 0, 3, 0, 0]);
    expect([...castArray(z, 'c128').data]).toEqual([1.5, -2, 0, 3, 0, 0]);
    expect([...castArray(z, 'i32').data]).toEqual([1, 0, 0]);
    expect([...castArray(z, 'bool').data]).toEqual([1, 1, 0]);
    expect([...castArray(hostArray('i32', [2], [3, -4]), 'c64').data]).toEqual([3, 0, -4, 0]);
  });
});

describe('host arrays', () => {
  test('packing and unpacking is the identity, at the packed size', () => {
    fc.assert(
      fc.property(anyArray, (array) => {
        const bytes = packBytes(array);
        expect(bytes.length).toBe(array.data.length * dtypeBytes(array.dtype));
        expect(sameArray(unpackBytes(bytes, array.dtype, array.shape), array)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('storage is little-endian', () => {
    expect(packedOne('i32', -2)).toEqual([0xfe, 0xff, 0xff, 0xff]);
    expect(packedOne('f32', 1)).toEqual([0, 0, 0x80, 0x3f]);
    expect(packedOne('f16', 1)).toEqual([0, 0x3c]);
    expect(packedOne('bf16', -2)).toEqual([0, 0xc0]);
    expect(packedOne('bool', 1)).toEqual([1]);
    expect(packedOne('u64', 2n ** 63n)).toEqual([0, 0, 0, 0, 0, 0, 0, 0x80]);
  });

  test('unpacking copies from any offset, ignores padding and reads any non-zero byte as true', () => {
    const bytes = new Uint8Array([9, 1, 0, 0, 0, 2, 0, 0, 0, 7, 7]);
    const array = unpackBytes(bytes.subarray(1), 'i32', [2]);
    bytes.fill(0);
    expect([...array.data]).toEqual([1, 2]);
    expect([...unpackBytes(new Uint8Array([0, 1, 200]), 'bool', [3]).data]).toEqual([0, 1, 1]);
    expect(() => unpackBytes(new Uint8Array(7), 'i32', [2])).toThrow(/i32\[2\] takes 8 bytes, got 7/);
  });

  test('packing does not alias the array', () => {
    const array = hostArray('f32', [1], [1]);
    packBytes(array).fill(0);
    expect(array.data[0]).toBe(1);
  });

  test('NaN payloads survive packing of f32', () => {
    const bytes = new Uint8Array(new Uint32Array([0x7fa12345]).buffer);
    expect(packBytes(unpackBytes(bytes, 'f32', [1]))).toEqual(bytes);
  });

  test('numbers come in as a cast from f64, bigints as a cast from i64', () => {
    expect([...hostArray('u8', [5], [-1, 300, 2.9, NaN, 7]).data]).toEqual([0, 255, 2, 0, 7]);
    expect([...hostArray('u8', [2], [-1n, 300n]).data]).toEqual([255, 44]);
    expect([...hostArray('i64', [2], [1e30, 2n ** 63n]).data]).toEqual([2n ** 63n - 1n, -(2n ** 63n)]);
    expect([...hostArray('f16', [2], [0.1, 1e6]).data]).toEqual([roundF16(0.1), Infinity]);
    expect([...hostArray('bool', [3], [0, 0.5, NaN]).data]).toEqual([0, 1, 1]);
  });

  test('a wrong count is an error that shows the shape', () => {
    expect(() => hostArray('f32', [2, 3], [1])).toThrow(/f32\[2,3\] takes 6 values, got 1/);
    expect(hostArray('f32', [], [1]).data.length).toBe(1);
    expect(hostArray('f32', [2, 0], []).data.length).toBe(0);
  });

  test('fresh data is zero in the memory form of the dtype', () => {
    for (const dtype of dtypes) expect(emptyData(dtype, 2)[1]).toBe(isWide(dtype) ? 0n : 0);
  });

  test('a cast to a wider dtype and back is the identity', () => {
    fc.assert(
      fc.property(anyArray, (array) => {
        const wide = isInteger(array.dtype) ? 'i64' : isFloat(array.dtype) ? 'f64' : 'i8';
        expect(sameArray(castArray(castArray(array, wide), array.dtype), array)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('equality tells apart dtypes, shapes and signed zeros, and takes NaN as equal', () => {
    const array = hostArray('f32', [2], [NaN, 0]);
    expect(sameArray(array, hostArray('f32', [2], [NaN, 0]))).toBe(true);
    expect(sameArray(array, hostArray('f32', [2], [NaN, -0]))).toBe(false);
    expect(sameArray(array, hostArray('f32', [2, 1], [NaN, 0]))).toBe(false);
    expect(sameArray(array, hostArray('f64', [2], [NaN, 0]))).toBe(false);
  });
});
