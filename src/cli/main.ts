#!/usr/bin/env node
// The `sinter` program: commands.ts on this process's arguments and streams.

import { runCli } from './commands.ts';

// A reader that has seen enough (`sinter budget 2>&1 | head -1`) is no failure.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });

let live = false;

/** Ends a live line, so that what follows starts on its own. */
function endLiveLine(): void {
  if (live) process.stderr.write('\n');
  live = false;
}

process.exitCode = await runCli(process.argv.slice(2), {
  columns: process.stdout.isTTY ? process.stdout.columns : undefined,
  line: (text) => {
    endLiveLine();
    process.stdout.write(`${text}\n`);
  },
  part: (text) => {
    endLiveLine();
    process.stdout.write(text);
  },
  note: (text) => {
    endLiveLine();
    process.stderr.write(`${text}\n`);
  },
  live: (text) => {
    if (!process.stderr.isTTY) return;
    process.stderr.write(`\r\x1b[K${text.slice(0, process.stderr.columns - 1)}`);
    live = true;
  },
  mark: (text) => {
    if (!process.stderr.isTTY) process.stderr.write(`${text}\n`);
  },
});
endLiveLine();
