// Shares CUDA with other code of the process: device pointers of the caller in the primary context of the
// device, and ours as device pointers. The driver says which device a pointer belongs to, and in which
// allocation it lies.

import { DeviceError } from '../../errors.ts';
import type { DeviceAllocation } from '../device.ts';
import type { Move } from '../layout.ts';
import { GpuSharing } from '../gpu-sharing.ts';
import type { NativeMemory } from '../sharing.ts';
import type { CudaEngine } from './load.ts';

/** CUpointer_attribute's numbers. */
const attributes = { memoryType: 2, deviceOrdinal: 9, rangeStart: 11, rangeSize: 12 } as const;
/** CU_MEMORYTYPE_DEVICE. */
const onDevice = 2;

export class CudaSharing extends GpuSharing<number> {
  readonly #engine: CudaEngine;

  constructor(engine: CudaEngine) {
    const { device, handle, stream, failures } = engine.context;
    const { memory, timeline } = engine;
    super({ api: 'cuda', ordinal: device, context: handle, stream }, { memory, timeline, failures });
    this.#engine = engine;
  }

  override async wrap(given: NativeMemory, ended: () => void): Promise<DeviceAllocation> {
    const { context, memory, fences } = this.#engine;
    context.failures.assertAlive();
    if (given.api !== 'cuda') throw memory.misuse(`memory of ${given.api} is none of this device`);
    const { pointer, size } = given;
    if (!(Number.isSafeInteger(pointer) && pointer > 0))
      throw memory.misuse(`${String(pointer)} is no device pointer`);
    if (pointer % 4 !== 0) throw memory.misuse(`the device pointer ${pointer} is misaligned: not a word's`);
    if (!(Number.isInteger(size / 4) && size > 0))
      throw memory.misuse(`${size} bytes are not a positive number of words`);
    this.#check(pointer, size);
    const last = (): void => {
      // Work that is queued may still read it.
      fences.wait(fences.latest).then(ended, ended);
    };
    return memory.wrap(pointer, size, { offset: 0, bytes: size }, last);
  }

  override place(buffer: DeviceAllocation): NativeMemory {
    const { slab, offset } = this.placeOf(buffer);
    return { api: 'cuda', pointer: slab.gpu + offset, size: buffer.bytes };
  }

  override writeProblem(): string | undefined {
    return undefined;
  }

  override copy(from: DeviceAllocation, to: DeviceAllocation, bytes: number): void {
    const { context, memory, timeline, mover } = this.#engine;
    context.failures.assertAlive();
    const [source, target] = [this.placeOf(from), this.placeOf(to)];
    const start = source.slab.gpu + source.offset;
    const end = target.slab.gpu + target.offset;
    if (start === end) return;
    const at = context.failures.tick();
    timeline.push(() => {
      if (context.failures.lost) return;
      const move: Move<number> = { from: source, to: target, bytes };
      if (Math.abs(start - end) >= bytes) return mover.copy(at, [move]);
      // The driver leaves open what copies of overlapping ranges give.
      const slab = memory.scratch(bytes);
      const between = { slab, offset: 0 };
      mover.copy(at, [
        { ...move, to: between },
        { ...move, from: between },
      ]);
      memory.recycle(slab);
      return undefined;
    });
  }

  /** Whether a live allocation of this device holds these bytes. */
  #check(pointer: number, size: number): void {
    const { context, memory } = this.#engine;
    if (this.#ask(attributes.memoryType, pointer) !== onDevice)
      throw memory.misuse(`${pointer} points to no memory of a device`);
    const ordinal = this.#ask(attributes.deviceOrdinal, pointer);
    if (ordinal !== context.device) {
      throw new DeviceError(
        'E_VALIDATION',
        context.name,
        `${pointer} points to memory of device ${ordinal}, not of device ${context.device}`,
        { hint: `wrap it with { device: 'cuda:${ordinal}' }` },
      );
    }
    const start = this.#ask(attributes.rangeStart, pointer);
    const whole = this.#ask(attributes.rangeSize, pointer);
    if (pointer + size > start + whole) {
      const problem = `${size} bytes from ${pointer - start} on do not lie in an allocation of ${whole}`;
      throw memory.misuse(problem);
    }
  }

  #ask(attribute: number, pointer: number): number {
    const { context, memory } = this.#engine;
    const { cu, cell } = context.driver;
    context.use();
    cell.set(0);
    const result = cu.cuPointerGetAttribute(cell.address, attribute, pointer);
    const INVALID_VALUE = 1;
    if (result === INVALID_VALUE) throw memory.misuse(`${pointer} points to no memory that is allocated`);
    context.check(result, 'cuPointerGetAttribute', 'asking about a pointer');
    return attribute === attributes.rangeStart || attribute === attributes.rangeSize
      ? cell.number()
      : cell.int();
  }
}
