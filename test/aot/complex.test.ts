// Complex tensors go into bundles, stay there and come out as the pairs of their parts, with one more axis of 2.

import * as path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { add, complex, polar, setDevice, tensor, type Tensor } from '../../src/index.ts';
import type { LoadOptions, Outputs } from '../../src/bundle-runtime/runtime.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';
import { built, removeFolders, written } from './bundles.ts';

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

test('a bundle takes, keeps and gives complex numbers on every target', async () => {
  // i and 1, to turn by and to stay.
  const weight = tensor([
    [{ re: 0, im: 1 }, 0],
    [0, 1],
  ]);
  const turn = (z: Tensor, angle: Tensor): Record<string, Tensor> => ({
    turned: add(z.matmul(weight), polar(1, angle)),
    size: z.abs(),
  });
  const bundle = await built([
    { name: 'turn', fn: turn as never, inputs: [complex(tensor([1, 2]), 3), tensor([0, 0])] },
  ]);
  const { load } = (await import(path.join(written(bundle), 'index.js'))) as {
    load: (options: LoadOptions) => Promise<{ turn(inputs: object): Promise<Outputs>; dispose(): void }>;
  };
  for (const options of [{ target: 'wasm' }, { target: 'webgpu', device: gpu }] as const) {
    const model = await load(options);
    const { turned, size } = await model.turn({
      z: Float32Array.of(3, 4, 5, -12),
      angle: Float32Array.of(0, 0),
    });
    expect(turned).toEqual(Float32Array.of(-4 + 1, 3, 5 + 1, -12));
    expect(size).toEqual(Float32Array.of(5, 13));
    model.dispose();
  }
});
