// Times allReduce sums of f32 and prints them: `{"bytes": 4, "us": …}` for each size. Run by hand, with two ranks.

import { mpiMember } from '../../../src/distributed/engines/mpi.ts';
import { threadMember } from '../../../src/distributed/engines/threads.ts';
import { startThreads } from '../../../src/distributed/engines/threads-start.ts';

const what = process.argv[2] ?? 'thread';
if (what === 'start') {
  await startThreads(2, new URL(import.meta.url), () => ({ argv: ['thread'] })).ended;
} else {
  const { communicator, leave } = threadMember() ?? (await mpiMember());
  const group = Array.from({ length: communicator.size }, (_, rank) => rank);
  const call = { action: { kind: 'allReduce', monoid: 'sum' }, dtype: 'f32', group } as const;
  for (const [bytes, turns] of [
    [4, 2000],
    [65_536, 500],
    [2 ** 22, 40],
  ] as const) {
    const [from, to] = [new Uint8Array(bytes), new Uint8Array(bytes)];
    const times: number[] = [];
    for (let batch = 0; batch < 8; batch++) {
      const start = performance.now();
      for (let turn = 0; turn < turns; turn++) communicator.run(call, from, to);
      times.push(((performance.now() - start) / turns) * 1000);
    }
    if (communicator.rank === 0)
      console.log(JSON.stringify({ bytes, us: Math.min(...times), all: times.map(Math.round) }));
  }
  leave();
}
