// Sinter for a driver that measures libraries beside each other: `OURS=<this file> node driver.mjs
// --peers ours-webgpu,…`. The driver loads this module in a fresh process of plain Node and asks
// `peers[name]` for workloads, each with `run` and `output`, and for counts that it reads around a
// call. It takes what `npm run build` makes.

import { built } from './peer/built.mjs';
import { counted } from './peer/counts.mjs';
import { workloads } from './peer/workloads.mjs';

const { setDevice } = await built('dist/index.js');
const { device } = await built('dist/tensor/device.js');
const { registerBackend } = await built('dist/runtime/registry.js');

/** Sinter on each kind of device, by the name that the driver uses. */
export const peers = {
  'ours-webgpu': async () => {
    const counts = await counted();
    return { ...(await on(process.env.BENCH_HARDWARE_GPU ? 'webgpu' : 'webgpu:software')), counts };
  },
  'ours-wasm-1t': () => on('wasm:1'),
  'ours-wasm-2t': () => on('wasm:2'),
  'ours-native-1t': () => compiled(1),
  'ours-native-2t': () => compiled(2),
};

/** The native device on which no run is WebAssembly's: what is timed is the machine's code from the first run on. */
async function compiled(threads) {
  const { openNativeDevice } = await built('dist/runtime/native/node.js');
  const name = `native:${threads}`;
  registerBackend({ name, open: () => openNativeDevice(name, { threads, wait: true }) });
  return on(name);
}

async function on(name) {
  setDevice(name);
  const { facts } = await device();
  return { device: `${facts.name}: ${facts.description}`, workloads: workloads() };
}
