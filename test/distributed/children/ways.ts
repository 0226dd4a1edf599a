// One rank that trains the transformer of examples/distributed/ in one way of sharing it after the other: a process that has
// loaded and compiled once does so faster. Rank 0 writes a line for each way.
//
// The arguments are the device, the layers, the steps, and for each way `parallel:mesh`.

import { readFileSync } from 'node:fs';
import { join } from 'sinter/distributed';
import { readMesh, small, train, type Parallel } from '../../../examples/distributed/transformer.ts';

const [device, layers, steps, ...ways] = process.argv.slice(2) as [string, string, string, ...string[]];
const text = readFileSync(new URL('../../../examples/essay.txt', import.meta.url), 'utf8');
const settings = { ...small, text, layers: Number(layers), steps: Number(steps) };

const world = await join({ device });
for (const way of ways) {
  const [parallel, mesh] = way.split(':') as [Parallel, string];
  const losses = await train(settings, readMesh(mesh, parallel), parallel);
  if (world.rank === 0) console.log(JSON.stringify({ way, losses }));
}
world.leave();
