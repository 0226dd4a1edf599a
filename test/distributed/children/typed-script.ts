// A script of TypeScript for `sinter launch`.

import { join, type World } from 'sinter/distributed';

const world: World = await join({ device: false });
world.barrier();
console.log(`rank ${world.rank} of ${world.size}`);
