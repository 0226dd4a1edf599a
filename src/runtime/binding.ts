// What a run of a program is given: buffers of this device, large enough, in the right number; and
// fresh ones for its outputs.

import { DeviceError } from '../errors.ts';
import type { DeviceAllocation } from './device.ts';
import { GpuBuffer, type BufferPools } from './memory.ts';
import type { Program } from './program.ts';

/**
 * Inputs, then outputs, as buffers of `device`; throws E_VALIDATION naming the one that is wrong.
 */
export function givenBuffers<Gpu>(
  program: Program,
  device: string,
  inputs: readonly DeviceAllocation[],
  outputs: readonly DeviceAllocation[],
): GpuBuffer<Gpu>[] {
  const check = (kind: string, indices: readonly number[], given: readonly DeviceAllocation[]): void => {
    if (given.length !== indices.length) {
      const problem = `${given.length} ${kind} buffers given: expected ${indices.length}`;
      throw new DeviceError('E_VALIDATION', device, problem);
    }
  };
  check('input', program.inputs, inputs);
  check('output', program.outputs, outputs);
  const bind = (kind: string, index: number, position: number, buffer: DeviceAllocation): GpuBuffer<Gpu> => {
    const { bytes, name } = program.buffers[index]!;
    const what = `${kind} ${position} (${name})`;
    if (!(buffer instanceof GpuBuffer)) {
      throw new DeviceError('E_VALIDATION', device, `${what} is not a buffer of this device`);
    }
    if (buffer.bytes < bytes) {
      const problem = `${what} needs ${bytes} bytes and was given ${buffer.bytes}`;
      throw new DeviceError('E_VALIDATION', device, problem);
    }
    return buffer;
  };
  return [
    ...program.inputs.map((index, i) => bind('input', index, i, inputs[i]!)),
    ...program.outputs.map((index, i) => bind('output', index, i, outputs[i]!)),
  ];
}

/**
 * Fresh buffers, laid out as the program's packs ask, for the outputs that are no inputs: each
 * distinct one once, in order.
 */
export function outputBuffers<Gpu>(program: Program, memory: BufferPools<Gpu>): DeviceAllocation[] {
  const made = new Map<number, DeviceAllocation>();
  for (const { buffer, members } of program.packs) {
    if (program.buffers[buffer]!.role !== 'output') continue;
    const parts = members.map((member) => {
      return { offset: member.offset, bytes: program.buffers[member.buffer]!.bytes };
    });
    const handles = memory.allocateTogether(program.buffers[buffer]!.bytes, parts);
    members.forEach((member, i) => made.set(member.buffer, handles[i]!));
  }
  for (const index of program.outputs) {
    const { role, bytes } = program.buffers[index]!;
    if (role === 'output' && !made.has(index)) made.set(index, memory.allocate(bytes));
  }
  return [...new Set(program.outputs)].flatMap((index) => made.get(index) ?? []);
}
