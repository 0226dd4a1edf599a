// Planted for hangs.test.ts: waits for a program that never ends, such as a compiler that reads what nobody writes.

import { spawnSync } from 'node:child_process';
import { test } from 'vitest';

test('waits for a program', () => {
  spawnSync(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
});
