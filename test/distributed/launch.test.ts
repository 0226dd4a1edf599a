// `sinter launch` as someone at a command line meets it: the build, since ranks are threads and processes that load it.

import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { LaunchResult } from '../../src/cli/launch/launch.ts';
import { ownGpu, starterOf } from '../../src/distributed/place.ts';
import { join } from '../../src/distributed/world.ts';
import { sinter } from '../support/cli.ts';
import { mpis } from './mpis.ts';

const main = path.resolve(import.meta.dirname, '../../dist/cli/main.js');
const script = path.join(import.meta.dirname, 'children', 'script.mjs');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-launch-'));
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

interface Launched {
  readonly exit: number;
  readonly out: readonly string[];
  readonly err: string;
  readonly result: LaunchResult;
}

/** Runs `sinter launch --json` in a process of its own. */
function launched(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Launched> {
  return new Promise((done) => {
    const options = { env: { ...process.env, ...env } };
    execFile(process.execPath, [main, 'launch', '--json', ...args], options, (error, stdout, stderr) => {
      const lines = stdout.trimEnd().split('\n');
      const result = JSON.parse(lines.pop()!) as LaunchResult;
      done({ exit: error === null ? 0 : Number(error.code), out: lines.toSorted(), err: stderr, result });
    });
  });
}

const ways = [
  { name: 'threads', engine: 'threads', options: [], env: {}, absent: undefined },
  { name: 'nccl', engine: 'nccl', options: ['--engine', 'nccl'], env: {}, absent: undefined },
  ...mpis.map(({ name, command, args, library, absent }) => ({
    name,
    engine: 'mpi',
    options: ['--engine', 'mpi', '--mpirun', [command, ...args].join(' ')],
    env: { SINTER_MPI: library },
    absent,
  })),
];

describe.each(ways)('by $name', ({ engine, options, env, absent }) => {
  test('a script runs on every rank, with its arguments, and each line has its rank', async ({ skip }) => {
    if (absent !== undefined) return skip(absent);
    const { exit, out, result } = await launched(['-n', '3', ...options, script, '--json', '-n'], env);
    expect(exit).toBe(0);
    expect(out).toEqual([0, 1, 2].map((rank) => `[${rank}] sum 6 of 3 by ${engine}, --json`));
    expect(result).toMatchObject({ ranks: 3, engine, restarts: 0, exit: 0 });
  });

  test('the error of one rank ends all of them', async ({ skip }) => {
    if (absent !== undefined) return skip(absent);
    const { exit, out, err, result } = await launched(['-n', '2', ...options, script, 'throws'], env);
    expect([exit, out]).toEqual([1, []]);
    expect(err).toContain('out of paper');
    expect(result).toMatchObject({ ranks: 2, engine, exit: 1 });
  });

  test('all start again after a rank has died', async ({ skip }) => {
    if (absent !== undefined) return skip(absent);
    const mark = path.join(fs.mkdtempSync(path.join(folder, 'once-')), 'mark');
    const { exit, out, result } = await launched(
      ['-n', '2', '--restarts', '2', '--show', '0', ...options, script, 'once', mark],
      env,
    );
    expect([exit, out]).toEqual([0, [`sum 3 of 2 by ${engine}, once`]]);
    expect(result).toMatchObject({ restarts: 1, exit: 0 });
  });
});

test('a rank that computes without end does not outlive the others', async () => {
  const file = path.join(folder, 'endless.mjs');
  const url = JSON.stringify(String(new URL('children/script.mjs', import.meta.url)));
  fs.writeFileSync(
    file,
    `import { threadId } from 'node:worker_threads';\nif (threadId % 2) throw new Error('gone');\nfor (;;) ${url};\n`,
  );
  const { exit, err } = await launched(['-n', '2', file]);
  expect(exit).toBe(1);
  expect(err).toContain('has failed: gone');
});

test('a script of TypeScript runs', async () => {
  const file = path.join(import.meta.dirname, 'children', 'typed-script.ts');
  const { exit, out, err } = await launched(['-n', '2', '--show', '1', file]);
  expect([exit, out, err]).toEqual([0, ['rank 1 of 2'], '']);
});

test('what is asked wrongly is told', async () => {
  expect((await sinter('launch')).err).toContain('launch: which script?');
  expect((await sinter('launch', 'no.js')).err).toContain('there is no file no.js');
  expect((await sinter('launch', '--engine', 'gloo', script)).err).toContain(
    "--engine: expects threads, mpi or nccl, got 'gloo'",
  );
  expect((await sinter('launch', '--show', '2', script)).err).toContain('--show: expects ranks of 0 to 1');
  const missing = await sinter('launch', '--engine', 'mpi', '--mpirun', 'no-such-mpirun', script);
  expect(missing.err).toContain('no-such-mpirun cannot be started');
  const help = await sinter('launch', '--help');
  expect(help.out).toContain('usage: sinter launch [options] SCRIPT [ARGS]');
  expect(help.out).toContain('--ranks, -n N');
});

test('a process knows by whom it was started', () => {
  expect(starterOf({})).toBe(undefined);
  expect(starterOf({ OMPI_COMM_WORLD_RANK: '1', OMPI_COMM_WORLD_SIZE: '4' })).toMatchObject({
    rank: 1,
    size: 4,
  });
  expect(starterOf({ PMI_RANK: '0', PMI_SIZE: '2' })).toMatchObject({ engine: 'mpi', rank: 0, size: 2 });
  expect(starterOf({ SLURM_PROCID: '0', PMIX_RANK: '3' })).toMatchObject({ rank: 3, size: undefined });
  expect(starterOf({ SLURM_PROCID: '0' })).toBe(undefined);
  expect(starterOf({ RANK: '0', WORLD_SIZE: '1' })).toBe(undefined);
  const torchrun = { RANK: '1', WORLD_SIZE: '2', MASTER_ADDR: 'node0', MASTER_PORT: '29400' };
  const nccl = { engine: 'nccl', rank: 1, size: 2 };
  expect(starterOf(torchrun)).toMatchObject({ ...nccl, store: { host: 'node0', port: 29_400 } });
  const shared = { ...torchrun, TORCHELASTIC_USE_AGENT_STORE: 'True' };
  expect(starterOf(shared)).toMatchObject({ store: { host: 'node0', port: 29_401 } });
  const told = { ...torchrun, SINTER_STORE: '[fd00::1]:4000' };
  expect(starterOf(told)).toMatchObject({ store: { host: 'fd00::1', port: 4000 } });
  const pod = { JOB_COMPLETION_INDEX: '1', WORLD_SIZE: '2', MASTER_ADDR: 'job-0.pods' };
  expect(starterOf(pod)).toMatchObject({ ...nccl, store: { host: 'job-0.pods', port: 29_500 } });
  for (const env of [
    { RANK: '0', WORLD_SIZE: '2' },
    { JOB_COMPLETION_INDEX: '0' },
    { SLURM_PROCID: '1', SLURM_STEP_NUM_TASKS: '2' },
  ])
    expect(() => starterOf(env)).toThrow(expect.objectContaining({ code: 'E_UNSUPPORTED' }));
});

test('a rank takes the GPU of its place on the machine', () => {
  expect(ownGpu({})).toBe('cuda:0');
  expect(ownGpu({ LOCAL_RANK: '3', SLURM_LOCALID: '1' })).toBe('cuda:3');
  expect(ownGpu({ OMPI_COMM_WORLD_LOCAL_RANK: '2' })).toBe('cuda:2');
  expect(ownGpu({ MPI_LOCALRANKID: '1', CUDA_VISIBLE_DEVICES: '4,5' })).toBe('cuda:1');
  expect(ownGpu({ LOCAL_RANK: '1', CUDA_VISIBLE_DEVICES: '5' })).toBe('cuda:0');
});

test('a process that nobody has started as one of several is a world of one rank', async () => {
  const world = await join({ device: false });
  expect(world).toMatchObject({ rank: 0, size: 1, engine: 'alone', description: 'one rank' });
  world.barrier();
  const to = new Uint8Array(2);
  world.communicator.run(
    { action: { kind: 'broadcast', root: 0 }, dtype: 'u8', group: [0] },
    Uint8Array.of(1, 2),
    to,
  );
  expect([...to]).toEqual([1, 2]);
  world.communicator.run(
    { action: { kind: 'permute', pairs: [] }, dtype: 'u8', group: [0] },
    Uint8Array.of(1, 2),
    to,
  );
  expect([...to]).toEqual([0, 0]);
  await expect(join({ device: false, engine: 'threads' })).rejects.toMatchObject({ code: 'E_STATE' });
  world.leave();
  await expect(join({ device: false, engine: 'threads' })).rejects.toMatchObject({ code: 'E_UNSUPPORTED' });
});
