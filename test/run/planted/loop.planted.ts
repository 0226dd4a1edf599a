// Planted for hangs.test.ts: a loop that never gives the thread back, after a test that passes.

import { expect, test } from 'vitest';

test('passes', () => {
  expect(1 + 1).toBe(2);
});

function spin(): never {
  for (;;);
}

test('spins', () => {
  spin();
});
