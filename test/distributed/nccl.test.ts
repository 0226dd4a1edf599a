// Collectives between memories of GPUs, on the stand-in of the CUDA driver and of NCCL: against the same reference as those of threads and
// MPI, as steps of compiled programs, and what becomes of the others where one rank does something else, does not come, or ends.

import { spawn, type ChildProcess } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { freePort } from '../../src/cli/launch/port.ts';
import { standIn } from '../cuda/standin/standin.ts';
import { seed } from '../support/property.ts';
import { isQuick } from '../support/sample.ts';
import { builtChild, builtThread } from './built.ts';

const found = standIn();
const child = fileURLToPath(await builtChild('gpu'));
await builtThread('../../src/distributed/engines/board-thread.ts');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-nccl-'));
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

interface Outcome {
  readonly value?: unknown;
  readonly code?: string;
  readonly message?: string;
  readonly description?: string;
}

interface Played {
  readonly outcomes: readonly (Outcome | undefined)[];
  readonly exits: readonly (number | null)[];
  readonly said: string;
}

/** Plays a scenario on four processes; gives the outcome of each that had one. */
async function onGpus(scenario: string, given = 1, env: NodeJS.ProcessEnv = {}): Promise<Played> {
  if (!found.available) throw new Error(found.reason);
  const own = fs.mkdtempSync(path.join(folder, 'play-'));
  const common = {
    ...process.env,
    SINTER_CUDA_DRIVER: found.library,
    NVRTC_PATH: found.library,
    SINTER_NCCL: found.library,
    STANDIN_SETTINGS: 'devices=4',
    STANDIN_NCCL: own,
    WORLD_SIZE: '4',
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: String(await freePort()),
    ...env,
  };
  let said = '';
  const children: ChildProcess[] = [];
  // Ranks wait for the outcomes of all: one that ends without, by itself, would be waited for in vain.
  const end = (rank: number, code: number | null): void => {
    if (code === 0 || fs.existsSync(path.join(own, `${rank}.json`)) || /dies|exits/.test(scenario)) return;
    said += `rank ${rank} ended with ${code}\n`;
    setTimeout(() => children.forEach((one) => one.kill('SIGKILL')), 10_000).unref();
  };
  const exits = [0, 1, 2, 3].map((rank) => {
    const started = spawn(process.execPath, [child, scenario, String(given), own], {
      env: { ...common, RANK: String(rank), LOCAL_RANK: String(rank) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', (text) => (said += String(text)));
    children.push(started);
    return new Promise<number | null>((done) =>
      started.once('close', (code) => {
        end(rank, code);
        done(code);
      }),
    );
  });
  const ended = await Promise.all(exits);
  const outcomes = [0, 1, 2, 3].map((rank) => {
    const file = path.join(own, `${rank}.json`);
    return fs.existsSync(file) ? (JSON.parse(fs.readFileSync(file, 'utf8')) as Outcome) : undefined;
  });
  return { outcomes, exits: ended, said };
}

const reduceOf16 = 'allReduce sum of f32, 16 bytes, over ranks 0,1,2,3';

describe.skipIf(!found.available)(`NCCL${found.available ? '' : `: ${found.reason}`}`, () => {
  test('every action on every dtype over every group gives what the reference gives', async () => {
    const { outcomes, exits, said } = await onGpus('every', seed);
    expect([exits, said]).toEqual([[0, 0, 0, 0], '']);
    // Eight actions are sums and the like of four monoids: of f32 and f64 two, of 16 bits none.
    const trials = 5 * (11 + 6 * 15 + 2 * 11 + 4 * 7);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ value: trials });
    expect(outcomes[0]!.description).toBe('nccl (NCCL 2.23.4, 4 ranks)');
  });

  test('so does what goes from host to host', async () => {
    const { outcomes, exits, said } = await onGpus('host every', seed);
    expect([exits, said]).toEqual([[0, 0, 0, 0], '']);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ value: 5 * (11 + 12 * 15) });
  });

  test('what NCCL combines in another way is refused before anything runs', async () => {
    const { outcomes } = await onGpus('refuses');
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ value: ['E_UNSUPPORTED', 'E_UNSUPPORTED', 'done'] });
  });

  const small = 'programs i32,f16,random 2';
  const large = 'programs bool,i8,u8,i16,u16,u32,i64,u64,bf16,f32,f64,c64,loops,random 12';
  // Work of the stand-in waits until something waits for it, so a wait that is missing shows; `eager` is the other extreme.
  const tried = [
    [small, 'late'],
    [large, 'late'],
    [large, 'at once'],
  ] as const;
  test.each(isQuick ? tried.slice(0, 1) : tried)(
    '%s compute what the interpreter says, %s',
    async (scenario, when) => {
      const settings = `devices=4,eager=${when === 'late' ? 0 : 1}`;
      const { outcomes, exits, said } = await onGpus(scenario, seed, { STANDIN_SETTINGS: settings });
      expect(said).toBe('');
      for (const outcome of outcomes) expect(outcome).toMatchObject({ value: expect.any(Number) as number });
      expect(exits).toEqual([0, 0, 0, 0]);
    },
  );

  // Each of those that follow takes seconds of four processes: they are for the full tier.
  const others = [
    ['another action', 'allGather of f32, 4 bytes, over ranks 0,1,2,3'],
    ['another size', 'allReduce sum of f32, 32 bytes, over ranks 0,1,2,3'],
    ['another dtype', 'allReduce sum of i32, 16 bytes, over ranks 0,1,2,3'],
    ['another product', 'allReduce prod of f32, 16 bytes, over ranks 0,1,2,3'],
  ] as const;
  for (const [what, words] of isQuick ? [] : others)
    test(`one rank that calls ${what} is an error on all ranks`, async () => {
      const { outcomes, said } = await onGpus(`later: ${what}`);
      for (const outcome of outcomes) {
        expect(outcome, said).toMatchObject({ code: 'E_COLLECTIVE' });
        expect(outcome!.message).toContain(`rank 2 calls ${words}`);
        expect(outcome!.message).toContain(reduceOf16);
      }
    });

  const ends = [
    ['dies', 'rank 2 has ended'],
    ['wrong blocks', 'rank 2: allReduce sum of f32, 16 bytes, over ranks 0,1,2,3: it takes 16 bytes'],
    ['throws', 'rank 2 has failed: the disk is full'],
    ['leaves', 'rank 2 has ended, and rank'],
  ] as const;
  for (const phase of isQuick ? [] : ['first', 'later'])
    for (const [what, words] of ends)
      test(`${phase}, one rank that ${what} ends the waits of all others`, async () => {
        const { outcomes, exits, said } = await onGpus(`${phase}: ${what}`);
        for (const rank of [0, 1, 3]) {
          expect(outcomes[rank], said).toMatchObject({ code: 'E_COLLECTIVE' });
          expect(outcomes[rank]!.message).toContain(words);
          expect(exits[rank]).toBe(0);
        }
      });

  test.each(isQuick ? [] : [30])(
    'ranks that do not come within %d s are named, with the collective',
    async (limit) => {
      const env = { SINTER_COLLECTIVE_TIMEOUT: String(limit) };
      const { outcomes, said } = await onGpus('first: does not come', 1, env);
      for (const rank of [0, 1, 3])
        expect(outcomes[rank], said).toMatchObject({
          code: 'E_COLLECTIVE',
          message: expect.stringContaining(
            `rank 2 has not come to ${reduceOf16}, within ${limit} s`,
          ) as string,
        });
      const mixed = await onGpus('first: another group', 1, env);
      for (const outcome of mixed.outcomes) expect(outcome).toMatchObject({ code: 'E_COLLECTIVE' });
      expect(mixed.outcomes[0]!.message).toMatch(/rank [0-3,]+ ha(s|ve) not come to allReduce/);
    },
  );

  test.each(isQuick ? [] : ['0'])('two ranks with the one GPU %s are told so', async (only) => {
    const { outcomes, said } = await onGpus('every', seed, { CUDA_VISIBLE_DEVICES: only });
    for (const outcome of outcomes) expect(outcome, said).toMatchObject({ code: 'E_COLLECTIVE' });
    expect(outcomes.map((outcome) => outcome!.message).join()).toContain('two ranks have one device');
  });
});
