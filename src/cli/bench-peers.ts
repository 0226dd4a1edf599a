// Other libraries beside ours: runs the driver of a folder that holds their runners, with Sinter as one of them, and compares.
// The driver interleaves the libraries, each in processes of its own, so that a noisy minute hits all alike.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { SinterError } from '../errors.ts';
import { UsageError, type Output } from './command.ts';

export const ours = 'ours-webgpu';

/** Libraries that compute on WebGPU, by the names that the drivers know them by. */
export const rivals: readonly string[] = ['jax-webgpu', 'ort-node-webgpu', 'ort-web-webgpu', 'tfjs-webgpu'];

/** A line of a driver's results: one library, one workload, one repeat. */
interface Result {
  readonly peer: string;
  readonly workload: string;
  readonly median_ms?: number;
  readonly first_ms?: number;
  readonly check?: string;
  readonly error?: string;
}

/** What a library took; times in ms. */
export interface Figure {
  readonly peer: string;
  /** The lowest median over the repeats: on a shared machine noise only adds. */
  readonly median: number;
  readonly first: number;
}

/** A workload measured beside others. */
export interface Comparison {
  readonly workload: string;
  readonly ours: Figure | undefined;
  /** Fastest first. */
  readonly others: readonly Figure[];
  /** The fastest of the others over ours: above 1, ours is faster. */
  readonly ratio: number | undefined;
  /** The same for the lowest first call. */
  readonly firstRatio: number | undefined;
  /** What did not run, or computed something else. */
  readonly problems: readonly string[];
}

/** The libraries to compare with, of a comma-separated list; all that are known without one. Throws UsageError at others. */
export function rivalsOf(names: string | undefined): readonly string[] {
  if (names === undefined) return rivals;
  const wanted = names.split(',').map((name) => name.trim());
  const strange = wanted.find((name) => !rivals.includes(name));
  if (strange === undefined) return wanted;
  throw new UsageError(`--against: there is no '${strange}': expected some of ${rivals.join(', ')}`);
}

/** The driver of a folder. Throws UsageError when there is none. */
export function driverIn(folder: string): string {
  const driver = resolve(folder, 'driver.mjs');
  if (existsSync(driver)) return driver;
  throw new UsageError(`--peers: there is no ${driver}`);
}

/** Runs a driver; rejects when it fails. Libraries that it cannot run are problems of the comparison. */
export async function compareWithPeers(
  driver: string,
  workloads: readonly string[],
  against: readonly string[],
  repeat: number,
  output: Output,
): Promise<Comparison[]> {
  const scratch = await mkdtemp(join(tmpdir(), 'sinter-bench-'));
  try {
    const results = join(scratch, 'results.jsonl');
    const peers = [ours, ...against].join();
    const args = [
      '--peers',
      peers,
      '--workloads',
      workloads.join(),
      '--repeat',
      String(repeat),
      '--out',
      results,
    ];
    await runDriver(driver, args, output);
    const lines = existsSync(results) ? (await readFile(results, 'utf8')).trim().split('\n') : [];
    return compare(
      workloads,
      lines.filter(Boolean).map((line) => JSON.parse(line) as Result),
    );
  } finally {
    await rm(scratch, { recursive: true });
  }
}

/** The module that offers ours to a driver: built, as plain Node has to load it. */
function peerModule(): string {
  const path = import.meta.url.endsWith('.ts') ? '../../bench/peer.mjs' : './bench-peer.js';
  return fileURLToPath(new URL(path, import.meta.url));
}

async function runDriver(driver: string, args: readonly string[], output: Output): Promise<void> {
  const env = { ...process.env, OURS: peerModule() };
  const child = spawn(process.execPath, [driver, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const complaints: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => output.note(line));
  createInterface({ input: child.stderr }).on('line', (line) => complaints.push(line));
  const code = await new Promise<number | null>((done, fail) => {
    child.on('error', fail);
    child.on('close', done);
  });
  if (code === 0) return;
  const reason = complaints.slice(-3).join('\n  ');
  throw new SinterError('E_STATE', `bench: ${driver} ended with ${code}\n  ${reason}`);
}

/** One comparison a workload, in the order asked for. */
export function compare(workloads: readonly string[], results: readonly Result[]): Comparison[] {
  return workloads.map((workload) => {
    const here = results.filter((result) => result.workload === workload);
    const figures = [...new Set(here.map(({ peer }) => peer))].flatMap((peer) => {
      const good = here.filter((result) => result.peer === peer && result.median_ms !== undefined);
      if (good.length === 0) return [];
      const least = (pick: (result: Result) => number | undefined): number =>
        Math.min(...good.map((result) => pick(result) ?? Infinity));
      return [
        { peer, median: least((result) => result.median_ms), first: least((result) => result.first_ms) },
      ];
    });
    const others = figures.filter(({ peer }) => peer !== ours).sort((a, b) => a.median - b.median);
    const own = figures.find(({ peer }) => peer === ours);
    const best = others[0];
    const bothThere = own !== undefined && best !== undefined;
    const problems = here.flatMap(({ peer, error, check }) => {
      if (error !== undefined) return [`${peer}: ${error}`];
      return check === undefined || check === 'ok' ? [] : [`${peer}: its result is off (${check})`];
    });
    return {
      workload,
      ours: own,
      others,
      ratio: bothThere ? best.median / own.median : undefined,
      firstRatio: bothThere ? Math.min(...others.map(({ first }) => first)) / own.first : undefined,
      problems: [...new Set(problems)],
    };
  });
}

/** Undefined for no numbers. */
export function geometricMean(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}
