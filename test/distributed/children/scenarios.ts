// What the ranks of a test do, by name. Every rank runs the same function with its own communicator; what it
// returns, or throws, is its outcome.

import { groupOf, meshOf } from '../../../src/ir/mesh/mesh.ts';
import type {
  CollectiveAction,
  CollectiveCall,
  CollectiveMonoid,
  Communicator,
} from '../../../src/runtime/communicator.ts';
import { dtypes, monoidsOf, random, trial } from './reference.ts';

/** One rank of a test. */
export interface Rank {
  readonly communicator: Communicator;
  /** Says that it comes to no further collective. */
  leave(): void;
  /** What it combines; everything by default. */
  readonly combines?: (monoid: CollectiveMonoid, dtype: (typeof dtypes)[number]) => boolean;
  /** Resolves when all others have their outcome. */
  others(): Promise<void>;
}

const allFour = [0, 1, 2, 3];

function actionsOf(dtype: (typeof dtypes)[number], count: number): readonly CollectiveAction[] {
  return [
    ...monoidsOf(dtype).flatMap(
      (monoid) =>
        [
          { kind: 'allReduce', monoid },
          { kind: 'reduceScatter', monoid },
        ] as const,
    ),
    { kind: 'allGather' },
    { kind: 'allToAll' },
    { kind: 'permute', pairs: Array.from({ length: count }, (_, i) => [i, (i + 1) % count] as const) },
    { kind: 'permute', pairs: [[count - 1, 0]] },
    { kind: 'permute', pairs: [] },
    { kind: 'permute', pairs: [[0, 0]] },
    { kind: 'broadcast', root: count - 1 },
  ];
}

/** The groups of rows and columns of a mesh of 2 by 2 that a rank is in, all four, and all four in another order. */
function groupsOf(rank: number): readonly (readonly number[])[] {
  const mesh = meshOf([
    { name: 'data', size: 2 },
    { name: 'model', size: 2 },
  ]);
  const along = mesh.axes.map((axis) => groupOf(mesh, [axis], rank));
  return [...along, allFour, [2, 0, 3, 1], [rank]];
}

function every({ communicator, combines = () => true }: Rank, seed: number): number {
  const next = random(seed);
  let trials = 0;
  for (const dtype of dtypes)
    for (let which = 0; which < 5; which++) {
      const group = groupsOf(communicator.rank)[which]!;
      for (const action of actionsOf(dtype, group.length)) {
        if ('monoid' in action && !combines(action.monoid, dtype)) continue;
        const wrong = trial(communicator, action, dtype, group, next() % 40, next(), next() % 2 === 0);
        if (wrong !== undefined) throw new Error(`seed ${seed}: ${wrong}`);
        trials += 1;
      }
    }
  return trials;
}

/** Blocks that go in pieces. */
function large({ communicator, combines = () => true }: Rank, seed: number): number {
  const next = random(seed);
  let trials = 0;
  for (const dtype of ['f32', 'bf16', 'u8', 'i64'] as const)
    for (const group of [groupsOf(communicator.rank)[0]!, allFour])
      for (const action of actionsOf(dtype, group.length)) {
        if ('monoid' in action && !(action.monoid === 'sum' && combines('sum', dtype))) continue;
        const elements = Math.ceil((280_000 + (next() % 9000)) / { f32: 4, bf16: 2, u8: 1, i64: 8 }[dtype]);
        const wrong = trial(communicator, action, dtype, group, elements, next(), next() % 2 === 0);
        if (wrong !== undefined) throw new Error(`seed ${seed}: ${wrong}`);
        trials += 1;
      }
  return trials;
}

/** The bits that sums of random f32 have, as text: the same on all ranks, and at every run. */
function bits(communicator: Communicator, seed: number): string {
  const next = random(seed + communicator.rank);
  const block = Float32Array.from({ length: 50_000 }, () => next() / 1e5 - 2e4);
  const to = new Uint8Array(block.byteLength);
  communicator.run(call('allReduce'), new Uint8Array(block.buffer), to);
  let hash = 0;
  for (const byte of to) hash = (Math.imul(hash, 31) + byte) | 0;
  return String(hash);
}

function call(kind: 'allReduce' | 'allGather', group: readonly number[] = allFour): CollectiveCall {
  const action: CollectiveAction = kind === 'allGather' ? { kind } : { kind, monoid: 'sum' };
  return { action, dtype: 'f32', group };
}

function reduce({ communicator }: Rank, bytes = 16, group: readonly number[] = allFour): void {
  communicator.run(call('allReduce', group), new Uint8Array(bytes), new Uint8Array(bytes));
}

/** What rank 2 does otherwise than the others. */
const otherwise: Readonly<Record<string, (rank: Rank) => void | Promise<void>>> = {
  'another action': ({ communicator }) =>
    communicator.run(call('allGather'), new Uint8Array(4), new Uint8Array(16)),
  'another size': (rank) => reduce(rank, 32),
  'another dtype': ({ communicator }) =>
    communicator.run({ ...call('allReduce'), dtype: 'i32' }, new Uint8Array(16), new Uint8Array(16)),
  'another monoid': ({ communicator }) =>
    communicator.run(
      { ...call('allReduce'), action: { kind: 'allReduce', monoid: 'max' } },
      new Uint8Array(16),
      new Uint8Array(16),
    ),
  'another product': ({ communicator }) =>
    communicator.run(
      { ...call('allReduce'), action: { kind: 'allReduce', monoid: 'prod' } },
      new Uint8Array(16),
      new Uint8Array(16),
    ),
  'another group': (rank) => reduce(rank, 16, [2, 3]),
  'wrong blocks': ({ communicator }) =>
    communicator.run(call('allReduce'), new Uint8Array(16), new Uint8Array(12)),
  'does not come': ({ others }) => others(),
  leaves: ({ leave }) => leave(),
  throws: () => {
    throw new Error('the disk is full');
  },
  exits: () => process.exit(3),
  dies: () => void process.kill(process.pid, 'SIGKILL'),
};

/** What a rank of this scenario does. */
export async function play(scenario: string, seed: number, rank: Rank): Promise<unknown> {
  const { communicator } = rank;
  if (scenario === 'every') return every(rank, seed);
  if (scenario === 'large') return large(rank, seed);
  if (scenario === 'bits') return bits(communicator, seed);
  const [phase, what] = scenario.split(': ') as [string, string];
  if (phase === 'later') for (let i = 0; i < 5; i++) reduce(rank, 400_000);
  if (communicator.rank === 2) await otherwise[what]!(rank);
  else reduce(rank, 16);
  if (communicator.rank === 2 && what === 'leaves') return 'left';
  // Rank 2 is waited for here at the latest.
  reduce(rank);
  return 'done';
}
