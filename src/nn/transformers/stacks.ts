// Stacks of transformer layers, and encoder and decoder together (Vaswani et al., 2017).

import type { DType } from '../../ir/dtype.ts';
import type { Weighed } from '../../tensor/inferred.ts';
import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { only } from '../../ir/arguments.ts';
import { aTensor } from '../../tensor/expect.ts';
import { show } from '../../tensor/ops/operand.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { typeOf, xavierUniform } from '../init.ts';
import { aLayer, applyLayer, Module, type Layer } from '../module.ts';
import { parameter } from '../parameters.ts';
import { checkRoom, emptyCache, memoryOf, type LayerCache } from './cache.ts';
import {
  normOf,
  takesDecode,
  takesEncode,
  TransformerDecoderLayer,
  TransformerEncoderLayer,
  transformerLayerOptions,
  type DecodeOptions,
  type EncodeOptions,
  type TransformerLayerOptions,
} from './layers.ts';

export interface StackOptions {
  /** Behind the last layer; nothing by default. */
  readonly norm?: Layer;
}

const stackOptions = arg.options<StackOptions>({ norm: aLayer });
const takesEncoder = arg.takes<typeof TransformerEncoder>(
  [
    'the layers',
    arg.listOf(
      arg.kind<TransformerEncoderLayer>(
        'a TransformerEncoderLayer',
        (value) => value instanceof TransformerEncoderLayer,
      ),
    ),
  ],
  ['options', stackOptions],
);

/** Encoder layers one after another. */
export class TransformerEncoder extends Module {
  readonly layers: readonly TransformerEncoderLayer[];
  readonly norm: Layer | undefined;

  constructor(layers: readonly TransformerEncoderLayer[], options: StackOptions = {}) {
    takesEncoder('TransformerEncoder', layers, options);
    super();
    this.layers = layers;
    this.norm = options.norm;
  }

  forward<D extends DType>(x: Tensor<D>, options: EncodeOptions = {}): Tensor<Weighed<D>> {
    takesEncode('TransformerEncoder', x, options);
    const last = this.layers.reduce((at: Tensor, layer) => layer.forward(at, options), x);
    return this.norm === undefined ? last : applyLayer(this.norm, last);
  }
}

const takesDecoder = arg.takes<typeof TransformerDecoder>(
  [
    'the layers',
    arg.listOf(
      arg.kind<TransformerDecoderLayer>(
        'a TransformerDecoderLayer',
        (value) => value instanceof TransformerDecoderLayer,
      ),
    ),
  ],
  ['options', stackOptions],
);

/** What a decoder keeps between steps, a cache for each layer. It is a tree: `compile` takes it. */
export type DecoderCache = readonly LayerCache[];

const takesCache = arg.takes<TransformerDecoder['startCache']>(
  ['the memory', aTensor],
  ['the size', arg.count(1)],
);
const aCache = arg.listOf(
  arg.settings<LayerCache>(
    { keys: aTensor, values: aTensor, length: aTensor, memoryKeys: aTensor, memoryValues: aTensor },
    ['keys', 'values', 'length', 'memoryKeys', 'memoryValues'],
  ),
);
const takesStep = arg.takes<TransformerDecoder['step']>(['x', aTensor], ['the cache', aCache]);

/** Decoder layers one after another. */
export class TransformerDecoder extends Module {
  readonly layers: readonly TransformerDecoderLayer[];
  readonly norm: Layer | undefined;

  constructor(layers: readonly TransformerDecoderLayer[], options: StackOptions = {}) {
    takesDecoder('TransformerDecoder', layers, options);
    super();
    this.layers = layers;
    this.norm = options.norm;
  }

  forward<D extends DType>(x: Tensor<D>, memory: Tensor, options: DecodeOptions = {}): Tensor<Weighed<D>> {
    takesDecode('TransformerDecoder', x, memory, options);
    const last = this.layers.reduce((at: Tensor, layer) => layer.forward(at, memory, options), x);
    return this.norm === undefined ? last : applyLayer(this.norm, last);
  }

  /** A cache with room for `size` positions, which holds the memory's keys and values already. */
  startCache(memory: Tensor, size: number): DecoderCache {
    takesCache('TransformerDecoder', memory, size);
    const lead = memory.shape.slice(0, -2);
    return this.layers.map(({ selfAttn, multiheadAttn }) => ({
      ...emptyCache(selfAttn, lead, size),
      ...memoryOf(multiheadAttn, memory),
    }));
  }

  /**
   * `forward` of the positions x [.., S, width] behind those of the cache, under a causal mask, and
   * the cache with them: each position costs the attention of one. Beyond the room the next read is
   * an error, and with `setChecks(false)` the output is NaN.
   */
  step(x: Tensor, cache: DecoderCache): [output: Tensor, cache: DecoderCache] {
    takesStep('TransformerDecoder', x, cache);
    if (cache.length !== this.layers.length || x.rank < 2) {
      const problem = `${this.layers.length} layers and a cache of ${cache.length}: ${show(x)}`;
      throw new TensorError('E_SHAPE', 'TransformerDecoder', problem, 'startCache(memory, size)');
    }
    if (cache[0] !== undefined) checkRoom('TransformerDecoder', x, cache[0]);
    let at = x;
    const next = this.layers.map((layer, i) => {
      const [output, own] = layer.stepWith(at, cache[i]!);
      at = output;
      return own;
    });
    return [this.norm === undefined ? at : applyLayer(this.norm, at), next];
  }
}

export interface TransformerOptions extends TransformerLayerOptions {
  /** 8 by default. */
  readonly heads?: number;
  /** 6 by default. */
  readonly encoderLayers?: number;
  /** 6 by default. */
  readonly decoderLayers?: number;
}

export interface TransformOptions extends DecodeOptions {
  /** Which positions of the source see which: [.., heads, M, M]; by default all see all. */
  readonly sourceMask?: Tensor;
}

const takesTransformer = arg.takes<typeof Transformer>(
  ['the width', arg.count(1)],
  [
    'options',
    arg.options<TransformerOptions>({
      ...transformerLayerOptions,
      heads: arg.count(1),
      encoderLayers: arg.count(0),
      decoderLayers: arg.count(0),
    }),
  ],
);
const takesTransform = arg.takes<(source: Tensor, target: Tensor, options?: TransformOptions) => Tensor>(
  ['the source', aTensor],
  ['the target', aTensor],
  ['options', arg.options<TransformOptions>({ mask: aTensor, memoryMask: aTensor, sourceMask: aTensor })],
);

/** An encoder of a source [.., M, width] and a decoder of a target [.., S, width] that reads it. */
export class Transformer extends Module {
  readonly encoder: TransformerEncoder;
  readonly decoder: TransformerDecoder;

  constructor(width: number, options: TransformerOptions = {}) {
    takesTransformer('Transformer', width, options);
    super();
    const { heads = 8, encoderLayers = 6, decoderLayers = 6 } = options;
    const each = only(transformerLayerOptions, options);
    const encoders = Array.from(
      { length: encoderLayers },
      () => new TransformerEncoderLayer(width, heads, { ...each, causal: false }),
    );
    const decoders = Array.from(
      { length: decoderLayers },
      () => new TransformerDecoderLayer(width, heads, each),
    );
    // As in PyTorch all matrices begin as Xavier's; those of attention do already.
    for (const { linear1, linear2 } of [...encoders, ...decoders])
      for (const linear of [linear1, linear2])
        linear.weight = parameter(xavierUniform(linear.weight.shape, typeOf(options)));
    this.encoder = new TransformerEncoder(encoders, { norm: normOf(width, options) });
    this.decoder = new TransformerDecoder(decoders, { norm: normOf(width, options) });
  }

  forward<D extends DType>(
    source: Tensor,
    target: Tensor<D>,
    options: TransformOptions = {},
  ): Tensor<Weighed<D>> {
    takesTransform('Transformer', source, target, options);
    const { sourceMask, ...rest } = options;
    const memory = this.encoder.forward(source, sourceMask === undefined ? {} : { mask: sourceMask });
    return this.decoder.forward(target, memory, rest);
  }
}
