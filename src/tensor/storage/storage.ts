// StoredValue: the bytes of one evaluated value, on the host, on a device, or on both, and which runs
// still need them. The StoredValue of a queued run's output is promised: it becomes ready, or fails,
// when the run does. Values never change in place, so several tensors may share one.

import { CompilerBug, SinterError } from '../../errors.ts';
import { dtypeBytes, isSmallInteger, type DType } from '../../ir/dtype.ts';
import { showShape, sizeOf, type FixedShape } from '../../ir/shape.ts';
import { castArray, packBytes, unpackBytes } from '../../ir/value.ts';
import type { Device } from '../../runtime/device.ts';
import { deviceBytes } from '../../runtime/program.ts';
import type { ShardPart } from '../../sharding/part.ts';
import { counts } from '../report/stats.ts';
import { Resident } from './resident.ts';

/** Why the bytes are gone for good. */
export type Lost = 'disposed' | 'donated' | 'overwritten';

/** Bytes of a value that is still known after it was read. */
const mostTaken = 4096;

export class StoredValue {
  readonly dtype: DType;
  readonly shape: FixedShape;
  /** What this process has of it, where several processes hold it together. */
  readonly part: ShardPart | undefined;
  /** The shape of what lies here: that of the part. */
  readonly #stored: FixedShape;
  /** Tightly packed size of what lies here. */
  readonly bytes: number;
  #host: Uint8Array | undefined;
  #resident: Resident | undefined = undefined;
  /** What was read of a small value, to be shown. */
  #taken: Uint8Array | undefined = undefined;
  #failure: unknown = undefined;
  /** A queued run owes the value. */
  #owed = false;
  /** Made when the first reader waits; most values are ready before that. */
  #promise: { readonly done: Promise<void>; readonly resolve: () => void } | undefined = undefined;
  #lost: Lost | undefined = undefined;
  /** The value in other dtypes, as programs have asked for it. */
  #casts: Map<DType, StoredValue> | undefined = undefined;
  #owners = 0;
  #pins = 0;
  /** Rejects the reads of a value in which anomaly detection found a NaN or an infinity. */
  guard: Promise<void> | undefined = undefined;
  /**
   * Some value was computed from this one and not kept, or can still be differentiated: a late
   * reader may need it.
   */
  lingering = false;
  /** How many groups of pending values set aside read it (handle/aside.ts). */
  readers = 0;
  /** It was given up while such groups read it. */
  doomed: Lost | undefined = undefined;

  private constructor(dtype: DType, shape: FixedShape, host: Uint8Array | undefined, part?: ShardPart) {
    this.dtype = dtype;
    this.shape = shape;
    this.part = part;
    this.#stored = part?.shapeOf(shape) ?? shape;
    this.bytes = dtypeBytes(dtype) * sizeOf(this.#stored);
    this.#host = host;
  }

  /** A value whose packed bytes, or those of its part, are on the host; the bytes become the StoredValue's own. */
  static ofHost(dtype: DType, shape: FixedShape, bytes: Uint8Array, part?: ShardPart): StoredValue {
    return new StoredValue(dtype, shape, bytes, part);
  }

  /** A value that a queued run will produce: `fulfil` or `fail` follows. */
  static promised(dtype: DType, shape: FixedShape, part?: ShardPart): StoredValue {
    const storage = new StoredValue(dtype, shape, undefined, part);
    storage.#owed = true;
    return storage;
  }

  /** The packed bytes, where the host has them already. */
  get hostBytes(): Uint8Array | undefined {
    return this.#host;
  }

  /** The packed bytes, where they can be had without waiting: to be looked at, not kept; none of a part. */
  get seen(): Uint8Array | undefined {
    if (this.part !== undefined) return undefined;
    if (this.#host !== undefined || this.#owed || this.#failure !== undefined) return this.#host;
    const resident = this.#live();
    if (resident === undefined || resident.device.lost) return this.#taken;
    return resident.device.peek?.(resident.buffer, this.bytes) ?? this.#taken;
  }

  /** The device that has the value. */
  get device(): string | undefined {
    return this.#live()?.device.facts.name;
  }

  /** Why the value can no longer be read, if so. */
  get lost(): Lost | undefined {
    return this.#lost;
  }

  /** What went wrong in the run that should have produced the value. */
  get failure(): unknown {
    return this.#failure;
  }

  /** `host`, `device`, `both`, or `pending` while a queued run owes the value. */
  get place(): 'host' | 'device' | 'both' | 'pending' {
    if (this.#host === undefined) return this.#resident === undefined ? 'pending' : 'device';
    return this.#live() === undefined ? 'host' : 'both';
  }

  /**
   * Room for kernels that address small integers one by one, and for those that address whole
   * words.
   */
  get deviceBytes(): number {
    if (isSmallInteger(this.dtype)) return deviceBytes(4, Math.ceil(this.bytes / 4));
    return deviceBytes(dtypeBytes(this.dtype), sizeOf(this.#stored));
  }

  /** Bytes that kernels may look at, in whole vectors. */
  get room(): number {
    return Math.ceil(this.deviceBytes / 16) * 16;
  }

  /** The device that has the value, while it is there. */
  get home(): Device | undefined {
    const device = this.#live()?.device;
    return device?.lost === true ? undefined : device;
  }

  /** The value moves to the copy that `copy` makes of its memory, which is about to change. */
  relocate(copy: (from: Resident) => Resident): void {
    const resident = this.#live();
    if (resident === undefined) return;
    this.#resident = copy(resident);
    resident.release();
  }

  fulfil(resident: Resident): void {
    this.#resident = resident;
    this.#resolvePromise();
  }

  fail(error: unknown): void {
    this.#failure = error;
    this.#resolvePromise();
  }

  #resolvePromise(): void {
    this.#owed = false;
    this.#promise?.resolve();
    this.#promise = undefined;
    this.#freeIfDone();
  }

  #owedValue(): Promise<void> {
    if (this.#promise === undefined) {
      let resolve = (): void => undefined;
      const done = new Promise<void>((fulfil) => (resolve = fulfil));
      this.#promise = { done, resolve };
    }
    return this.#promise.done;
  }

  /** The device copy, unless memory pressure dropped it. */
  #live(): Resident | undefined {
    if (this.#resident?.freed === true) this.#resident = undefined;
    return this.#resident;
  }

  /**
   * The device copy on `device`, uploading it first where the host has the bytes; undefined when
   * neither does.
   */
  on(device: Device): Resident | undefined {
    const resident = this.#live();
    if (resident?.device === device) {
      resident.touch();
      return resident;
    }
    if (this.#host === undefined) return undefined;
    if (resident !== undefined) {
      this.#resident = undefined;
      resident.release();
    }
    const size = this.deviceBytes;
    const uploaded = new Resident(device, device.allocate(size));
    device.write(uploaded.buffer, padded(this.#host, size));
    counts.uploaded += this.bytes;
    this.#resident = uploaded;
    uploaded.evictable();
    return uploaded;
  }

  /** Leaves the value to `device` alone, where the host has the bytes. */
  moveTo(device: Device): void {
    if (this.#host === undefined || this.#lost !== undefined) return;
    this.on(device)!.pinDown();
    this.#host = undefined;
  }

  /** The value in another dtype, cast by the host, which must have the bytes. */
  cast(dtype: DType): StoredValue {
    const known = this.#casts?.get(dtype);
    if (known !== undefined) return known;
    const bytes = this.hostBytes;
    if (bytes === undefined) throw new CompilerBug('cast', 'the value is not on the host');
    const value = castArray(unpackBytes(bytes, this.dtype, this.#stored), dtype);
    const made = StoredValue.ofHost(dtype, this.shape, packBytes(value), this.part);
    this.#casts ??= new Map();
    this.#casts.set(dtype, made);
    return made;
  }

  /** What this process has of the value, as a value of its own in the same memory. */
  ownPart(): StoredValue {
    const own = new StoredValue(this.dtype, this.#stored, this.#host);
    const take = (): void => {
      const resident = this.#live();
      if (this.#failure !== undefined) own.fail(this.#failure);
      else if (resident !== undefined) own.fulfil(resident.share());
    };
    if (!this.#owed) take();
    else {
      own.#owed = true;
      this.pin();
      void this.#owedValue().then(() => {
        take();
        this.unpin();
      });
    }
    return own;
  }

  /** Whether `on` would find the bytes without waiting. */
  canReach(device: Device): boolean {
    if (this.#failure !== undefined) return true;
    return this.#host !== undefined || this.#live()?.device === device;
  }

  /**
   * Brings the bytes to the host when only another device has them, so that `on` can upload them.
   */
  async toHost(): Promise<void> {
    await this.arrived();
    if (this.#host !== undefined || this.#failure !== undefined) return;
    const resident = this.#live()!;
    this.#host = await resident.device.read(resident.buffer, this.bytes);
    counts.downloaded += this.bytes;
  }

  /**
   * The packed bytes, once the run that owes them is done. Rejects with the run's failure. What is
   * given up meanwhile is still read.
   */
  async read(): Promise<Uint8Array> {
    this.#checkKept();
    const bytes = await this.unguarded();
    if (this.guard !== undefined) await this.guard;
    return bytes;
  }

  #checkKept(): void {
    if (this.#lost === undefined) return;
    const type = showShape(this.shape, this.dtype);
    throw new SinterError('E_STATE', `read: the value of the tensor ${type} was ${this.#lost}`);
  }

  /** Resolves once the run that owes the value is done or has failed. */
  async arrived(): Promise<void> {
    if (this.#owed) await this.#owedValue();
  }

  /** As `read`, of a value that stays where it is: rejects with what went wrong in computing it. */
  async settled(): Promise<this> {
    this.#checkKept();
    this.pin();
    try {
      await this.arrived();
      if (this.#failure !== undefined) throw this.#failure;
      if (this.guard !== undefined) await this.guard;
      return this;
    } finally {
      this.unpin();
    }
  }

  /** The bytes that are there, whatever is known of the value; not once they were freed. */
  async unguarded(): Promise<Uint8Array> {
    this.pin();
    try {
      if (this.#owed) await this.#owedValue();
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#host !== undefined) return this.#host;
      const resident = this.#live()!;
      const bytes = await resident.device.read(resident.buffer, this.bytes);
      counts.downloaded += this.bytes;
      if (bytes.length <= mostTaken) this.#taken = bytes;
      return bytes;
    } finally {
      this.unpin();
    }
  }

  /** One more handle refers to this value. */
  share(): void {
    this.#owners += 1;
  }

  /** One handle fewer; true when it was the last. */
  unshare(): boolean {
    this.#owners -= 1;
    return this.#owners <= 0;
  }

  /** Handles that refer to this value. */
  get owners(): number {
    return this.#owners;
  }

  /** A queued run needs the bytes: nothing is freed before `unpin`. */
  pin(): void {
    this.#pins += 1;
  }

  /** Queued runs, once per input, and readers that need the bytes. */
  get pins(): number {
    return this.#pins;
  }

  unpin(): void {
    this.#pins -= 1;
    this.#freeIfDone();
  }

  /** Gives the value up for good. Memory goes back as soon as no queued run needs it. */
  lose(why: Lost): void {
    this.#lost ??= why;
    this.#freeIfDone();
  }

  #freeIfDone(): void {
    if (this.#lost === undefined || this.#pins > 0 || this.#owed) return;
    this.#host = this.#taken = undefined;
    for (const cast of this.#casts?.values() ?? []) cast.lose(this.#lost);
    const resident = this.#live();
    if (resident === undefined) return;
    this.#resident = undefined;
    resident.release();
  }
}

/** The bytes with zeros behind them up to `size`. */
function padded(bytes: Uint8Array, size: number): Uint8Array {
  if (bytes.length === size) return bytes;
  const whole = new Uint8Array(size);
  whole.set(bytes);
  return whole;
}
