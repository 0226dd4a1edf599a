// Runs the program of the walk on the WebAssembly device while tracer.ts watches: takes the hops as JSON, prints what was seen of
// them as JSON. A process of its own, so that the sources are loaded as they are.

import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import * as sn from '../../../src/index.ts';
import { root } from '../source.ts';
import type { Hop, Message } from './tracer.ts';

const hops = JSON.parse(process.argv[2]!) as readonly Hop[];
await sn.setDevice('wasm');
// What is loaded when it is first asked for is there before the walk.
await sn.ones([2]).add(1).data();
const [x, w, b] = [sn.ones([4, 8]), sn.ones([8, 16]), sn.ones([16])];

const home = pathToFileURL(`${root}src/`).href;
const file = JSON.stringify(new URL('tracer.ts', import.meta.url).href);
const loaded = `import('tsx/esm/api').then(({ register }) => (register(), import(${file})))`;
const tracer = new Worker(loaded, { eval: true, workerData: { hops, home } });
const messages: Message[] = [];
let wake = (): void => undefined;
tracer.on('message', (message: Message) => {
  messages.push(message);
  wake();
});

async function message(): Promise<Message> {
  while (messages.length === 0) await new Promise<void>((resolve) => (wake = resolve));
  return messages.shift()!;
}

const lost: string[] = [];
for (;;) {
  const said = await message();
  if (said.kind === 'ready') break;
  if (said.kind === 'lost') lost.push(`${said.hop.name} ${said.hop.file}: ${said.why}`);
}
const y = x.matmul(w).add(b).relu();
await y.data();
tracer.postMessage('end', []);
const seen = await message();
process.stdout.write(JSON.stringify({ lost, sights: seen.kind === 'seen' ? seen.sights : [] }), () =>
  process.exit(),
);
