// Keeps all cores busy beside a command, or until it is stopped: `npx tsx test/support/busy.ts npx vitest run test/tensor`. A number
// in front says how many processes do so: `npx tsx test/support/busy.ts 8 npm run test:full`. Tests that watch time or memory measure
// what they mean when they pass beside it.

import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Arithmetic and garbage, until the process that started it is gone. */
function burn(): void {
  const parent = process.ppid;
  for (let sum = 0; process.ppid === parent;) {
    for (let k = 0; k < 1000; k += 1) {
      sum = Array.from({ length: 1000 }, (_, i) => Math.sqrt(i + sum)).reduce((a, b) => a + b) % 7;
    }
  }
}

const given = process.argv.slice(2);
const count = /^\d+$/.test(given[0] ?? '') ? Number(given.shift()) : availableParallelism();
const [command, ...args] = given;
const busy = Array.from({ length: count }, () =>
  spawn(process.execPath, ['-e', `(${burn.toString()})()`], { stdio: 'ignore' }),
);
console.log(`${count} processes keep the cores busy`);
process.once('exit', () => busy.forEach((each) => each.kill('SIGKILL')));
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.once(signal, () => process.exit(code));
if (command !== undefined)
  spawn(command, args, { stdio: 'inherit' }).on('exit', (code) => process.exit(code ?? 1));
