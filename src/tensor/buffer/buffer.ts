// DeviceBuffer: memory on a device with a format and a count of who holds it. The memory is Sinter's,
// or a GPUBuffer, a device pointer or a typed array of the caller's; what a tensor lies in is lent
// for reading. Copies and writes keep the order of the device. Tensors that were made of the memory
// keep their values: before it is written to through a buffer they get copies.
//
// Beside it: format.ts, what the elements are; source.ts, where buffers come from; fence.ts, work that
// has to be done first; lent.ts, what the tensor layer knows of a buffer without this class.

import * as arg from '../../ir/arguments.ts';
import type { Device, DeviceAllocation as RuntimeBuffer } from '../../runtime/device.ts';
import type { Sharing, NativeApi, NativeMemory } from '../../runtime/sharing.ts';
import { Fence } from './fence.ts';
import {
  elemSize,
  isQ8,
  packedBytes,
  type Format,
  showFormat,
  deviceByteSize,
  sameFormat,
  decodeQ8,
  encodeQ8,
} from './format.ts';
import { type View, lend } from './lent.ts';
import { showValue, TensorError } from '../../errors.ts';
import type { DType } from '../../ir/dtype.ts';
import { hostArray, packBytes, partCount, unpackBytes, type HostData, type Scalar } from '../../ir/value.ts';

/** What all handles to one memory have in common. */
export interface Core {
  readonly device: Device;
  readonly sharing: Sharing;
  /** The memory is the caller's. */
  readonly isWrapped: boolean;
  /** A tensor's value lies there. */
  readonly isReadonly: boolean;
  version: number;
  fence: Fence | undefined;
  readonly views: Set<WeakRef<View>>;
}

/** One handle's claim. */
export interface Claim {
  readonly core: Core;
  readonly buffer: RuntimeBuffer;
  readonly format: Format;
  readonly length: number;
  /** Called when the handle is released. */
  readonly ended?: () => void;
}

/** Bytes with which kernels can read so many elements where they lie. */
export function roomOf(format: Format, length: number): number {
  const packed = packedBytes('DeviceBuffer', format, length);
  const size = isQ8(format) ? 1 : elemSize(format);
  // As `StoredValue.deviceBytes`, in whole vectors of 16 bytes.
  const room = Math.max((Math.ceil(packed / size / 4) * 4 + 4) * size, (Math.ceil(packed / 16) + 1) * 16);
  return Math.ceil(room / 16) * 16;
}

/** What handles to memory that is not shared yet have in common. */
export function freshCore(device: Device, sharing: Sharing, kind: 'own' | 'wrapped' | 'lent' = 'own'): Core {
  const [isWrapped, isReadonly] = [kind === 'wrapped', kind === 'lent'];
  return { device, sharing, isWrapped, isReadonly, version: 0, fence: undefined, views: new Set() };
}

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
const takesSlice = arg.takes<DeviceBuffer['slice']>(
  ['the start', arg.count(0)],
  ['the end', arg.optional(arg.count(0))],
);

/** Memory on a device, with a format; `wrapBuffer`, `allocateBuffer`, `uploadBuffer` and `tensor.buffer()` give it. */
export class DeviceBuffer {
  readonly #claim: Claim;

  static {
    // What consoles of Node show.
    Object.defineProperty(DeviceBuffer.prototype, Symbol.for('nodejs.util.inspect.custom'), {
      value(this: DeviceBuffer) {
        return this.toString();
      },
    });
  }

  /** Bytes of its elements, without what fills the last word. */
  readonly byteLength: number;
  #references = 1;

  /** Not for users: `wrap`, `allocate` and `from` make buffers, and `tensor.buffer()` lends one. */
  constructor(claim: Claim) {
    if (claim?.core?.views === undefined) {
      const hint = 'await wrapBuffer(…), allocateBuffer(…), uploadBuffer(…), or tensor.buffer()';
      throw new TensorError('E_VALUE', 'DeviceBuffer', 'buffers are not made by `new`', hint);
    }
    this.#claim = claim;
    const { core, format, length } = claim;
    this.byteLength = packedBytes('DeviceBuffer', format, length);
    const of = (): DeviceBuffer => this;
    lend(this, {
      device: core.device,
      format,
      length,
      byteLength: this.byteLength,
      get title() {
        return of().#title();
      },
      get fence() {
        return core.fence;
      },
      check: (op) => void this.#live(op),
      inPlace: (offset, bytes) => this.#inPlace(offset, bytes),
      copied: (offset, bytes, room) => this.#copied(offset, bytes, room),
      hold: () => {
        this.retain();
        return () => this.release();
      },
      watch: (view) => watch(core.views, view),
    });
  }

  /** The name of the device. */
  get device(): string {
    return this.#claim.core.device.facts.name;
  }

  /** The device's number among those of its kind: 1 of `cuda:1`. */
  get ordinal(): number {
    return Number(/:(\d+)$/.exec(this.device)?.[1] ?? 0);
  }

  /** What the elements are; fixed for the life of the buffer. */
  get dtype(): Format {
    return this.#claim.format;
  }

  /** How many elements there are. */
  get length(): number {
    return this.#claim.length;
  }

  get isEmpty(): boolean {
    return this.#claim.length === 0;
  }

  /** Bytes of an element by its dtype alone; 0 of q8. */
  get elemSize(): number {
    return elemSize(this.dtype);
  }

  /** Whether the memory is the caller's. */
  get isWrapped(): boolean {
    return this.#claim.core.isWrapped;
  }

  /** Whether a tensor's value lies here, which nobody may change. */
  get isReadonly(): boolean {
    return this.#claim.core.isReadonly;
  }

  /** How many hold it; 0 once it was released. */
  get references(): number {
    return this.#references;
  }

  /** How often the memory was written to through a DeviceBuffer, or is said to have been. */
  get version(): number {
    return this.#claim.core.version;
  }

  /** Says that the memory was written to by other means; gives the version before. */
  bumpVersion(): number {
    const { core } = this.#live('bumpVersion');
    for (const view of core.views) view.deref()?.lose();
    core.views.clear();
    core.version += 1;
    return core.version - 1;
  }

  /** Work of others that has to be done before the memory is used; reads and tensors wait for it. */
  get fence(): Fence | undefined {
    const { core } = this.#claim;
    if (core.fence?.signalled === true) core.fence = undefined;
    return core.fence;
  }

  setFence(fence: Fence): void {
    if (!(fence instanceof Fence))
      throw new TensorError(
        'E_VALUE',
        'setFence',
        `expects a Fence, got ${showValue(fence)}`,
        'new Fence(…)',
      );
    this.#live('setFence').core.fence = fence;
  }

  clearFence(): void {
    this.#live('clearFence').core.fence = undefined;
  }

  /** A fence after everything that the device was asked for so far. */
  settled(): Fence {
    return Fence.after(this.#live('settled').core.device);
  }

  /** One more holder; each ends its hold by `release`. */
  retain(): this {
    this.#live('retain');
    this.#references += 1;
    return this;
  }

  /** One holder fewer. The last one gives the memory back, or back to its owner. */
  release(): void {
    this.#live('release');
    this.#references -= 1;
    if (this.#references > 0) return;
    this.#claim.buffer.destroy();
    this.#claim.ended?.();
  }

  [Symbol.dispose](): void {
    if (this.#references > 0) this.release();
  }

  /** The memory as the device's API knows it, to be read; null where the device tells nothing. */
  handle(): NativeMemory {
    const { core, buffer } = this.#live('handle');
    this.#alive();
    const place = core.sharing.place(buffer);
    if (place.api === 'host') return { api: 'host', bytes: place.bytes.subarray(0, this.byteLength) };
    return { ...place, size: Math.max(4, Math.ceil(this.byteLength / 4) * 4) };
  }

  /**
   * Resolves once all that Sinter was asked for so far stands in the device's own queue, so that work
   * of the caller's that is queued from then on comes after it.
   */
  async submitted(): Promise<void> {
    await this.#live('submitted').core.sharing.submitted();
  }

  /**
   * The same to be written to, once what reads the memory stands in the device's queue. Counts as a
   * write, so ask for it before each time that the memory changes.
   */
  async handleMut(): Promise<NativeMemory> {
    this.#beforeWrite('handleMut');
    await this.submitted();
    return this.handle();
  }

  /** The handle if it is of this API, else undefined. */
  as<Api extends NativeApi>(api: Api): Extract<NativeMemory, { api: Api }> | undefined {
    const found = this.handle();
    return found.api === api ? (found as Extract<NativeMemory, { api: Api }>) : undefined;
  }

  /** As `as`, to be written to, which is awaited as `handleMut` is. */
  async asMut<Api extends NativeApi>(api: Api): Promise<Extract<NativeMemory, { api: Api }> | undefined> {
    const found = this.as(api);
    if (found === undefined) return undefined;
    this.#beforeWrite('asMut');
    await this.submitted();
    return found;
  }

  /**
   * The memory of a wrapped buffer, and the end of this handle: from now on it is the caller's to
   * write to. Rejects with E_VALIDATION, and leaves the handle as it is, where the memory is another
   * API's or not the caller's.
   */
  async take<Api extends NativeApi>(api: Api): Promise<Extract<NativeMemory, { api: Api }>> {
    const found = this.as(api);
    if (found === undefined || !this.isWrapped || this.#references > 1) {
      const why =
        found === undefined
          ? `its memory is not of ${showValue(api)}`
          : this.isWrapped
            ? `${this.#references} hold it`
            : "its memory is Sinter's";
      throw new TensorError('E_VALIDATION', 'take', `${this.#title()}: ${why}`, 'handle(), which lends it');
    }
    this.#beforeWrite('take');
    const { sharing } = this.#claim.core;
    this.release();
    await sharing.submitted();
    return found;
  }

  /** Some of the elements, in the same memory; released by itself. */
  slice(start: number, end: number = this.length): DeviceBuffer {
    takesSlice('slice', start, end);
    const { core, buffer, format } = this.#live('slice');
    if (isQ8(format) && start % format.blockSize !== 0)
      throw new TensorError('E_VALIDATION', 'slice', `element ${start} of ${this.#title()} begins no block`);
    if (start > end || end > this.length) {
      const problem = `elements ${start} to ${end} do not lie in ${this.#title()}`;
      throw new TensorError('E_INDEX', 'slice', problem);
    }
    const [from, to] = [start, end].map((at) => packedBytes('slice', format, at)) as [number, number];
    if (from % 4 !== 0 || (to % 4 !== 0 && end !== this.length)) {
      const problem = `bytes ${from} to ${to} of ${this.#title()} are misaligned: memory is taken in words`;
      throw new TensorError('E_VALIDATION', 'slice', problem, 'multiples of 4 bytes');
    }
    const bytes = Math.max(4, Math.ceil((to - from) / 4) * 4);
    const at = to === from ? 0 : from;
    return new DeviceBuffer({
      core,
      buffer: core.sharing.part(buffer, at, bytes),
      format,
      length: end - start,
    });
  }

  /** The same bytes as elements of another dtype, in the same memory; released by itself. */
  retype(dtype: DType): DeviceBuffer {
    const { core, buffer } = this.#live('retype');
    if (!arg.dtype.accepts(dtype)) arg.dtype.refuse('retype', 'the dtype', dtype);
    const length = this.byteLength / elemSize(dtype);
    if (!Number.isInteger(length)) {
      const problem = `the ${this.byteLength} bytes of ${this.#title()} are no whole number of ${dtype}`;
      throw new TensorError('E_VALIDATION', 'retype', problem);
    }
    const part = core.sharing.part(buffer, 0, Math.max(4, Math.ceil(this.byteLength / 4) * 4));
    return new DeviceBuffer({ core, buffer: part, format: dtype, length });
  }

  /** `DeviceBuffer f32[64] on webgpu (wrapped, version 2)`; reads nothing. */
  toString(): string {
    const notes = [
      ...(this.#references === 0 ? ['released'] : []),
      ...(this.isWrapped ? ['wrapped'] : []),
      ...(this.isReadonly ? ['read only'] : []),
      ...(this.#references > 1 ? [`${this.#references} references`] : []),
      ...(this.version > 0 ? [`version ${this.version}`] : []),
    ];
    return `${this.#title()}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`;
  }

  /** A copy in memory of Sinter's, version 0, made on the device. */
  clone(): DeviceBuffer {
    const { core, format, length } = this.#live('clone');
    const { device, sharing } = core;
    const bytes = roomOf(format, length);
    const buffer = this.#copied(0, this.byteLength, bytes);
    return new DeviceBuffer({ core: freshCore(device, sharing), buffer, format, length });
  }

  /**
   * Takes the elements of another buffer of the same dtype and length, on the device where both are
   * on one, else by way of the host. Resolves when that is queued.
   */
  async copyFrom(source: DeviceBuffer): Promise<void> {
    if (!(source instanceof DeviceBuffer))
      throw new TensorError('E_VALUE', 'copyFrom', `expects a DeviceBuffer, got ${showValue(source)}`);
    const { core, buffer, format, length } = this.#live('copyFrom');
    const from = source.#live('copyFrom');
    if (!sameFormat(format, from.format) || length !== from.length) {
      const code = sameFormat(format, from.format) ? 'E_SHAPE' : 'E_DTYPE';
      throw new TensorError(code, 'copyFrom', `${this.#title()} cannot take ${source.#title()}`);
    }
    await source.#ready();
    await this.#ready();
    this.#live('copyFrom');
    source.#live('copyFrom');
    if (this.isEmpty) return;
    if (core.device === from.core.device) {
      this.#beforeWrite('copyFrom');
      core.sharing.copy(from.buffer, buffer, Math.ceil(this.byteLength / 4) * 4);
      return;
    }
    const bytes = await source.readBytes();
    this.writeBytes(bytes);
  }

  /** Writes elements from a place on, brought into the dtype as `tensor` does. */
  write(data: ArrayLike<Scalar>, start: number = 0): void {
    takesWrite('write', data, start);
    const { format } = this.#live('write');
    if (isQ8(format) && start % format.blockSize !== 0)
      throw new TensorError('E_VALIDATION', 'write', `element ${start} of ${this.#title()} begins no block`);
    this.#put('write', bytesOf(format, data), packedBytes('write', format, start));
  }

  /** Writes bytes as they are from a byte on. */
  writeBytes(bytes: Uint8Array, at: number = 0): void {
    takesWriteBytes('writeBytes', bytes, at);
    this.#put('writeBytes', bytes, at);
  }

  /** The bytes as they lie there; rejects with what failed before. */
  async readBytes(): Promise<Uint8Array> {
    const { core, buffer } = this.#live('readBytes');
    await this.#ready();
    this.#live('readBytes');
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
    const { format, length } = this.#live('data');
    const bytes = await this.readBytes();
    if (isQ8(format)) return decodeQ8(bytes, length, format.blockSize);
    return unpackBytes(bytes, format, [length]).data;
  }

  /**
   * The bytes in the host's own memory, where a device has them there (wasm, the interpreter); else
   * undefined. A view of a WebAssembly memory ends when the memory grows.
   */
  view(): Uint8Array | undefined {
    const { core, buffer } = this.#live('view');
    return core.sharing.view?.(buffer).subarray(0, this.byteLength);
  }

  /**
   * Calls `use` with the bytes: where the host has them as they lie, else as a copy that is read
   * before (`read`, `readWrite`) and written back after (`write`, `readWrite`).
   */
  async map(mode: MapMode, use: (bytes: Uint8Array) => void): Promise<void> {
    takesMap('map', mode, use);
    await this.#ready();
    if (mode === 'read') {
      use(this.view()?.slice() ?? (await this.readBytes()));
      return;
    }
    this.#beforeWrite('map');
    const view = this.view();
    if (view !== undefined) {
      use(view);
      return;
    }
    const bytes = mode === 'write' ? new Uint8Array(this.byteLength) : await this.readBytes();
    use(bytes);
    this.#store(bytes, 0);
  }

  #put(op: string, bytes: Uint8Array, at: number): void {
    this.#live(op);
    const end = at + bytes.length;
    if (end > this.byteLength) {
      const problem = `${bytes.length} bytes from ${at} on do not fit ${this.#title()}, ${this.byteLength} bytes`;
      throw new TensorError('E_VALIDATION', op, problem);
    }
    if (at % 4 !== 0 || (end % 4 !== 0 && end !== this.byteLength)) {
      const problem = `bytes ${at} to ${end} of ${this.#title()} are misaligned: memory is written in words`;
      throw new TensorError('E_VALIDATION', op, problem, 'multiples of 4 bytes, or up to the end');
    }
    if (bytes.length === 0) return;
    this.#beforeWrite(op);
    this.#store(bytes, at);
  }

  #store(bytes: Uint8Array, at: number): void {
    const { core, buffer } = this.#live('write');
    if (at === 0) {
      core.device.write(buffer, bytes);
      return;
    }
    const part = core.sharing.part(buffer, at, Math.ceil(bytes.length / 4) * 4);
    core.device.write(part, bytes);
    part.destroy();
  }

  #title(): string {
    return `DeviceBuffer ${showFormat(this.dtype)}[${this.length}] on ${this.device}`;
  }

  #live(op: string): Claim {
    if (this.#references > 0) return this.#claim;
    const hint = 'retain() it for as long as it is used';
    throw new TensorError('E_STATE', op, `${this.#title()} was released`, hint);
  }

  /** Throws E_DEVICE_LOST where the device is gone. */
  #alive(): void {
    void this.#claim.core.sharing.place(this.#claim.buffer);
  }

  async #ready(): Promise<void> {
    await this.fence?.wait();
  }

  /** The memory is about to change: values that lie in it are copied. */
  #beforeWrite(op: string): void {
    const { core, buffer } = this.#live(op);
    if (core.isReadonly) {
      const problem = `${this.#title()} is a tensor's value, which does not change`;
      throw new TensorError('E_STATE', op, problem, 'clone() it, or tensor.assign(…)');
    }
    if (this.fence !== undefined) {
      const problem = `work that ${this.#title()} was given a fence for is not done`;
      throw new TensorError('E_STATE', op, problem, 'await buffer.fence.wait(), or clearFence()');
    }
    const problem = core.sharing.writeProblem(buffer);
    // Kernels of the caller's need no leave to be copied to.
    const isLent = op === 'handleMut' || op === 'asMut' || op === 'take';
    if (problem !== undefined && !isLent)
      throw new TensorError('E_VALIDATION', op, `${this.#title()}: ${problem}`);
    for (const view of core.views) view.deref()?.preserve();
    core.views.clear();
    core.version += 1;
  }

  #inPlace(offset: number, bytes: number): RuntimeBuffer | string {
    const { core, buffer } = this.#live('fromBuffer');
    const { sharing } = core;
    const place = sharing.place(buffer);
    const start = place.api === 'webgpu' ? place.offset : place.api === 'host' ? 0 : place.pointer;
    if ((start + offset) % sharing.alignment !== 0)
      return `kernels read from multiples of ${sharing.alignment} bytes on: it begins at ${start + offset}`;
    const room = sharing.room(buffer) - offset;
    if (room < bytes) return `kernels read in groups and need ${bytes} bytes: there are ${room}`;
    return sharing.part(buffer, offset, bytes);
  }

  #copied(offset: number, bytes: number, room: number): RuntimeBuffer {
    const { core, buffer } = this.#live('copy');
    if (offset % 4 !== 0) {
      const problem = `byte ${offset} of ${this.#title()} is misaligned: memory is copied in words`;
      throw new TensorError('E_VALIDATION', 'copy', problem, 'an offset of a multiple of 4 bytes');
    }
    const fresh = core.device.allocate(room);
    const length = Math.ceil(bytes / 4) * 4;
    if (length === 0) return fresh;
    const part = core.sharing.part(buffer, offset, length);
    core.sharing.copy(part, fresh, length);
    part.destroy();
    return fresh;
  }
}

/** Elements as they lie in memory, brought into the format. */
export function bytesOf(format: Format, data: ArrayLike<Scalar>): Uint8Array {
  if (isQ8(format)) return encodeQ8(Float32Array.from(data, Number), format.blockSize);
  return packBytes(hostArray(format, [data.length / partCount(format)], data));
}

/** Of many views most are of values that nobody has any more. */
function watch(views: Set<WeakRef<View>>, view: View): void {
  if (views.size >= 64) for (const known of views) if (known.deref() === undefined) views.delete(known);
  views.add(new WeakRef(view));
}
