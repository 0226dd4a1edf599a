// Multi-head attention (Vaswani et al., 2017), with fewer heads for keys and values than for
// queries if asked for (grouped-query attention: Ainslie et al., 2023).

import type { DType } from '../ir/dtype.ts';
import type { Weighed } from '../tensor/inferred.ts';
import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { aTensor } from '../tensor/expect.ts';
import { scaledDotProductAttention } from '../tensor/ops/product/attention.ts';
import { zeros } from '../tensor/ops/creation/creation.ts';
import { broadcastTo, moveaxis, reshape } from '../tensor/ops/shape/view.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { initOptions, typeOf, xavierUniform, type InitOptions } from './init.ts';
import { Linear } from './linear.ts';
import { Module } from './module.ts';
import { parameter } from './parameters.ts';

export interface MultiHeadAttentionOptions extends InitOptions {
  /**
   * Heads of keys and values, of which each serves an equal share of the query heads; all have
   * their own by default.
   */
  readonly kvHeads?: number;
  /** Whether the projections have biases; true by default. */
  readonly bias?: boolean;
  /** Probability with which attention weights are dropped in training; 0 by default. */
  readonly dropout?: number;
  /** Position i sees positions 0 … i; false by default. */
  readonly causal?: boolean;
}

export const headOptions: arg.Table<MultiHeadAttentionOptions> = {
  ...initOptions,
  kvHeads: arg.count(1),
  bias: arg.flag,
  dropout: arg.share,
  causal: arg.flag,
};

export interface AttendOptions {
  /** Where keys and values come from, [.., Sk, width]; x itself by default. */
  readonly context?: Tensor;
  /**
   * bool: true where a query may see a key. Float: added to the scores. Broadcasts to [.., heads, S,
   * Sk]; by default every query sees every key.
   */
  readonly mask?: Tensor;
}

/** What blocks that attend take in `forward`. */
export const takesAttend: arg.Signature<[x: Tensor, options?: AttendOptions]> = arg.takes<
  (x: Tensor, options?: AttendOptions) => Tensor
>(['x', aTensor], ['options', arg.options<AttendOptions>({ context: aTensor, mask: aTensor })]);

const takesMultiHeadAttention = arg.takes<typeof MultiHeadAttention>(
  ['the width', arg.count(1)],
  ['the number of heads', arg.count(1)],
  ['options', arg.options<MultiHeadAttentionOptions>(headOptions)],
);

/**
 * Attention of x [.., S, width] to itself or to a context, in `heads` subspaces; gives [.., S,
 * width].
 */
export class MultiHeadAttention extends Module {
  readonly query: Linear;
  readonly key: Linear;
  readonly value: Linear;
  readonly output: Linear;
  readonly heads: number;
  readonly kvHeads: number;
  readonly dropout: number;
  readonly causal: boolean;

  constructor(width: number, heads: number, options: MultiHeadAttentionOptions = {}) {
    takesMultiHeadAttention('MultiHeadAttention', width, heads, options);
    super();
    const op = 'MultiHeadAttention';
    const { kvHeads = heads, dropout = 0, causal = false } = options;
    if (width % heads !== 0 || heads % kvHeads !== 0) {
      const problem = `width ${width}, ${heads} heads and ${kvHeads} key and value heads do not divide`;
      throw new TensorError('E_VALUE', op, problem);
    }
    const narrow = (width / heads) * kvHeads;
    this.query = projection(width, width, options);
    this.key = projection(width, narrow, options);
    this.value = projection(width, narrow, options);
    this.output = new Linear(width, width, { ...typeOf(options), bias: options.bias ?? true });
    if (this.output.bias !== undefined) this.output.bias = parameter(zeros([width], typeOf(options)));
    this.heads = heads;
    this.kvHeads = kvHeads;
    this.dropout = dropout;
    this.causal = causal;
  }

  forward<D extends DType>(x: Tensor<D>, options: AttendOptions = {}): Tensor<Weighed<D>> {
    takesAttend('MultiHeadAttention', x, options);
    const { context = x, mask } = options;
    const shared = this.heads / this.kvHeads;
    const q = splitHeads(this.query.forward(x), this.heads);
    const k = repeatHeads(splitHeads(this.key.forward(context), this.kvHeads), shared);
    const v = repeatHeads(splitHeads(this.value.forward(context), this.kvHeads), shared);
    const seen = scaledDotProductAttention(q, k, v, {
      isCausal: this.causal,
      dropout: this.training ? this.dropout : 0,
      ...(mask === undefined ? {} : { mask }),
    });
    const out: Tensor = this.output.forward(reshape(moveaxis(seen, -3, -2), x.shape));
    return out;
  }
}

/** A projection as PyTorch starts it: Xavier's uniform, and no bias at first. */
function projection(inputs: number, outputs: number, options: MultiHeadAttentionOptions): Linear {
  const made = new Linear(inputs, outputs, { ...typeOf(options), bias: options.bias ?? true });
  made.weight = parameter(xavierUniform([outputs, inputs], typeOf(options)));
  if (made.bias !== undefined) made.bias = parameter(zeros([outputs], typeOf(options)));
  return made;
}

/** [.., S, heads·d] as [.., heads, S, d]. */
export function splitHeads(x: Tensor, heads: number): Tensor {
  const split = [...x.shape.slice(0, -1), heads, x.shape.at(-1)! / heads];
  return moveaxis(reshape(x, split), -2, -3);
}

/** Each head `times` in a row; a view. */
export function repeatHeads(x: Tensor, times: number): Tensor {
  if (times === 1) return x;
  const [lead, heads, rest] = [x.shape.slice(0, -3), x.shape.at(-3)!, x.shape.slice(-2)];
  const grouped = reshape(x, [...lead, heads, 1, ...rest]);
  return reshape(broadcastTo(grouped, [...lead, heads, times, ...rest]), [...lead, heads * times, ...rest]);
}
