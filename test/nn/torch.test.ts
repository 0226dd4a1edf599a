import { beforeAll, describe, expect, test } from 'vitest';
import * as nn from '../../src/nn/index.ts';
import { setDevice } from '../../src/tensor/device.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { torchCases, type TorchCase } from '../support/torch/figures.ts';
import { fromTorch, matches } from '../optim/support.ts';

beforeAll(() => setDevice('interpreter'));

type Plain = nn.Module & { forward(x: Tensor): Tensor };

/** A layer made for a case, and which of its tensors the case's further inputs are. */
interface Made {
  readonly layer: Plain;
  readonly members: readonly string[];
}

function make({ op, args, inputs }: TorchCase): Made | undefined {
  const [x, weight] = inputs;
  const { dtype } = x!;
  const eps = args['eps'] === undefined ? {} : { eps: args['eps'] as number };
  const affine = { ...eps, dtype, affine: inputs.length > 1 };
  const options = { ...affine, bias: inputs.length > 2 };
  const conv = { ...args, dtype, bias: inputs.length > 2 };
  const members = ['weight', 'bias'].slice(0, inputs.length - 1);
  switch (op) {
    case 'layerNorm':
      return { layer: new nn.LayerNorm(args['normalizedShape'] as number[], options), members };
    case 'rmsNorm':
      return { layer: new nn.RMSNorm(x!.shape.at(-1)!, affine), members };
    case 'groupNorm':
      return { layer: new nn.GroupNorm(args['groups'] as number, x!.shape[1]!, options), members };
    case 'batchNorm': {
      const layer = new nn.BatchNorm(x!.shape[1]!, { ...options, bias: true });
      nn.train(layer, args['training'] as boolean);
      return { layer, members: ['weight', 'bias', 'runningMean', 'runningVar'] };
    }
    case 'conv1d':
    case 'conv2d':
    case 'conv3d': {
      const [outputs, share, ...kernel] = weight!.shape as [number, number, ...number[]];
      const Conv = { conv1d: nn.Conv1d, conv2d: nn.Conv2d, conv3d: nn.Conv3d }[op];
      const layer = new Conv(share * (Number(args['groups']) || 1), outputs, kernel, conv);
      return { layer, members };
    }
    case 'convTranspose1d':
    case 'convTranspose2d': {
      const [lead, share, ...kernel] = weight!.shape as [number, number, ...number[]];
      const Conv = op === 'convTranspose1d' ? nn.ConvTranspose1d : nn.ConvTranspose2d;
      return { layer: new Conv(lead, share * (Number(args['groups']) || 1), kernel, conv), members };
    }
    default:
      return undefined;
  }
}

const cases = [...torchCases('norm'), ...torchCases('conv')].filter((one) => make(one) !== undefined);

describe('layers agree with PyTorch', () => {
  test('on many cases', () => expect(cases.length).toBeGreaterThan(80));

  test.each(cases)('$name', async (one) => {
    const { layer, members } = make(one)!;
    const [x, ...rest] = one.inputs.map(fromTorch);
    nn.loadStateDict(layer, Object.fromEntries(members.map((name, i) => [name, rest[i]!])));
    x!.requiresGrad_();
    const y = layer.forward(x!);
    await matches(y, one.outputs[0]!);
    if (one.op === 'batchNorm') {
      const { runningMean, runningVar } = layer as nn.BatchNorm;
      await matches(runningMean!, one.outputs[1]!);
      await matches(runningVar!, one.outputs[2]!);
      expect(runningVar!.requiresGrad).toBe(false);
    }
    if (one.upstream === undefined) return;
    y.backward(fromTorch(one.upstream));
    const parameters = nn.namedParameters(layer);
    await matches(x!.grad!, one.grads![0]!);
    for (const [i, name] of members.entries()) {
      const grad = one.grads![i + 1];
      const parameter = parameters.get(name);
      if (grad !== null && grad !== undefined && parameter !== undefined) {
        await matches(parameter.grad!, grad);
      }
    }
  });
});
