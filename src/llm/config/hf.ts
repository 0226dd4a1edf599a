// The configuration of a decoder from the config.json of a folder of Hugging Face: what transformers
// makes of it, in the terms of the decoder.

import { TensorError } from '../../errors.ts';
import type { ExpertsConfig, ModelConfig, RopeConfig, RopeScaling } from './config.ts';
import { allFamilies, type ModelFamily } from './families.ts';
import { checkedConfig, ConfigFields, windowsOf } from './fields.ts';

type Json = Readonly<Record<string, unknown>>;

const what = 'config.json';

/** The fields of an object; of anything else none. */
export function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function own(json: Json, key: string): unknown {
  return Object.hasOwn(json, key) ? (json[key] ?? undefined) : undefined;
}

function unsupported(problem: string, hint?: string): TensorError {
  return new TensorError('E_UNSUPPORTED', 'loadModel', `${what}: ${problem}`, hint);
}

/** A config.json, and the family that it names. */
export interface FolderConfig {
  readonly family: ModelFamily;
  /** A field of the file, or what the family has where the file lacks it. */
  readonly field: (key: string) => unknown;
}

/**
 * The fields of a config.json. Throws E_UNSUPPORTED for families that are unknown, and for weights in
 * formats of their own.
 */
export function readConfigJson(given: unknown, more: readonly ModelFamily[] = []): FolderConfig {
  const outer = objectOf(given);
  // Models that also take pictures have their text's part in a field.
  const json = { ...outer, ...objectOf(own(outer, 'text_config')) };
  const type = new ConfigFields(what, (key) => own(outer, key)).text('model_type');
  const families = allFamilies(more);
  const family = families.find(({ name, types = [name] }) => type !== undefined && types.includes(type));
  if (family === undefined) {
    const known = families.flatMap(({ name, types = [name] }) => types).join(', ');
    throw unsupported(`model_type is ${type ?? 'missing'}: expected one of ${known}`);
  }
  const quantization = own(json, 'quantization_config') ?? own(outer, 'quantization_config');
  if (quantization !== undefined) {
    const method = String(objectOf(quantization)['quant_method'] ?? 'an unknown method');
    const hint = 'a folder of f32, f16 or bf16, or a GGUF file';
    throw unsupported(`its weights are quantised by ${method}`, hint);
  }
  const lacking = family.fields?.((key) => own(json, key)) ?? {};
  return { family, field: (key) => own(json, key) ?? own(lacking, key) };
}

/**
 * What a config.json says of its decoder; `has` tells which weights there are, by GGUF's names. Throws ParseError
 * where the file does not say enough, E_UNSUPPORTED for parts that the decoder does not have.
 */
export function configFromJson(
  { family, field }: FolderConfig,
  has: (weight: string) => boolean,
): ModelConfig {
  const fields = new ConfigFields(what, field);
  const config = decoderOf(fields, field, family, has);
  return checkedConfig(fields, family.configure?.(config, field) ?? config);
}

function decoderOf(
  fields: ConfigFields,
  field: (key: string) => unknown,
  family: ModelFamily,
  has: (weight: string) => boolean,
): ModelConfig {
  const layers = fields.layers('num_hidden_layers');
  const width = fields.count('hidden_size');
  const heads = fields.count('num_attention_heads');
  const headSize = fields.count('head_dim', width / heads);
  const contextLength = fields.count('max_position_embeddings', 2048);
  const experts = expertsOf(fields, field, layers);
  const [rope, windowRope] = ropesOf(fields, family, headSize, contextLength);
  const [scoreCap, logitCap] = ['attn_logit_softcapping', 'final_logit_softcapping'].map((key) =>
    fields.maybe(key),
  );
  return {
    architecture: family.name,
    layers,
    width,
    hidden: fields.count('intermediate_size', experts?.hidden),
    heads,
    keyHeads: fields.count('num_key_value_heads', heads),
    headSize,
    vocabulary: fields.count('vocab_size'),
    contextLength: longestOf(rope.scaling, contextLength),
    epsilon: fields.number('rms_norm_eps', 1e-6),
    rope,
    windowRope,
    windows: windowsIn(fields, field, family, layers),
    scale: 1 / Math.sqrt(fields.number('query_pre_attn_scalar', headSize)),
    ...(scoreCap === undefined ? {} : { scoreCap }),
    ...(logitCap === undefined ? {} : { logitCap }),
    embeddingScale: family.growsEmbedding === true ? Math.sqrt(width) : 1,
    normOffset: family.normOffset ?? 0,
    gate: gateOf(fields, family),
    hasHeadNorms: family.hasHeadNorms ?? has('blk.0.attn_q_norm.weight'),
    hasPostNorms: family.hasPostNorms ?? has('blk.0.post_attention_norm.weight'),
    ...(experts === undefined ? {} : { experts }),
  };
}

/** Tokens of the longest text: a scaling that grows with it is there for texts that are longer than the configuration says. */
function longestOf(scaling: RopeScaling, contextLength: number): number {
  return scaling.kind === 'dynamic' ? Math.floor(contextLength * scaling.factor) : contextLength;
}

function gateOf(fields: ConfigFields, family: ModelFamily): ModelConfig['gate'] {
  const name = fields.text('hidden_activation') ?? fields.text('hidden_act');
  switch (name) {
    case undefined:
      return family.gate ?? 'silu';
    case 'silu':
    case 'swish':
      return 'silu';
    case 'gelu_pytorch_tanh':
    case 'gelu_new':
      return 'gelu';
    default:
      throw unsupported(`the activation is ${name}: expected silu or gelu_pytorch_tanh`);
  }
}

function expertsOf(
  fields: ConfigFields,
  field: (key: string) => unknown,
  layers: number,
): ExpertsConfig | undefined {
  const key = field('num_experts') === undefined ? 'num_local_experts' : 'num_experts';
  if ((fields.maybe(key) ?? 0) === 0) return undefined;
  const step = fields.count('decoder_sparse_step', 1);
  const without = fields.numbers('mlp_only_layers') ?? [];
  const dense = Array.from({ length: layers }, (_, i) => i).filter(
    (layer) => without.includes(layer) || (layer + 1) % step !== 0,
  );
  return {
    count: fields.count(key),
    used: fields.count('num_experts_per_tok'),
    hidden: fields.count('moe_intermediate_size', fields.maybe('intermediate_size')),
    isNormalised: field('norm_topk_prob') === true,
    ...(dense.length === 0 ? {} : { dense }),
  };
}

function windowsIn(
  fields: ConfigFields,
  field: (key: string) => unknown,
  { pattern, hasLateWindows }: ModelFamily,
  layers: number,
): ModelConfig['windows'] {
  const size = field('use_sliding_window') === false ? undefined : fields.maybe('sliding_window');
  const types = field('layer_types');
  if (types !== undefined) {
    if (!Array.isArray(types) || types.length !== layers) {
      throw fields.fail(`layer_types must be a list of ${layers} kinds of attention`);
    }
    const odd: unknown = types.find((type) => type !== 'full_attention' && type !== 'sliding_attention');
    if (odd !== undefined) throw unsupported(`layer_types has ${String(odd)}`);
    return windowsOf(layers, size, (layer) => types[layer] === 'sliding_attention');
  }
  if (hasLateWindows === true) {
    const first = fields.number('max_window_layers');
    return windowsOf(layers, size, (layer) => layer >= first);
  }
  const every = pattern === undefined ? 0 : fields.count('sliding_window_pattern', pattern);
  return windowsOf(layers, size, (layer) => every === 0 || layer % every < every - 1);
}

/** Rotary embeddings of layers that see all keys, and of those with a window. */
function ropesOf(
  fields: ConfigFields,
  { windowBase }: ModelFamily,
  headSize: number,
  contextLength: number,
): readonly [all: RopeConfig, window: RopeConfig] {
  // Newer files have it all in one field, in families with two kinds for each of them.
  const newer = objectOf(fields.raw('rope_parameters'));
  const given = objectOf(own(newer, 'full_attention') ?? fields.raw('rope_scaling') ?? newer);
  const local = objectOf(own(newer, 'sliding_attention'));
  const inner = new ConfigFields(what, (key) => own(given, key));
  const part = inner.number('partial_rotary_factor', fields.maybe('partial_rotary_factor') ?? 1);
  const rope: RopeConfig = {
    layout: 'halves',
    dims: Math.floor(headSize * part),
    base: inner.number('rope_theta', fields.maybe('rope_theta') ?? 10_000),
    scaling: scalingOf(inner, fields, contextLength),
  };
  if (windowBase === undefined) return [rope, rope];
  const inWindow = new ConfigFields(what, (key) => own(local, key));
  const base = inWindow.number('rope_theta', fields.maybe('rope_local_base_freq') ?? windowBase);
  return [rope, { ...rope, base, scaling: { kind: 'none' } }];
}

function scalingOf(rope: ConfigFields, outer: ConfigFields, contextLength: number): RopeScaling {
  const kind = rope.text('rope_type') ?? rope.text('type') ?? 'default';
  const original = rope.number(
    'original_max_position_embeddings',
    outer.maybe('original_max_position_embeddings') ?? contextLength,
  );
  const positive = (key: string, fallback?: number): number => {
    const value = rope.number(key, fallback);
    if (value > 0) return value;
    throw rope.fail(`${key} must be above 0, got ${value}`);
  };
  if (original < 1) throw rope.fail(`original_max_position_embeddings must be at least 1, got ${original}`);
  switch (kind) {
    case 'default':
      return { kind: 'none' };
    case 'linear':
      return { kind: 'linear', factor: positive('factor') };
    case 'dynamic': {
      const factor = rope.number('factor');
      if (factor < 1) throw rope.fail(`factor must be at least 1, got ${factor}`);
      // transformers does not read the original length here.
      return { kind: 'dynamic', factor, original: contextLength };
    }
    case 'llama3': {
      const [low, high] = [positive('low_freq_factor'), positive('high_freq_factor')];
      if (low >= high) throw rope.fail(`high_freq_factor must be above low_freq_factor, got ${high}`);
      return { kind: 'llama3', factor: positive('factor'), original, low, high };
    }
    case 'yarn': {
      const factor = positive('factor', contextLength / original);
      return {
        kind: 'yarn',
        factor,
        original,
        fast: positive('beta_fast', 32),
        slow: positive('beta_slow', 1),
        ...(rope.raw('truncate') === false ? { isExact: true } : {}),
        magnitude: positive('attention_factor', yarnMagnitude(rope, factor)),
      };
    }
    case 'longrope':
    case 'su': {
      const factor = positive('factor', contextLength / original);
      const grown = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original));
      return {
        kind: 'longrope',
        original,
        short: rope.numbers('short_factor') ?? [],
        long: rope.numbers('long_factor') ?? [],
        magnitude: positive('attention_factor', grown),
        by: 'text',
      };
    }
    default:
      throw unsupported(
        `rope is scaled by ${kind}: expected default, linear, dynamic, llama3, yarn or longrope`,
      );
  }
}

/** What YaRN multiplies cosines and sines by, where a file does not say it: a quotient of two, if it says how both grow. */
function yarnMagnitude(rope: ConfigFields, factor: number): number {
  const grown = (share: number): number => (factor <= 1 ? 1 : 0.1 * share * Math.log(factor) + 1);
  const [own, all] = [rope.maybe('mscale') ?? 0, rope.maybe('mscale_all_dim') ?? 0];
  return own === 0 || all === 0 ? grown(1) : grown(own) / grown(all);
}
