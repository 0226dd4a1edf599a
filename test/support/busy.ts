// Keeps all cores busy beside a command, or until it is stopped: `npx tsx test/support/busy.ts npx vitest run test/tensor`. Tests that
// watch time or memory measure what they mean when they pass beside it.

import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { isMainThread, Worker } from 'node:worker_threads';

/** Arithmetic and garbage, without end. */
function burn(): never {
  for (
    let sum = 0;
    ;
    sum = Array.from({ length: 1000 }, (_, i) => Math.sqrt(i + sum)).reduce((a, b) => a + b) % 7
  );
}

if (isMainThread) {
  const [command, ...args] = process.argv.slice(2);
  const load = `(${burn.toString()})()`;
  const workers = Array.from({ length: availableParallelism() }, () => new Worker(load, { eval: true }));
  console.log(`${workers.length} cores are kept busy`);
  if (command !== undefined)
    spawn(command, args, { stdio: 'inherit' }).on('exit', (code) => process.exit(code ?? 1));
}
