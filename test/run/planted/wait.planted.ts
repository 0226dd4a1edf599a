// Planted for hangs.test.ts: waits for an answer that does not come.

import { test } from 'vitest';

test('waits', async () => {
  setInterval(() => {}, 1000);
  await new Promise(() => {});
});
