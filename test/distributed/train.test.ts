// Ranks train the transformer of examples/distributed/ together, in every way of sharing it, and come to the losses of one
// rank. Threads always, and each MPI that is installed.

import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { standIn } from '../cuda/standin/standin.ts';
import { isQuick } from '../support/sample.ts';
import { mpis } from './mpis.ts';

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const script = fileURLToPath(new URL('../../examples/distributed/transformer.ts', import.meta.url));
const steps = 2;
const run = promisify(execFile);

interface Trained {
  readonly losses: readonly number[];
  readonly bytesByCollective: Readonly<Record<string, number>>;
}

/** The losses of a training by so many ranks. Fails where a rank does. */
async function trained(
  ranks: number,
  parallel: string,
  mesh: string,
  layers = 2,
  engine: readonly string[] = ['--engine', 'threads'],
  env: NodeJS.ProcessEnv = {},
  device = 'wasm:1',
  more: readonly string[] = [],
): Promise<Trained> {
  const own = ['--parallel', parallel, '--mesh', mesh, '--steps', String(steps)];
  own.push('--layers', String(layers), '--device', device, '--json', ...more);
  const launch = [cli, 'launch', '-n', String(ranks), ...engine, '--show', '0', script, ...own];
  const { stdout } = await run(process.execPath, launch, { env: { ...process.env, ...env } });
  return JSON.parse(stdout) as Trained;
}

/** What one rank comes to, with so many layers: four are for four stages of a pipeline. */
const alone = new Map<number, Promise<Trained>>();
function oneRank(layers = 2): Promise<Trained> {
  const known = alone.get(layers) ?? trained(1, 'data', '1', layers);
  alone.set(layers, known);
  return known;
}

async function expectSame({ losses }: Trained, layers = 2): Promise<void> {
  const { losses: reference } = await oneRank(layers);
  expect(losses.length).toBe(steps);
  losses.forEach((loss, i) => {
    expect(Math.abs(loss - reference[i]!) / reference[i]!).toBeLessThan(1e-5);
  });
}

/** The cheapest first: it is what the quick tier runs. */
const ways: readonly (readonly [ranks: number, parallel: string, mesh: string])[] = [
  [2, 'tensor', '2'],
  [2, 'data', '2'],
  [2, 'fsdp', '2'],
  [4, 'data', '4'],
  [4, 'fsdp', '4'],
  [4, 'tensor', '4'],
  [4, 'tensor', '2,2'],
  [2, 'pipeline', '2'],
  [4, 'pipeline', '2,2'],
  [2, 'sequence', '2'],
  [4, 'sequence', '2,2'],
];
const tried = isQuick ? ways.slice(0, 1) : ways;

test('one rank learns', async () => {
  const { losses, bytesByCollective } = await oneRank();
  expect(losses.at(-1)).toBeLessThan(losses[0]!);
  expect(Object.values(bytesByCollective).every((bytes) => bytes === 0)).toBe(true);
});

test.each(tried)('%d threads, %s parallel, mesh %s', async (ranks, parallel, mesh) => {
  await expectSame(await trained(ranks, parallel, mesh));
});

test.each(isQuick ? [] : [4])('four threads, %d stages of a pipeline', async (stages) => {
  await expectSame(await trained(stages, 'pipeline', '4', stages), stages);
});

// Each of these takes half a minute of a processor: they are for the full tier.
describe.each(isQuick ? [] : mpis)('$name', ({ absent, command, args, library }) => {
  const some = ways.filter(([ranks, way, mesh]) => ranks === 2 || (mesh === '2,2' && way !== 'sequence'));
  test.each(some)('%d processes, %s parallel, mesh %s', async (ranks, parallel, mesh) => {
    // Without an MPI mpi.test.ts says what is missing, as a skipped test.
    if (absent !== undefined) return;
    const engine = ['--engine', 'mpi', '--mpirun', [command, ...args].join(' ')];
    await expectSame(await trained(ranks, parallel, mesh, 2, engine, { SINTER_MPI: library }));
  });
});

const found = standIn();

// Without a compiler for the stand-in nccl.test.ts says what is missing, as skipped tests.
describe.each(isQuick || !found.available ? [] : [found.library])('NCCL, on the stand-in', (library) => {
  const some = ways.filter(([ranks, way]) => ranks === 2 && way !== 'sequence');
  test.each(some)('%d processes, %s parallel, mesh %s', async (ranks, parallel, mesh) => {
    const env = {
      SINTER_CUDA_DRIVER: library,
      NVRTC_PATH: library,
      SINTER_NCCL: library,
      STANDIN_SETTINGS: `devices=${ranks}`,
    };
    await expectSame(await trained(ranks, parallel, mesh, 2, ['--engine', 'nccl'], env, 'cuda'));
  });
});

// mortal.test.ts does the same with a small model, whose ranks die.
test.each(isQuick ? [] : ['fsdp'])(
  'a training of %s goes on from a checkpoint, on another mesh too',
  async (way) => {
    const root = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-train-'));
    const saving = (folder: string, count: number): readonly string[] => [
      '--save',
      path.join(root, folder),
      '--every',
      '1',
      '--steps',
      String(count),
    ];
    const losses = async (
      ranks: number,
      parallel: string,
      more: readonly string[],
    ): Promise<readonly number[]> =>
      (await trained(ranks, parallel, String(ranks), 2, ['--engine', 'threads'], {}, 'wasm:1', more)).losses;
    const undisturbed = await losses(2, way, ['--steps', '3']);
    expect(await losses(2, way, saving('run', 2))).toEqual(undisturbed.slice(0, 2));
    fs.cpSync(path.join(root, 'run'), path.join(root, 'copy'), { recursive: true });
    expect(await losses(2, way, saving('run', 3))).toEqual(undisturbed);
    for (const [i, loss] of (await losses(4, 'data', saving('copy', 3))).entries())
      expect(Math.abs(loss - undisturbed[i]!) / undisturbed[i]!).toBeLessThan(1e-5);
    fs.rmSync(root, { recursive: true });
  },
);
