// Layers without weights are their functions: each gives what the function gives for its settings.

import { beforeAll, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

const ramp = (...shape: number[]): Tensor =>
  sn.sub(sn.div(sn.reshape(sn.arange(shape.reduce((p, q) => p * q, 1)), shape), 7), 1.5);
const row = ramp(2, 4);
const line = ramp(1, 4, 6);
const plane = ramp(1, 4, 6, 6);
const volume = ramp(1, 2, 4, 4, 4);

const pairs: readonly (readonly [{ forward(x: Tensor): Tensor }, Tensor, Tensor])[] = [
  [new nn.Identity(), row, row],
  [new nn.ReLU6(), row, sn.relu6(row)],
  [new nn.Mish(), row, sn.mish(row)],
  [new nn.SELU(), row, sn.selu(row)],
  [new nn.Hardswish(), row, sn.hardswish(row)],
  [new nn.Hardsigmoid(), row, sn.hardsigmoid(row)],
  [new nn.LogSigmoid(), row, sn.logSigmoid(row)],
  [new nn.Softsign(), row, sn.softsign(row)],
  [new nn.Tanhshrink(), row, sn.tanhshrink(row)],
  [new nn.ELU(0.5), row, sn.elu(row, 0.5)],
  [new nn.CELU(0.5), row, sn.celu(row, 0.5)],
  [new nn.Hardtanh(-0.5, 0.25), row, sn.hardtanh(row, -0.5, 0.25)],
  [new nn.Softplus(2), row, sn.softplus(row, { beta: 2 })],
  [new nn.Softplus(2, 0.5), row, sn.softplus(row, { beta: 2, threshold: 0.5 })],
  [new nn.Softshrink(0.25), row, sn.softshrink(row, 0.25)],
  [new nn.Hardshrink(0.25), row, sn.hardshrink(row, 0.25)],
  [new nn.Threshold(0.25, 9), row, sn.threshold(row, 0.25, 9)],
  [new nn.LogSoftmax(0), row, sn.logSoftmax(row, 0)],
  [new nn.Softmin(0), row, sn.softmin(row, 0)],
  [new nn.GLU(0), row, sn.glu(row, 0)],
  [new nn.MaxPool1d(2, { padding: 1 }), line, sn.maxPool1d(line, 2, { padding: 1 })],
  [new nn.MaxPool3d(2), volume, sn.maxPool3d(volume, 2)],
  [new nn.AvgPool1d(3, { stride: 2 }), line, sn.avgPool1d(line, 3, { stride: 2 })],
  [new nn.AvgPool3d(2, { divisorOverride: 3 }), volume, sn.avgPool3d(volume, 2, { divisorOverride: 3 })],
  [new nn.AdaptiveAvgPool1d(4), line, sn.adaptiveAvgPool1d(line, 4)],
  [new nn.AdaptiveAvgPool2d([4, null]), plane, sn.adaptiveAvgPool2d(plane, [4, null])],
  [new nn.AdaptiveAvgPool3d(3), volume, sn.adaptiveAvgPool3d(volume, 3)],
  [new nn.AdaptiveMaxPool1d(4), line, sn.adaptiveMaxPool1d(line, 4)],
  [new nn.AdaptiveMaxPool2d([4, null]), plane, sn.adaptiveMaxPool2d(plane, [4, null])],
  [new nn.AdaptiveMaxPool3d(3), volume, sn.adaptiveMaxPool3d(volume, 3)],
  [
    new nn.Upsample({ scaleFactor: 2, mode: 'linear' }),
    plane,
    sn.interpolate(plane, { scaleFactor: 2, mode: 'linear' }),
  ],
  [new nn.PixelShuffle(2), plane, sn.pixelShuffle(plane, 2)],
  [new nn.PixelUnshuffle(3), plane, sn.pixelUnshuffle(plane, 3)],
  [new nn.ChannelShuffle(2), plane, sn.channelShuffle(plane, 2)],
  [new nn.LocalResponseNorm(3, { alpha: 0.5 }), plane, sn.localResponseNorm(plane, 3, { alpha: 0.5 })],
];

for (const [layer, x, expected] of pairs) {
  test(`${layer.constructor.name} is its function with its settings`, async () => {
    const y = layer.forward(x);
    expect(y.shape).toEqual(expected.shape);
    expect(await y.array()).toEqual(await expected.array());
  });
}
