// Planted for hangs.test.ts: a loop on the software device whose condition always holds.

import { test } from 'vitest';
import * as sn from '../../../src/index.ts';

test('waits for a device', async () => {
  sn.setDevice('webgpu:software');
  const last = sn.whileLoop(
    (i: sn.Tensor) => i.ge(0),
    (i: sn.Tensor) => i.add(1).minimum(10),
    sn.tensor(0),
  );
  await last.item();
});
