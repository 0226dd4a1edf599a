// `npx tsx scripts/distributed/mpi-times.ts [--mpirun COMMAND] [--json]`: times collectives of the MPI of this machine, fits a link to two
// sizes of one of them, and compares the others with what sharding/cost.ts says of that link. A ratio above 1 took longer than modelled.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mpiMember } from '../../src/distributed/engines/mpi.ts';
import type { CollectiveOp } from '../../src/ir/ops.ts';
import type { CollectiveAction } from '../../src/runtime/communicator.ts';
import { timeOfCollective, type Link } from '../../src/sharding/cost.ts';
import { table } from '../../src/table.ts';

const { values } = parseArgs({
  options: {
    mpirun: { type: 'string', default: 'mpirun' },
    library: { type: 'string' },
    json: { type: 'boolean', default: false },
    rank: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const usage = `usage: npx tsx scripts/distributed/mpi-times.ts [options]

  --mpirun COMMAND  what starts ranks, with its options (default mpirun)
  --library FILE    the library of that MPI; found by default
  --json            print { link, times } in seconds`;

/** The least time of a collective. */
interface Timed {
  readonly kind: CollectiveOp;
  readonly ranks: number;
  /** As `bytesSent` takes them. */
  readonly bytes: number;
  /** Seconds. */
  readonly time: number;
}

const kinds = ['allReduce', 'allGather', 'reduceScatter', 'allToAll', 'broadcastRank'] as const;
const sizes = [2 ** 12, 2 ** 16, 2 ** 20, 2 ** 22];
/** The link is fitted to these sizes of an allReduce of two ranks, and to an allGather of the first. */
const fitted = [2 ** 12, 2 ** 22] as const;

const actions: Readonly<Record<(typeof kinds)[number], CollectiveAction>> = {
  allReduce: { kind: 'allReduce', monoid: 'sum' },
  allGather: { kind: 'allGather' },
  reduceScatter: { kind: 'reduceScatter', monoid: 'sum' },
  allToAll: { kind: 'allToAll' },
  broadcastRank: { kind: 'broadcast', root: 0 },
};

/** What each rank does: the least of many turns, which rank 0 prints. */
async function timeHere(): Promise<void> {
  const { communicator, leave } = await mpiMember();
  const ranks = communicator.size;
  const group = Array.from({ length: ranks }, (_, rank) => rank);
  const times: Timed[] = [];
  for (const kind of kinds) {
    for (const bytes of sizes) {
      const call = { action: actions[kind], dtype: 'f32', group } as const;
      const from = new Uint8Array(kind === 'allGather' ? bytes / ranks : bytes);
      const to = new Uint8Array(kind === 'reduceScatter' ? bytes / ranks : bytes);
      let least = Infinity;
      for (let turn = 0; turn < (bytes > 2 ** 18 ? 40 : 120); turn++) {
        const start = performance.now();
        communicator.run(call, from, to);
        least = Math.min(least, performance.now() - start);
      }
      times.push({ kind, ranks, bytes, time: least / 1000 });
    }
  }
  if (communicator.rank === 0) console.log(JSON.stringify(times));
  leave();
}

function timeOn(ranks: number): readonly Timed[] {
  const [command, ...args] = values.mpirun.split(' ') as [string, ...string[]];
  const rank = [process.execPath, '--import', 'tsx', fileURLToPath(import.meta.url), '--rank'];
  const env = values.library === undefined ? process.env : { ...process.env, SINTER_MPI: values.library };
  const { stdout, stderr, status } = spawnSync(command, [...args, '-n', String(ranks), ...rank], {
    env,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout) as Timed[];
}

/**
 * The link whose model gives these sums of two ranks, and the small gather of theirs: it has a message less, so what it takes less is
 * that of a message.
 */
function linkOf(times: readonly Timed[]): Link {
  const at = (kind: CollectiveOp, bytes: number): number =>
    times.find((one) => one.kind === kind && one.ranks === 2 && one.bytes === bytes)!.time;
  const [small, large] = fitted;
  // Two ranks send a sum's bytes once, 2·(n − 1)/n, and half of a gather's.
  const bandwidth = (large - small) / (at('allReduce', large) - at('allReduce', small));
  const sum = at('allReduce', small) - small / bandwidth;
  const gather = at('allGather', small) - small / 2 / bandwidth;
  const hop = Math.max(0, sum - gather);
  return { bandwidth, hop, start: Math.max(0, sum - 2 * hop) };
}

if (values.help) {
  console.log(usage);
} else if (values.rank) {
  await timeHere();
} else {
  const times = [2, 4].flatMap(timeOn);
  const link = linkOf(times);
  const compared = times.map((one) => {
    const modelled = timeOfCollective(one.kind, one.ranks, one.bytes, link);
    return { ...one, modelled, ratio: one.time / modelled };
  });
  if (values.json) {
    console.log(JSON.stringify({ link, times: compared }));
  } else {
    console.log(
      `${(link.bandwidth / 1e9).toFixed(2)} GB/s, ${(link.hop * 1e6).toFixed(1)} µs a message, ${(link.start * 1e6).toFixed(1)} µs a start\n`,
    );
    const rows = compared.map(({ kind, ranks, bytes, time, modelled, ratio }) => [
      kind,
      String(ranks),
      String(bytes),
      (time * 1e6).toFixed(0),
      (modelled * 1e6).toFixed(0),
      ratio.toFixed(2),
    ]);
    console.log(table(['kind', 'ranks', 'bytes', 'µs', 'modelled', 'ratio'], rows, [1, 2, 3, 4, 5]));
    const near = compared.filter(({ ratio }) => ratio > 1 / 1.3 && ratio < 1.3).length;
    console.log(`\nwithin 30 %: ${near} of ${compared.length}, of which ${fitted.length + 1} were fitted`);
  }
}
