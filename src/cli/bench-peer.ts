// Sinter as one of several libraries measured side by side by a driver that is not ours: it loads this module in a fresh
// process and asks `peers[name]` for workloads, each with `run` and `output`, and for counters that it reads around a call.

import { setDevice } from '../index.ts';
import { device } from '../tensor/storage/device.ts';
import { timedWorkloads } from '../workloads/timed/workloads.ts';
import { networks } from './bench-networks.ts';
import { prepare, type Prepared } from './bench/measure.ts';

/** Calls of WebGPU so far. */
export interface Counts {
  dispatch: number;
  submit: number;
  pipelines: number;
  copies: number;
  writes: number;
  maps: number;
}

export interface Peer {
  /** What it computes on, in words. */
  readonly device: string;
  readonly counts?: Readonly<Counts>;
  readonly workloads: Readonly<Record<string, () => Promise<Prepared>>>;
}

/** Sinter on each kind of device, by the name that the driver uses. */
export const peers: Readonly<Record<string, () => Promise<Peer>>> = {
  'ours-webgpu': () => onWebGpu(process.env['BENCH_HARDWARE_GPU'] ? 'webgpu' : 'webgpu:software'),
  'ours-wasm-1t': () => onWasm(1),
  'ours-wasm-2t': () => onWasm(2),
};

async function onWebGpu(name: string): Promise<Peer> {
  const counts = await counted();
  setDevice(name);
  const { facts } = await device();
  return { device: `${facts.name}: ${facts.description}`, counts, workloads: all() };
}

async function onWasm(threads: number): Promise<Peer> {
  setDevice(`wasm:${threads}`);
  const { facts } = await device();
  return { device: `${facts.name}: ${facts.description}`, workloads: all() };
}

function all(): Peer['workloads'] {
  const timed = timedWorkloads.map((workload) => [workload.name, () => prepare(workload)] as const);
  return { ...Object.fromEntries(timed), ...networks() };
}

/** Which methods count as what, by class. */
const methods: readonly (readonly [owner: string, method: string, count: keyof Counts])[] = [
  ['GPUComputePassEncoder', 'dispatchWorkgroups', 'dispatch'],
  ['GPUQueue', 'submit', 'submit'],
  ['GPUQueue', 'writeBuffer', 'writes'],
  ['GPUDevice', 'createComputePipeline', 'pipelines'],
  ['GPUDevice', 'createComputePipelineAsync', 'pipelines'],
  ['GPUCommandEncoder', 'copyBufferToBuffer', 'copies'],
  ['GPUBuffer', 'mapAsync', 'maps'],
];

/** Counts calls from now on. */
async function counted(): Promise<Counts> {
  const counts: Counts = { dispatch: 0, submit: 0, pipelines: 0, copies: 0, writes: 0, maps: 0 };
  const { globals } = await import('webgpu');
  const classes = globals as Readonly<Record<string, { readonly prototype: object } | undefined>>;
  for (const [owner, method, count] of methods) {
    const prototype = classes[owner]?.prototype as
      | Record<string, (...args: unknown[]) => unknown>
      | undefined;
    const original = prototype?.[method];
    if (prototype === undefined || original === undefined) continue;
    prototype[method] = function (this: unknown, ...args: unknown[]) {
      counts[count] += 1;
      return original.apply(this, args);
    };
  }
  return counts;
}
