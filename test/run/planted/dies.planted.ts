// Planted for hangs.test.ts: the worker dies, as it does when a driver crashes.

import { test } from 'vitest';

test('dies', () => {
  process.kill(process.pid, 'SIGKILL');
});
