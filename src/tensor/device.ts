// Which device tensors are computed on, and the lane of runs waiting for it. Opening a device takes
// time, recording does not wait for it: runs asked for meanwhile are queued, and errors surface
// where data is read. Once the device is open and nothing is queued, a run is dispatched at once.

import { stagesWritten } from '../dump/stages.ts';
import { DeviceError, showValue } from '../errors.ts';
import type { DType } from '../ir/dtype.ts';
import type { Device, DeviceFacts } from '../runtime/device.ts';
import {
  beginDevice,
  closeDevice,
  deviceFromEnvironment,
  deviceNames,
  discover,
  findBackend,
  isDeviceName,
  openDevice,
  type DeviceReport,
} from '../runtime/registry.ts';
import type { TargetId } from '../runtime/program.ts';
import { targetOf, type Target } from '../schedule/target.ts';
import { adjustAsNamed, adjusted, adjustments } from './workarounds/adjusting.ts';
import { currentSession, SessionPart, withSession, type Session } from './session.ts';

export { nextTask } from '../runtime/turns.ts';

/** The device of a session, and what waits for it. */
interface Lane {
  /** What `setDevice` chose. */
  chosen: string | undefined;
  open: Device | undefined;
  opening: Promise<Device> | undefined;
  /** Resolves when the last queued run has been handed to the device; undefined where none is. */
  queue: Promise<void> | undefined;
}

const lanes = new SessionPart((): Lane => ({
  chosen: undefined,
  open: undefined,
  opening: undefined,
  queue: undefined,
}));

/**
 * Chooses the device for what is computed from now on: `cuda` (`cuda:1` for the second), `webgpu`,
 * `native` and `wasm` (`wasm:2` for two threads), `webgpu:software` or `interpreter`; undefined for the default.
 * Values on another device move when they are used. Throws E_DEVICE at other names; that the
 * machine lacks the device shows when data is read.
 */
export function setDevice(name: string | undefined): void {
  checkName('setDevice', name);
  Object.assign(lanes.current, { chosen: name, open: undefined, opening: undefined });
}

/** The name that `setDevice` or `SINTER_DEVICE` chose. */
function nameIn({ chosen }: Lane): string | undefined {
  return chosen ?? deviceFromEnvironment();
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
  return nameIn(lanes.current) === 'interpreter';
}

/**
 * The facts of the device that computes next, where it is open; else its name, where `setDevice` or
 * `SINTER_DEVICE` choose one. Opens nothing.
 */
export function expectedDevice(): DeviceFacts | string | undefined {
  const lane = lanes.current;
  return lane.open === undefined || lane.open.lost ? nameIn(lane) : lane.open.facts;
}

/** The rank of this process among those that the open device meets; 0 where it meets none. */
export function currentRank(): number {
  return lanes.current.open?.communicator?.rank ?? 0;
}

/** Every device Sinter knows, with what it is or why it is not there. */
export function devices(): Promise<readonly DeviceReport[]> {
  return discover();
}

/** The current device, opened. Rejects with E_DEVICE and the reasons when there is none. */
export function device(): Promise<Device> {
  return deviceOf(lanes.current);
}

/**
 * The same when its facts are complete; they stay as they are where what completes them is missing, and programs run
 * all the same.
 */
export async function wholeDevice(): Promise<Device> {
  const found = await device();
  await found.whole?.().catch(() => undefined);
  return found;
}

/** The dtypes of the current device. Rejects with E_DEVICE when there is none. */
export async function deviceTypes(): Promise<readonly DType[]> {
  return (await deviceTarget()).dtypes;
}

/** What kernels are made for on the current device. Rejects with E_DEVICE when there is none. */
export async function deviceTarget(): Promise<Target> {
  return targetOf(adjusted((await device()).facts).facts);
}

function deviceOf(lane: Lane): Promise<Device> {
  const { open } = lane;
  if (open !== undefined && !open.lost) return Promise.resolve(open);
  if (lane.opening !== undefined && open === undefined) return lane.opening;
  lane.open = undefined;
  const attempt = openChosen(lane);
  lane.opening = attempt;
  attempt.then(
    (found) => {
      if (lane.opening === attempt) lane.open = found;
    },
    () => {
      // The next run tries again: the machine may have gained a device.
      if (lane.opening === attempt) lane.opening = undefined;
    },
  );
  return attempt;
}

/**
 * What `setDevice` or `SINTER_DEVICE` name, else the default: a GPU, by CUDA or by WebGPU, else
 * compiled C, else WebAssembly.
 */
function openChosen(lane: Lane): Promise<Device> {
  const written = stagesWritten();
  const session = currentSession();
  return written === undefined ? openNamed(lane, session) : written.then(() => openNamed(lane, session));
}

async function openNamed(lane: Lane, session: Session): Promise<Device> {
  const name = nameIn(lane);
  await adjustAsNamed(session);
  const found = await (name === undefined
    ? beginDevice()
    : openDevice(name).catch((error) => throwWithAdvice(name, error)));
  // A table names the whole device.
  if (withSession(session, adjustments) > 0) await found.whole?.().catch(() => undefined);
  const { instead } = withSession(session, () => adjusted(found.facts));
  if (instead === undefined) return found;
  const { name: wrong, description } = found.facts;
  console.warn(`sinter: ${instead} computes instead of ${wrong} (${description}), as workarounds say`);
  return openDevice(instead);
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
 * Work for the lane. `ready` says whether it can run at once on this device; `prepare` makes it so. `fetch` begins what it needs on
 * any device of these programs, while that is opened.
 */
export interface Job {
  fetch(target: TargetId | undefined): void;
  ready(device: Device): boolean;
  prepare(device: Device): Promise<void>;
  run(device: Device): void;
  fail(error: unknown): void;
}

/**
 * Runs a job now when the device is open, nothing is queued and the job is ready; queues it
 * otherwise. It runs in the session that it was submitted in.
 */
export function submit(job: Job): void {
  const session = currentSession();
  const lane = lanes.of(session);
  const { queue, open } = lane;
  if (queue === undefined && open !== undefined && !open.lost && job.ready(open)) {
    try {
      return job.run(open);
    } catch (error) {
      return job.fail(error);
    }
  }
  const name = nameIn(lane);
  job.fetch(name === undefined ? undefined : findBackend(name)?.target);
  const target = deviceOf(lane);
  const before = queue ?? Promise.resolve();
  const turn = before.then(async () => {
    try {
      const ready = await target;
      if (!job.ready(ready)) await job.prepare(ready);
      withSession(session, () => job.run(ready));
    } catch (error) {
      job.fail(error);
    }
  });
  lane.queue = turn;
  void turn.then(() => {
    if (lane.queue === turn) lane.queue = undefined;
  });
}

/**
 * Ends the current device, or the one of this name: waits for what is queued, ends its threads and
 * frees its memory. Values that were only there are gone: reading them rejects with E_DEVICE_LOST.
 * The next computation on it opens it anew. Rejects with E_DEVICE at names that no device has.
 */
export async function close(name?: string): Promise<void> {
  checkName('close', name);
  const lane = lanes.current;
  await lane.queue;
  const current = lane.open ?? (await lane.opening?.catch(() => undefined));
  const closed = name ?? current?.facts.name;
  if (closed !== undefined) await closeDevice(closed);
}

/** Waits until nothing is queued and the device has finished; rejects with its first failure. */
export async function synchronize(): Promise<void> {
  // Jobs queued meanwhile wait behind this turn, so one wait is enough for what was asked for
  // before.
  const lane = lanes.current;
  await lane.queue;
  await lane.open?.finish();
}
