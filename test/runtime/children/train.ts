// A process of its own that trains on the default device. argv: 'all' to its end, or 'part' to where a compiler works beside it.

import * as sn from '../../../src/index.ts';
import { device } from '../../../src/tensor/device.ts';

const isWhole = process.argv[2] === 'all';
const step = sn.compile((w: sn.Tensor) => w.sub(w.matmul(w).sub(sn.eye(3)).mul(0.1)));
const start = sn.tensor([0, 1, 2, 3, 4, 5, 6, 7, 8], { dtype: 'f32' }).mul(0.1).reshape([3, 3]);
await start.data();
// Memory that is donated, and that is read as well, is copied on the device, here before there is a compiler.
const sum = sn.compile((x: sn.Tensor, y: sn.Tensor) => x.add(y), { donate: [0] });
const given = sn.ones([3]);
const doubled = await sum(given, given).data();
const engine = async (): Promise<string> => {
  const { kernels } = await sn.profile(() => step(start));
  return [...new Set(kernels.map((kernel) => kernel.engine ?? 'the only one'))].join();
};

const engines = [await engine()];
let w = start;
for (let k = 0; k < 5; k++) w = step(w);
const values = [...(await w.data()), ...doubled];
if (isWhole) {
  await (await device()).settled?.();
  engines.push(await engine());
}
console.log(
  JSON.stringify({
    first: engines[0],
    last: engines.at(-1),
    values: values.map((x) => Number(x).toFixed(4)),
  }),
);
