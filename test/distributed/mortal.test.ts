// A rank dies in each phase of a training: the other hears of it, all start again, and the training goes on from its
// checkpoint as if nothing had been, bit for bit.

import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { isQuick } from '../support/sample.ts';
import { mpis } from './mpis.ts';

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const script = fileURLToPath(new URL('./children/mortal.ts', import.meta.url));
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-mortal-'));
afterAll(() => fs.rmSync(root, { recursive: true, force: true }));

/** How a rank of such an engine dies. */
type Death = 'thread' | 'process';

interface Lived {
  readonly losses: readonly number[];
  readonly restarts: number;
  readonly notes: string;
  /** What ranks that lived on have seen. */
  readonly seen: string;
}

function lived(
  phase: string,
  death: Death,
  options: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Lived> {
  const folder = path.join(fs.mkdtempSync(path.join(root, 'run-')), 'checkpoint');
  const launch = [cli, 'launch', '--json', '-n', '2', '--restarts', '1', '--show', '0', ...options];
  const given = { env: { ...process.env, ...env } };
  return new Promise((done, fail) => {
    execFile(process.execPath, [...launch, script, phase, folder, death], given, (error, stdout, notes) => {
      if (error !== null) return fail(new Error(`${stdout}\n${notes}`, { cause: error }));
      const [losses, result] = stdout
        .trimEnd()
        .split('\n')
        .slice(-2)
        .map((line) => JSON.parse(line) as unknown);
      const { restarts } = result as { readonly restarts: number };
      const seen = fs.existsSync(`${folder}.seen`) ? fs.readFileSync(`${folder}.seen`, 'utf8') : '';
      done({ losses: losses as readonly number[], restarts, notes, seen });
    });
  });
}

const phases = ['saving', 'joining', 'compiling', 'between steps'];
let known: Promise<Lived> | undefined;
const undisturbed = (): Promise<Lived> => (known ??= lived('never', 'thread', [], {}));

test('nobody dies', async () => {
  expect((await undisturbed()).losses).toHaveLength(4);
  expect(await undisturbed()).toMatchObject({ restarts: 0, seen: '' });
});

test.each(isQuick ? phases.slice(0, 1) : phases)('a thread that ends while %s', async (phase) => {
  const { losses, restarts, notes, seen } = await lived(phase, 'thread', [], {});
  expect(seen).toMatch(/^E_COLLECTIVE: .*rank [01] has ended/);
  expect(notes).toMatch(/all ranks start again \(1 of 1\)/);
  expect([losses, restarts]).toEqual([(await undisturbed()).losses, 1]);
});

// mpirun ends the ranks that live on: what they see is told by mpi.test.ts.
describe.each(isQuick ? [] : mpis)('$name', ({ absent, command, args, library }) => {
  test.each([...phases, 'in a collective'])('a process that is killed while %s', async (phase) => {
    // Without an MPI mpi.test.ts says what is missing, as a skipped test.
    if (absent !== undefined) return;
    const options = ['--engine', 'mpi', '--mpirun', [command, ...args].join(' ')];
    const { losses, restarts } = await lived(phase, 'process', options, { SINTER_MPI: library });
    expect([losses, restarts]).toEqual([(await undisturbed()).losses, 1]);
  });
});
