// The configuration of a decoder from the metadata of a GGUF file.

import type { ExpertsConfig, ModelConfig, RopeConfig, RopeScaling } from './config.ts';
import { allFamilies, type ModelFamily } from './families.ts';
import { checkedConfig, ConfigFields, windowsOf } from './fields.ts';

/** What of a GGUF file its configuration is read from. */
interface GgufConfigSource {
  readonly metadata: { get(key: string): unknown };
  readonly tensors: { get(name: string): { readonly shape: readonly number[] } | undefined };
}

/** What a GGUF file says of its decoder. Throws ParseError where it does not say enough, or a family that is unknown. */
export function configFromGguf(
  { metadata, tensors }: GgufConfigSource,
  more: readonly ModelFamily[] = [],
): ModelConfig {
  const all = new ConfigFields('gguf', (key) => metadata.get(key));
  const name = all.text('general.architecture');
  const families = allFamilies(more);
  const family = families.find((each) => each.name === name);
  if (family === undefined) {
    const known = families.map((each) => each.name).join(', ');
    throw all.fail(`general.architecture is ${name ?? 'missing'}: expected one of ${known}`);
  }
  const own = new ConfigFields('gguf', (key) => metadata.get(`${family.name}.${key}`));
  const layers = own.layers('block_count');
  const width = own.count('embedding_length');
  const heads = alike(own, 'attention.head_count', layers);
  const headSize = own.count('attention.key_length', width / heads);
  if (own.count('attention.value_length', headSize) !== headSize) {
    throw own.fail('attention.value_length differs from attention.key_length, which is not supported');
  }
  const embedding = tensors.get('token_embd.weight');
  const contextLength = own.count('context_length');
  const rope: RopeConfig = {
    layout: family.layout ?? 'halves',
    dims: own.count('rope.dimension_count', headSize),
    base: own.number('rope.freq_base', 10_000),
    scaling: scalingOf(own, contextLength, tensors),
  };
  const experts = expertsOf(own, layers);
  const window = own.maybe('attention.sliding_window');
  const pattern =
    family.pattern === undefined ? 0 : own.count('attention.sliding_window_pattern', family.pattern);
  const [scoreCap, logitCap] = ['attn_logit_softcapping', 'final_logit_softcapping'].map((key) =>
    own.maybe(key),
  );
  const isGrown = family.scaledByWidth === layers;
  const config: ModelConfig = {
    architecture: family.name,
    layers,
    width,
    hidden:
      experts === undefined || experts.dense !== undefined
        ? alike(own, 'feed_forward_length', layers)
        : experts.hidden,
    heads,
    keyHeads: alike(own, 'attention.head_count_kv', layers, heads),
    headSize,
    vocabulary: embedding?.shape[0] ?? own.count('vocab_size'),
    contextLength,
    epsilon: own.number('attention.layer_norm_rms_epsilon'),
    rope,
    windowRope:
      family.windowBase === undefined
        ? rope
        : {
            ...rope,
            base: own.number('rope.freq_base_swa', family.windowBase),
            scaling: { kind: 'none' },
          },
    windows: windowsOf(layers, window, (layer) => pattern === 0 || layer % pattern < pattern - 1),
    scale: 1 / Math.sqrt(isGrown ? width / heads : headSize),
    ...(scoreCap === undefined ? {} : { scoreCap }),
    ...(logitCap === undefined ? {} : { logitCap }),
    embeddingScale: family.growsEmbedding === true ? Math.sqrt(width) : 1,
    // Files of Gemma have the one in their weights.
    normOffset: 0,
    gate: family.gate ?? 'silu',
    hasHeadNorms: family.hasHeadNorms ?? tensors.get('blk.0.attn_q_norm.weight') !== undefined,
    hasPostNorms: family.hasPostNorms ?? tensors.get('blk.0.post_attention_norm.weight') !== undefined,
    ...(experts === undefined ? {} : { experts }),
  };
  return checkedConfig(own, family.configure?.(config, (key) => own.raw(key)) ?? config);
}

/** A number that files may give for each layer, where all layers have the same. */
function alike(fields: ConfigFields, key: string, layers: number, fallback?: number): number {
  if (!Array.isArray(fields.raw(key)) && !ArrayBuffer.isView(fields.raw(key)))
    return fields.count(key, fallback);
  const list = fields.numbers(key) ?? [];
  const [first] = list;
  if (first !== undefined && list.length === layers && list.every((each) => each === first)) return first;
  throw fields.fail(`${key} differs from layer to layer, which is not supported: ${list.join(',')}`);
}

function expertsOf(own: ConfigFields, layers: number): ExpertsConfig | undefined {
  const count = own.maybe('expert_count') ?? 0;
  if (count === 0) return undefined;
  const hidden = own.maybe('expert_feed_forward_length') ?? own.count('feed_forward_length');
  const lead = Math.min(own.maybe('leading_dense_block_count') ?? 0, layers);
  const dense = Array.from({ length: Math.max(lead, 0) }, (_, i) => i);
  return {
    count,
    used: own.count('expert_used_count'),
    hidden,
    isNormalised: true,
    ...(dense.length === 0 ? {} : { dense }),
  };
}

function scalingOf(
  own: ConfigFields,
  contextLength: number,
  tensors: GgufConfigSource['tensors'],
): RopeScaling {
  // Files of Phi have factors, and often do not say of what kind they are.
  const hasFactors = tensors.get('rope_factors_short.weight') ?? tensors.get('rope_factors_long.weight');
  const kind = hasFactors === undefined ? (own.text('rope.scaling.type') ?? 'none') : 'longrope';
  const factor = own.maybe('rope.scaling.factor') ?? own.maybe('rope.scale_linear') ?? 1;
  const original = own.number('rope.scaling.original_context_length', contextLength);
  switch (kind) {
    case 'none':
      return factor === 1 ? { kind: 'none' } : { kind: 'linear', factor };
    case 'linear':
      return { kind: 'linear', factor };
    case 'yarn': {
      const attention = own.number('rope.scaling.attn_factor', 1);
      const grown = factor <= 1 ? 1 : 0.1 * Math.log(factor) + 1;
      return {
        kind: 'yarn',
        factor,
        original,
        fast: own.number('rope.scaling.yarn_beta_fast', 32),
        slow: own.number('rope.scaling.yarn_beta_slow', 1),
        magnitude: attention * grown,
      };
    }
    case 'longrope':
      // The factors of pairs are tensors of the file, which whoever loads it puts in.
      return {
        kind: 'longrope',
        original,
        short: [],
        long: [],
        magnitude: own.number('rope.scaling.attn_factor', 1),
        by: 'room',
      };
    default:
      throw own.fail(`rope.scaling.type is ${kind}: expected none, linear, yarn or longrope`);
  }
}
