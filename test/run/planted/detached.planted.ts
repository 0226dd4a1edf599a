// Planted for hangs.test.ts: a program in a process group of its own, as browsers are, that uses a core without end.

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { test } from 'vitest';

test('waits for a busy program', async () => {
  const child = spawn(process.execPath, ['-e', 'for (;;);'], { detached: true, stdio: 'ignore' });
  writeFileSync(process.env['SINTER_PLANTED_PID']!, String(child.pid));
  await new Promise((resolve) => child.once('exit', resolve));
});
