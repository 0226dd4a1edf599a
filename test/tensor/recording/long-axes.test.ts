// Axes of more than 2^31 elements. Nobody can store such a tensor, but a broadcast, a count or random numbers may have one, of which only
// a part is read or reduced. Places are 32 bits in kernels: what can be found with them is right, everything else is refused.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SinterError, TensorError } from '../../../src/errors.ts';
import { device, setDevice, synchronize } from '../../../src/tensor/device.ts';
import { manualSeed } from '../../../src/tensor/generator.ts';
import * as sn from '../../../src/operations/index.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';

/** 0 to 65535, each 65536 times. */
function long(): Tensor {
  const numbers = sn.tensor(Float32Array.from({ length: 65_536 }, (_, i) => i));
  return sn.reshape(sn.expand(sn.unsqueeze(numbers, 1), [65_536, 65_536]), [2 ** 32]);
}

function refusal(text: RegExp): RegExp {
  return new RegExp(`${text.source}.*does not fit 32 bits\n  try: shorter axes`);
}

async function expectRefused(x: Tensor, text: RegExp): Promise<void> {
  const error: unknown = await x.data().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(SinterError);
  expect(error).toMatchObject({ code: 'E_LIMIT' });
  expect(String(error)).toMatch(refusal(text));
}

describe('positions that i32 does not hold are refused when recorded', () => {
  test.each([
    ['arange', () => sn.arange(2 ** 31 + 3), /arange: i32 does not count to 2147483651/],
    ['arange of u32', () => sn.arange(0, 2 ** 32 + 1, 1, { dtype: 'u32' }), /arange: u32 does not count to/],
    ['argmax', () => sn.argmax(long(), 0), /positions among 4294967296 elements do not fit i32/],
    ['argsort', () => sn.argsort(long(), 0), /positions among 4294967296 elements do not fit i32/],
    [
      'a gather by u32',
      () => sn.gather(long(), 0, sn.tensor([7], { dtype: 'u32' })),
      /u32 indices do not reach along 4294967296 elements/,
    ],
  ] as const)('%s', (_, record, text) => {
    expect(record).toThrow(TensorError);
    expect(record).toThrow(text);
  });
});

describe.each(['wasm', 'webgpu:software'])('tensors longer than 2^31 on %s', (name) => {
  beforeAll(() => setDevice(name));

  afterAll(async () => {
    await synchronize();
    (await device()).destroy();
  });

  test('are read at places that are known', async () => {
    expect(await sn.slice(long(), 0, 2 ** 32 - 1, 2 ** 32).item()).toBe(65_535);
    expect(await sn.slice(sn.arange(0, 2 ** 32, 1, { dtype: 'f32' }), 0, 2 ** 31, 2 ** 31 + 1).item()).toBe(
      2 ** 31,
    );
    expect(await sn.gather(long(), 0, sn.tensor([70_000], { dtype: 'i32' })).item()).toBe(1);
    expect(await sn.gather(long(), 0, sn.tensor([2147483647], { dtype: 'i32' })).item()).toBe(32_767);
    const outside = sn.gather(long(), 0, sn.tensor([-1], { dtype: 'i32' }));
    await expect(outside.data()).rejects.toThrow('gather: index -1 is outside axis 0 of f32[4294967296]');
  });

  test('are refused where a kernel would have to count along them', async () => {
    await expect(long().data()).rejects.toMatchObject({ code: 'E_LIMIT' });
    await expect(sn.slice(sn.cumsum(long(), 0), 0, 0, 2).data()).rejects.toMatchObject({ code: 'E_LIMIT' });
    const counted = sn.arange(0, 2 ** 32, 1, { dtype: 'f32' });
    await expectRefused(
      sn.slice(counted, 0, 2 ** 31, 2 ** 31 + 2),
      /iota: .*to 4294967296 along f32\[4294967296\]/,
    );
    const noise = (at: number): Tensor => {
      manualSeed(5);
      return sn.slice(sn.rand([2 ** 35]), 0, at, at + 2);
    };
    await noise(0).data();
    await expectRefused(noise(2 ** 32), /randomBits: .*to 34359738368 along u32\[34359738368\]/);
    // Nothing else is.
    expect(await sn.add(sn.ones([2]), 1).data()).toEqual(Float32Array.of(2, 2));
  });
});

// Billions of elements: a core takes a second or two for them.
test('tensors longer than 2^31 are reduced in parts', async () => {
  setDevice('wasm');
  expect(await sn.sum(sn.ones([2 ** 33])).item()).toBe(2 ** 33);
  expect(await sn.amax(sn.add(sn.reshape(long(), [65_536, 65_536]), 1)).item()).toBe(65_536);
  expect(await sn.mean(sn.add(long(), 0.5)).item()).toBeCloseTo(32_768, -1);
});

test('whole numbers beyond 32 bits are exact where i64 is', async () => {
  setDevice('wasm');
  const counted = sn.arange(0, 2 ** 32, 1, { dtype: 'i64' });
  expect(await sn.slice(counted, 0, 2 ** 32 - 1, 2 ** 32).item()).toBe(4294967295n);
});
