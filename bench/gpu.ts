// `npm run bench:gpu`: how near a GPU's bandwidth and matrix units the generated kernels come. Prints one line of JSON: the bandwidth of a
// plain copy, measured here, and of every workload its time on the device's clock, with the share of that bandwidth or the
// arithmetic a second. Results are checked; a wrong one fails the command. See --help.

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Device } from '../src/runtime/device.ts';
import { setDevice, synchronize } from '../src/index.ts';
import { copyProgram } from '../src/tensor/evaluate/copy.ts';
import { device as chosenDevice } from '../src/tensor/device.ts';
import { fullSizes, gpuWorkloads, smallSizes, type GpuWorkload } from './gpu-workloads.ts';

const help = `usage: npm run bench:gpu -- [options]

Times copies, elementwise, softmax, layer norm, Adam, products and attention on a device, by its own clock, and prints JSON:
copyGBs, and of each workload ms (the median of the rounds), GBs and ofCopy (its share of the copy's bandwidth) or TFLOPs, error.

  --device NAME     the device (default: SINTER_DEVICE, or cuda)
  --workload NAMES  these only, comma separated
  --small           small sizes, to try the command itself on the stand-in
  --rounds N        rounds of each workload (default 5)
  --out FILE        writes the report there too
  --help            this text`;

interface Line {
  readonly name: string;
  readonly about: string;
  readonly ms: number;
  /** Of the fastest round. */
  readonly msMin: number;
  readonly GBs?: number;
  readonly ofCopy?: number;
  readonly TFLOPs?: number;
  readonly error: number;
  readonly ok: boolean;
}

const { values } = parseArgs({
  options: {
    device: { type: 'string' },
    workload: { type: 'string' },
    small: { type: 'boolean' },
    rounds: { type: 'string' },
    out: { type: 'string' },
    help: { type: 'boolean' },
  },
});
if (values.help === true) console.log(help);
else await run();

async function run(): Promise<void> {
  const rounds = Number(values.rounds ?? 5);
  setDevice(values.device ?? (process.env['SINTER_DEVICE'] || 'cuda'));
  const device = await chosenDevice();
  const small = values.small === true;
  const sizes = small ? smallSizes : fullSizes;
  const all = gpuWorkloads(sizes);
  const names = values.workload?.split(',') ?? all.map(({ name }) => name);
  const strange = names.find((name) => !all.some((workload) => workload.name === name));
  if (strange !== undefined) {
    throw new Error(`there is no workload ${strange}: expected ${all.map(({ name }) => name).join(', ')}`);
  }
  console.error(device.facts.description);
  const copyGBs = await copyBandwidth(device, small ? 2 ** 16 : 2 ** 30, rounds);
  console.error(`copy: ${copyGBs.toFixed(0)} GB/s`);
  const lines: Line[] = [];
  const failed: { readonly name: string; readonly error: string }[] = [];
  for (const workload of all.filter(({ name }) => names.includes(name))) {
    let line: Line;
    try {
      line = await time(device, workload, rounds, copyGBs, small ? 0 : 20);
    } catch (error) {
      failed.push({ name: workload.name, error: error instanceof Error ? error.message : String(error) });
      console.error(`${workload.name}: ${failed.at(-1)!.error}`);
      continue;
    }
    lines.push(line);
    const { name, ms, GBs, ofCopy, TFLOPs, ok } = line;
    const reached = TFLOPs === undefined ? `${GBs} GB/s, ${ofCopy} of a copy` : `${TFLOPs} TFLOP/s`;
    console.error(`${name}: ${ms} ms, ${reached}${ok ? '' : ', WRONG'}`);
  }
  const { name, description } = device.facts;
  const text = JSON.stringify({
    device: name,
    description,
    copyGBs: round(copyGBs),
    workloads: lines,
    failed,
  });
  if (values.out !== undefined) writeFileSync(values.out, `${text}\n`);
  console.log(text);
  if (failed.length > 0 || lines.some(({ ok }) => !ok)) process.exitCode = 1;
}

/** GB/s, bytes read and written, of the device's own copy. */
async function copyBandwidth(device: Device, bytes: number, rounds: number): Promise<number> {
  const loaded = device.load(copyProgram(device, bytes));
  const [x, y] = [device.allocate(bytes), device.allocate(bytes)];
  device.write(x, new Uint8Array(bytes));
  const repeat = 10;
  const times: number[] = [];
  for (let i = 0; i <= rounds; i++) {
    const ns = await timed(device, () => loaded.run([x], [y], []), repeat);
    // The first round warms up.
    if (i > 0) times.push(ns / repeat);
  }
  await device.finish();
  for (const held of [x, y]) held.destroy();
  loaded.destroy();
  return (2 * bytes) / Math.min(...times);
}

/** Rounds of as many calls as take `leastMs` together, after a first call, which is checked at the end as well. */
async function time(
  device: Device,
  workload: GpuWorkload,
  rounds: number,
  copyGBs: number,
  leastMs: number,
): Promise<Line> {
  const { name, about, bytes, flops } = workload;
  const { step, check, tolerance } = await workload.prepare();
  step();
  await synchronize();
  const once = await timed(device, step, 1);
  const repeat = Math.min(100, Math.max(1, Math.ceil((1e6 * leastMs) / Math.max(once, 1))));
  const times: number[] = [];
  for (let i = 0; i <= rounds; i++) {
    const ns = await timed(device, step, repeat);
    if (i > 0) times.push(ns / repeat);
  }
  times.sort((a, b) => a - b);
  const [median, least] = [times[Math.floor(times.length / 2)]!, times[0]!];
  const error = await check();
  return {
    name,
    about,
    ms: round(median / 1e6),
    msMin: round(least / 1e6),
    ...(bytes === undefined ? {} : { GBs: round(bytes / median), ofCopy: round(bytes / median / copyGBs) }),
    ...(flops === undefined ? {} : { TFLOPs: round(flops / median / 1000) }),
    error: round(error),
    ok: error <= tolerance,
  };
}

/** Nanoseconds of `repeat` calls, on the device's clock where it has one. */
async function timed(device: Device, step: () => void, repeat: number): Promise<number> {
  const work = (): void => {
    for (let i = 0; i < repeat; i++) step();
  };
  const since = performance.now();
  const ns = device.measure === undefined ? void work() : await device.measure(work);
  await synchronize();
  return ns ?? 1e6 * (performance.now() - since);
}

/** Four digits. */
function round(value: number): number {
  return Number(value.toPrecision(4));
}
