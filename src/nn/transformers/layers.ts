// The layers of the transformer of Vaswani et al. (2017) with PyTorch's parameters: attention and a
// two-layer network around a residual stream, each before its norm or behind it.

import type { DType } from '../../ir/dtype.ts';
import type { Weighed } from '../../tensor/inferred.ts';
import * as arg from '../../ir/arguments.ts';
import { aTensor } from '../../tensor/expect.ts';
import { relu } from '../../tensor/ops/elementwise/activation.ts';
import { add } from '../../tensor/ops/elementwise/arithmetic.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { MultiHeadAttention, type AttendOptions } from '../attention.ts';
import { Dropout } from '../dropout.ts';
import { initOptions, typeOf, type InitOptions } from '../init.ts';
import { Linear } from '../linear.ts';
import { aLayer, applyLayer, Module, type Layer } from '../module.ts';
import { LayerNorm } from '../norm.ts';
import { attendCached, attendKept, type AttentionCache, type LayerCache } from './cache.ts';

export interface TransformerLayerOptions extends InitOptions {
  /** Width between the two linear layers; 2048 by default. */
  readonly hidden?: number;
  /** Of attention weights, of what is added to the stream, and between the linear layers; 0.1 by default. */
  readonly dropout?: number;
  /** `relu` by default. */
  readonly activation?: Layer;
  /**
   * Heads of keys and values, of which each serves an equal share of the query heads; all have
   * their own by default.
   */
  readonly kvHeads?: number;
  /** Position i of x sees positions 0 … i of x alone; in `Transformer`, of the target. False by default. */
  readonly causal?: boolean;
  /** Added to the variance in norms; 1e-5 by default. */
  readonly layerNormEps?: number;
  /** Whether norms come before attention and network instead of behind; false by default. */
  readonly normFirst?: boolean;
  /** Whether projections, linear layers and norms have biases; true by default. */
  readonly bias?: boolean;
}

export const transformerLayerOptions: arg.Table<TransformerLayerOptions> = {
  ...initOptions,
  hidden: arg.count(1),
  dropout: arg.share,
  activation: aLayer,
  kvHeads: arg.count(1),
  causal: arg.flag,
  layerNormEps: arg.number,
  normFirst: arg.flag,
  bias: arg.flag,
};

const takesLayer = arg.takes<typeof TransformerEncoderLayer>(
  ['the width', arg.count(1)],
  ['the number of heads', arg.count(1)],
  ['options', arg.options<TransformerLayerOptions>(transformerLayerOptions)],
);

/** What both kinds of layers have; members have PyTorch's names. */
abstract class TransformerLayer extends Module {
  readonly selfAttn: MultiHeadAttention;
  readonly linear1: Linear;
  readonly linear2: Linear;
  readonly norm1: LayerNorm;
  readonly norm2: LayerNorm;
  readonly dropout: Dropout;
  readonly activation: Layer;
  readonly normFirst: boolean;

  protected constructor(name: string, width: number, heads: number, options: TransformerLayerOptions) {
    takesLayer(name, width, heads, options);
    super();
    const { hidden = 2048, dropout = 0.1, activation = relu, normFirst = false } = options;
    const biased = { ...typeOf(options), bias: options.bias ?? true };
    this.selfAttn = attentionOf(width, heads, options, options.causal);
    this.linear1 = new Linear(width, hidden, biased);
    this.linear2 = new Linear(hidden, width, biased);
    this.norm1 = normOf(width, options);
    this.norm2 = normOf(width, options);
    this.dropout = new Dropout(dropout);
    this.activation = activation;
    this.normFirst = normFirst;
  }

  /** x with what `inner` makes of it, which has its norm before or behind. */
  protected residual(x: Tensor, norm: LayerNorm, inner: (x: Tensor) => Tensor): Tensor {
    if (this.normFirst) return add(x, this.dropout.forward(inner(norm.forward(x))));
    return norm.forward(add(x, this.dropout.forward(inner(x))));
  }

  protected feed(x: Tensor): Tensor {
    const wide = applyLayer(this.activation, this.linear1.forward(x));
    return this.linear2.forward(this.dropout.forward(wide));
  }

  /** Attention of positions to themselves and to those of a cache, around the stream, and the cache with them. */
  protected attendBehind(x: Tensor, cache: AttentionCache): [seen: Tensor, cache: AttentionCache] {
    let next = cache;
    const seen = this.residual(x, this.norm1, (at) => {
      const [output, own] = attendCached(this.selfAttn, at, cache);
      next = own;
      return output;
    });
    return [seen, next];
  }
}

function attentionOf(
  width: number,
  heads: number,
  options: TransformerLayerOptions,
  causal: boolean = false,
): MultiHeadAttention {
  const { kvHeads = heads, dropout = 0.1, bias = true } = options;
  return new MultiHeadAttention(width, heads, { ...typeOf(options), kvHeads, dropout, bias, causal });
}

export function normOf(width: number, options: TransformerLayerOptions): LayerNorm {
  const { layerNormEps: eps = 1e-5, bias = true } = options;
  return new LayerNorm(width, { ...typeOf(options), eps, bias });
}

export interface EncodeOptions {
  /**
   * bool: true where a position may see another (PyTorch's masks say the opposite). Float: added to
   * the scores. Broadcasts to [.., heads, S, S]; what PyTorch calls a padding mask is [N, 1, 1, S];
   * by default all see all.
   */
  readonly mask?: Tensor;
}

/** What encoders take in `forward`. */
export const takesEncode: arg.Signature<[x: Tensor, options?: EncodeOptions]> = arg.takes<
  (x: Tensor, options?: EncodeOptions) => Tensor
>(['x', aTensor], ['options', arg.options<EncodeOptions>({ mask: aTensor })]);

/** Self-attention and a two-layer network, of x [.., S, width]. */
export class TransformerEncoderLayer extends TransformerLayer {
  constructor(width: number, heads: number, options: TransformerLayerOptions = {}) {
    super('TransformerEncoderLayer', width, heads, options);
  }

  forward<D extends DType>(x: Tensor<D>, options: EncodeOptions = {}): Tensor<Weighed<D>> {
    takesEncode('TransformerEncoderLayer', x, options);
    const seen = this.residual(x, this.norm1, (at) => this.selfAttn.forward(at, options));
    return this.residual(seen, this.norm2, (at) => this.feed(at));
  }

  /** `forward` of positions behind those of a cache, and the cache with them. */
  stepWith(x: Tensor, cache: AttentionCache): [output: Tensor, cache: AttentionCache] {
    const [seen, next] = this.attendBehind(x, cache);
    return [this.residual(seen, this.norm2, (at) => this.feed(at)), next];
  }
}

export interface DecodeOptions {
  /**
   * Which positions of x see which of x, as for encoders: [.., heads, S, S]; by default all see all.
   */
  readonly mask?: Tensor;
  /** Which positions of x see which of the memory: [.., heads, S, M]; by default all see all. */
  readonly memoryMask?: Tensor;
}

/** What decoders take in `forward`. */
export const takesDecode: arg.Signature<[x: Tensor, memory: Tensor, options?: DecodeOptions]> = arg.takes<
  (x: Tensor, memory: Tensor, options?: DecodeOptions) => Tensor
>(
  ['x', aTensor],
  ['the memory', aTensor],
  ['options', arg.options<DecodeOptions>({ mask: aTensor, memoryMask: aTensor })],
);

/** Self-attention, attention to a memory [.., M, width], and a two-layer network. */
export class TransformerDecoderLayer extends TransformerLayer {
  readonly multiheadAttn: MultiHeadAttention;
  readonly norm3: LayerNorm;

  constructor(width: number, heads: number, options: TransformerLayerOptions = {}) {
    super('TransformerDecoderLayer', width, heads, options);
    this.multiheadAttn = attentionOf(width, heads, options);
    this.norm3 = normOf(width, options);
  }

  forward<D extends DType>(x: Tensor<D>, memory: Tensor, options: DecodeOptions = {}): Tensor<Weighed<D>> {
    takesDecode('TransformerDecoderLayer', x, memory, options);
    const { mask, memoryMask } = options;
    const own: AttendOptions = mask === undefined ? {} : { mask };
    const other: AttendOptions = memoryMask === undefined ? {} : { mask: memoryMask };
    const seen = this.residual(x, this.norm1, (at) => this.selfAttn.forward(at, own));
    const read = this.residual(seen, this.norm2, (at) =>
      this.multiheadAttn.forward(at, { context: memory, ...other }),
    );
    return this.residual(read, this.norm3, (at) => this.feed(at));
  }

  /** `forward` of positions behind those of a cache, and the cache with them. */
  stepWith(x: Tensor, cache: LayerCache): [output: Tensor, cache: LayerCache] {
    const [seen, own] = this.attendBehind(x, cache);
    const next = { ...cache, ...own };
    const read = this.residual(seen, this.norm2, (at) =>
      attendKept(this.multiheadAttn, at, cache.memoryKeys, cache.memoryValues),
    );
    return [this.residual(read, this.norm3, (at) => this.feed(at)), next];
  }
}
