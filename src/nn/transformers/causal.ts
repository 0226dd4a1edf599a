// The stack of a language model, which has no memory to read (Radford et al., 2018): layers of causal
// self-attention and a network, over all positions at once, or over those that follow a cache.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { only } from '../../ir/arguments.ts';
import { aTensor } from '../../tensor/expect.ts';
import { show } from '../../tensor/ops/operand.ts';
import type { DType } from '../../ir/dtype.ts';
import type { Weighed } from '../../tensor/inferred.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { Module } from '../module.ts';
import type { LayerNorm } from '../norm.ts';
import { checkRoom, emptyCache } from './cache.ts';
import {
  normOf,
  takesEncode,
  TransformerEncoderLayer,
  transformerLayerOptions,
  type EncodeOptions,
  type TransformerLayerOptions,
} from './layers.ts';

type LayerOptions = Omit<TransformerLayerOptions, 'causal'>;

export interface CausalTransformerOptions extends LayerOptions {
  /** 8 by default. */
  readonly heads?: number;
  /** 6 by default. */
  readonly layers?: number;
}

/** What a causal stack keeps between steps. It is a tree: `compile` takes it, and takes it over (`donate`). */
export interface CausalCache {
  /** By layer: [batch, kvHeads, room, width / heads]. */
  readonly keys: readonly Tensor[];
  readonly values: readonly Tensor[];
  /** How many positions it holds, i32, []: the position of the next one. */
  readonly length: Tensor;
}

const { causal: _, ...layerOptions } = transformerLayerOptions;
const takesCausal = arg.takes<typeof CausalTransformer>(
  ['the width', arg.count(1)],
  [
    'options',
    arg.options<CausalTransformerOptions>({ ...layerOptions, heads: arg.count(1), layers: arg.count(1) }),
  ],
);
const takesCache = arg.takes<CausalTransformer['startCache']>(
  ['the batch', arg.count(1)],
  ['the size', arg.count(1)],
);
const tensors = arg.listOf(aTensor);
const takesStep = arg.takes<CausalTransformer['step']>(
  ['x', aTensor],
  [
    'the cache',
    arg.settings<CausalCache>({ keys: tensors, values: tensors, length: aTensor }, [
      'keys',
      'values',
      'length',
    ]),
  ],
);

/**
 * Layers of causal self-attention one after another and a norm, over x [batch, S, width], as decoders
 * of language models are; under the names that PyTorch's `TransformerEncoder` has.
 */
export class CausalTransformer extends Module {
  readonly layers: readonly TransformerEncoderLayer[];
  readonly norm: LayerNorm;

  constructor(width: number, options: CausalTransformerOptions = {}) {
    takesCausal('CausalTransformer', width, options);
    super();
    const { heads = 8, layers = 6 } = options;
    const each = { ...only<LayerOptions>(layerOptions, options), causal: true };
    this.layers = Array.from({ length: layers }, () => new TransformerEncoderLayer(width, heads, each));
    this.norm = normOf(width, options);
  }

  /** Each position sees itself and those before it, where the mask lets it. */
  forward<D extends DType>(x: Tensor<D>, options: EncodeOptions = {}): Tensor<Weighed<D>> {
    takesEncode('CausalTransformer', x, options);
    const out: Tensor = this.norm.forward(
      this.layers.reduce((at: Tensor, layer) => layer.forward(at, options), x),
    );
    return out;
  }

  /** A cache with room for `size` positions of each example of a batch. */
  startCache(batch: number, size: number): CausalCache {
    takesCache('CausalTransformer', batch, size);
    const made = this.layers.map(({ selfAttn }) => emptyCache(selfAttn, [batch], size));
    const { length } = made[0]!;
    return { keys: made.map(({ keys }) => keys), values: made.map(({ values }) => values), length };
  }

  /**
   * `forward` of the positions x [batch, S, width] behind those of the cache, and the cache with them: a
   * prompt at once, then position by position. Beyond the room the next read is an error, and with
   * `setChecks(false)` the output is NaN.
   */
  step(x: Tensor, cache: CausalCache): [output: Tensor, cache: CausalCache] {
    takesStep('CausalTransformer', x, cache);
    this.#checkFits(x, cache);
    const { keys, values } = cache;
    let [at, length] = [x, cache.length];
    const next = this.layers.map((layer, i) => {
      const [output, own] = layer.stepWith(at, { keys: keys[i]!, values: values[i]!, length: cache.length });
      [at, length] = [output, own.length];
      return own;
    });
    const after = { keys: next.map((own) => own.keys), values: next.map((own) => own.values), length };
    return [this.norm.forward(at), after];
  }

  #checkFits(x: Tensor, cache: CausalCache): void {
    const op = 'CausalTransformer';
    const hint = `startCache(${x.rank === 3 ? x.shape[0] : 'batch'}, size)`;
    const { keys, values, length } = cache;
    const held = [...keys, ...values].map(({ shape }) => shape);
    const [{ selfAttn }] = this.layers as [TransformerEncoderLayer];
    const [width, room] = [selfAttn.query.weight.shape[1]!, held[0]?.at(-2)];
    const isOwn = keys.length === this.layers.length && values.length === keys.length && length.rank === 0;
    const wanted = [x.shape[0], selfAttn.kvHeads, room, width / selfAttn.heads];
    if (x.rank !== 3 || x.shape[2] !== width) {
      throw new TensorError('E_SHAPE', op, `x must be [batch, S, ${width}], got ${show(x)}`);
    }
    if (!isOwn || !held.every((shape) => wanted.every((size, axis) => shape[axis] === size))) {
      const kept = `${this.layers.length} layers, and a cache of ${keys.length} with keys ${keys[0] === undefined ? 'nothing' : show(keys[0])}`;
      throw new TensorError('E_SHAPE', op, `${show(x)} for ${kept}`, hint);
    }
    checkRoom(op, x, { keys: keys[0]!, values: values[0]!, length });
  }
}
