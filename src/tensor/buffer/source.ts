// Where DeviceBuffers come from: memory of the caller's that is wrapped, fresh memory, data of the
// host's, and the memory that a tensor's value lies in.

import { DeviceError, showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import type { DType } from '../../ir/dtype.ts';
import { sizeOf as shapeSize } from '../../ir/shape.ts';
import { partCount, type Scalar } from '../../ir/value.ts';
import type { Device, DeviceAllocation as RuntimeBuffer } from '../../runtime/device.ts';
import { deviceNames, isDeviceName, openDevice } from '../../runtime/registry.ts';
import type { NativeMemory, Sharing } from '../../runtime/sharing.ts';
import { currentTrace } from '../handle/recording.ts';
import { showHandle, type Handle } from '../handle/handle.ts';
import { readable } from '../evaluate/evaluate.ts';
import { device as currentDevice } from '../device.ts';
import { bytesOf, DeviceBuffer, freshCore, roomOf, someElements } from './buffer.ts';
import { aFormat, elemSize, isQ8, packedBytes, q8BlockStride, showFormat, type Format } from './format.ts';

export interface BufferOptions {
  /** f32 by default. */
  readonly dtype?: Format;
  /** By the names of `setDevice`; the current device by default. */
  readonly device?: string;
}

export interface WrapOptions extends BufferOptions {
  /** Elements; by default as many as there are whole ones in the memory. Required for q8. */
  readonly length?: number;
  /** Bytes before the first element, a multiple of 4; 0 by default. */
  readonly byteOffset?: number;
  /**
   * Bytes of the memory, where its API does not tell: of device pointers; by default as many as its
   * API tells.
   */
  readonly byteLength?: number;
  /**
   * Called when neither a buffer nor a tensor nor queued work uses the memory any more; nothing
   * happens by default.
   */
  readonly release?: () => void;
}

export interface UploadOptions extends BufferOptions {
  /**
   * By way of memory that the device reads itself: of speed alone, and a wish. CUDA stages every
   * upload there, WebGPU maps a buffer, others copy as ever. False by default.
   */
  readonly pinned?: boolean;
}

const aDevice: arg.Kind<string> = arg.kind(
  'the name of a device',
  (value) => typeof value === 'string' && isDeviceName(value),
  () => deviceNames().join(', '),
  'E_DEVICE',
);
const bufferTable: arg.Table<BufferOptions> = { dtype: aFormat, device: aDevice };
const takesWrap = arg.takes<typeof wrapBuffer>(
  ['the memory', arg.anything<WrappedMemory>()],
  [
    'options',
    arg.options<WrapOptions>({
      ...bufferTable,
      length: arg.count(0),
      byteOffset: arg.count(0),
      byteLength: arg.count(0),
      release: arg.callable<() => void>(),
    }),
  ],
);

/** What of the caller's can be wrapped: a GPUBuffer, a CUdeviceptr, a typed array. */
export type WrappedMemory = GPUBuffer | number | bigint | ArrayBufferView;

/** The device of a name, or the current one, opened, and what it shares. */
async function open(op: string, name: string | undefined): Promise<[Device, Sharing]> {
  const device = name === undefined ? await currentDevice() : await openDevice(name);
  return [device, await sharingOf(op, device)];
}

/** What a device shares with others. Rejects with E_UNSUPPORTED where a backend has not said. */
export async function sharingOf(op: string, device: Device): Promise<Sharing> {
  const found = await device.sharing?.();
  if (found !== undefined) return found;
  const problem = `${op}: the device shares no memory`;
  throw new DeviceError('E_UNSUPPORTED', device.facts.name, problem, {
    hint: 'sharing(), of the backend that made it',
  });
}

/**
 * Memory of the caller's as a buffer, without a copy: a GPUBuffer of the GPUDevice that Sinter
 * computes on (usages STORAGE and COPY_SRC, and COPY_DST to write), a CUdeviceptr of the device's
 * primary context, a typed array for the interpreter. It has to stay until `release` is called.
 * Rejects with E_VALIDATION, E_STATE or E_UNSUPPORTED where the device cannot use it.
 */
export async function wrapBuffer(memory: WrappedMemory, options: WrapOptions = {}): Promise<DeviceBuffer> {
  takesWrap('wrapBuffer', memory, options);
  const { dtype = 'f32', byteOffset = 0, release = () => undefined } = options;
  const given = nativeOf(memory, options);
  const whole = sizeOf(given);
  if (isQ8(dtype) && options.length === undefined)
    throw new TensorError('E_VALUE', 'wrapBuffer', `needs the option length with ${showFormat(dtype)}`);
  const room = Math.min(whole, byteOffset + (options.byteLength ?? whole)) - byteOffset;
  const unit = isQ8(dtype) ? q8BlockStride(dtype) : elemSize(dtype);
  const length = options.length ?? Math.max(0, Math.floor(room / unit));
  const bytes = packedBytes('wrapBuffer', dtype, length);
  if (length === 0 || bytes > room) {
    const type = `${showFormat(dtype)}[${length}]`;
    const problem = `${type} takes ${bytes} bytes: there are ${Math.max(0, room)} from ${byteOffset} on`;
    throw new TensorError('E_VALIDATION', 'wrapBuffer', problem, 'length, byteOffset');
  }
  const [device, sharing] = await open('wrapBuffer', options.device);
  const size = Math.ceil(bytes / 4) * 4;
  const buffer = await sharing.wrap(partOf(given, byteOffset, size), release);
  return new DeviceBuffer({ core: freshCore(device, sharing, 'wrapped'), buffer, format: dtype, length });
}

/** What was given, as memory of its API, from its first byte on. */
function nativeOf(memory: WrappedMemory, { byteLength }: WrapOptions): NativeMemory {
  if (typeof memory === 'number' || typeof memory === 'bigint') {
    if (byteLength === undefined)
      throw new TensorError('E_VALUE', 'wrapBuffer', 'needs the option byteLength with a device pointer');
    return { api: 'cuda', pointer: Number(memory), size: byteLength };
  }
  if (ArrayBuffer.isView(memory)) {
    const { buffer, byteOffset, byteLength } = memory;
    return { api: 'host', bytes: new Uint8Array(buffer, byteOffset, byteLength) };
  }
  const size: unknown = (memory as GPUBuffer | null)?.size;
  if (typeof size === 'number') return { api: 'webgpu', buffer: memory, offset: 0, size };
  const problem = `expects a GPUBuffer, a device pointer or a typed array, got ${showValue(memory)}`;
  throw new TensorError('E_VALUE', 'wrapBuffer', problem);
}

function sizeOf(memory: NativeMemory): number {
  return memory.api === 'host' ? memory.bytes.length : memory.size;
}

function partOf(memory: NativeMemory, offset: number, size: number): NativeMemory {
  if (memory.api === 'host') return { api: 'host', bytes: memory.bytes.subarray(offset, offset + size) };
  if (memory.api === 'webgpu') return { ...memory, offset, size };
  return { ...memory, pointer: memory.pointer + offset, size };
}

const takesAllocate = arg.takes<typeof allocateBuffer>(
  ['the length', arg.count(0)],
  ['options', arg.options<BufferOptions>(bufferTable)],
);

/** Memory for so many elements, with room for kernels to read them where they lie; undefined contents. */
export async function allocateBuffer(length: number, options: BufferOptions = {}): Promise<DeviceBuffer> {
  takesAllocate('allocateBuffer', length, options);
  const { dtype = 'f32' } = options;
  const room = roomOf(dtype, length);
  const [device, sharing] = await open('allocateBuffer', options.device);
  return new DeviceBuffer({
    core: freshCore(device, sharing),
    buffer: device.allocate(room),
    format: dtype,
    length,
  });
}

const takesUpload = arg.takes<typeof uploadBuffer>(
  ['the data', someElements],
  ['options', arg.options<UploadOptions>({ ...bufferTable, pinned: arg.flag })],
);

/** Data of the host's as a buffer: brought into the dtype as `tensor` does, blocks of q8 encoded. */
export async function uploadBuffer(
  data: ArrayLike<Scalar>,
  options: UploadOptions = {},
): Promise<DeviceBuffer> {
  takesUpload('uploadBuffer', data, options);
  const { dtype = 'f32', device } = options;
  const bytes = bytesOf(dtype, data);
  const length = isQ8(dtype) ? data.length : data.length / partCount(dtype);
  const room = roomOf(dtype, length);
  const [found, sharing] = await open('uploadBuffer', device);
  const core = freshCore(found, sharing);
  const { native } = sharing;
  if (options.pinned === true && native.api === 'webgpu') {
    const buffer = await mapped(native.device, found, sharing, bytes, room);
    return new DeviceBuffer({ core, buffer, format: dtype, length });
  }
  const made = new DeviceBuffer({ core, buffer: found.allocate(room), format: dtype, length });
  made.writeBytes(bytes);
  core.version = 0;
  return made;
}

/** A buffer that is mapped when it is made, so that the bytes are written once. */
async function mapped(
  gpu: GPUDevice,
  { facts }: Device,
  sharing: Sharing,
  bytes: Uint8Array,
  size: number,
): Promise<RuntimeBuffer> {
  const [COPY_SRC, COPY_DST, STORAGE] = [4, 8, 128];
  let buffer: GPUBuffer;
  try {
    buffer = gpu.createBuffer({ size, usage: COPY_SRC | COPY_DST | STORAGE, mappedAtCreation: true });
    new Uint8Array(buffer.getMappedRange()).set(bytes);
    buffer.unmap();
  } catch (cause) {
    throw new DeviceError('E_OOM', facts.name, `a mapped buffer of ${size} bytes: ${String(cause)}`, {
      cause,
    });
  }
  return sharing.wrap({ api: 'webgpu', buffer, offset: 0, size }, () => buffer.destroy());
}

/** The memory of a tensor's value, lent for reading: tensor.ts's `buffer()`. */
export async function borrowBuffer(handle: Handle): Promise<DeviceBuffer> {
  if (currentTrace() !== undefined) {
    const problem = `the value of ${showHandle(handle)} is not known while a function is being traced`;
    throw new TensorError('E_STATE', 'buffer', problem, 'return it from the compiled function');
  }
  const storage = await readable(handle, 'buffer');
  storage.pin();
  try {
    const device = storage.home ?? (await currentDevice());
    const sharing = await sharingOf('buffer', device);
    const resident = storage.on(device);
    if (resident === undefined) {
      const problem = `the value of ${showHandle(handle)} went with the device that it was on`;
      throw new DeviceError('E_DEVICE_LOST', 'buffer', problem);
    }
    resident.share();
    const bytes = Math.max(4, Math.ceil(storage.bytes / 4) * 4);
    const buffer = sharing.part(resident.buffer, 0, bytes);
    await sharing.submitted();
    const dtype: DType = handle.dtype;
    const core = freshCore(device, sharing, 'lent');
    return new DeviceBuffer({
      core,
      buffer,
      format: dtype,
      length: shapeSize(handle.shape),
      ended: () => resident.release(),
    });
  } finally {
    storage.unpin();
  }
}
