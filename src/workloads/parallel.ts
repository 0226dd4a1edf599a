// Train steps that processes share: what they send each other is counted. Data parallel, fully sharded and tensor
// parallel, each for a transformer.

import * as sn from '../index.ts';
import type { Tensor } from '../index.ts';
import {
  byName,
  fullySharded,
  mesh as meshOf,
  statePlan,
  type Mesh,
  type ShardPlan,
} from '../distributed/index.ts';
import { adamW, type OptimizerState } from '../optim/index.ts';
import { decoderLoss, initDecoder, type AffineWeights, type DecoderParameters } from './transformer.ts';

/** A step that processes of a mesh share, and how they hold its arguments. */
export interface ParallelWorkload {
  readonly name: string;
  readonly about: string;
  readonly mesh: Mesh;
  readonly fn: (...args: never[]) => unknown;
  readonly args: () => readonly unknown[];
  /** One an argument. */
  readonly plans: () => readonly (ShardPlan | undefined)[];
}

const optimizer = adamW({ lr: 1e-3, weightDecay: 0.05 });

/** GPT-2's proportions, small. */
const sizes = { vocabulary: 512, context: 128, width: 128, heads: 4, layers: 2 };
const batch = 16;

function trainDecoder(
  params: DecoderParameters,
  state: OptimizerState,
  tokens: Tensor,
  targets: Tensor,
): unknown {
  const loss = (p: DecoderParameters): Tensor => decoderLoss(p, tokens, targets, sizes.heads);
  const { value, grad } = sn.valueAndGrad(loss)(params);
  return [value, optimizer.update(params, grad, state)];
}

function decoderArguments(): readonly unknown[] {
  const params = initDecoder(sizes);
  const texts = (): Tensor => sn.zeros([batch, sizes.context], { dtype: 'i32' });
  return [params, optimizer.init(params), texts(), texts()];
}

const overData: ShardPlan = () => ['data', null];

export const gptDataParallel: ParallelWorkload = {
  name: 'gptDataParallel',
  about: 'a train step of a small GPT, the batch over 8 processes',
  mesh: meshOf({ data: 8 }),
  fn: trainDecoder,
  args: decoderArguments,
  plans: () => [undefined, undefined, overData, overData],
};

const shards = meshOf({ data: 8 });

export const gptFullySharded: ParallelWorkload = {
  name: 'gptFullySharded',
  about: 'the same, with parameters and moments over the 8 processes too (FSDP)',
  mesh: shards,
  fn: trainDecoder,
  args: decoderArguments,
  plans: () => {
    const plan = fullySharded(shards, 'data');
    return [plan, statePlan(plan, initDecoder(sizes)), overData, overData];
  },
};

/** A layer whose products can be split by heads: queries, keys and values are apart. */
export type SplitLayer = {
  readonly norm1: AffineWeights;
  readonly query: AffineWeights;
  readonly key: AffineWeights;
  readonly value: AffineWeights;
  readonly project: AffineWeights;
  readonly norm2: AffineWeights;
  readonly up: AffineWeights;
  readonly down: AffineWeights;
};

/** Fresh parameters of such a layer, of `dtype`. */
export function initLayer(width: number, dtype: 'f32' | 'bf16' = 'f32'): SplitLayer {
  const affine = (to: number, from: number): AffineWeights => ({
    weight: sn.zeros([to, from], { dtype }),
    bias: sn.zeros([to], { dtype }),
  });
  const norm = (): AffineWeights => ({
    weight: sn.ones([width], { dtype }),
    bias: sn.zeros([width], { dtype }),
  });
  return {
    norm1: norm(),
    query: affine(width, width),
    key: affine(width, width),
    value: affine(width, width),
    project: affine(width, width),
    norm2: norm(),
    up: affine(4 * width, width),
    down: affine(width, 4 * width),
  };
}

const linear = (x: Tensor, { weight, bias }: AffineWeights): Tensor => sn.linear(x, weight, bias);
const normed = (x: Tensor, { weight, bias }: AffineWeights): Tensor =>
  sn.layerNorm(x, x.shape.at(-1)!, weight, bias);

/** One layer over x [batch, positions, width], as `block` of transformer.ts. */
export function splitLayer(x: Tensor, p: SplitLayer, heads: number): Tensor {
  const [count, length, width] = x.shape as [number, number, number];
  const apart = (y: Tensor): Tensor => y.reshape([count, length, heads, width / heads]).permute([0, 2, 1, 3]);
  const y = normed(x, p.norm1);
  const [q, k, v] = [apart(linear(y, p.query)), apart(linear(y, p.key)), apart(linear(y, p.value))];
  const seen = sn.scaledDotProductAttention(q, k, v, { isCausal: true });
  const attended = linear(seen.permute([0, 2, 1, 3]).reshape([count, length, width]), p.project).add(x);
  const hidden = linear(normed(attended, p.norm2), p.up).gelu({ approximate: 'tanh' });
  return linear(hidden, p.down).add(attended);
}

/** Megatron's layout of a layer (Shoeybi et al., 2019): the first product of each pair by rows, the second by columns. */
export const byHeads: ShardPlan = byName({
  ...Object.fromEntries(['query', 'key', 'value', 'up'].map((name) => [`${name}.weight`, ['model', null]])),
  ...Object.fromEntries(['query', 'key', 'value', 'up'].map((name) => [`${name}.bias`, ['model']])),
  'project.weight': [null, 'model'],
  'down.weight': [null, 'model'],
});

export const gptTensorParallel: ParallelWorkload = {
  name: 'gptTensorParallel',
  about:
    "gradients of two layers of a small GPT, heads and hidden features over 4 processes (Megatron's layout)",
  mesh: meshOf({ model: 4 }),
  fn: (layers: SplitLayer[], x: Tensor) => {
    const loss = (p: SplitLayer[], at: Tensor): Tensor =>
      p
        .reduce((y, layer) => splitLayer(y, layer, sizes.heads), at)
        .square()
        .mean();
    return sn.grad(loss, { argnums: [0, 1] })(layers, x);
  },
  args: () => [
    [initLayer(sizes.width), initLayer(sizes.width)],
    sn.zeros([batch, sizes.context, sizes.width]),
  ],
  plans: () => [byHeads, undefined],
};

export const parallelWorkloads: readonly ParallelWorkload[] = [
  gptDataParallel,
  gptFullySharded,
  gptTensorParallel,
];
