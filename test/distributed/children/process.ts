// One rank of a test, as a process of MPI: plays the scenario that it is given, and writes its outcome to a file of its own in
// a folder. It ends when all others have written theirs.

import { existsSync, renameSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { mpiMember } from '../../../src/distributed/engines/mpi.ts';
import { play, type Rank } from './scenarios.ts';

const [scenario, seed, folder, most] = process.argv.slice(2) as [string, string, string, string];
const { communicator, leave } = await mpiMember({ most: Number(most) });
const { rank, size, description } = communicator;

const fileOf = (other: number): string => path.join(folder, `${other}.json`);
async function others(): Promise<void> {
  const all = Array.from({ length: size }, (_, other) => other).filter(
    (other) => other !== rank && !(other === 2 && scenario.endsWith('leaves')),
  );
  while (!all.every((other) => existsSync(fileOf(other)))) await sleep(5);
}

const own: Rank = { communicator, leave, others };
const outcome = await play(scenario, Number(seed), own).then(
  (value) => ({ value }),
  (error: Error & { readonly code?: string }) => {
    communicator.fail(error);
    return { code: error.code ?? error.name, message: error.message };
  },
);
writeFileSync(`${fileOf(rank)}.part`, JSON.stringify({ ...outcome, description }));
renameSync(`${fileOf(rank)}.part`, fileOf(rank));
await others();
