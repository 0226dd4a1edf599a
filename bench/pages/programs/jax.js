// What one.ts computes, by jax-js (https://jax-js.com), whose own choice of a device is WebAssembly.

import { defaultDevice, init, nn, numpy as np } from '@jax-js/jax';

const device = new URLSearchParams(location.search).get('device');

async function compute() {
  if (device?.startsWith('webgpu')) {
    await init('webgpu');
    defaultDevice('webgpu');
  }
  const x = np.array([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  const w = np.array([
    [0.1, 0.2],
    [0.3, -0.4],
    [-0.5, 0.6],
  ]);
  return nn.softmax(np.matmul(x, w), 1).data();
}

void compute().then((values) => console.log(values));
