// One computation of small tensors.

import { setDevice, tensor } from 'sinter';

const device = new URLSearchParams(location.search).get('device');
if (device !== null) setDevice(device);

const x = tensor([
  [1, 2, 3],
  [4, 5, 6],
]);
const w = tensor([
  [0.1, 0.2],
  [0.3, -0.4],
  [-0.5, 0.6],
]);

void x
  .matmul(w)
  .softmax(1)
  .data()
  .then((values) => console.log(values));
