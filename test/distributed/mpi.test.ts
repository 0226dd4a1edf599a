// Collectives of each MPI that is installed, against the same reference as those of threads, and what becomes of the others
// where one rank does something else, does not come, or ends.

import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { seed } from '../support/property.ts';
import { builtChild } from './built.ts';
import { mpis, type InstalledMpi } from './mpis.ts';

const child = fileURLToPath(await builtChild('process'));

interface Outcome {
  readonly value?: unknown;
  readonly code?: string;
  readonly message?: string;
  readonly description?: string;
}

interface Played {
  readonly outcomes: readonly (Outcome | undefined)[];
  readonly exit: number | null;
  readonly said: string;
}

/** Plays a scenario on four processes; gives the outcome of each that had one. */
async function onProcesses(
  { command, args, library }: InstalledMpi,
  scenario: string,
  given = 1,
  { env = {}, most = 2 ** 30 }: { readonly env?: NodeJS.ProcessEnv; readonly most?: number } = {},
): Promise<Played> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-mpi-'));
  try {
    const program = [process.execPath, child, scenario, String(given), folder, String(most)];
    const started = spawn(command, [...args, '-n', '4', ...program], {
      env: { ...process.env, SINTER_MPI: library, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', (text) => (said += String(text)));
    const exit = await new Promise<number | null>((resolve) => started.once('close', resolve));
    const outcomes = [0, 1, 2, 3].map((rank) => {
      const file = path.join(folder, `${rank}.json`);
      return fs.existsSync(file) ? (JSON.parse(fs.readFileSync(file, 'utf8')) as Outcome) : undefined;
    });
    return { outcomes, exit, said };
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

const reduceOf16 = 'allReduce sum of f32, 16 bytes, over ranks 0,1,2,3';

describe.each(mpis)('$name', (mpi) => {
  test('every action on every dtype over every group gives what the reference gives', async ({ skip }) => {
    if (mpi.absent !== undefined) return skip(mpi.absent);
    const { outcomes, exit, said } = await onProcesses(mpi, 'every', seed);
    expect([exit, said]).toEqual([0, '']);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ value: 5 * (11 + 12 * 15) });
    expect(outcomes[0]!.description).toContain(mpi.name);
  });

  test('blocks that are combined or moved in pieces do, too', async ({ skip }) => {
    if (mpi.absent !== undefined) return skip(mpi.absent);
    const whole = await onProcesses(mpi, 'large', seed);
    const inPieces = await onProcesses(mpi, 'large', seed, { most: 100_000 });
    for (const { outcomes, exit } of [whole, inPieces]) {
      for (const outcome of outcomes) expect(outcome).toMatchObject({ value: 4 * 2 * 9 });
      expect(exit).toBe(0);
    }
  });

  for (const [what, said] of [
    ['another action', 'allGather of f32, 4 bytes, over ranks 0,1,2,3'],
    ['another size', 'allReduce sum of f32, 32 bytes, over ranks 0,1,2,3'],
    ['another dtype', 'allReduce sum of i32, 16 bytes, over ranks 0,1,2,3'],
    ['another monoid', 'allReduce max of f32, 16 bytes, over ranks 0,1,2,3'],
  ] as const)
    test(`one rank that calls ${what} is an error on all ranks`, async ({ skip }) => {
      if (mpi.absent !== undefined) return skip(mpi.absent);
      const { outcomes } = await onProcesses(mpi, `later: ${what}`);
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ code: 'E_COLLECTIVE' });
        expect(outcome!.message).toContain(`rank 2 calls ${said}`);
        expect(outcome!.message).toContain(`rank 0,1,3 calls ${reduceOf16}`);
      }
    });

  for (const phase of ['first', 'later'])
    for (const [what, said] of [
      ['wrong blocks', 'rank 2: allReduce sum of f32, 16 bytes, over ranks 0,1,2,3: it takes 16 bytes'],
      ['throws', 'rank 2 has failed: the disk is full'],
      ['leaves', 'rank 2 has ended, and rank'],
    ] as const)
      test(`${phase}, one rank that ${what} ends the waits of all others`, async ({ skip }) => {
        if (mpi.absent !== undefined) return skip(mpi.absent);
        const { outcomes, said: printed } = await onProcesses(mpi, `${phase}: ${what}`);
        for (const rank of [0, 1, 3]) {
          expect(outcomes[rank], printed).toMatchObject({ code: 'E_COLLECTIVE' });
          expect(outcomes[rank]!.message).toContain(said);
        }
      });

  test('a rank that exits ends all of them', async ({ skip }) => {
    if (mpi.absent !== undefined) return skip(mpi.absent);
    const { outcomes, exit } = await onProcesses(mpi, 'later: exits');
    expect(exit).not.toBe(0);
    expect(outcomes[2]).toBe(undefined);
  });

  test('ranks that do not come in time are named, with the collective', async ({ skip }) => {
    if (mpi.absent !== undefined) return skip(mpi.absent);
    const env = { SINTER_COLLECTIVE_TIMEOUT: '10' };
    const { outcomes, said } = await onProcesses(mpi, 'first: does not come', 1, { env });
    for (const outcome of [outcomes[0], outcomes[1], outcomes[3]])
      expect(outcome, said).toMatchObject({
        code: 'E_COLLECTIVE',
        message: expect.stringContaining(`rank 2 has not come to ${reduceOf16}, within 10 s`) as string,
      });
    const mixed = await onProcesses(mpi, 'first: another group', 1, { env });
    for (const outcome of mixed.outcomes) expect(outcome).toMatchObject({ code: 'E_COLLECTIVE' });
    expect(mixed.outcomes[0]!.message).toMatch(/rank [23] has not come to allReduce/);
  });
});
