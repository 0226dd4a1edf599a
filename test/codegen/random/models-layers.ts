// The layers of random models: each takes the value so far (rows [N,D], a sequence [N,S,D] or an image [N,C,H,W], told apart by
// rank) and some dice, and gives the next value, or undefined where it does not fit.

import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';

/** What layers are made with: parameters and data are asked for in the same order each time a model is built. */
export interface Workshop {
  /** Whole number in [0, sides). */
  dice(sides: number): number;
  /** A parameter; its role says what its numbers are like. */
  parameter(role: 'weight' | 'scale' | 'bias', shape: readonly number[]): Tensor;
  /** A layer with parameters of its own. */
  module<M extends nn.Module>(make: () => M): M;
  /** Which keys queries may see: bool, or −∞ for those that they may not. */
  mask(kind: 'bool' | 'float', shape: readonly number[]): Tensor;
  /** Earlier values, this one last. */
  readonly values: readonly Tensor[];
}

type Layer = (at: Workshop, x: Tensor) => Tensor | undefined;

const activations: readonly ((x: Tensor) => Tensor)[] = [
  sn.tanh,
  sn.sigmoid,
  (x) => sn.gelu(x),
  (x) => sn.gelu(x, { approximate: 'tanh' }),
  sn.silu,
  (x) => sn.softplus(x),
  (x) => sn.elu(x),
  sn.mish,
  sn.relu,
  (x) => sn.leakyRelu(x),
  sn.hardswish,
  sn.softsign,
  (x) => x.square().add(1).sqrt(),
  (x) => sn.clamp(x, -1, 1),
];

function activate(at: Workshop, x: Tensor): Tensor {
  return activations[at.dice(activations.length)]!(x);
}

/** x·weightᵀ + bias, or without. */
function project(at: Workshop, x: Tensor, width: number): Tensor {
  const weight = at.parameter('weight', [width, x.shape.at(-1)!]);
  return at.dice(4) === 0 ? sn.linear(x, weight) : sn.linear(x, weight, at.parameter('bias', [width]));
}

const widths = [1, 2, 3, 4, 5, 8, 12];
const width = (at: Workshop): number => widths[at.dice(widths.length)]!;

function normalise(at: Workshop, x: Tensor): Tensor {
  const features = x.shape.at(-1)!;
  switch (at.dice(4)) {
    case 0:
      return sn.rmsNorm(x, features, at.parameter('scale', [features]));
    case 1:
      return sn.layerNorm(x, features, at.parameter('scale', [features]), at.parameter('bias', [features]));
    case 2:
      return sn.layerNorm(x, features);
    default:
      return sn.normalize(x, -1, { p: 2 });
  }
}

/** Heads that divide the width, and those of keys that divide them. */
function headsOf(at: Workshop, features: number): { readonly heads: number; readonly kvHeads: number } {
  const divisors = (n: number): number[] => [1, 2, 3, 4].filter((d) => n % d === 0);
  const some = divisors(features);
  const heads = some[at.dice(some.length)]!;
  const fewer = divisors(heads);
  return { heads, kvHeads: fewer[at.dice(fewer.length)]! };
}

/** Attention as nn has it: to itself or to an earlier sequence, masked or not. */
function attention(at: Workshop, x: Tensor): Tensor | undefined {
  if (x.rank !== 3) return undefined;
  const features = x.shape[2]!;
  const { heads, kvHeads } = headsOf(at, features);
  const causal = at.dice(2) === 0;
  const dropout = at.dice(4) === 0 ? 0.3 : 0;
  const layer = at.module(() => new nn.MultiHeadAttention(features, heads, { kvHeads, causal, dropout }));
  const contexts = at.values.filter(
    (y) => y.rank === 3 && y.shape[0] === x.shape[0] && y.shape[2] === features,
  );
  const context = contexts[at.dice(contexts.length)]!;
  const kind = at.dice(4);
  const shape = [x.shape[1]!, context.shape[1]!];
  const mask = kind > 1 ? undefined : at.mask(kind === 0 ? 'bool' : 'float', shape);
  return layer.forward(x, { context, ...(mask && { mask }) });
}

/** Attention in plain operations, over positions or over features. */
function plainAttention(at: Workshop, x: Tensor): Tensor | undefined {
  if (x.rank !== 3) return undefined;
  const depth = width(at);
  const [q, k] = [project(at, x, depth), project(at, x, depth)];
  const v = at.dice(2) === 0 ? x : project(at, x, width(at));
  let scores = q.matmul(k.transpose(-1, -2)).mul(1 / Math.sqrt(depth));
  const positions = x.shape[1]!;
  if (at.dice(3) === 0) scores = scores.tanh().mul(5);
  if (at.dice(3) === 0) scores = scores.add(at.parameter('bias', [positions, positions]));
  if (at.dice(2) === 0) scores = sn.where(sn.tril(sn.ones([positions, positions])).gt(0), scores, -Infinity);
  const weights = sn.softmax(scores);
  return weights.matmul(v);
}

function convolve(at: Workshop, x: Tensor): Tensor | undefined {
  if (x.rank !== 4) return undefined;
  const [, channels, height, breadth] = x.shape as [number, number, number, number];
  const depthwise = at.dice(4) === 0;
  const groups = depthwise ? channels : 1;
  const outputs = depthwise ? channels * (1 + at.dice(2)) : 1 + at.dice(6);
  const size = [1, 2, 3][at.dice(3)]!;
  const options = { stride: 1 + at.dice(2), padding: at.dice(2), dilation: 1 + at.dice(2), groups };
  const reach = options.dilation * (size - 1) + 1;
  if (Math.min(height, breadth) + 2 * options.padding < reach) return undefined;
  const weight = at.parameter('weight', [outputs, channels / groups, size, size]);
  return sn.conv2d(x, weight, at.dice(2) === 0 ? at.parameter('bias', [outputs]) : undefined, options);
}

function enlarge(at: Workshop, x: Tensor): Tensor | undefined {
  if (x.rank !== 4 || x.size > 400) return undefined;
  const outputs = 1 + at.dice(4);
  const weight = at.parameter('weight', [x.shape[1]!, outputs, 2, 2]);
  return sn.convTranspose2d(x, weight, at.parameter('bias', [outputs]), { stride: 2 });
}

function normaliseImage(at: Workshop, x: Tensor): Tensor | undefined {
  if (x.rank !== 4) return undefined;
  const channels = x.shape[1]!;
  const [scale, shift] = [at.parameter('scale', [channels]), at.parameter('bias', [channels])];
  if (at.dice(2) === 0) return sn.groupNorm(x, channels % 2 === 0 ? 2 : 1, scale, shift);
  if (x.size / channels < 3) return undefined;
  return sn.batchNorm(x, undefined, undefined, scale, shift, { training: true })[0];
}

function pool(at: Workshop, x: Tensor): Tensor | undefined {
  if (x.rank === 3) return at.dice(2) === 0 ? x.mean(1) : x.amax(1);
  if (x.rank !== 4 || Math.min(x.shape[2]!, x.shape[3]!) < 2) return undefined;
  const options = at.dice(2) === 0 ? {} : { stride: 1, padding: 1 };
  return at.dice(2) === 0 ? sn.maxPool2d(x, 2, options) : sn.avgPool2d(x, 2, options);
}

/** Out of an image or a sequence to what has fewer axes. */
function leave(at: Workshop, x: Tensor): Tensor | undefined {
  if (x.rank === 4) {
    const [n, c, h, w] = x.shape as [number, number, number, number];
    if (at.dice(3) === 0) return sn.globalAvgPool(x);
    if (at.dice(2) === 0) return x.reshape([n, c, h * w]).transpose(1, 2);
    return c * h * w <= 64 ? x.reshape([n, c * h * w]) : undefined;
  }
  if (x.rank === 3 && x.shape[1]! * x.shape[2]! <= 48) return x.reshape([x.shape[0]!, -1]);
  return undefined;
}

/** The value combined with an earlier one of its shape, or joined to one that differs in the last axis only. */
function reuse(at: Workshop, x: Tensor): Tensor | undefined {
  const before = at.values.slice(0, -1);
  const same = before.filter((y) => String(y.shape) === String(x.shape));
  const lead = (y: Tensor): string => String(y.shape.slice(0, -1));
  const joined = before.filter((y) => lead(y) === lead(x) && y.shape.at(-1)! + x.shape.at(-1)! <= 24);
  if (at.dice(3) === 0 && joined.length > 0) return sn.cat([x, joined[at.dice(joined.length)]!], -1);
  const other = same[at.dice(Math.max(1, same.length))];
  if (other === undefined) return undefined;
  switch (at.dice(4)) {
    case 0:
      return x.mul(other.sigmoid());
    case 1:
      return x.sub(other.mul(0.5));
    case 2:
      return sn.maximum(x, other);
    default:
      return x.add(other);
  }
}

/** Statistics of the last axis, given back to it. */
function centre(at: Workshop, x: Tensor): Tensor {
  switch (at.dice(5)) {
    case 0:
      return x.sub(x.mean(-1, { keepdim: true }));
    case 1:
      return x.mul(sn.softmax(x));
    case 2:
      return x.div(x.abs().sum(-1, { keepdim: true }).add(1));
    case 3:
      return sn.logSoftmax(x);
    default:
      return x.sub(x.amax(-1, { keepdim: true })).exp();
  }
}

/** Rearrangements that become indices, and a running sum, which does not. */
function move(at: Workshop, x: Tensor): Tensor {
  const axis = x.rank === 2 ? 1 : 1 + at.dice(x.rank - 1);
  switch (at.dice(5)) {
    case 0:
      return sn.roll(x, 1, axis);
    case 1:
      return sn.flip(x, axis);
    case 2:
      return x.size <= 200 ? sn.cat([x, x.mul(0.5)], axis) : x;
    case 3:
      return sn.cumsum(x, axis).mul(0.3);
    default:
      return x.transpose(x.rank - 1, x.rank === 2 ? 1 : x.rank - 2);
  }
}

function residual(at: Workshop, x: Tensor): Tensor {
  const features = x.shape.at(-1)!;
  const inner = at.dice(2) === 0 ? normalise(at, x) : x;
  return x.add(project(at, activate(at, project(at, inner, width(at))), features));
}

function gated(at: Workshop, x: Tensor): Tensor {
  const outputs = width(at);
  return project(at, x, outputs).mul(activate(at, project(at, x, outputs)));
}

export type LayerKind =
  | 'activation'
  | 'linear'
  | 'reuse'
  | 'centre'
  | 'norm'
  | 'residual'
  | 'gated'
  | 'move'
  | 'dropout'
  | 'conv'
  | 'enlarge'
  | 'pool'
  | 'leave'
  | 'plainAttention'
  | 'attention'
  | 'block';

/** All kinds of layers, the simplest first: failures shrink towards them. */
export const layers: Readonly<Record<LayerKind, Layer>> = {
  activation: activate,
  linear: (at, x) => project(at, x, width(at)),
  reuse,
  centre,
  norm: (at, x) => (x.rank === 4 ? normaliseImage(at, x) : normalise(at, x)),
  residual,
  gated,
  move,
  dropout: (at, x) => sn.dropout(x, [0.2, 0.5][at.dice(2)]!),
  conv: convolve,
  enlarge,
  pool,
  leave,
  plainAttention,
  attention,
  block: (at, x) => {
    if (x.rank !== 3 || x.shape[2]! > 8) return undefined;
    const features = x.shape[2]!;
    const { heads, kvHeads } = headsOf(at, features);
    const options = { kvHeads, causal: at.dice(2) === 0, hidden: width(at) };
    return at.module(() => new nn.TransformerBlock(features, heads, options)).forward(x);
  },
};
