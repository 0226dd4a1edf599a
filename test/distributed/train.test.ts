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
const each = fileURLToPath(new URL('./children/ways.ts', import.meta.url));
const steps = 2;
const run = promisify(execFile);

interface Trained {
  readonly losses: readonly number[];
  readonly bytesByCollective: Readonly<Record<string, number>>;
}

/** The losses of a training by so many threads. Fails where one of them does. */
async function trained(
  ranks: number,
  parallel: string,
  mesh: string,
  layers = 2,
  more: readonly string[] = [],
): Promise<Trained> {
  const own = ['--parallel', parallel, '--mesh', mesh, '--steps', String(steps)];
  own.push('--layers', String(layers), '--device', 'wasm:1', '--json', ...more);
  const launch = [cli, 'launch', '-n', String(ranks), '--engine', 'threads', '--show', '0', script, ...own];
  const { stdout } = await run(process.execPath, launch);
  return JSON.parse(stdout) as Trained;
}

/** What one rank comes to, with so many layers: four are for four stages of a pipeline. */
const alone = new Map<number, Promise<Trained>>();
function oneRank(layers = 2): Promise<Trained> {
  const known = alone.get(layers) ?? trained(1, 'data', '1', layers);
  alone.set(layers, known);
  return known;
}

/** What the ranks of one launch come to in each of these ways, one after the other: so they load and compile once. */
async function trainedEach(
  ranks: number,
  ways: readonly Way[],
  layers = 2,
  engine: readonly string[] = ['--engine', 'threads'],
  env: NodeJS.ProcessEnv = {},
  device = 'wasm:1',
): Promise<ReadonlyMap<string, Pick<Trained, 'losses'>>> {
  const own = [device, String(layers), String(steps), ...ways.map(nameOf)];
  const launch = [cli, 'launch', '-n', String(ranks), ...engine, '--show', '0', each, ...own];
  const { stdout } = await run(process.execPath, launch, { env: { ...process.env, ...env } });
  const lines = stdout.trimEnd().split('\n');
  const made = lines.map((line) => JSON.parse(line) as Pick<Trained, 'losses'> & { readonly way: string });
  return new Map(made.map(({ way, losses }) => [way, { losses }]));
}

async function expectSame(trained: Pick<Trained, 'losses'> | undefined, layers = 2): Promise<void> {
  const { losses: reference } = await oneRank(layers);
  expect(trained?.losses.length).toBe(steps);
  trained!.losses.forEach((loss, i) => {
    expect(Math.abs(loss - reference[i]!) / reference[i]!).toBeLessThan(1e-5);
  });
}

/** A kind of parallelism, and the mesh. */
type Way = readonly [parallel: string, mesh: string];

const nameOf = ([parallel, mesh]: Way): string => `${parallel}:${mesh}`;

const ofTwo: readonly Way[] = [
  ['tensor', '2'],
  ['data', '2'],
  ['fsdp', '2'],
  ['pipeline', '2'],
  ['sequence', '2'],
];
const ofFour: readonly Way[] = [
  ['data', '4'],
  ['fsdp', '4'],
  ['tensor', '4'],
  ['tensor', '2,2'],
  ['pipeline', '2,2'],
  ['sequence', '2,2'],
];

test('one rank learns', async () => {
  const { losses, bytesByCollective } = await oneRank();
  expect(losses.at(-1)).toBeLessThan(losses[0]!);
  expect(Object.values(bytesByCollective).every((bytes) => bytes === 0)).toBe(true);
});

test('two ranks of the example itself, tensor parallel', async () => {
  await expectSame(await trained(2, 'tensor', '2'));
});

/** The tests of ways that one launch trains: the first of them waits for it. */
function trainEach(ways: readonly Way[], launch: () => ReturnType<typeof trainedEach>, layers = 2): void {
  let launched: ReturnType<typeof trainedEach> | undefined;
  test.each(ways)('%s parallel, mesh %s', async (...way) => {
    const all = await (launched ??= launch());
    await expectSame(all.get(nameOf(way)), layers);
  });
}

// Each of these takes many seconds of a processor: they are for the full tier.
describe.each(isQuick ? [] : [2])('%d threads', (ranks) => {
  trainEach(ofTwo.slice(1), () => trainedEach(ranks, ofTwo.slice(1)));
});
describe.each(isQuick ? [] : [4])('%d threads', (ranks) => {
  trainEach(ofFour, () => trainedEach(ranks, ofFour));
});
describe.each(isQuick ? [] : [4])('%d threads, as many stages', (ranks) => {
  const ways: readonly Way[] = [['pipeline', '4']];
  trainEach(ways, () => trainedEach(ranks, ways, ranks), ranks);
});

// Without an MPI mpi.test.ts says what is missing, as a skipped test.
const installed = mpis.filter(({ absent }) => absent === undefined);
describe.each(isQuick ? [] : installed)('$name', ({ command, args, library }) => {
  const engine = ['--engine', 'mpi', '--mpirun', [command, ...args].join(' ')];
  describe.each([
    [2, ofTwo],
    [4, ofFour.filter(([way, mesh]) => mesh === '2,2' && way !== 'sequence')],
  ] as const)('%d processes', (ranks, ways) => {
    trainEach(ways, () => trainedEach(ranks, ways, 2, engine, { SINTER_MPI: library }));
  });
});

const found = standIn();

// Without a compiler for the stand-in nccl.test.ts says what is missing, as skipped tests.
describe.each(isQuick || !found.available ? [] : [found.library])('NCCL, on the stand-in', (library) => {
  const ways = ofTwo.filter(([way]) => way !== 'sequence');
  const env = {
    SINTER_CUDA_DRIVER: library,
    NVRTC_PATH: library,
    SINTER_NCCL: library,
    STANDIN_SETTINGS: 'devices=2',
  };
  trainEach(ways, () => trainedEach(2, ways, 2, ['--engine', 'nccl'], env, 'cuda'));
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
    ): Promise<readonly number[]> => (await trained(ranks, parallel, String(ranks), 2, more)).losses;
    const undisturbed = await losses(2, way, ['--steps', '3']);
    expect(await losses(2, way, saving('run', 2))).toEqual(undisturbed.slice(0, 2));
    fs.cpSync(path.join(root, 'run'), path.join(root, 'copy'), { recursive: true });
    expect(await losses(2, way, saving('run', 3))).toEqual(undisturbed);
    for (const [i, loss] of (await losses(4, 'data', saving('copy', 3))).entries())
      expect(Math.abs(loss - undisturbed[i]!) / undisturbed[i]!).toBeLessThan(1e-5);
    fs.rmSync(root, { recursive: true });
  },
);
