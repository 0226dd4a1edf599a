// Which device tensors are computed on, and the lane of runs waiting for it. Opening a device takes
// time, recording does not wait for it: runs asked for meanwhile are queued, and errors surface
// where data is read. Once the device is open and nothing is queued, a run is dispatched at once.

import { stagesWritten } from '../../dump/stages.ts';
import { DeviceError, showValue } from '../../errors.ts';
import type { Device, DeviceFacts } from '../../runtime/device.ts';
import {
  closeDevice,
  deviceFromEnvironment,
  deviceNames,
  discover,
  isDeviceName,
  openDevice,
  type DeviceReport,
} from '../../runtime/registry.ts';

let chosen: string | undefined;
let open: Device | undefined;
let opening: Promise<Device> | undefined;
let queue: Promise<void> | undefined;

/**
 * Chooses the device for what is computed from now on: `cuda` (`cuda:1` for the second), `webgpu`,
 * `wasm` (`wasm:2` for two threads), `webgpu:software` or `interpreter`; undefined for the default.
 * Values on another device move when they are used. Throws E_DEVICE at other names; that the
 * machine lacks the device shows when data is read.
 */
export function setDevice(name: string | undefined): void {
  checkName('setDevice', name);
  chosen = name;
  open = undefined;
  opening = undefined;
}

function checkName(op: string, name: string | undefined): void {
  if (name === undefined || (typeof name === 'string' && isDeviceName(name))) return;
  const names = deviceNames().map((known) => `'${known}'`);
  throw new DeviceError('E_DEVICE', op, `there is no device ${showValue(name)}`, {
    hint: `${names.join(', ')}, or undefined for the default`,
  });
}

/** Whether values are computed by the interpreter, which defines what they are. */
export function isReference(): boolean {
  return (chosen ?? deviceFromEnvironment()) === 'interpreter';
}

/**
 * The facts of the device that computes next, where it is open; else its name, where `setDevice` or
 * `SINTER_DEVICE` choose one. Opens nothing.
 */
export function expectedDevice(): DeviceFacts | string | undefined {
  return open === undefined || open.lost ? (chosen ?? deviceFromEnvironment()) : open.facts;
}

/** Every device Sinter knows, with what it is or why it is not there. */
export function devices(): Promise<readonly DeviceReport[]> {
  return discover();
}

/** The current device, opened. Rejects with E_DEVICE and the reasons when there is none. */
export function device(): Promise<Device> {
  if (open !== undefined && !open.lost) return Promise.resolve(open);
  if (opening === undefined || open?.lost === true) {
    open = undefined;
    const attempt = openChosen();
    opening = attempt;
    attempt.then(
      (found) => {
        if (opening === attempt) open = found;
      },
      () => {
        // The next run tries again: the machine may have gained a device.
        if (opening === attempt) opening = undefined;
      },
    );
  }
  return opening;
}

/**
 * What `setDevice` or `SINTER_DEVICE` name, else the default: a GPU, by CUDA or by WebGPU, else
 * WebAssembly.
 */
function openChosen(): Promise<Device> {
  const written = stagesWritten();
  return written === undefined ? openNamed() : written.then(openNamed);
}

function openNamed(): Promise<Device> {
  const name = chosen ?? deviceFromEnvironment();
  return name === undefined ? openDevice() : openDevice(name).catch((error) => throwWithAdvice(name, error));
}

/** The error with words on what to do, where it has none. */
function throwWithAdvice(name: string, error: unknown): never {
  const { message } = error as Error;
  if (!(error instanceof DeviceError && error.code === 'E_DEVICE') || message.includes('\n  try: '))
    throw error;
  const others = "setDevice('wasm'), which needs no GPU, or setDevice('interpreter'), which runs anywhere";
  const problem = message.startsWith(`${name}: `) ? message.slice(name.length + 2) : message;
  throw new DeviceError('E_DEVICE', name, problem, { hint: others, cause: error });
}

/**
 * Work for the lane. `ready` says whether it can run at once on this device; `prepare` makes it so. `fetch` begins what does not
 * depend on the device, while that is opened.
 */
export interface Job {
  fetch(): void;
  ready(device: Device): boolean;
  prepare(device: Device): Promise<void>;
  run(device: Device): void;
  fail(error: unknown): void;
}

/**
 * Runs a job now when the device is open, nothing is queued and the job is ready; queues it
 * otherwise.
 */
export function submit(job: Job): void {
  if (queue === undefined && open !== undefined && !open.lost && job.ready(open)) {
    try {
      return job.run(open);
    } catch (error) {
      return job.fail(error);
    }
  }
  job.fetch();
  const target = device();
  const before = queue ?? Promise.resolve();
  const turn = before.then(async () => {
    try {
      const ready = await target;
      if (!job.ready(ready)) await job.prepare(ready);
      job.run(ready);
    } catch (error) {
      job.fail(error);
    }
  });
  queue = turn;
  void turn.then(() => {
    if (queue === turn) queue = undefined;
  });
}

/**
 * Ends the current device, or the one of this name: waits for what is queued, ends its threads and
 * frees its memory. Values that were only there are gone: reading them rejects with E_DEVICE_LOST.
 * The next computation on it opens it anew. Rejects with E_DEVICE at names that no device has.
 */
export async function close(name?: string): Promise<void> {
  checkName('close', name);
  await queue;
  const current = open ?? (await opening?.catch(() => undefined));
  const closed = name ?? current?.facts.name;
  if (closed !== undefined) await closeDevice(closed);
}

/** Waits until nothing is queued and the device has finished; rejects with its first failure. */
export async function synchronize(): Promise<void> {
  // Jobs queued meanwhile wait behind this turn, so one wait is enough for what was asked for
  // before.
  await queue;
  await open?.finish();
}
