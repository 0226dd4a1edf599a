// The programs whose scaling is modelled: gradients of GPT-2 and of a model of 7 billion weights, over the meshes that people train
// them on. Arguments are zeros that nobody computes.

import {
  byName,
  firstOf,
  fullySharded,
  shardTree,
  mesh as meshOf,
  type Mesh,
  type ShardPlan,
} from '../../../src/distributed/index.ts';
import { sharedProgram } from '../../../src/distributed/explain.ts';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import type { Partitioned } from '../../../src/sharding/partition.ts';
import { byHeads, initLayer, splitLayer } from '../../../src/workloads/parallel.ts';
import type { AffineWeights } from '../../../src/workloads/transformer.ts';

/** The sizes of a decoder, and the tokens that a GPU gets in a step. */
export interface ScaledModel {
  readonly name: string;
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly context: number;
  /** Texts of `context` tokens for each GPU. */
  readonly texts: number;
}

/** GPT-2's vocabulary of 50,257, filled up to a multiple of 128. */
export const vocabulary = 50_304;

/**
 * The four sizes of GPT-2 (Radford et al., 2019), and the proportions of LLaMA 7B (Touvron et al., 2023) with GPT-2's layers. 8,192
 * tokens for each GPU.
 */
export const scaledModels: readonly ScaledModel[] = [
  { name: 'gpt2-124m', layers: 12, width: 768, heads: 12, context: 1024, texts: 8 },
  { name: 'gpt2-355m', layers: 24, width: 1024, heads: 16, context: 1024, texts: 8 },
  { name: 'gpt2-774m', layers: 36, width: 1280, heads: 20, context: 1024, texts: 8 },
  { name: 'gpt2-1.5b', layers: 48, width: 1600, heads: 25, context: 1024, texts: 8 },
  { name: '7b', layers: 32, width: 4096, heads: 32, context: 2048, texts: 4 },
];

export type ParallelWay = 'data' | 'fsdp' | 'tensor';
export const parallelWays: readonly ParallelWay[] = ['data', 'fsdp', 'tensor'];

/** GPUs that share the heads of a model in a node of 8; 1 where they cannot. */
export function tensorParts({ heads }: ScaledModel): number {
  return [8, 4, 2].find((parts) => heads % parts === 0) ?? 1;
}

interface ScaledWeights {
  readonly tokens: Tensor;
  readonly positions: Tensor;
  readonly blocks: readonly ReturnType<typeof initLayer>[];
  readonly norm: AffineWeights;
  readonly head: Tensor;
}

function weightsOf({ layers, width, context }: ScaledModel): ScaledWeights {
  const zeros = (...shape: readonly number[]): Tensor => sn.zeros(shape, { dtype: 'bf16' });
  return {
    tokens: zeros(vocabulary, width),
    positions: zeros(context, width),
    blocks: Array.from({ length: layers }, () => initLayer(width, 'bf16')),
    norm: { weight: zeros(width), bias: zeros(width) },
    head: zeros(vocabulary, width),
  };
}

/** The program of one of so many GPUs, which gives the loss and the gradients. */
export function scaledProgram(
  model: ScaledModel,
  gpus: number,
  way: ParallelWay,
): { readonly mesh: Mesh; readonly program: Partitioned } {
  const parts = way === 'tensor' ? tensorParts(model) : 1;
  const mesh = way === 'tensor' ? meshOf({ data: gpus / parts, model: parts }) : meshOf({ data: gpus });
  const plans: Readonly<Record<ParallelWay, ShardPlan | undefined>> = {
    data: undefined,
    fsdp: fullySharded(mesh, 'data'),
    tensor: firstOf(byName({ head: ['model', null] }), byHeads),
  };
  const plan = plans[way];
  const texts = sn.zeros([gpus * model.texts, model.context], { dtype: 'i32' });
  const loss = (p: ScaledWeights, inputs: Tensor, targets: Tensor): Tensor => {
    let x = sn.embedding(inputs, p.tokens).add(p.positions);
    for (const layer of p.blocks) x = splitLayer(x, layer, model.heads);
    const last = sn.layerNorm(x, model.width, p.norm.weight, p.norm.bias);
    const logits = sn.linear(last, p.head).to('f32');
    return sn.crossEntropy(logits.reshape([targets.size, vocabulary]), targets.reshape([targets.size]));
  };
  const step = (p: ScaledWeights, inputs: Tensor, targets: Tensor): unknown => {
    const { value, grad } = sn.valueAndGrad(loss)(p, inputs, targets);
    return [value, plan === undefined ? grad : shardTree(grad, mesh, plan)];
  };
  const overData: ShardPlan = () => ['data', null];
  const program = sharedProgram(step, mesh, [plan, overData, overData], [weightsOf(model), texts, texts]);
  return { mesh, program };
}
