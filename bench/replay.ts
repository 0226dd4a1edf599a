// Host time per replayed run of programs of 1 to 300 kernels: `npx tsx bench/replay.ts [device] [calls]`. What exactly is measured
// stands in src/cli/bench/replay.ts; `sinter bench` prints the same table.

import { measureReplay, replaySizes, replayTable, type Replay } from '../src/cli/bench/replay.ts';
import { setDevice } from '../src/index.ts';

const [name = 'webgpu:software', calls = '400'] = process.argv.slice(2);
setDevice(name);
const lines: Replay[] = [];
for (const kernels of replaySizes) lines.push(await measureReplay(kernels, Number(calls)));
console.log(replayTable(lines));
