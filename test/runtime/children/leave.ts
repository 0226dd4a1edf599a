// A process of its own that leaves with work in flight. argv: how it leaves.

import { Worker, isMainThread } from 'node:worker_threads';
import { openWebGpu } from '../../../src/runtime/webgpu/open.ts';
import { bytesOf, floatsOf, mapProgram, ramp } from '../programs.ts';

const way = process.argv[2];
if (way === 'worker' && isMainThread) {
  // A worker's process.env is a copy that C code never sees; and Node 20 needs tsx registered inside the worker.
  const source = `import('tsx/esm/api').then(({ register }) => { register(); return import(${JSON.stringify(import.meta.url)}); })`;
  const worker = new Worker(source, { eval: true, argv: ['inside'] });
  worker.on('exit', (code) => (process.exitCode = code));
} else {
  const device = await openWebGpu('webgpu:software');
  const count = 1 << 20;
  const x = device.allocate(4 * count);
  const y = device.allocate(4 * count);
  device.write(x, bytesOf(ramp(count)));
  const work = device.load(mapProgram('work', count, 'exp(tanh(v * 0.001)) * 0.0 + v + 1.0'));
  work.run([x], [y], []);
  console.log(floatsOf(await device.read(y, 8)).join());
  for (let k = 0; k < 20; k++) work.run([x], [y], []);
  const unfinished = device.load(mapProgram('unfinished', count, 'log(v + 1.0)'));
  unfinished.run([x], [y], []);
  void device.read(y, 4 * count).catch(() => undefined);
  if (way === 'exit') process.exit(0);
  if (way === 'throw') throw new Error('on purpose');
  if (way === 'destroy') device.destroy();
  // Otherwise: just end.
}
