// Integers of 8 and 16 bits go into bundles, stay there and come out as on every other target.

import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cast, setDevice, tensor, zeros, type Tensor } from '../../src/index.ts';
import type { LoadOptions, Outputs } from '../../src/bundle-runtime/runtime.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { built, removeFolders, written } from './bundles.ts';

describe('a bundle', () => {
  let gpu: GPUDevice;
  beforeAll(async () => {
    setDevice('wasm');
    gpu = await (await softwareAdapter()).requestDevice();
  });
  afterAll(() => {
    gpu.destroy();
    removeFolders();
    setDevice(undefined);
  });

  test('takes, keeps and gives bytes on every target', async () => {
    const weight = tensor([3, -100, 7, 120, -128, 1], { dtype: 'i8', shape: [2, 3] });
    const image = (pixels: Tensor): Record<string, Tensor> => ({
      scaled: cast(pixels, 'f32').mul(1 / 255),
      turned: pixels.mul(3).add(200),
      summed: cast(pixels, 'f32').reshape([1, 2]).matmul(cast(weight, 'f32')),
    });
    const bundle = await built([
      { name: 'image', fn: image as never, inputs: [zeros([2], { dtype: 'u8' })] },
    ]);
    const { load } = (await import(path.join(written(bundle), 'index.js'))) as {
      load: (options: LoadOptions) => Promise<{ image(inputs: object): Promise<Outputs>; dispose(): void }>;
    };
    for (const options of [{ target: 'wasm' }, { target: 'webgpu', device: gpu }] as const) {
      const model = await load(options);
      expect(await model.image({ pixels: Uint8Array.of(255, 51) })).toEqual({
        scaled: Float32Array.of(1, Math.fround(Math.fround(1 / 255) * 51)),
        turned: Uint8Array.of((255 * 3 + 200) % 256, (51 * 3 + 200) % 256),
        summed: Float32Array.of(255 * 3 + 51 * 120, 255 * -100 + 51 * -128, 255 * 7 + 51),
      });
      expect((await model.image({ pixels: [1, 2] }))['turned']).toEqual(Uint8Array.of(203, 206));
      await expect(model.image({ pixels: [1, 256] })).rejects.toThrow(
        'element 1 is 256, which does not fit u8',
      );
      for (const none of [null, '3.0', ''])
        await expect(model.image({ pixels: [1, none] })).rejects.toMatchObject({
          code: 'E_VALUE',
          message: `image: pixels: element 1 is ${none}, which does not fit u8`,
        });
      model.dispose();
    }
  });

  test('takes any byte of a mask but 0 as true, as tensors do', async () => {
    const masked = (mask: Tensor): Record<string, Tensor> => ({
      mask,
      count: cast(mask, 'f32').sum(),
      same: mask.eq(tensor([true, false, true, true, false], { dtype: 'bool' })),
    });
    const bundle = await built([
      { name: 'masked', fn: masked as never, inputs: [zeros([5], { dtype: 'bool' })] },
    ]);
    const { load } = (await import(path.join(written(bundle), 'index.js'))) as {
      load: (options: LoadOptions) => Promise<{ masked(inputs: object): Promise<Outputs>; dispose(): void }>;
    };
    for (const options of [{ target: 'wasm' }, { target: 'webgpu', device: gpu }] as const) {
      const model = await load(options);
      const mask = Uint8Array.of(2, 0, 255, 1, 0);
      expect(await model.masked({ mask })).toEqual({
        mask: Uint8Array.of(1, 0, 1, 1, 0),
        count: Float32Array.of(3),
        same: Uint8Array.of(1, 1, 1, 1, 1),
      });
      expect(mask).toEqual(Uint8Array.of(2, 0, 255, 1, 0));
      model.dispose();
    }
  });
});
