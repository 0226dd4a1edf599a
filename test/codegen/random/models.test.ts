// Random models through the whole compiler, forward, backward and with optimizers: fused equals unfused, which is the recorded
// graph on the reference interpreter. As Loops, which also find races, and on the device; on both kinds of schedule. Failures
// shrink to a small model and print it with its graph.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';

import { compileGraph } from '../../../src/compile.ts';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import type { Graph } from '../../../src/ir/graph.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openDevice } from '../../../src/runtime/registry.ts';
import {
  gpuTarget,
  softwareTarget,
  targetOf,
  wasmTarget,
  type Target,
} from '../../../src/schedule/target.ts';
import { runLoops, runOnDevice } from '../../support/execute.ts';
import { checkLaw, seed } from '../../support/property.ts';
import { expectClose } from '../../support/random/graph.ts';
import { randomArray } from '../../support/random/values.ts';
import { recorded } from '../../support/recorded.ts';
import { expectEqual } from './models-compare.ts';
import type { LayerKind } from './models-layers.ts';
import { modelOf, randomModel, type Description } from './models.ts';

/** Ten buffers a kernel, as adapters have them: other fusions than with the eight of `gpuTarget`. */
const roomy: Target = { ...gpuTarget, limits: { ...gpuTarget.limits, storageBuffers: 10 } };

/** Models that random ones shrank to when something was wrong: layers with their dice, whose last ones are 0, and what is kept. */
const found: readonly {
  readonly law: string;
  readonly input: Description['input'];
  readonly sizes: Description['sizes'];
  readonly layers: readonly (readonly [kind: LayerKind, dice?: readonly number[], tap?: 'tap'])[];
  readonly mode?: Description['mode'];
  readonly loss?: Description['loss'];
  readonly optimizer?: Description['optimizer'];
}[] = [
  {
    law: 'a kernel that drops values to read what they are made of binds no more for it',
    input: 'image',
    sizes: [2, 8, 1],
    layers: [['gated', [1]], ['norm', [13], 'tap'], ['leave']],
  },
  {
    law: 'values are computed again from views that are results themselves',
    input: 'sequence',
    sizes: [1, 1, 7],
    layers: [['attention'], ['leave', [], 'tap'], ['norm']],
  },
  {
    law: 'a kernel that a stored node rides along in binds what that one reads',
    input: 'image',
    sizes: [1, 3, 1],
    layers: [['norm'], ['leave'], ['activation'], ['norm']],
  },
  {
    law: 'and is judged by what it reads as well',
    input: 'tokens',
    sizes: [2, 2, 2],
    layers: [['plainAttention'], ['reuse', [1, 0, 11]], ['activation', [31], 'tap'], ['pool', [29]]],
    mode: 'step',
    loss: 'crossEntropy',
  },
  {
    law: 'a kernel without room computes those values again that free most of it',
    input: 'image',
    sizes: [1, 2, 1],
    layers: [['enlarge'], ['norm'], ['norm', [13]], ['activation', [39]]],
  },
  {
    law: 'a weight is written over where nobody else reads it, however its gradient lies',
    input: 'sequence',
    sizes: [1, 2, 5],
    layers: [['plainAttention', [17]]],
    mode: 'step',
    optimizer: 'momentum',
  },
  {
    law: 'map kernels do not wait for each other',
    input: 'sequence',
    sizes: [2, 1, 1],
    layers: [
      ['gated', [0, 0, 0, 18]],
      ['activation', [], 'tap'],
      ['pool', [25]],
    ],
  },
];

test.each(found)(
  '$law',
  ({ input, sizes, layers, mode = 'gradient', loss = 'square', optimizer = 'sgd' }) => {
    const model = modelOf({
      input,
      sizes,
      layers: layers.map(([kind, dice = [], tap]) => ({
        kind,
        dice: Array.from({ length: 10 }, (_, i) => dice[i] ?? 0),
        tap: tap !== undefined,
      })),
      mode,
      optimizer,
      loss,
      seed: 1,
    });
    const expected = interpret(model.graph, model.inputs);
    for (const target of [gpuTarget, roomy, softwareTarget, wasmTarget])
      expectEqual(model, runLoops(target, model.graph, model.inputs, undefined, model.donate), expected);
  },
);

/** What they found, in a few lines. */
describe('a kernel', () => {
  const check = (graph: Graph): void => {
    const inputs = graph.parameters.map(({ dtype, shape }, i) =>
      randomArray(dtype, shape as number[], i + 1, 'tame'),
    );
    const expected = interpret(graph, inputs);
    for (const target of [gpuTarget, softwareTarget, wasmTarget])
      runLoops(target, graph, inputs).forEach((got, i) => expectClose(got, expected[i]!, 1e-3));
  };

  test('of a free node binds what each dropped value is computed from', () => {
    const { graph } = recorded(
      (x: Tensor, weights: readonly Tensor[], biases: readonly Tensor[]) => {
        const dots = weights.map((weight) => x.matmul(weight));
        const shifted = dots.map((dot, i) => sn.flip(dot.add(biases[i]!), 1));
        return [...dots, shifted.reduce((a, b) => a.mul(b))];
      },
      [
        sn.zeros([64, 64]),
        ...[[64, 64], [64]].map((shape) => Array.from({ length: 5 }, () => sn.zeros(shape))),
      ],
    );
    expect(compileGraph(graph, gpuTarget).kernels.map(({ kind }) => kind)).toContain('map');
  });

  test('looks random words up where each row asks for them', () => {
    const loss = (x: Tensor, labels: Tensor): Tensor =>
      sn.crossEntropy(sn.dropout(x, 0.5).transpose(1, 2).reshape([8, 4]), labels);
    check(recorded(loss, [sn.zeros([2, 4, 4]), sn.zeros([8], { dtype: 'i32' })]).graph);
  });

  test.each([1, 2])('writes what it scans along axis %i over nothing that others read', (axis) => {
    const run = (x: Tensor, w: Tensor, v: Tensor): Tensor => {
      const product = x.matmul(w);
      const sums = sn.cumsum(x.mul(2), axis);
      return product.mul(2).add(product.square().mul(sums)).matmul(v);
    };
    check(recorded(run, [sn.zeros([2, 5, 5]), sn.zeros([5, 5]), sn.zeros([5, 1])]).graph);
  });
});

test('Loops of random models run without races and equal the unfused form', () => {
  checkLaw(40, randomModel(7), (model) => {
    const expected = interpret(model.graph, model.inputs);
    for (const target of [gpuTarget, roomy, softwareTarget, wasmTarget])
      expectEqual(model, runLoops(target, model.graph, model.inputs, undefined, model.donate), expected);
  });
});

let device: Device;
beforeAll(async () => {
  device = await openDevice('webgpu:software');
});

test.each([
  ['software', 30],
  ['gpu', 8],
] as const)('random models on the device equal the unfused form, %s schedules', async (profile, runs) => {
  const { limits } = targetOf(device.facts);
  const target = { ...(profile === 'gpu' ? gpuTarget : softwareTarget), limits };
  await fc.assert(
    fc.asyncProperty(randomModel(7), async (model) => {
      const expected = interpret(model.graph, model.inputs);
      expectEqual(model, await runOnDevice(device, target, model.graph, model.inputs), expected);
    }),
    { numRuns: runs, seed: seed + (profile === 'gpu' ? 1 : 0) },
  );
  expect(await device.finish()).toBeUndefined();
});
