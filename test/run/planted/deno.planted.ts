// Planted for hangs.test.ts: a program of Deno that loops and never answers.

import { spawnSync } from 'node:child_process';
import { test } from 'vitest';
import { findRuntime } from '../../support/runtimes.ts';

test('waits for Deno', ({ skip }) => {
  const deno = findRuntime('Deno');
  if ('absent' in deno) return skip(deno.absent);
  spawnSync(deno.command, ['eval', 'for (;;);']);
});
