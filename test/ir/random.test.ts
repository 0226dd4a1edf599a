import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { highProduct, philox4x32, randomWords, type Words4 } from '../../src/ir/interpret/random.ts';

const u32 = fc.oneof(
  fc.nat(0xffffffff),
  fc.constantFrom(0, 1, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff),
);

describe('philox 4x32-10', () => {
  // The known-answer vectors published with Random123.
  const ones = 0xffffffff;
  const vectors: readonly { counter: Words4; key: readonly [number, number]; words: Words4 }[] = [
    { counter: [0, 0, 0, 0], key: [0, 0], words: [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8] },
    {
      counter: [ones, ones, ones, ones],
      key: [ones, ones],
      words: [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
    },
    {
      counter: [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
      key: [0xa4093822, 0x299f31d0],
      words: [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    },
  ];
  test.each(vectors)('gives the published words for counter $counter', ({ counter, key, words }) => {
    expect(philox4x32(counter, key)).toEqual(words);
  });

  test('element i of a stream is word i mod 4 of counter + ⌊i/4⌋', () => {
    fc.assert(
      fc.property(u32, u32, u32, u32, fc.nat(40), (keyLow, keyHigh, low, high, count) => {
        const words = randomWords([keyLow, keyHigh], [low, high], count);
        expect(words.length).toBe(count);
        words.forEach((word, i) => {
          const counter = BigInt.asUintN(64, (BigInt(high) << 32n) + BigInt(low) + BigInt(Math.floor(i / 4)));
          const block = philox4x32(
            [Number(counter & 0xffffffffn), Number(counter >> 32n), 0, 0],
            [keyLow, keyHigh],
          );
          expect(word).toBe(block[i % 4]);
        });
      }),
    );
  });

  test('the counter carries into its high half and wraps past 2⁶⁴', () => {
    const key = [5, 6] as const;
    expect(Array.from(randomWords(key, [0xffffffff, 3], 8).slice(4))).toEqual(philox4x32([0, 4, 0, 0], key));
    expect(Array.from(randomWords(key, [0xffffffff, 0xffffffff], 8).slice(4))).toEqual(
      philox4x32([0, 0, 0, 0], key),
    );
  });

  test('the bits of many words are fair', () => {
    const words = randomWords([1, 2], [0, 0], 20_000);
    for (let bit = 0; bit < 32; bit++) {
      let ones = 0;
      for (const word of words) ones += (word >>> bit) & 1;
      // Five standard deviations of a fair coin; the stream is fixed, so this never flickers.
      expect(Math.abs(ones - 10_000)).toBeLessThan(5 * Math.sqrt(5_000));
    }
  });
});

test('the high product equals the exact one', () => {
  fc.assert(
    fc.property(u32, u32, (a, b) => {
      expect(highProduct(a, b)).toBe(Number((BigInt(a) * BigInt(b)) >> 32n));
    }),
    { numRuns: 1000 },
  );
});
