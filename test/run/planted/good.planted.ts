// Planted for hangs.test.ts: what runs after something that hangs.

import { describe, expect, test } from 'vitest';

test('passes', () => {
  expect(1 + 1).toBe(2);
});

describe('a matrix', () => {
  test.each(Array.from({ length: 20 }, (_, i) => i))('case %i', (i) => {
    expect(i).toBeLessThan(20);
  });
});

test('is skipped with its reason', ({ skip }) => skip('the machine lacks something'));
