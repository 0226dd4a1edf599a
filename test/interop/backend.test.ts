// Backends of users: a name is given once, and what computes on one computes what Sinter's own
// devices do.
//
// Runs in a process of its own: it names all backends that were registered in its process.

import { afterEach, expect, test } from 'vitest';
import {
  compile,
  devices,
  fromBuffer,
  grad,
  manualSeed,
  rand,
  setDevice,
  tensor,
  type Tensor,
  type TensorLike,
} from 'sinter';
import {
  capabilities,
  cdistSupports,
  getBackend,
  hasBackend,
  limitPool,
  nativeDevice,
  openDevice,
  poolStats,
  registerBackend,
  streamCount,
  trimPool,
  uploadBuffer,
} from 'sinter/runtime';
import { plainBackend } from './wasm-backend.ts';

afterEach(() => setDevice(undefined));

const backend = plainBackend('plain');
registerBackend(backend);

test('a name is given once, and the backend that comes second is handed back', () => {
  expect([hasBackend('plain'), hasBackend('abacus'), hasBackend('cuda:3')]).toEqual([true, false, true]);
  expect(getBackend('plain')).toBe(backend);
  expect(getBackend('abacus')).toBeUndefined();
  for (const name of ['plain', 'wasm', 'wasm:2', 'interpreter']) {
    const second = plainBackend(name);
    expect(() => registerBackend(second)).toThrow(
      expect.objectContaining({ code: 'E_STATE', cause: second }) as Error,
    );
  }
  expect(getBackend('plain')).toBe(backend);
});

test('without a backend the error names those that there are', async () => {
  await expect(openDevice('abacus')).rejects.toThrow(/no backend is called 'abacus'[^]*interpreter, plain/);
});

test('a backend of a user computes, compiles and differentiates as wasm does', async () => {
  const work = async (): Promise<unknown[]> => {
    manualSeed(7);
    const [x, w] = [rand([6, 5]), rand([5, 4])];
    const loss = (a: Tensor): Tensor => x.matmul(a).softmax(-1).log().sum();
    const step = compile((a: Tensor, rate: TensorLike) => a.sub(grad(loss)(a).mul(rate)));
    let at = w;
    for (const rate of [0.1, 0.2, 0.3]) at = step(at, rate);
    return [await x.sort(0)[0].array(), await at.array(), await x.cumsum(1).std().item()];
  };
  setDevice('plain');
  const ours = await work();
  setDevice('wasm:1');
  expect(ours).toEqual(await work());
  const [device] = backend.opened;
  expect(device!.calls.length).toBeGreaterThan(5);
  expect((await devices()).find(({ name }) => name === 'plain')).toMatchObject({ available: true });
});

test('a backend that shares no memory says so, and is counted all the same', async () => {
  setDevice('plain');
  const device = await openDevice();
  await expect(uploadBuffer([1, 2])).rejects.toMatchObject({ code: 'E_UNSUPPORTED' });
  await expect(tensor([1, 2]).add(1).buffer()).rejects.toMatchObject({ code: 'E_UNSUPPORTED' });
  expect(await nativeDevice(device, 'wasm')).toBeUndefined();
  expect(await streamCount(device)).toBe(1);
  expect(poolStats(device).buffers).toBeGreaterThan(0);
  await expect(trimPool(device)).rejects.toMatchObject({ code: 'E_UNSUPPORTED' });
});

test('a device tells what it does by itself', async () => {
  const [plain, software] = [await openDevice('plain'), await openDevice('webgpu:software')];
  expect(capabilities(plain).nativeDTypes).toContain('f64');
  expect(capabilities(software).nativeDTypes).not.toContain('f64');
  expect(capabilities(plain).limits.bufferBytes).toBe(2 ** 28);
  expect(capabilities(plain).features).toEqual(['simd128']);
  const asked = [plain, software].map((device) =>
    (['f32', 'f64', 'i32'] as const).map((dtype) => cdistSupports(device, dtype, 2)),
  );
  expect(asked).toEqual([
    [true, true, false],
    [true, false, false],
  ]);
  expect(cdistSupports(plain, 'f32', -1)).toBe(false);
});

test('memory of another device comes over when it is used', async () => {
  const there = await uploadBuffer([1, 2, 3], { device: 'interpreter' });
  setDevice('plain');
  expect(await fromBuffer(there).mul(2).array()).toEqual([2, 4, 6]);
  there.release();
});

test('a pool keeps what it is told to keep', async () => {
  const device = await openDevice('wasm:1');
  const take = async (): Promise<void> => {
    const buffer = await uploadBuffer(new Float32Array(2 ** 18), { device: 'wasm:1' });
    buffer.release();
  };
  await take();
  expect(poolStats(device).pooled).toBeGreaterThanOrEqual(2 ** 20);
  await trimPool(device);
  expect(poolStats(device).pooled).toBe(0);
  await limitPool(device, 2 ** 16);
  await take();
  expect(poolStats(device).pooled).toBeLessThanOrEqual(2 ** 16);
  await limitPool(device, Infinity);
  await take();
  expect(poolStats(device).pooled).toBeGreaterThanOrEqual(2 ** 20);
});
