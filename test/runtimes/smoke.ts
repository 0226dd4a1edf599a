// What every runtime has to get right: the program of the browser tests on each device that it is told of, and a train step that was
// built ahead of time. Goes out: plain numbers, to be compared with those that Node gives.

import { devices, setDevice, tensor } from '../../src/index.ts';
import { compute, computeShared, type Numbers } from '../browser/program.ts';

/** What one device, or the bundle on one target, gave. */
export interface SmokeReport {
  readonly runtime: string;
  /** By device: how it describes itself, and its numbers. */
  readonly devices: Readonly<Record<string, { readonly description: string; readonly numbers: Numbers }>>;
  /** What two threads compute. */
  readonly shared: readonly number[];
  /** Rows of a table, read at ids of 64 bits, by device. */
  readonly rows: Readonly<Record<string, readonly number[]>>;
  /** By target: losses and a weight of the bundle. */
  readonly bundle: Readonly<Record<string, readonly number[]>>;
}

interface Trainable {
  train(inputs: object): Promise<Readonly<Record<string, Float32Array>>>;
  weight(name: string): Promise<Float32Array>;
  dispose(): void;
}
export type Load = (options: object) => Promise<Trainable>;

export interface SmokeChoice {
  readonly runtime: string;
  readonly devices: readonly string[];
  readonly targets: readonly string[];
}

/** Runs everything; rejects with the first failure. */
export async function smoke(
  { runtime, devices: names, targets }: SmokeChoice,
  load: Load,
): Promise<SmokeReport> {
  const reports = await devices();
  const found: Record<string, { description: string; numbers: Numbers }> = {};
  const rows: Record<string, readonly number[]> = {};
  for (const name of names) {
    const report = reports.find((each) => each.name === name);
    if (report?.available !== true) throw new Error(`${runtime} has no ${name}: ${report?.reason}`);
    found[name] = { description: report.description, numbers: await compute(name) };
    setDevice(name);
    const table = tensor([10, 11, 20, 21, 30, 31]).reshape([3, 2]);
    rows[name] = [...((await table.indexSelect(0, tensor([2n, 0n])).data()) as Float32Array)];
  }
  const bundle: Record<string, readonly number[]> = {};
  for (const target of targets) bundle[target] = await trained(load, target);
  return { runtime, devices: found, shared: await computeShared('wasm:2'), rows, bundle };
}

/** The losses of some steps of test/aot/perceptron.ts, and a weight after them. */
export async function trained(load: Load, target: string): Promise<number[]> {
  const model = await load({ target });
  try {
    const images = Float32Array.from({ length: 160 }, (_, i) => Math.sin(i));
    const labels = Int32Array.from({ length: 8 }, (_, i) => i % 4);
    const losses: number[] = [];
    for (let step = 0; step < 5; step++) {
      const { loss } = await model.train({ 'batch.images': images, 'batch.labels': labels, rate: 0.05 });
      losses.push(loss![0]!);
    }
    return [...losses, ...(await model.weight('model.layers.0.weight')).slice(0, 8)];
  } finally {
    model.dispose();
  }
}
