// A script for `sinter launch`: sums ranks, and does what its argument says.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'sinter/distributed';

const world = await join({ device: false });
const [what, file] = process.argv.slice(2);
const to = new Uint8Array(4);
const group = Array.from({ length: world.size }, (_, rank) => rank);
const call = { action: { kind: 'allReduce', monoid: 'sum' }, dtype: 'i32', group };
world.communicator.run(call, new Uint8Array(Int32Array.of(world.rank + 1).buffer), to);
if (what === 'throws' && world.rank === 1) throw new Error('out of paper');
if (what === 'once' && world.rank === 1 && !existsSync(file)) {
  writeFileSync(file, 'was here');
  process.exit(4);
}
if (what === 'loops' && world.rank === 0) for (;;);
world.barrier();
console.log(`sum ${new Int32Array(to.buffer)[0]} of ${world.size} by ${world.engine}, ${what}`);
