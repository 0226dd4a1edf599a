// Runs the driver of a folder that holds runners of other libraries, with Sinter as one of them.
// The driver runs the libraries by turns, each workload in a process of its own, so that a noisy
// minute slows all of them alike. Takes what to run; gives the lines that the driver wrote.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Result } from './comparison.ts';
import { environment } from './environment.ts';

export interface DriverRun {
  /** Libraries, ours among them, by the names that the driver knows them by. */
  readonly peers: readonly string[];
  /** By the names that the driver knows them by. */
  readonly workloads: readonly string[];
  readonly repeat: number;
  /** Seconds that one library may take for one workload; the driver's own limit by default. */
  readonly timeout?: number;
}

/** The driver of a folder. Throws where there is none. */
export function driverIn(folder: string): string {
  const driver = resolve(folder, 'driver.mjs');
  if (existsSync(driver)) return driver;
  throw new Error(`there is no ${driver}`);
}

/** Rejects when the driver fails. A library that it cannot run is a line with an error. */
export async function runDriver(
  driver: string,
  { peers, workloads, repeat, timeout }: DriverRun,
  note: (line: string) => void,
): Promise<Result[]> {
  const scratch = await mkdtemp(join(tmpdir(), 'sinter-compare-'));
  try {
    const results = join(scratch, 'results.jsonl');
    const options = {
      peers: peers.join(),
      workloads: workloads.join(),
      repeat: String(repeat),
      out: results,
      ...(timeout !== undefined && { 'timeout-ms': String(1000 * timeout) }),
    };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    await finished(driver, args, note);
    const lines = existsSync(results) ? (await readFile(results, 'utf8')).trim().split('\n') : [];
    return lines.filter(Boolean).map((line) => JSON.parse(line) as Result);
  } finally {
    await rm(scratch, { recursive: true });
  }
}

/** What the driver loads as our library. */
const peerModule = fileURLToPath(new URL('../peer.mjs', import.meta.url));

async function finished(
  driver: string,
  args: readonly string[],
  note: (line: string) => void,
): Promise<void> {
  const env = { ...process.env, ...environment, OURS: peerModule };
  const child = spawn(process.execPath, [driver, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const complaints: string[] = [];
  createInterface({ input: child.stdout }).on('line', note);
  createInterface({ input: child.stderr }).on('line', (line) => complaints.push(line));
  const code = await new Promise<number | null>((done, fail) => {
    child.on('error', fail);
    child.on('close', done);
  });
  if (code === 0) return;
  throw new Error(`${driver} ended with ${code}\n  ${complaints.slice(-3).join('\n  ')}`);
}
