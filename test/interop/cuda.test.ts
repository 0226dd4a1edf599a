// One CUDA context with code of the user's, over the stand-in: device pointers of theirs are tensors,
// and values of ours are device pointers that their copies and kernels take.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { close, fromBuffer, setDevice, tensor } from '../../src/index.ts';
import { nativeDevice, openDevice, wrapBuffer, type WrapOptions } from '../../src/interop/index.ts';
import { Driver } from '../cuda/standin/driver.ts';
import { onStandIn } from '../cuda/standin/on-standin.ts';

onStandIn('beside other code on CUDA', () => {
  let driver: Driver;
  beforeAll(async () => {
    setDevice('cuda');
    await tensor([1]).add(1).data();
    driver = new Driver();
    await close();
    setDevice('cuda');
    await openDevice();
  });
  afterAll(async () => {
    await close();
    setDevice(undefined);
  });

  const ramp = (count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => i);

  test('memory of theirs is a tensor, and a value of ours is memory to them', async () => {
    const count = 96;
    const theirs = driver.upload(ramp(count + 32));
    const buffer = await wrapBuffer(BigInt(theirs), { byteLength: 4 * (count + 32) });
    expect(buffer.as('cuda')).toEqual({ api: 'cuda', pointer: theirs, size: 4 * (count + 32) });
    const x = fromBuffer(buffer.slice(0, count), { copy: false });
    const y = await x.mul(2).buffer();
    await y.settled().wait();
    const seen = driver.download(y.as('cuda')!.pointer, new Float32Array(count));
    expect(seen).toEqual(ramp(count).map((i) => 2 * i));
    // Their kernel writes to the memory, in the order of the same stream.
    const { stream } = (await nativeDevice(await openDevice(), 'cuda'))!;
    const { pointer } = (await buffer.handleMut()) as { pointer: number };
    driver.call(
      'cuMemsetD32Async',
      ['uintptr_t', 'uint32_t', 'size_t', 'uintptr_t'],
      pointer,
      0x4000_0000,
      count,
      stream,
    );
    expect(await fromBuffer(buffer.slice(0, count)).sum().item()).toBe(2 * count);
    expect(await x.sum().item()).toBe((count * (count - 1)) / 2);
    y.release();
    buffer.release();
  });

  test('the owner is told once queued work is over', async () => {
    const theirs = driver.upload(ramp(128));
    const released = new Promise<void>((resolve) => {
      void wrapBuffer(theirs, { byteLength: 512, release: resolve }).then((buffer) => {
        const x = fromBuffer(buffer.slice(0, 64), { copy: false });
        buffer.release();
        void x
          .add(1)
          .data()
          .then(() => x.dispose());
      });
    });
    // The slice is dropped, not released: the collector finds it.
    const { collect } = await import('../support/collector.ts');
    const timer = setInterval(() => void collect(), 20);
    await released;
    clearInterval(timer);
    driver.call('cuMemFree_v2', ['uintptr_t'], theirs);
  });

  test('pointers that the device cannot use are refused', async () => {
    const theirs = driver.upload(ramp(64));
    const problem = async (pointer: number, options: WrapOptions): Promise<string> => {
      try {
        await wrapBuffer(pointer, options);
      } catch (error) {
        return `${(error as { code: string }).code}: ${(error as Error).message}`;
      }
      return 'nothing is thrown';
    };
    expect(await problem(theirs, {})).toMatch(/^E_VALUE: .*needs the option byteLength/s);
    expect(await problem(theirs, { byteLength: 512 })).toMatch(/^E_VALIDATION: .*allocation of 256/s);
    expect(await problem(theirs + 2, { byteLength: 64 })).toMatch(/^E_VALIDATION: .*misaligned/s);
    expect(await problem(4096, { byteLength: 64 })).toMatch(/^E_VALIDATION: .*no memory/s);
    expect(await problem(-1, { byteLength: 64 })).toMatch(/^E_VALIDATION: .*no device pointer/s);
    const shifted = await wrapBuffer(theirs + 64, { byteLength: 64 });
    expect(() => fromBuffer(shifted, { copy: false })).toThrow(/multiples of 256 bytes/);
    expect(await fromBuffer(shifted).data()).toEqual(ramp(32).slice(16));
    shifted.release();
  });
});
