// Blocks of weights: read as another program reads them (scripts/llm/block-fixtures.py), and written so that what comes
// back is as near as the format's bits allow.

import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { decodeBlocks } from '../../../src/ir/blocks/decode.ts';
import { encodeBlocks } from '../../../src/ir/blocks/encode.ts';
import { blockFacts, blockFormats, type BlockFormat } from '../../../src/ir/blocks/format.ts';
import { checkLaw } from '../../support/property.ts';

const fixtures = JSON.parse(
  readFileSync(new URL('../../fixtures/blocks.json', import.meta.url), 'utf8'),
) as Record<BlockFormat, { bytes: string; values: string }>;

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text, 'base64'));

test.each(blockFormats)('%s blocks stand for the values that another reader finds, to the bit', (format) => {
  const { bytes, values } = fixtures[format];
  const expected = new Float32Array(bytesOf(values).buffer);
  expect(expected.some((value) => value !== 0)).toBe(true);
  expect(decodeBlocks(format, bytesOf(bytes))).toEqual(expected);
});

/** Error of normal values a value, in standard deviations, that a format must keep to. */
const allowed: Readonly<Record<BlockFormat, number>> = {
  q4_0: 0.095,
  q4_1: 0.085,
  q5_0: 0.048,
  q5_1: 0.042,
  q8_0: 0.007,
  q2_k: 0.33,
  q3_k: 0.17,
  q4_k: 0.08,
  q5_k: 0.04,
  q6_k: 0.022,
  iq4_nl: 0.09,
  iq4_xs: 0.09,
  mxfp4: 0.13,
};

/** Sums of twelve uniform values, of a generator that always starts alike. */
function normalValues(count: number): Float32Array {
  let state = 12345;
  const uniform = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return Float32Array.from({ length: count }, () => {
    let sum = -6;
    for (let i = 0; i < 12; i++) sum += uniform();
    return sum;
  });
}

test.each(blockFormats)('%s keeps normal values to within its bits', (format) => {
  const values = normalValues(64 * 256);
  const back = decodeBlocks(format, encodeBlocks(format, values));
  const square = values.reduce((sum, value, i) => sum + (value - back[i]!) ** 2, 0);
  const error = Math.sqrt(square / values.length);
  expect(error).toBeLessThan(allowed[format]);
  // A format that did better than its levels allow would not be the format.
  expect(error).toBeGreaterThan(allowed[format] / 3);
});

/** The furthest that a value may come back, in sizes of the block's largest: half a level and the rounding of scales. */
const furthest: Readonly<Record<BlockFormat, number>> = {
  q4_0: 0.13,
  q4_1: 0.07,
  q5_0: 0.065,
  q5_1: 0.034,
  q8_0: 0.0045,
  q2_k: 0.7,
  q3_k: 0.45,
  q4_k: 0.16,
  q5_k: 0.09,
  q6_k: 0.055,
  iq4_nl: 0.14,
  iq4_xs: 0.19,
  mxfp4: 0.26,
};

test('blocks of any values come back within the format’s largest step', () => {
  const value = fc.oneof(
    fc.float({ min: -8, max: 8, noNaN: true }),
    fc.constantFrom(0, -0, 1, -1, 2 ** -20, 1000, -1000),
  );
  checkLaw(60, fc.array(value, { minLength: 256, maxLength: 256 }), (drawn) => {
    const values = Float32Array.from(drawn);
    for (const format of blockFormats) {
      const back = decodeBlocks(format, encodeBlocks(format, values));
      const { values: each } = blockFacts[format];
      for (let from = 0; from < 256; from += each) {
        const part = values.subarray(from, from + each);
        const size = part.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
        const off = part.reduce((most, x, i) => Math.max(most, Math.abs(x - back[from + i]!)), 0);
        // Halves below 2⁻²⁴ are none: a scale may be off by that much.
        if (!(off <= furthest[format] * size + 1e-4)) throw new Error(`${format}: off by ${off} of ${size}`);
      }
    }
  });
});

test.each(blockFormats)('%s keeps zeros, and one value among zeros', (format) => {
  const { values, bytes } = blockFacts[format];
  const zeros = new Float32Array(2 * values);
  expect(encodeBlocks(format, zeros)).toHaveLength(2 * bytes);
  expect(decodeBlocks(format, encodeBlocks(format, zeros)).every((x) => x === 0)).toBe(true);
  const one = new Float32Array(values);
  one[values - 3] = -2;
  expect(decodeBlocks(format, encodeBlocks(format, one))[values - 3]).toBeCloseTo(-2, 1);
});

test('what is no whole block, no number or no format is refused by name', () => {
  expect(() => decodeBlocks('q4_k', new Uint8Array(143))).toThrow(/143 bytes are no whole blocks of q4_k/);
  expect(() => encodeBlocks('q6_k', new Float32Array(32))).toThrow(/32 values are no whole blocks[^]*q8_0/);
  expect(() => encodeBlocks('q4_0', Float32Array.of(...new Float32Array(31), NaN))).toThrow(
    /value 31 is NaN/,
  );
  expect(() => encodeBlocks('q8_0', new Float32Array(32).fill(1e9))).toThrow(/value 0 is 1000000000/);
  expect(() => decodeBlocks('q9' as BlockFormat, new Uint8Array(1))).toThrow(
    /format must be a block format \(q4_0,.*got 'q9'/,
  );
});

test.each(blockFormats.filter((format) => format !== 'mxfp4'))(
  '%s keeps the largest values finite',
  (format) => {
    const { values } = blockFacts[format];
    const most = format === 'q4_1' || format === 'q5_1' ? 65504 : 65504 * 7.9;
    const x = Float32Array.from({ length: values }, (_, i) => most * (i % 2 === 0 ? 1 : -1));
    expect(decodeBlocks(format, encodeBlocks(format, x)).every(Number.isFinite)).toBe(true);
  },
);
