// One rank of a test, on a thread: plays the scenario that it is given, and posts its outcome.

import { parentPort, workerData } from 'node:worker_threads';
import { ThreadsCommunicator } from '../../../src/distributed/engines/threads.ts';
import { ownSeat } from '../../../src/distributed/engines/threads-memory.ts';
import { play, type Rank } from './scenarios.ts';

const { scenario, seed } = workerData as { readonly scenario: string; readonly seed: number };
const communicator = new ThreadsCommunicator(ownSeat(workerData)!);
const rank: Rank = {
  communicator,
  leave: () => communicator.leave(),
  others: () => new Promise((resolve) => void parentPort!.once('message', () => resolve())),
};
const outcome = await play(scenario, seed, rank).then(
  (value) => ({ value }),
  (error: Error & { readonly code?: string }) => {
    communicator.fail(error);
    return { code: error.code ?? error.name, message: error.message };
  },
);
parentPort!.postMessage(outcome, []);
