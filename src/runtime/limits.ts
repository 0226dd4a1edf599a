// What a device's limits say of a program, and the block of scalars that a run is given.

import { DeviceError } from '../errors.ts';
import type { DeviceFacts } from './device.ts';
import type { Program, ProgramOutline } from './program.ts';

/** Throws E_LIMIT, naming limit, value and kernel. */
export function checkLimits(
  program: ProgramOutline,
  { limits, name }: Pick<DeviceFacts, 'limits' | 'name'>,
): void {
  const exceed = (what: string, value: number, limit: number, kernel?: string): void => {
    if (value <= limit) return;
    const options = kernel === undefined ? {} : { kernel };
    throw new DeviceError('E_LIMIT', name, `${what} ${value} exceeds the limit ${limit}`, options);
  };
  for (const kernel of program.kernels) {
    exceed('the number of storage buffers', kernel.bindings.length, limits.storageBuffers, kernel.name);
    const invocations = kernel.workgroup[0] * kernel.workgroup[1] * kernel.workgroup[2];
    exceed('the workgroup size', invocations, limits.workgroupInvocations, kernel.name);
    exceed('the shared memory', kernel.sharedBytes ?? 0, limits.workgroupBytes, kernel.name);
  }
  for (const step of program.steps) {
    if (step.kind === 'host') {
      throw new DeviceError('E_UNSUPPORTED', name, `host step ${step.run}: only the interpreter runs these`);
    }
    if (step.kind !== 'dispatch') continue;
    const kernel = program.kernels[step.kernel]!;
    for (const count of step.grid) {
      exceed('the workgroup count', count, limits.workgroupsPerDimension, kernel.name);
    }
    for (const index of step.buffers) {
      const { bytes, name } = program.buffers[index]!;
      exceed(`the size of ${name}`, bytes, limits.bindingBytes, kernel.name);
    }
  }
}

/** Scalars as the words of a uniform block. */
export function encodeScalars(
  program: Program,
  scalars: readonly number[],
  device: string,
): Int32Array<ArrayBuffer> {
  const given = program.scalars.filter(({ input }) => input === undefined);
  const expected = given.length;
  if (scalars.length !== expected) {
    throw new DeviceError('E_VALIDATION', device, `${scalars.length} scalars given: expected ${expected}`);
  }
  const words = new Int32Array(expected);
  const floats = new Float32Array(words.buffer);
  given.forEach(({ dtype }, i) => {
    const value = scalars[i]!;
    if (dtype === 'f32') floats[i] = value;
    else words[i] = dtype === 'bool' ? Number(value !== 0) : value;
  });
  return words;
}
