// Checks a program against a device's limits, and makes the block of scalars of a run.

import { DeviceError } from '../errors.ts';
import type { DeviceFacts } from './device.ts';
import { combinesOnStream, everyStep, mostElements, type Program, type ProgramOutline } from './program.ts';

const inParts = 'compute it in parts: split a batch, heads or rows, and take one part after another';
const smaller = `${inParts}; hold it in f16 or bf16; or take a device that binds more (cuda, wasm)`;

/** Throws E_LIMIT, naming limit, value and kernel, and E_UNSUPPORTED for steps that the device does not run. */
export function checkLimits(
  program: ProgramOutline,
  { limits, name, combining }: Pick<DeviceFacts, 'limits' | 'name' | 'combining'>,
): void {
  const exceed = (what: string, value: number, limit: number, kernel?: string, hint?: string): void => {
    if (value <= limit) return;
    const options = { ...(kernel !== undefined && { kernel }), ...(hint !== undefined && { hint }) };
    throw new DeviceError('E_LIMIT', name, `${what} ${value} exceeds the limit ${limit}`, options);
  };
  for (const { name: buffer, dtype, shape, bytes, role } of program.buffers) {
    const sized = `${buffer}, ${dtype}[${shape.join(',')}],`;
    const elements = shape.reduce((product, size) => product * size, 1);
    exceed(`the number of elements of ${sized}`, elements, mostElements, undefined, inParts);
    if (role !== 'scratch')
      exceed(`the size of ${sized} in bytes,`, bytes, limits.bufferBytes, undefined, smaller);
  }
  for (const bytes of program.arenas)
    exceed('the room for intermediates, in bytes,', bytes, limits.bufferBytes, undefined, inParts);
  for (const kernel of program.kernels) {
    exceed('the number of storage buffers', kernel.bindings.length, limits.storageBuffers, kernel.name);
    const invocations = kernel.workgroup[0] * kernel.workgroup[1] * kernel.workgroup[2];
    exceed('the workgroup size', invocations, limits.workgroupInvocations, kernel.name);
    exceed('the shared memory', kernel.sharedBytes ?? 0, limits.workgroupBytes, kernel.name);
  }
  for (const step of everyStep(program.steps)) {
    if (step.kind === 'host') {
      throw new DeviceError('E_UNSUPPORTED', name, `host step ${step.run}: only the interpreter runs these`);
    }
    if (step.kind === 'collective') {
      const { action, dtype } = step;
      if (combining === 'nobody')
        throw new DeviceError('E_UNSUPPORTED', name, 'programs of several processes do not run on it', {
          hint: 'the devices cuda, native, wasm and interpreter',
        });
      if (combining === 'stream' && 'monoid' in action && !combinesOnStream(action.monoid, dtype))
        throw new DeviceError('E_UNSUPPORTED', name, `NCCL does not combine ${dtype} by ${action.monoid}`);
    }
    if (step.kind !== 'dispatch') continue;
    const kernel = program.kernels[step.kernel]!;
    for (const count of step.grid) {
      exceed('the workgroup count', count, limits.workgroupsPerDimension, kernel.name);
    }
    for (const index of step.buffers) {
      const { bytes, name, dtype, shape } = program.buffers[index]!;
      const what = `the size of ${name}, ${dtype}[${shape.join(',')}], in bytes,`;
      exceed(what, bytes, limits.bindingBytes, kernel.name, smaller);
    }
  }
}

/** Scalars as the words of a uniform block. */
export function encodeScalars(
  program: Program,
  scalars: readonly number[],
  device: string,
): Int32Array<ArrayBuffer> {
  let expected = 0;
  for (const { input } of program.scalars) if (input === undefined) expected += 1;
  if (scalars.length !== expected) {
    throw new DeviceError('E_VALIDATION', device, `${scalars.length} scalars given: expected ${expected}`);
  }
  const words = new Int32Array(expected);
  if (expected === 0) return words;
  const floats = new Float32Array(words.buffer);
  let at = 0;
  for (const { input, dtype } of program.scalars) {
    if (input !== undefined) continue;
    const value = scalars[at]!;
    if (dtype === 'f32') floats[at] = value;
    else words[at] = dtype === 'bool' ? Number(value !== 0) : value;
    at += 1;
  }
  return words;
}
