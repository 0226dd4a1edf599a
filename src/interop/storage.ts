// Storage: elements of one format in the memory of the host, of a device, or of both, of which one
// may be newer. A side is brought up to date when it is asked for and not before; transfers go one
// at a time, without a lock that anybody could hold, and one that fails leaves the storage as it
// was. Views of a storage are layouts over it. Tensors are values; a storage is what may change.

import { showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { unpackBytes, type HostData, type Scalar } from '../ir/value.ts';
import { bytesOf, DeviceBuffer, someElements } from '../tensor/buffer/buffer.ts';
import { Fence, noFence, type FenceId } from '../tensor/buffer/fence.ts';
import { aFormat, decodeQ8, deviceByteSize, isQ8, showFormat, type Format } from '../tensor/buffer/format.ts';
import { fromBuffer } from '../tensor/from-buffer.ts';
import { allocateBuffer } from '../tensor/buffer/source.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { freshId, type StorageId } from './ids.ts';
import { Layout } from './layout.ts';

/** Where the elements are. */
export type Residency = 'host' | 'device' | 'both' | 'transferring';
/** Which side of both is newer. */
export type Dirty = 'clean' | 'host' | 'device';

export interface StorageOptions {
  /** f32 by default. */
  readonly dtype?: Format;
  /** Where `ensureDevice` brings it where that is not said; the current device by default. */
  readonly device?: string;
}

/** What outlives a storage for those that hold it weakly. */
interface Versions {
  version: number;
}

const takesOfHost = arg.takes<typeof Storage.ofHost>(
  ['the data', someElements],
  ['options', arg.options<StorageOptions>({ dtype: aFormat, device: arg.text })],
);

/** Elements on the host, on a device, or on both. */
export class Storage {
  readonly id: StorageId = freshId<'storage'>();
  readonly dtype: Format;
  /** Elements. */
  readonly length: number;
  readonly #home: string | undefined;
  readonly #versions: Versions = { version: 0 };
  #host: HostData | undefined;
  #device: DeviceBuffer | undefined;
  #dirty: Dirty = 'clean';
  /** The version that the device's memory had when it was last looked at. */
  #noticed = 0;
  #fence: Fence | undefined = undefined;
  #isReleased = false;
  /** The last transfer or access that was asked for. */
  #turn: Promise<unknown> = Promise.resolve();
  #transfers = 0;

  private constructor(
    dtype: Format,
    length: number,
    from: { readonly host?: HostData; readonly device?: DeviceBuffer },
    home?: string,
  ) {
    this.dtype = dtype;
    this.length = length;
    this.#host = from.host;
    this.#device = from.device;
    this.#home = home;
    this.#noticed = from.device?.version ?? 0;
  }

  /** Of data on the host, which is copied and brought into the format. */
  static ofHost(data: ArrayLike<Scalar>, options: StorageOptions = {}): Storage {
    takesOfHost('Storage.ofHost', data, options);
    const { dtype = 'f32', device } = options;
    const parts = dtype === 'c64' || dtype === 'c128' ? 2 : 1;
    const length = data.length / parts;
    return new Storage(dtype, length, { host: elementsOf(bytesOf(dtype, data), dtype, length) }, device);
  }

  /** Of memory on a device, which is held until the storage is released. */
  static ofDevice(buffer: DeviceBuffer): Storage {
    if (!(buffer instanceof DeviceBuffer)) {
      const problem = `expects a DeviceBuffer, got ${showValue(buffer)}`;
      throw new TensorError('E_VALUE', 'Storage.ofDevice', problem, 'await allocateBuffer(…), wrapBuffer(…)');
    }
    return new Storage(buffer.dtype, buffer.length, { device: buffer.retain() }, buffer.device);
  }

  get residency(): Residency {
    if (this.#transfers > 0) return 'transferring';
    if (this.#device === undefined) return 'host';
    return this.#host === undefined ? 'device' : 'both';
  }

  /** Which of both sides is newer; clean where there is one. */
  get dirty(): Dirty {
    this.#notice();
    return this.#dirty;
  }

  get isOnDevice(): boolean {
    return this.#device !== undefined;
  }

  /** How often it was written to; every view has it. */
  get version(): number {
    this.#notice();
    return this.#versions.version;
  }

  /** Says that it was written to by other means; gives the version before. */
  bumpVersion(): number {
    this.#live('bumpVersion');
    return this.#versions.version++;
  }

  /** Says that the device's side was written to; of a storage on one side nothing changes. */
  markDeviceDirty(): void {
    this.#live('markDeviceDirty');
    if (this.#host !== undefined && this.#device !== undefined) this.#dirty = 'device';
  }

  /** The number of the fence that reads and writes wait for; undefined without one. */
  get fence(): FenceId | undefined {
    if (this.#fence?.signalled === true) this.#fence = undefined;
    const { id = noFence } = this.#fence ?? {};
    return id === noFence ? undefined : id;
  }

  /** Work of others that has to be done before anything is read or written; a newer one replaces it. */
  setFence(fence: Fence): void {
    if (!(fence instanceof Fence))
      throw new TensorError('E_VALUE', 'setFence', `expects a Fence, got ${showValue(fence)}`);
    this.#live('setFence');
    this.#fence = fence;
  }

  clearFence(): void {
    this.#fence = undefined;
  }

  /** Brings the host's side up to date; nothing where it is. */
  ensureHost(): Promise<void> {
    return this.#exclusive('ensureHost', () => this.#bringToHost());
  }

  /** Brings the device's side up to date, on a device by name or its own; nothing where it is. */
  ensureDevice(name?: string): Promise<void> {
    return this.#exclusive('ensureDevice', () => this.#bringToDevice(name));
  }

  /** The device's memory, up to date: one more hold of it, to be released. */
  buffer(name?: string): Promise<DeviceBuffer> {
    return this.#exclusive('buffer', async () => {
      await this.#bringToDevice(name);
      return this.#device!.retain();
    });
  }

  /** The elements, on the host: f16, bf16 and q8 as f32. A copy, which is the caller's. */
  data(): Promise<HostData> {
    return this.#exclusive('data', async () => {
      await this.#bringToHost();
      return this.#host!.slice();
    });
  }

  /**
   * Calls `use` with the elements on the host, which it may change: the version goes up, and the
   * device's side is brought up to date when it is asked for. What the format does not hold is
   * rounded, quantised.
   */
  write(use: (data: HostData) => void): Promise<void> {
    if (typeof use !== 'function')
      throw new TensorError('E_VALUE', 'write', `expects a function, got ${showValue(use)}`);
    return this.#exclusive('write', async () => {
      if (this.#device?.isReadonly === true) {
        const problem = `${this.toString()} is a tensor's value, which does not change`;
        throw new TensorError('E_STATE', 'write', problem);
      }
      await this.#bringToHost();
      const changed = this.#host!.slice();
      use(changed);
      this.#host = elementsOf(bytesOf(this.dtype, changed as ArrayLike<Scalar>), this.dtype, this.length);
      this.#versions.version += 1;
      if (this.#device !== undefined) this.#dirty = 'host';
    });
  }

  /**
   * Writes the elements of a source, in C-order, to the places of a layout; the rest stays. Which of
   * several at one place stays is left open.
   */
  async stridedWrite(layout: Layout, source: ArrayLike<Scalar>): Promise<void> {
    if (!(layout instanceof Layout))
      throw new TensorError('E_VALUE', 'stridedWrite', `expects a Layout, got ${showValue(layout)}`);
    layout.checkWithin(this.length);
    if (!someElements.accepts(source)) someElements.refuse('stridedWrite', 'the source', source);
    if (source.length !== layout.size || this.dtype === 'c64' || this.dtype === 'c128') {
      const problem = `${layout.toString()} takes ${layout.size} real elements, got ${source.length}`;
      throw new TensorError('E_SHAPE', 'stridedWrite', problem);
    }
    await this.write((data) => {
      const index = layout.shape.map(() => 0);
      for (let i = 0; i < source.length; i++) {
        (data as Scalar[] | Float32Array)[layout.placeOf(index)] = source[i] as number;
        for (let axis = layout.rank - 1; axis >= 0; axis--) {
          index[axis]! += 1;
          if (index[axis]! < layout.shape[axis]!) break;
          index[axis] = 0;
        }
      }
    });
  }

  /** The bytes as a device stores them, in whole words, without any conversion. */
  toHostRaw(): Promise<Uint8Array> {
    return this.#exclusive('toHostRaw', async () => {
      if (this.#device !== undefined && this.#dirty !== 'host') return this.#device.readRaw();
      const bytes = bytesOf(this.dtype, this.#host! as ArrayLike<Scalar>);
      const whole = new Uint8Array(deviceByteSize(this.dtype, this.length));
      whole.set(bytes);
      return whole;
    });
  }

  /** A tensor of what a layout sees of it now; of all elements in one axis by default. */
  async tensor(layout: Layout = new Layout([this.length])): Promise<Tensor> {
    if (!(layout instanceof Layout))
      throw new TensorError('E_VALUE', 'Storage.tensor', `expects a Layout, got ${showValue(layout)}`);
    layout.checkWithin(this.length);
    const buffer = await this.buffer();
    const { shape, strides, offset } = layout;
    const made = layout.isContiguous()
      ? fromBuffer(buffer, { shape, offset: layout.size === 0 ? 0 : offset })
      : fromBuffer(buffer, { shape, strides, offset });
    buffer.release();
    return made;
  }

  /** Holds it without keeping it. */
  weak(): WeakStorage {
    return new WeakStorage(this, this.#versions, showFormat(this.dtype));
  }

  /** Gives both sides up, once transfers are done. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    void this.#turn.then(() => {
      this.#device?.release();
      this.#device = this.#host = undefined;
    });
  }

  get isReleased(): boolean {
    return this.#isReleased;
  }

  [Symbol.dispose](): void {
    this.release();
  }

  /** `Storage 3 f32[64] (both, host newer, version 1)`; moves nothing. */
  toString(): string {
    const state = this.#isReleased ? 'released' : this.residency;
    const newer = this.#dirty === 'clean' ? '' : `, ${this.#dirty} newer`;
    const fence = this.fence === undefined ? '' : `, fence ${this.fence}`;
    const title = `Storage ${this.id} ${showFormat(this.dtype)}[${this.length}]`;
    return `${title} (${state}${newer}, version ${this.version}${fence})`;
  }

  /** Writes to the device's memory that came by its buffer are writes to the storage. */
  #notice(): void {
    const version = this.#device?.version ?? this.#noticed;
    if (version === this.#noticed) return;
    this.#versions.version += version - this.#noticed;
    this.#noticed = version;
    if (this.#host === undefined) return;
    if (this.#dirty === 'host') {
      const problem = `storage ${this.id} was written to on the host and on the device`;
      throw new TensorError('E_STATE', 'Storage', problem, 'ensureDevice() or ensureHost() between the two');
    }
    this.#dirty = 'device';
  }

  #live(op: string): void {
    if (this.#isReleased) throw new TensorError('E_STATE', op, `${this.toString()} was given up`);
  }

  /** One access after the other: who comes meanwhile waits, and finds done what was done. */
  #exclusive<T>(op: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(async () => {
      this.#live(op);
      if (this.fence !== undefined) await this.#fence?.wait();
      this.#notice();
      return work();
    });
    this.#turn = turn.then(
      () => undefined,
      () => undefined,
    );
    return turn;
  }

  async #transfer<T>(work: () => Promise<T>): Promise<T> {
    this.#transfers += 1;
    try {
      return await work();
    } finally {
      this.#transfers -= 1;
    }
  }

  async #bringToHost(): Promise<void> {
    if (this.#host !== undefined && this.#dirty !== 'device') return;
    const bytes = await this.#transfer(() => this.#device!.readBytes());
    this.#host = elementsOf(bytes, this.dtype, this.length);
    this.#dirty = 'clean';
  }

  async #bringToDevice(name: string | undefined): Promise<void> {
    const held = this.#device;
    const isThere = held !== undefined && (name === undefined || held.device === name);
    if (isThere && this.#dirty !== 'host') return;
    if (!isThere) await this.#bringToHost();
    const home = name ?? this.#home;
    await this.#transfer(async () => {
      const options = { dtype: this.dtype, ...(home === undefined ? {} : { device: home }) };
      const target = isThere ? held : await allocateBuffer(this.length, options);
      target.writeBytes(bytesOf(this.dtype, this.#host! as ArrayLike<Scalar>));
      this.#device = target;
      this.#noticed = target.version;
      if (!isThere) held?.release();
    });
    this.#dirty = 'clean';
  }
}

/** A hold of a storage that does not keep it. */
export class WeakStorage {
  readonly #storage: WeakRef<Storage>;
  readonly #versions: Readonly<Versions>;
  readonly #format: string;

  /** Not for users: `storage.weak()` makes them. */
  constructor(storage: Storage, versions: Readonly<Versions>, format: string) {
    if (!(storage instanceof Storage))
      throw new TensorError(
        'E_VALUE',
        'WeakStorage',
        `expects a Storage, got ${showValue(storage)}`,
        'storage.weak()',
      );
    this.#storage = new WeakRef(storage);
    this.#versions = versions;
    this.#format = format;
  }

  /** The storage, unless it was collected or released. */
  upgrade(): Storage | undefined {
    const storage = this.#storage.deref();
    return storage?.isReleased === true ? undefined : storage;
  }

  /** The version that the storage has, or had. */
  get version(): number {
    return this.#versions.version;
  }

  /** `WeakStorage f32 (alive, version 1)`. */
  toString(): string {
    const state = this.upgrade() === undefined ? 'gone' : 'alive';
    return `WeakStorage ${this.#format} (${state}, version ${this.version})`;
  }
}

/** Elements as the host has them. */
function elementsOf(bytes: Uint8Array, dtype: Format, length: number): HostData {
  if (isQ8(dtype)) return decodeQ8(bytes, length, dtype.blockSize);
  return unpackBytes(bytes, dtype, [length]).data;
}
