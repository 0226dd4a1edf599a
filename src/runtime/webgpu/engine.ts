// What the parts of a WebGPU device know of it.

import type { DeviceFacts } from '../device.ts';
import type { Scratch } from '../scratch.ts';
import type { Timeline } from '../timeline.ts';
import type { GpuFailures } from './failures.ts';
import type { GpuMemory } from './memory.ts';
import type { Commands } from './operations.ts';
import type { Pipelines } from './pipelines.ts';
import type { Stopwatch } from './stopwatch.ts';

/** How to wait for the GPU, which differs between hosts: resolves as the given promise does. */
export type Wait = <T>(promise: Promise<T>) => Promise<T>;

/** The parts of a device that its programs work with. */
export interface WebGpuEngine {
  readonly gpu: GPUDevice;
  readonly facts: DeviceFacts;
  readonly timeline: Timeline;
  readonly failures: GpuFailures;
  readonly memory: GpuMemory;
  readonly scratch: Scratch<GPUBuffer>;
  readonly pipelines: Pipelines;
  readonly stopwatch: Stopwatch;
  readonly commands: Commands;
  readonly wait: Wait;
}
