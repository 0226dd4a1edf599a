// Sinter for a driver that measures libraries beside each other: `OURS=<this file> node driver.mjs
// --peers ours-webgpu,…`. The driver loads this module in a fresh process of plain Node and asks
// `peers[name]` for workloads, each with `run` and `output`, and for counts that it reads around a
// call. It takes what `npm run build` makes.

import { built } from './peer/built.mjs';
import { counted } from './peer/counts.mjs';
import { workloads } from './peer/workloads.mjs';

const { setDevice } = await built('dist/index.js');
const { device } = await built('dist/tensor/device.js');

/** Sinter on each kind of device, by the name that the driver uses. */
export const peers = {
  'ours-webgpu': async () => {
    const counts = await counted();
    return { ...(await on(process.env.BENCH_HARDWARE_GPU ? 'webgpu' : 'webgpu:software')), counts };
  },
  'ours-wasm-1t': () => on('wasm:1'),
  'ours-wasm-2t': () => on('wasm:2'),
};

async function on(name) {
  setDevice(name);
  const { facts } = await device();
  return { device: `${facts.name}: ${facts.description}`, workloads: workloads() };
}
