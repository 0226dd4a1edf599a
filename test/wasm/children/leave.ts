// A process of its own that computes on three threads, and leaves. argv: how it leaves.

import { Worker, isMainThread } from 'node:worker_threads';
import { WasmDevice } from '../../../src/runtime/wasm/device.ts';
import { bytesOf, floatsOf, ramp } from '../../runtime/programs.ts';
import { programOf, twicePlusOneSlowly } from '../modules.ts';

const way = process.argv[2];
if (way === 'worker' && isMainThread) {
  // Node 20 needs tsx registered inside the worker.
  const source = `import('tsx/esm/api').then(({ register }) => { register(); return import(${JSON.stringify(import.meta.url)}); })`;
  const worker = new Worker(source, { eval: true, argv: ['inside'] });
  worker.on('exit', (code) => (process.exitCode = code));
} else {
  const groups = 100;
  const device = await WasmDevice.open('wasm:3', { threads: 3 });
  const [x, y] = [device.allocate(4 * groups), device.allocate(4 * groups)];
  device.write(x, bytesOf(ramp(groups)));
  const work = device.load(programOf('twicePlusOne', groups, twicePlusOneSlowly));
  work.run([x], [y], []);
  console.log(`${device.facts.threads} threads: ${floatsOf(await device.read(y, 12)).join()}`);
  if (way === 'exit') process.exit(0);
  if (way === 'throw') throw new Error('on purpose');
  if (way === 'destroy') device.destroy();
  // Otherwise: just end, while workers sleep.
}
