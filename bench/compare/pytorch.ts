// PyTorch beside the libraries of a driver: a process that measures one workload as the driver does, by its own clock, so that what
// a message between processes costs is not counted. Its result is held to the workload's reference.

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorOf } from '../../src/workloads/timed/references.ts';
import type { TimedWorkload } from '../../src/workloads/timed/workload.ts';
import type { Result } from './comparison.ts';
import { environment } from './environment.ts';

/** PyTorch with so many threads, by the name that results have. */
export function pytorchOn(threads: number): string {
  return `pytorch-${threads}t`;
}

export function isPytorch(peer: string): boolean {
  return peer.startsWith('pytorch-');
}

const script = fileURLToPath(new URL('../train-torch.py', import.meta.url));

/** The workloads that bench/train-torch.py has. Rejects where `python` has no PyTorch. */
export async function workloadsOfPytorch(python: string): Promise<ReadonlySet<string>> {
  return new Set((await saidBy(python, ['--list'])).split('\n'));
}

/** One line of results. What goes wrong is its `error`. */
export async function runPytorch(
  python: string,
  peer: string,
  called: string,
  workload: TimedWorkload,
): Promise<Result> {
  const scratch = await mkdtemp(join(tmpdir(), 'sinter-pytorch-'));
  try {
    const file = join(scratch, 'result.f32');
    const threads = peer.replace(/\D/g, '');
    const args = ['--measure', file, '--workload', workload.name, '--threads', threads];
    const times = JSON.parse(await saidBy(python, args)) as Pick<Result, 'median_ms' | 'min_ms' | 'first_ms'>;
    const bytes = await readFile(file);
    const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
    const isRight = errorOf(values, workload.reference()) <= workload.tolerance;
    return { peer, workload: called, ...times, check: isRight ? 'ok' : 'FAIL' };
  } catch (error) {
    return { peer, workload: called, error: (error as Error).message };
  } finally {
    await rm(scratch, { recursive: true });
  }
}

/** What the script prints. Rejects with its last words where it fails. */
async function saidBy(python: string, args: readonly string[]): Promise<string> {
  const env = { ...process.env, ...environment };
  const child = spawn(python, [script, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, complaints] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text));
  const code = await new Promise<number | null>((done, fail) => {
    child.on('error', fail);
    child.on('close', done);
  });
  if (code === 0) return out.trim();
  throw new Error(`${python} ended with ${code}: ${complaints.trim().split('\n').at(-1) ?? ''}`);
}
