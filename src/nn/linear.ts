// Linear and Embedding: layers around one table of weights.

import type { DType, FloatDType } from '../ir/dtype.ts';
import type { Unknown, Weighed } from '../tensor/inferred.ts';
import * as arg from '../ir/arguments.ts';
import { embedding } from '../tensor/ops/shape/gather.ts';
import { linear } from '../tensor/ops/product/matmul.ts';
import { arange } from '../tensor/ops/creation/creation.ts';
import { normal } from '../tensor/ops/creation/random.ts';
import { reshape } from '../tensor/ops/shape/view.ts';
import { eq, maskedFill } from '../tensor/ops/elementwise/compare.ts';
import { normalizeAxis } from '../ir/shape.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { initOptions, symmetric, typeOf, type InitOptions } from './init.ts';
import { Module } from './module.ts';
import { parameter } from './parameters.ts';

export interface LinearOptions extends InitOptions {
  /** true by default. */
  readonly bias?: boolean;
}

const takesLinear = arg.takes<typeof Linear>(
  ['the number of inputs', arg.count(1)],
  ['the number of outputs', arg.count(1)],
  ['options', arg.options<LinearOptions>({ ...initOptions, bias: arg.flag })],
);

/**
 * x·weightᵀ + bias: [.., inputs] to [.., outputs]. Weight [outputs, inputs] and bias start as
 * U(±1/√inputs).
 */
export class Linear extends Module {
  weight: Tensor;
  bias: Tensor | undefined;

  constructor(inputs: number, outputs: number, options: LinearOptions = {}) {
    takesLinear('Linear', inputs, outputs, options);
    super();
    const bound = 1 / Math.sqrt(inputs);
    this.weight = parameter(symmetric([outputs, inputs], bound, options));
    this.bias = options.bias === false ? undefined : parameter(symmetric([outputs], bound, options));
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return linear<Unknown, Unknown>(x, this.weight, this.bias);
  }
}

export interface EmbeddingLayerOptions extends InitOptions {
  /** The row of this index starts as zeros and gets no gradient; none by default. */
  readonly paddingIdx?: number;
}

const takesEmbedding = arg.takes<typeof Embedding>(
  ['the number of rows', arg.count(1)],
  ['the width', arg.count(1)],
  ['options', arg.options<EmbeddingLayerOptions>({ ...initOptions, paddingIdx: arg.integer })],
);

/**
 * Rows of a table of `count` vectors of `width`: indices [..] to [.., width]. They start as N(0,
 * 1).
 */
export class Embedding extends Module {
  weight: Tensor;
  readonly paddingIdx: number | undefined;

  constructor(count: number, width: number, options: EmbeddingLayerOptions = {}) {
    takesEmbedding('Embedding', count, width, options);
    super();
    const { paddingIdx } = options;
    this.paddingIdx = paddingIdx === undefined ? undefined : normalizeAxis('Embedding', paddingIdx, count);
    const table = normal([count, width], typeOf(options));
    if (this.paddingIdx === undefined) this.weight = parameter(table);
    else
      this.weight = parameter(maskedFill(table, reshape(eq(arange(count), this.paddingIdx), [count, 1]), 0));
  }

  forward(indices: Tensor): Tensor<FloatDType> {
    const { paddingIdx } = this;
    return embedding(indices, this.weight, paddingIdx === undefined ? {} : { paddingIdx });
  }
}
