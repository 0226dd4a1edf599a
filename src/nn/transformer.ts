// The transformer's blocks: a two-layer feed-forward network, and attention and feed-forward around
// a residual stream, each behind its norm (Xiong et al., 2020).

import type { DType } from '../ir/dtype.ts';
import type { Weighed } from '../tensor/inferred.ts';
import * as arg from '../ir/arguments.ts';
import { only } from '../ir/arguments.ts';
import { expectTensor } from '../tensor/expect.ts';
import { gelu } from '../tensor/ops/elementwise/activation.ts';
import { add } from '../tensor/ops/elementwise/arithmetic.ts';
import type { Tensor } from '../tensor/tensor.ts';
import {
  headOptions,
  MultiHeadAttention,
  takesAttend,
  type AttendOptions,
  type MultiHeadAttentionOptions,
} from './attention.ts';
import { Dropout } from './dropout.ts';
import { initOptions, typeOf, type InitOptions } from './init.ts';
import { Linear } from './linear.ts';
import { aLayer, applyLayer, Module, type Layer } from './module.ts';
import { LayerNorm } from './norm.ts';

export interface FeedForwardOptions extends InitOptions {
  /** 4·width by default. */
  readonly hidden?: number;
  /** `gelu` by default. */
  readonly activation?: Layer;
  /** Whether both layers have a bias; true by default. */
  readonly bias?: boolean;
}

const feedOptions: arg.Table<FeedForwardOptions> = {
  ...initOptions,
  hidden: arg.count(1),
  activation: aLayer,
  bias: arg.flag,
};

const takesFeedForward = arg.takes<typeof FeedForward>(
  ['the width', arg.count(1)],
  ['options', arg.options<FeedForwardOptions>(feedOptions)],
);

/** width → hidden → activation → width. */
export class FeedForward extends Module {
  readonly up: Linear;
  readonly down: Linear;
  readonly activation: Layer;

  constructor(width: number, options: FeedForwardOptions = {}) {
    takesFeedForward('FeedForward', width, options);
    super();
    const { hidden = 4 * width, activation = gelu, bias = true } = options;
    this.up = new Linear(width, hidden, { ...typeOf(options), bias });
    this.down = new Linear(hidden, width, { ...typeOf(options), bias });
    this.activation = activation;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    expectTensor('FeedForward', 'x', x);
    const out: Tensor = this.down.forward(applyLayer(this.activation, this.up.forward(x)));
    return out;
  }
}

export interface TransformerBlockOptions extends MultiHeadAttentionOptions, FeedForwardOptions {
  /** Also on what attention and feed-forward add to the stream; 0 by default. */
  readonly dropout?: number;
}

const takesTransformerBlock = arg.takes<typeof TransformerBlock>(
  ['the width', arg.count(1)],
  ['the number of heads', arg.count(1)],
  ['options', arg.options<TransformerBlockOptions>({ ...feedOptions, ...headOptions })],
);

/** x + attention(norm(x)), then that + feedForward(norm(that)). */
export class TransformerBlock extends Module {
  readonly attentionNorm: LayerNorm;
  readonly attention: MultiHeadAttention;
  readonly feedForwardNorm: LayerNorm;
  readonly feedForward: FeedForward;
  readonly dropout: Dropout;

  constructor(width: number, heads: number, options: TransformerBlockOptions = {}) {
    takesTransformerBlock('TransformerBlock', width, heads, options);
    super();
    const bias = options.bias ?? true;
    this.attentionNorm = new LayerNorm(width, { ...typeOf(options), bias });
    this.attention = new MultiHeadAttention(width, heads, only(headOptions, options));
    this.feedForwardNorm = new LayerNorm(width, { ...typeOf(options), bias });
    this.feedForward = new FeedForward(width, only(feedOptions, options));
    this.dropout = new Dropout(options.dropout ?? 0);
  }

  forward<D extends DType>(x: Tensor<D>, options: AttendOptions = {}): Tensor<Weighed<D>> {
    takesAttend('TransformerBlock', x, options);
    const seen: Tensor = this.attention.forward(this.attentionNorm.forward(x), options);
    const stream: Tensor = add(x, this.dropout.forward(seen));
    const thought: Tensor = this.feedForward.forward(this.feedForwardNorm.forward(stream));
    return add(stream, this.dropout.forward(thought));
  }
}
