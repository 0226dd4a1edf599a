import { describe, expect, test } from 'vitest';
import { registerBackend } from '../../../src/runtime/registry.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import { fromHost } from '../../../src/tensor/record.ts';
import { add, exp, fill, less, mul, spyDevice, sub, sum, vec } from '../support.ts';

describe('nothing runs before data is asked for', () => {
  test('recording allocates, uploads and compiles nothing', async () => {
    const spy = spyDevice();
    const x = vec(1, 2, 3);
    const y = add(mul(x, x), 1);
    await spy.device;
    expect(spy.count).toEqual({ load: 0, run: 0, allocate: 0, write: 0, read: 0 });
    expect(String(y)).toBe('Tensor f32[3] (pending)');
    expect(await y.array()).toEqual([2, 5, 10]);
    expect(spy.count).toEqual({ load: 1, run: 1, allocate: 2, write: 1, read: 1 });
    expect(String(y)).toBe('Tensor f32[3] [2, 5, 10]');
  });

  test('host data is read back without a device', async () => {
    const spy = spyDevice();
    expect(await vec(1, 2).array()).toEqual([1, 2]);
    expect(spy.count.allocate).toBe(0);
  });

  test('a value is computed once and read as often as asked', async () => {
    const spy = spyDevice();
    const y = exp(vec(0));
    await y.data();
    await y.data();
    expect(spy.count).toMatchObject({ run: 1, read: 2 });
  });

  test('host data is copied when the tensor is made', async () => {
    spyDevice();
    const source = Float32Array.of(1, 2);
    const x = fromHost(source, [2], 'f32');
    source[0] = 9;
    expect(await add(x, 0).array()).toEqual([1, 2]);
  });
});

describe('an evaluation computes every result of a connected graph', () => {
  test('sinks that share a pending value are computed together', async () => {
    const spy = spyDevice();
    const h = mul(vec(1, 2), 2);
    const a = add(h, 1);
    const b = sub(h, 1);
    await a.data();
    expect(spy.outputs).toEqual([2]);
    expect(String(b)).toBe('Tensor f32[2] (on interpreter)');
    expect(await b.array()).toEqual([1, 3]);
    expect(spy.count.run).toBe(1);
  });

  test('values that share only leaves stay pending', async () => {
    const spy = spyDevice();
    const x = vec(1, 2);
    const a = add(x, 1);
    const b = add(x, 2);
    await a.data();
    expect(String(b)).toBe('Tensor f32[2] (pending)');
    expect(await b.array()).toEqual([3, 4]);
    expect(spy.count.run).toBe(2);
  });

  test('values that share only constants stay pending', async () => {
    spyDevice();
    const zero = fill(2, 0);
    const a = add(vec(1, 2), zero);
    const b = add(vec(3, 4), zero);
    await a.data();
    expect(String(b)).toBe('Tensor f32[2] (pending)');
    expect(await b.array()).toEqual([3, 4]);
  });

  test('an intermediate value asked for is an output beside the sinks', async () => {
    const spy = spyDevice();
    const h = mul(vec(1, 2), 2);
    const a = add(h, 1);
    expect(await h.array()).toEqual([2, 4]);
    expect(await a.array()).toEqual([3, 5]);
    expect(spy.outputs).toEqual([2]);
  });

  test('an assigned value is an output even where others consume it', async () => {
    const spy = spyDevice();
    const m = vec(0, 0);
    m.assign(add(mul(m, 0.5), vec(1, 1)));
    const p = sub(vec(5, 5), m);
    await p.data();
    expect(spy.outputs).toEqual([2]);
    expect(String(m)).toBe('Tensor f32[2] (on interpreter)');
    expect(await m.array()).toEqual([1, 1]);
  });

  test('recording without end is evaluated on the way', async () => {
    const spy = spyDevice();
    await spy.device;
    let x = vec(1);
    for (let i = 0; i < 25_000; i++) x = add(x, i % 2 === 0 ? 1 : -1);
    await spy.device;
    expect(await x.array()).toEqual([1]);
    expect(spy.count.run).toBeGreaterThan(1);
  });
});

describe('errors', () => {
  test('surface where the data is read, also of results computed from it later', async () => {
    registerBackend({ name: 'broken', open: () => Promise.reject(new Error('it does not open')) });
    setDevice('broken');
    const y = add(vec(1), 1);
    await expect(y.data()).rejects.toThrow('it does not open');
    spyDevice();
    await expect(add(y, 1).data()).rejects.toThrow('it does not open');
  });

  test('more than one element has no item', async () => {
    await expect(vec(1, 2).item()).rejects.toThrow('item: expects one element: f32[2]');
  });

  test('a disposed tensor cannot be used, what was recorded from it can', async () => {
    spyDevice();
    const x = vec(1, 2);
    const y = add(x, 1);
    x.dispose();
    expect(() => add(x, 1)).toThrow('the tensor f32[2] was disposed');
    await expect(x.data()).rejects.toMatchObject({ code: 'E_STATE' });
    expect(await y.array()).toEqual([2, 3]);
  });

  test('a tensor disposed twice, or by using, is disposed', async () => {
    const x = vec(1);
    {
      using inner = x;
      expect(inner.size).toBe(1);
    }
    x.dispose();
    expect(String(x)).toBe('Tensor f32[1] (disposed)');
  });
});

describe('devices', () => {
  test('what is recorded before the device is open runs when it is', async () => {
    let release = (): void => undefined;
    const spy = spyDevice(new Promise((resolve) => (release = resolve)));
    const y = add(vec(1, 2), 1);
    const reading = y.array();
    const z = add(y, 1);
    const later = z.array();
    expect(String(y)).toBe('Tensor f32[2] (pending)');
    release();
    expect(await reading).toEqual([2, 3]);
    expect(await later).toEqual([3, 4]);
    expect(spy.count.run).toBe(2);
  });

  test('once the device is open, an evaluation dispatches at once', async () => {
    const spy = spyDevice();
    await add(vec(1), 1).data();
    const y = add(vec(1), 2);
    const reading = y.data();
    expect(spy.count.run).toBe(2);
    await reading;
  });

  test('values move to the device that computes with them', async () => {
    spyDevice();
    const y = add(vec(1, 2), 1);
    await y.data();
    const other = spyDevice();
    const z = add(y, 1);
    expect(await z.array()).toEqual([3, 4]);
    expect(other.count).toMatchObject({ run: 1, write: 1 });
  });
});

describe('values arrive in the typed array of their dtype', () => {
  test.each([
    ['f32', Float32Array.of(1.5, -2), [1.5, -2]],
    ['f16', Float32Array.of(1.5, -2), [1.5, -2]],
    ['bf16', Float32Array.of(1.5, -2), [1.5, -2]],
    ['f64', Float64Array.of(0.1, -2), [0.1, -2]],
    ['i32', Int32Array.of(-3, 4), [-3, 4]],
    ['u8', Uint8Array.of(3, 255), [3, 255]],
    ['i64', BigInt64Array.of(-3n, 4n), [-3n, 4n]],
  ] as const)('%s', async (dtype, data, expected) => {
    spyDevice();
    const x = add(
      fromHost(data, [2], dtype),
      fromHost(new (data.constructor as new (n: number) => typeof data)(2), [2], dtype),
    );
    const read = await x.data();
    expect(read.constructor).toBe(data.constructor);
    expect([...read]).toEqual(expected);
  });

  test('bool is 0 and 1 in data, false and true in array and item', async () => {
    spyDevice();
    const flags = less(vec(1, 3), 2);
    expect(await flags.data()).toEqual(Uint8Array.of(1, 0));
    expect(await flags.array()).toEqual([true, false]);
    expect(await less(sum(vec(1)), 2).item()).toBe(true);
  });

  test('nested arrays follow the shape', async () => {
    const x = fromHost(Float32Array.of(1, 2, 3, 4, 5, 6), [3, 1, 2], 'f32');
    expect(await x.array()).toEqual([[[1, 2]], [[3, 4]], [[5, 6]]]);
    expect(await fromHost(new Float32Array(0), [0, 2], 'f32').array()).toEqual([]);
  });
});
