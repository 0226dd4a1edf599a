// Planted for hangs.test.ts: the host's compiler, reading a source that nobody writes.

import { spawn } from 'node:child_process';
import { test } from 'vitest';
import { findCompiler } from '../../support/cpp.ts';

test('waits for a compiler', async ({ skip }) => {
  const compiler = findCompiler();
  if (compiler === undefined) skip('no host C++ compiler');
  const child = spawn(compiler!, ['-x', 'c++', '-', '-o', '/dev/null'], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await new Promise((resolve) => child.once('exit', resolve));
});
