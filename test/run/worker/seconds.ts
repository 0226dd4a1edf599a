// The processor time that tests use: that of their own process and of the programs that they start.

import { readFileSync } from 'node:fs';
import { statOf } from '../group.ts';

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
  const now = own + (statOf(process.pid)!.waited + livingTicks(process.pid)) / 100;
  used += Math.max(0, now - seen);
  seen = now;
  return used;
}

/** The time of programs that a process started and that still run, a browser for example, and of theirs. */
function livingTicks(pid: number): number {
  return childrenOf(pid).reduce((sum, child) => sum + (statOf(child)?.ticks ?? 0) + livingTicks(child), 0);
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
