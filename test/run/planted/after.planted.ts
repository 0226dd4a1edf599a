// Planted for hangs.test.ts: a loop that begins when the tests are over.

import { expect, test } from 'vitest';

test('passes', () => {
  setTimeout(() => {
    for (;;);
  }, 50);
  expect(1 + 1).toBe(2);
});
