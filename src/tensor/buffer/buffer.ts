// DeviceBuffer: memory on a device with a format and a count of who holds it. The memory is Sinter's,
// or a GPUBuffer, a device pointer or a typed array of the caller's; what a tensor lies in is lent
// for reading. Copies and writes keep the order of the device.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { hostArray, packBytes, partCount, unpackBytes, type HostData, type Scalar } from '../../ir/value.ts';
import { deviceByteSize, isQ8, packedBytes, sameFormat, type Format } from './format.ts';
import { freshCore, roomOf, type Claim } from './claim.ts';
import { BufferHandle } from './handle.ts';
import { decodeQ8, encodeQ8 } from './q8.ts';

/** How `map` uses the bytes. */
export type MapMode = 'read' | 'write' | 'readWrite';

const takesMap = arg.takes<DeviceBuffer['map']>(
  ['the mode', arg.oneOf('read', 'write', 'readWrite')],
  ['the function', arg.callable<(bytes: Uint8Array) => void>()],
);
/** Numbers or bigints in an array or a typed array. */
export const someElements: arg.Kind<ArrayLike<Scalar>> = arg.kind('an array of numbers', (value) => {
  if (Array.isArray(value)) {
    return Array.from<unknown>(value).every((at) => typeof at === 'number' || typeof at === 'bigint');
  }
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
});
const takesWrite = arg.takes<DeviceBuffer['write']>(
  ['the elements', someElements],
  ['the start', arg.optional(arg.count(0))],
);
const takesWriteBytes = arg.takes<DeviceBuffer['writeBytes']>(
  ['the data', arg.bytes],
  ['the place', arg.optional(arg.count(0))],
);

/** Memory on a device, with a format. */
export class DeviceBuffer extends BufferHandle {
  /** A copy in memory of Sinter's, version 0, made on the device. */
  clone(): DeviceBuffer {
    const { core, format, length } = this.live('clone');
    const { device, sharing } = core;
    const bytes = roomOf(format, length);
    const buffer = this.copied(0, this.byteLength, bytes);
    return new DeviceBuffer({ core: freshCore(device, sharing), buffer, format, length });
  }

  /**
   * Takes the elements of another buffer of the same dtype and length, on the device where both are
   * on one, else by way of the host. Resolves when that is queued.
   */
  async copyFrom(source: DeviceBuffer): Promise<void> {
    if (!(source instanceof DeviceBuffer))
      throw new TensorError('E_VALUE', 'copyFrom', `expects a DeviceBuffer, got ${showValue(source)}`);
    const { core, buffer, format, length } = this.live('copyFrom');
    const from = source.live('copyFrom');
    if (!sameFormat(format, from.format) || length !== from.length) {
      const code = sameFormat(format, from.format) ? 'E_SHAPE' : 'E_DTYPE';
      throw new TensorError(code, 'copyFrom', `${this.title()} cannot take ${source.title()}`);
    }
    await source.ready();
    await this.ready();
    this.live('copyFrom');
    source.live('copyFrom');
    if (this.isEmpty) return;
    if (core.device === from.core.device) {
      this.beforeWrite('copyFrom');
      core.sharing.copy(from.buffer, buffer, Math.ceil(this.byteLength / 4) * 4);
      return;
    }
    const bytes = await source.readBytes();
    this.writeBytes(bytes);
  }

  /** Writes elements from a place on, brought into the dtype as `tensor` does. */
  write(data: ArrayLike<Scalar>, start: number = 0): void {
    takesWrite('write', data, start);
    const { format } = this.live('write');
    if (isQ8(format) && start % format.blockSize !== 0)
      throw new TensorError('E_VALIDATION', 'write', `element ${start} of ${this.title()} begins no block`);
    this.#put('write', bytesOf(format, data), packedBytes('write', format, start));
  }

  /** Writes bytes as they are from a byte on. */
  writeBytes(bytes: Uint8Array, at: number = 0): void {
    takesWriteBytes('writeBytes', bytes, at);
    this.#put('writeBytes', bytes, at);
  }

  /** The bytes as they lie there; rejects with what failed before. */
  async readBytes(): Promise<Uint8Array> {
    const { core, buffer } = this.live('readBytes');
    await this.ready();
    this.live('readBytes');
    return core.device.read(buffer, this.byteLength);
  }

  /** The bytes and what fills the last word: what exporters store of f16 and q8. */
  async readRaw(): Promise<Uint8Array> {
    const bytes = await this.readBytes();
    const whole = new Uint8Array(deviceByteSize(this.dtype, this.length));
    whole.set(bytes);
    return whole;
  }

  /** The elements, as `tensor.data()` gives them; those of q8 as f32. */
  async data(): Promise<HostData> {
    const { format, length } = this.live('data');
    const bytes = await this.readBytes();
    if (isQ8(format)) return decodeQ8(bytes, length, format.blockSize);
    return unpackBytes(bytes, format, [length]).data;
  }

  /**
   * The bytes in the host's own memory, where a device has them there (wasm, the interpreter); else
   * undefined. A view of a WebAssembly memory ends when the memory grows.
   */
  view(): Uint8Array | undefined {
    const { core, buffer } = this.live('view');
    return core.sharing.view?.(buffer).subarray(0, this.byteLength);
  }

  /**
   * Calls `use` with the bytes: where the host has them as they lie, else as a copy that is read
   * before (`read`, `readWrite`) and written back after (`write`, `readWrite`).
   */
  async map(mode: MapMode, use: (bytes: Uint8Array) => void): Promise<void> {
    takesMap('map', mode, use);
    await this.ready();
    if (mode === 'read') {
      use(this.view()?.slice() ?? (await this.readBytes()));
      return;
    }
    this.beforeWrite('map');
    const view = this.view();
    if (view !== undefined) {
      use(view);
      return;
    }
    const bytes = mode === 'write' ? new Uint8Array(this.byteLength) : await this.readBytes();
    use(bytes);
    this.#store(bytes, 0);
  }

  protected another(claim: Claim): this {
    return new DeviceBuffer(claim) as this;
  }

  #put(op: string, bytes: Uint8Array, at: number): void {
    this.live(op);
    const end = at + bytes.length;
    if (end > this.byteLength) {
      const problem = `${bytes.length} bytes from ${at} on do not fit ${this.title()}, ${this.byteLength} bytes`;
      throw new TensorError('E_VALIDATION', op, problem);
    }
    if (at % 4 !== 0 || (end % 4 !== 0 && end !== this.byteLength)) {
      const problem = `bytes ${at} to ${end} of ${this.title()} are misaligned: memory is written in words`;
      throw new TensorError('E_VALIDATION', op, problem, 'multiples of 4 bytes, or up to the end');
    }
    if (bytes.length === 0) return;
    this.beforeWrite(op);
    this.#store(bytes, at);
  }

  #store(bytes: Uint8Array, at: number): void {
    const { core, buffer } = this.live('write');
    if (at === 0) {
      core.device.write(buffer, bytes);
      return;
    }
    const part = core.sharing.part(buffer, at, Math.ceil(bytes.length / 4) * 4);
    core.device.write(part, bytes);
    part.destroy();
  }
}

/** Elements as they lie in memory, brought into the format. */
export function bytesOf(format: Format, data: ArrayLike<Scalar>): Uint8Array {
  if (isQ8(format)) return encodeQ8(Float32Array.from(data, Number), format.blockSize);
  return packBytes(hostArray(format, [data.length / partCount(format)], data));
}
