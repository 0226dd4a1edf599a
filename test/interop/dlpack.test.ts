// Descriptors as DLPack has them: what one side hands out, the other takes, on every device.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { close, setDevice, tensor } from '../../src/index.ts';
import {
  dlDevices,
  fromDlpack,
  nativeDevice,
  openDevice,
  poolStats,
  q8,
  toDlpack,
  uploadBuffer,
  type DLTensor,
} from '../../src/interop/index.ts';
import { everyDevice } from '../support/devices.ts';

const kinds: Readonly<Record<string, number>> = { 'webgpu:software': dlDevices.webgpu, cuda: dlDevices.cuda };

describe.each(everyDevice)('on %s', (name) => {
  beforeAll(() => setDevice(name));
  afterAll(async () => {
    await close();
    setDevice(undefined);
  });

  test('a value goes out as data, and comes back', async () => {
    const x = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]).add(0);
    const out = await toDlpack(x);
    expect(out).toMatchObject({
      version: { major: 1, minor: 1 },
      device: { type: kinds[name] ?? dlDevices.cpu, id: 0 },
      dtype: { code: 2, bits: 32, lanes: 1 },
      shape: [2, 3],
      strides: [3, 1],
      isReadonly: true,
    });
    const back = await fromDlpack(out);
    expect(await back.mul(10).array()).toEqual([
      [10, 20, 30],
      [40, 50, 60],
    ]);
    // Axes exchanged and turned, by strides alone.
    const width = 4;
    const again = await toDlpack(x);
    const turned = await fromDlpack({
      ...again,
      shape: [3, 2],
      strides: [-1, 3],
      byteOffset: again.byteOffset + 2 * width,
    });
    expect(await turned.array()).toEqual([
      [3, 6],
      [2, 5],
      [1, 4],
    ]);
  });

  test('the memory is held until its consumer is done', async () => {
    const device = await openDevice();
    await device.finish();
    const before = poolStats(device).buffers;
    const buffer = await uploadBuffer([1, 2, 3, 4], { dtype: 'i32' });
    const out = await toDlpack(buffer);
    expect(out.isReadonly).toBe(false);
    buffer.release();
    const made = await fromDlpack(out);
    expect(await made.sum().item()).toBe(10);
    made.dispose();
    out.deleter();
    await device.finish();
    // CUDA tells the owner once its work is over.
    await expect.poll(() => poolStats(device).buffers).toBeLessThanOrEqual(before + 1);
  });
});

test('codes and bits are DLPack’s', async () => {
  setDevice('interpreter');
  const cases = {
    bool: [6, 8],
    u8: [1, 8],
    i16: [0, 16],
    i64: [0, 64],
    f16: [2, 16],
    bf16: [4, 16],
    f64: [2, 64],
    c64: [5, 64],
  };
  for (const [dtype, [code, bits]] of Object.entries(cases)) {
    const out = await toDlpack(await uploadBuffer([1, 0], { dtype: dtype as 'f32' }));
    expect(out.dtype).toEqual({ code, bits, lanes: 1 });
    expect((await fromDlpack(out)).dtype).toBe(dtype);
  }
  await expect(toDlpack(await uploadBuffer([1], { dtype: q8(4) }))).rejects.toMatchObject({
    code: 'E_DTYPE',
  });
  setDevice(undefined);
});

test('memory of another WebAssembly module is copied out of it', async () => {
  setDevice('wasm:1');
  const memory = new WebAssembly.Memory({ initial: 1 });
  new Float32Array(memory.buffer, 64, 3).set([1, 2, 3]);
  let deleted = 0;
  const theirs: DLTensor = {
    version: { major: 1, minor: 1 },
    device: { type: dlDevices.cpu, id: 0 },
    dtype: { code: 2, bits: 32, lanes: 1 },
    shape: [3],
    strides: [1],
    byteOffset: 8,
    data: { api: 'wasm', memory, pointer: 56, size: 20 },
    isReadonly: true,
    deleter: () => void (deleted += 1),
  };
  const x = await fromDlpack(theirs);
  expect(deleted).toBe(1);
  new Float32Array(memory.buffer).fill(0);
  expect(await x.array()).toEqual([1, 2, 3]);
  expect((await nativeDevice(await openDevice(), 'wasm'))!.memory).not.toBe(memory);
  const refused = async (change: Partial<DLTensor>): Promise<unknown> =>
    fromDlpack({ ...theirs, ...change }).then(
      () => 'nothing is thrown',
      (error: { code?: unknown }) => error.code,
    );
  expect(await refused({ shape: [4] })).toBe('E_INDEX');
  expect(await refused({ strides: [-1], byteOffset: 4 })).toBe('E_INDEX');
  expect(await refused({ dtype: { code: 2, bits: 8, lanes: 1 } })).toBe('E_DTYPE');
  expect(await refused({ dtype: { code: 2, bits: 32, lanes: 4 } })).toBe('E_DTYPE');
  expect(await refused({ device: { type: 2, id: 0 } })).toBe('E_VALIDATION');
  expect(await refused({ byteOffset: -1 })).toBe('E_VALUE');
  expect(await fromDlpack({ ...theirs, shape: [0, 3], strides: [3, 1] }).then((made) => made.shape)).toEqual([
    0, 3,
  ]);
  setDevice(undefined);
});
