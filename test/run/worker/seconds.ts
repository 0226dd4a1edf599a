// The processor time that tests use: that of their own process and of the programs that they start.

import { readFileSync } from 'node:fs';

let used = 0;
let seen = 0;

/**
 * Processor seconds of this process, its threads, and the programs that it started and that those started. What a program used
 * that nobody waited for, as the parts of a browser, counts as far as it was seen.
 */
export function processorSeconds(): number {
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1e6;
  if (process.platform !== 'linux') return own;
  const now = own + (ticksOf(process.pid, ended) + livingTicks(process.pid)) / 100;
  used += Math.max(0, now - seen);
  seen = now;
  return used;
}

// Fields of a process behind its name, in hundredths of a second: its own time, and that of the programs that it waited for.
const ended = [13, 14];
const all = [11, 12, ...ended];

function ticksOf(pid: number, fields: readonly number[]): number {
  try {
    const known = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
    return fields.reduce((sum, field) => sum + Number(known[field]), 0);
  } catch {
    return 0; // It has ended.
  }
}

/** The time of programs that a process started and that still run, a browser for example, and of theirs. */
function livingTicks(pid: number): number {
  return childrenOf(pid).reduce((sum, child) => sum + ticksOf(child, all) + livingTicks(child), 0);
}

/** Where the system does not tell them, none. */
function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  } catch {
    return [];
  }
}
