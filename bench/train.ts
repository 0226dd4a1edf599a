// Workloads on WebAssembly or as compiled C beside PyTorch's on the same number of threads, by turns in one run. See --help.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { prepare } from '../src/cli/bench/measure.ts';
import { setDevice } from '../src/index.ts';
import { openNativeDevice } from '../src/runtime/native/node.ts';
import { registerBackend } from '../src/runtime/registry.ts';
import { timedWorkloads } from '../src/workloads/timed/workloads.ts';
import { environment } from './compare/environment.ts';
import { chosen } from './options.ts';

const help = `usage: npx tsx bench/train.ts [options]

Prints for each workload the least and the median milliseconds of a step here and in PyTorch (bench/train-torch.py), and what part of
PyTorch's time ours is: of the wall clock and of the processor's time.

  --workload NAMES  convTrain,resnetTrain by default; bench/train-torch.py --list prints all
  --device NAME     wasm by default, or native
  --threads N       of both; 2 by default
  --rounds N        turns of each; 20 by default
  --python PATH     python3 by default: one that has torch
  --json            the least milliseconds by the wall clock, as JSON`;

/** Milliseconds of a step, by the wall clock and by the processor's. */
interface Times {
  readonly wall: number[];
  readonly used: number[];
}

const { values } = parseArgs({
  options: {
    workload: { type: 'string', default: 'convTrain,resnetTrain' },
    device: { type: 'string', default: 'wasm' },
    threads: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '20' },
    python: { type: 'string', default: 'python3' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean' },
  },
});

/** A step of PyTorch's, in a process that waits in between. */
function torch(workload: string): {
  readonly step: () => Promise<[number, number]>;
  readonly end: () => void;
} {
  const script = fileURLToPath(new URL('train-torch.py', import.meta.url));
  const child = spawn(values.python, [script, '--workload', workload, '--threads', values.threads], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...environment },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    step: async () => {
      child.stdin.write('\n');
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`${values.python} ended: it needs torch`);
      return value.split(' ').map(Number) as [number, number];
    },
    end: () => child.stdin.end(),
  };
}

async function compared(name: string): Promise<void> {
  const workload = timedWorkloads.find((one) => one.name === name);
  if (workload === undefined) throw new Error(`there is no workload ${name}`);
  const { run } = await prepare(workload);
  const peer = torch(name);
  const [ours, theirs]: [Times, Times] = [
    { wall: [], used: [] },
    { wall: [], used: [] },
  ];
  for (let warm = 0; warm < 5; warm++) await run();
  for (let warm = 0; warm < 5; warm++) await peer.step();
  for (let round = 0; round < Number(values.rounds); round++) {
    const [wall, used] = [performance.now(), process.cpuUsage()];
    await run();
    ours.wall.push(performance.now() - wall);
    const { user, system } = process.cpuUsage(used);
    ours.used.push((user + system) / 1e3);
    const [otherWall, otherUsed] = await peer.step();
    theirs.wall.push(otherWall);
    theirs.used.push(otherUsed);
  }
  peer.end();
  const least = (times: number[]): number => Math.min(...times);
  const median = (times: number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1]!;
  if (values.json) {
    const [sinter, pytorch] = [least(ours.wall), least(theirs.wall)];
    console.log(JSON.stringify({ workload: name, sinter, pytorch }));
    return;
  }
  for (const clock of ['wall', 'used'] as const) {
    const said = [ours, theirs].map(
      (times) => `${least(times[clock]).toFixed(1)} (${median(times[clock]).toFixed(1)})`,
    );
    const ratios = [least, median].map((of) => (of(ours[clock]) / of(theirs[clock])).toFixed(2));
    console.log(`${name} ${clock}: ours ${said[0]}, PyTorch ${said[1]}, ${ratios[0]}x (${ratios[1]}x)`);
  }
}

if (values.help === true) {
  console.log(help);
} else {
  const [device] = chosen('device', values.device, ['wasm', 'native']);
  const [name, threads] = [`${device}:${values.threads}`, Number(values.threads)];
  // Compiled before it runs first: WebAssembly's runs are none of its.
  if (device === 'native')
    registerBackend({ name, open: () => openNativeDevice(name, { threads, wait: true }) });
  setDevice(name);
  for (const workload of values.workload.split(',')) await compared(workload);
  process.exit();
}
