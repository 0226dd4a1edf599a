// Size classes and pools, without a device.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { SlabPool, sizeClass, type Slab } from '../../src/runtime/slabs.ts';

test('a size class holds its size, wastes at most a quarter, and is a multiple of 256', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 32 }), (bytes) => {
      const size = sizeClass(bytes);
      expect(size).toBeGreaterThanOrEqual(bytes);
      expect(size % 256).toBe(0);
      expect(sizeClass(size)).toBe(size);
      if (bytes > 1024) expect(size).toBeLessThanOrEqual(1.25 * bytes);
    }),
    { examples: [[1], [256], [257], [1024], [1025], [1280], [1281], [2 ** 30]] },
  );
});

test('size classes grow with the size', () => {
  fc.assert(
    fc.property(fc.nat({ max: 2 ** 24 }), fc.nat({ max: 2 ** 24 }), (a, b) => {
      expect(sizeClass(Math.min(a, b) + 1)).toBeLessThanOrEqual(sizeClass(Math.max(a, b) + 1));
    }),
  );
});

test('a pool gives back freed slabs of the class, and trims the one freed longest ago', () => {
  let made = 0;
  const retired: number[] = [];
  const pool = new SlabPool(
    (bytes): Slab<undefined> => ({ id: made++, gpu: undefined, bytes }),
    (slab) => retired.push(slab.id),
  );
  const [a, b, c] = [pool.acquire(256), pool.acquire(512), pool.acquire(256)];
  for (const slab of [a, b, c]) pool.release(slab);
  expect(pool.free).toBe(1024);
  expect(pool.acquire(256)).toBe(c); // The one freed last is the likeliest to be in a cache.
  expect(pool.acquire(256)).toBe(a);
  expect(pool.acquire(256).id).toBe(3);
  pool.release(c);
  pool.release(a);
  pool.trim(512);
  expect(retired).toEqual([b.id]);
  expect(pool.free).toBe(512);
  pool.trim(0);
  expect(retired).toEqual([b.id, c.id, a.id]);
  expect([pool.free, pool.count]).toEqual([0, 0]);
});

test('a pool never loses or doubles a byte', () => {
  const command = fc.record({
    take: fc.boolean(),
    pick: fc.nat({ max: 7 }),
    trim: fc.option(fc.nat({ max: 8192 })),
  });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      let made = 0;
      let retired = 0;
      const held: Slab<undefined>[] = [];
      const pool = new SlabPool(
        (bytes): Slab<undefined> => ({ id: made++, gpu: undefined, bytes }),
        () => (retired += 1),
      );
      for (const { take, pick, trim } of commands) {
        if (take) held.push(pool.acquire(256 * (1 + (pick % 4))));
        else if (held.length > 0) pool.release(held.splice(pick % held.length, 1)[0]!);
        if (trim !== null) {
          pool.trim(trim);
          expect(pool.free).toBeLessThanOrEqual(trim);
        }
        expect(new Set(held).size).toBe(held.length);
        expect(made).toBe(held.length + pool.count + retired);
      }
    }),
  );
});
