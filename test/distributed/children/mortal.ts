// A training of two ranks that saves after each step and goes on from what it finds. In the first run one rank dies in the phase
// that it is told; the other notes what it sees of that.

import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import * as sn from 'sinter';
import {
  findSharded,
  fullySharded,
  join,
  loadSharded,
  mesh,
  saveSharded,
  shardTree,
} from 'sinter/distributed';

const [phase, folder, isProcess] = process.argv.slice(2) as [string, string, string];
const mark = `${folder}.dead`;
const wasDead = existsSync(mark);

function die(): void {
  writeFileSync(mark, phase);
  if (isProcess === 'process') process.kill(process.pid, 'SIGKILL');
  else process.exit(9);
}

/** Whether the rank that dies has come to the phase, in the first run. */
const isTime = (now: string, rank: number): boolean => now === phase && rank === 1 && !wasDead;

if (phase === 'joining' && !wasDead) {
  try {
    writeFileSync(mark, phase, { flag: 'wx' });
    die();
  } catch {
    // The other rank is the one that dies.
  }
}

async function train(): Promise<void> {
  const { rank, size } = await join({ device: 'wasm:1' });
  const grid = mesh({ data: size });
  const plan = fullySharded(grid, 'data');
  sn.manualSeed(3);
  let model = shardTree({ w: sn.normal([8, 4]) }, grid, plan);
  const step = sn.compile((before: { readonly w: sn.Tensor }) => {
    if (isTime('compiling', rank)) die();
    const x = sn.normal([16, 8]);
    const { value, grad } = sn.valueAndGrad((at: { readonly w: sn.Tensor }) =>
      x.matmul(at.w).sub(1).square().mean(),
    )(before);
    return { model: { w: before.w.sub(grad.w.mul(0.1)) }, loss: value };
  });
  let losses: readonly number[] = [];
  if ((await findSharded(folder)) !== undefined) {
    const { tree, values } = await loadSharded(folder, model);
    model = tree;
    ({ losses } = values as { readonly losses: readonly number[] });
  }
  for (let done = losses.length; done < 4; done++) {
    if (done === 2 && isTime('between steps', rank)) die();
    if (done === 2 && phase === 'in a collective' && !wasDead) {
      // Rank 1 is killed from outside while it waits for rank 0, which comes late.
      if (rank === 1) {
        writeFileSync(mark, phase);
        spawn('sh', ['-c', `sleep 1; kill -9 ${process.pid}`], { detached: true, stdio: 'ignore' }).unref();
      } else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
    }
    const made = step(model);
    model = made.model;
    losses = [...losses, (await made.loss.item()) as number];
    mkdirSync(folder, { recursive: true });
    const before = readdirSync(folder).length;
    const isWritten = (): boolean => readdirSync(folder).length > before;
    const watch = (): void => void (isWritten() ? die() : setImmediate(watch));
    if (done === 2 && isTime('saving', rank)) setImmediate(watch);
    await saveSharded(folder, model, { values: { losses } });
  }
  if (rank === 0) console.log(JSON.stringify(losses));
}

try {
  await train();
} catch (error) {
  const { code, message } = error as Error & { readonly code?: string };
  appendFileSync(`${folder}.seen`, `${code}: ${message}\n`);
  throw error;
}
