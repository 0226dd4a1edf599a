// Keeps all cores busy beside a command, or until it is stopped: `npx tsx test/support/busy.ts npx vitest run test/tensor`. A number
// in front says how many threads do so: `npx tsx test/support/busy.ts 8 npm run test:full`. Tests that watch time or memory measure
// what they mean when they pass beside it.

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
  const given = process.argv.slice(2);
  const threads = /^\d+$/.test(given[0] ?? '') ? Number(given.shift()) : availableParallelism();
  const [command, ...args] = given;
  const load = `(${burn.toString()})()`;
  const workers = Array.from({ length: threads }, () => new Worker(load, { eval: true }));
  console.log(`${workers.length} threads keep the cores busy`);
  if (command !== undefined)
    spawn(command, args, { stdio: 'inherit' }).on('exit', (code) => process.exit(code ?? 1));
}
