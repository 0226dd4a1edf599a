// Planted for hangs.test.ts: an error that no test catches.

import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';

test('leaves an error behind', async () => {
  void Promise.reject(new Error('nobody caught this'));
  await sleep(50);
});
