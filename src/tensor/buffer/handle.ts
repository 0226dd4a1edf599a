// What a handle to memory on a device is, whatever is done with the bytes: whose memory it is, what
// its elements are, who holds it, how often it was written to, and the memory as the device's API
// knows it. Tensors that were made of the memory keep their values: before it is written to through
// a handle they get copies.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import type { DType } from '../../ir/dtype.ts';
import type { DeviceAllocation as RuntimeBuffer } from '../../runtime/device.ts';
import type { NativeApi, NativeMemory } from '../../runtime/sharing.ts';
import type { Claim } from './claim.ts';
import { Fence } from './fence.ts';
import { elemSize, isQ8, packedBytes, showFormat, type Format } from './format.ts';
import { lend, type View } from './lent.ts';

const takesSlice = arg.takes<BufferHandle['slice']>(
  ['the start', arg.count(0)],
  ['the end', arg.optional(arg.count(0))],
);
/** One holder's claim on memory of a device. */
export abstract class BufferHandle {
  protected readonly claim: Claim;

  static {
    // What consoles of Node show.
    Object.defineProperty(BufferHandle.prototype, Symbol.for('nodejs.util.inspect.custom'), {
      value(this: BufferHandle) {
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
    this.claim = claim;
    const { core, format, length } = claim;
    this.byteLength = packedBytes('DeviceBuffer', format, length);
    const of = (): BufferHandle => this;
    lend(this, {
      device: core.device,
      format,
      length,
      byteLength: this.byteLength,
      get title() {
        return of().title();
      },
      get fence() {
        return core.fence;
      },
      check: (op) => void this.live(op),
      inPlace: (offset, bytes) => this.#inPlace(offset, bytes),
      copied: (offset, bytes, room) => this.copied(offset, bytes, room),
      hold: () => {
        this.retain();
        return () => this.release();
      },
      watch: (view) => watch(core.views, view),
    });
  }

  /** The name of the device. */
  get device(): string {
    return this.claim.core.device.facts.name;
  }

  /** The device's number among those of its kind: 1 of `cuda:1`. */
  get ordinal(): number {
    return Number(/:(\d+)$/.exec(this.device)?.[1] ?? 0);
  }

  /** What the elements are; fixed for the life of the buffer. */
  get dtype(): Format {
    return this.claim.format;
  }

  /** How many elements there are. */
  get length(): number {
    return this.claim.length;
  }

  get isEmpty(): boolean {
    return this.claim.length === 0;
  }

  /** Bytes of an element by its dtype alone; 0 of q8. */
  get elemSize(): number {
    return elemSize(this.dtype);
  }

  /** Whether the memory is the caller's. */
  get isWrapped(): boolean {
    return this.claim.core.isWrapped;
  }

  /** Whether a tensor's value lies here, which nobody may change. */
  get isReadonly(): boolean {
    return this.claim.core.isReadonly;
  }

  /** How many hold it; 0 once it was released. */
  get references(): number {
    return this.#references;
  }

  /** How often the memory was written to through a DeviceBuffer, or is said to have been. */
  get version(): number {
    return this.claim.core.version;
  }

  /** Says that the memory was written to by other means; gives the version before. */
  bumpVersion(): number {
    const { core } = this.live('bumpVersion');
    for (const view of core.views) view.deref()?.lose();
    core.views.clear();
    core.version += 1;
    return core.version - 1;
  }

  /** Work of others that has to be done before the memory is used; reads and tensors wait for it. */
  get fence(): Fence | undefined {
    const { core } = this.claim;
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
    this.live('setFence').core.fence = fence;
  }

  clearFence(): void {
    this.live('clearFence').core.fence = undefined;
  }

  /** A fence after everything that the device was asked for so far. */
  settled(): Fence {
    return Fence.after(this.live('settled').core.device);
  }

  /** One more holder; each ends its hold by `release`. */
  retain(): this {
    this.live('retain');
    this.#references += 1;
    return this;
  }

  /** One holder fewer. The last one gives the memory back, or back to its owner. */
  release(): void {
    this.live('release');
    this.#references -= 1;
    if (this.#references > 0) return;
    this.claim.buffer.destroy();
    this.claim.ended?.();
  }

  [Symbol.dispose](): void {
    if (this.#references > 0) this.release();
  }

  /** The memory as the device's API knows it, to be read; null where the device tells nothing. */
  handle(): NativeMemory {
    const { core, buffer } = this.live('handle');
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
    await this.live('submitted').core.sharing.submitted();
  }

  /**
   * The same to be written to, once what reads the memory stands in the device's queue. Counts as a
   * write, so ask for it before each time that the memory changes.
   */
  async handleMut(): Promise<NativeMemory> {
    this.beforeWrite('handleMut');
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
    this.beforeWrite('asMut');
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
      throw new TensorError('E_VALIDATION', 'take', `${this.title()}: ${why}`, 'handle(), which lends it');
    }
    this.beforeWrite('take');
    const { sharing } = this.claim.core;
    this.release();
    await sharing.submitted();
    return found;
  }

  /** Some of the elements, in the same memory; released by itself. */
  slice(start: number, end: number = this.length): this {
    takesSlice('slice', start, end);
    const { core, buffer, format } = this.live('slice');
    if (isQ8(format) && start % format.blockSize !== 0)
      throw new TensorError('E_VALIDATION', 'slice', `element ${start} of ${this.title()} begins no block`);
    if (start > end || end > this.length) {
      const problem = `elements ${start} to ${end} do not lie in ${this.title()}`;
      throw new TensorError('E_INDEX', 'slice', problem);
    }
    const [from, to] = [start, end].map((at) => packedBytes('slice', format, at)) as [number, number];
    if (from % 4 !== 0 || (to % 4 !== 0 && end !== this.length)) {
      const problem = `bytes ${from} to ${to} of ${this.title()} are misaligned: memory is taken in words`;
      throw new TensorError('E_VALIDATION', 'slice', problem, 'multiples of 4 bytes');
    }
    const bytes = Math.max(4, Math.ceil((to - from) / 4) * 4);
    const at = to === from ? 0 : from;
    return this.another({
      core,
      buffer: core.sharing.part(buffer, at, bytes),
      format,
      length: end - start,
    });
  }

  /** The same bytes as elements of another dtype, in the same memory; released by itself. */
  retype(dtype: DType): this {
    const { core, buffer } = this.live('retype');
    if (!arg.dtype.accepts(dtype)) arg.dtype.refuse('retype', 'the dtype', dtype);
    const length = this.byteLength / elemSize(dtype);
    if (!Number.isInteger(length)) {
      const problem = `the ${this.byteLength} bytes of ${this.title()} are no whole number of ${dtype}`;
      throw new TensorError('E_VALIDATION', 'retype', problem);
    }
    const part = core.sharing.part(buffer, 0, Math.max(4, Math.ceil(this.byteLength / 4) * 4));
    return this.another({ core, buffer: part, format: dtype, length });
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
    return `${this.title()}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`;
  }

  /** Another handle of the same class. */
  protected abstract another(claim: Claim): this;

  protected title(): string {
    return `DeviceBuffer ${showFormat(this.dtype)}[${this.length}] on ${this.device}`;
  }

  protected live(op: string): Claim {
    if (this.#references > 0) return this.claim;
    const hint = 'retain() it for as long as it is used';
    throw new TensorError('E_STATE', op, `${this.title()} was released`, hint);
  }

  /** Throws E_DEVICE_LOST where the device is gone. */
  #alive(): void {
    void this.claim.core.sharing.place(this.claim.buffer);
  }

  protected async ready(): Promise<void> {
    await this.fence?.wait();
  }

  /** The memory is about to change: values that lie in it are copied. */
  protected beforeWrite(op: string): void {
    const { core, buffer } = this.live(op);
    if (core.isReadonly) {
      const problem = `${this.title()} is a tensor's value, which does not change`;
      throw new TensorError('E_STATE', op, problem, 'clone() it, or tensor.assign(…)');
    }
    if (this.fence !== undefined) {
      const problem = `work that ${this.title()} was given a fence for is not done`;
      throw new TensorError('E_STATE', op, problem, 'await buffer.fence.wait(), or clearFence()');
    }
    const problem = core.sharing.writeProblem(buffer);
    // Kernels of the caller's need no leave to be copied to.
    const isLent = op === 'handleMut' || op === 'asMut' || op === 'take';
    if (problem !== undefined && !isLent)
      throw new TensorError('E_VALIDATION', op, `${this.title()}: ${problem}`);
    for (const view of core.views) view.deref()?.preserve();
    core.views.clear();
    core.version += 1;
  }

  #inPlace(offset: number, bytes: number): RuntimeBuffer | string {
    const { core, buffer } = this.live('fromBuffer');
    const { sharing } = core;
    const place = sharing.place(buffer);
    const start = place.api === 'webgpu' ? place.offset : place.api === 'host' ? 0 : place.pointer;
    if ((start + offset) % sharing.alignment !== 0)
      return `kernels read from multiples of ${sharing.alignment} bytes on: it begins at ${start + offset}`;
    const room = sharing.room(buffer) - offset;
    if (room < bytes) return `kernels read in groups and need ${bytes} bytes: there are ${room}`;
    return sharing.part(buffer, offset, bytes);
  }

  protected copied(offset: number, bytes: number, room: number): RuntimeBuffer {
    const { core, buffer } = this.live('copy');
    if (offset % 4 !== 0) {
      const problem = `byte ${offset} of ${this.title()} is misaligned: memory is copied in words`;
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

/** Of many views most are of values that nobody has any more. */
function watch(views: Set<WeakRef<View>>, view: View): void {
  if (views.size >= 64) for (const known of views) if (known.deref() === undefined) views.delete(known);
  views.add(new WeakRef(view));
}
