// The families of models, and how they differ in what their files do not say. Both readers use this
// table: that of GGUF files, and that of folders of Hugging Face. docs/models/llm-new-model.md says how to add one.

import type { ModelConfig, RopeConfig } from './config.ts';

/** A family of models, and how their files are read. Without a field, it is like Llama with rope in halves. */
export interface ModelFamily {
  /** What GGUF files call it (`general.architecture`), and what `model.config.architecture` is. */
  readonly name: string;
  /** What config.json calls it (`model_type`); the name by default. */
  readonly types?: readonly string[];
  /** Which elements of a head are pairs in GGUF files; `halves` by default, as always in folders. */
  readonly layout?: RopeConfig['layout'];
  readonly gate?: 'gelu';
  /** Rows of the embedding are multiplied by √width. */
  readonly growsEmbedding?: true;
  /** Every so many layers one sees all keys; the others have a window. By default all have, if there is one. */
  readonly pattern?: number;
  /** In folders only layers from `max_window_layers` on have a window. */
  readonly hasLateWindows?: true;
  /** The base of layers with a window, where it differs from the others'. */
  readonly windowBase?: number;
  /** The number of layers at which GGUF files mean that heads are scaled by width / heads instead of their size. */
  readonly scaledByWidth?: number;
  /** Added to the weights of norms of folders. GGUF files have it in their weights. */
  readonly normOffset?: 1;
  /** Queries and keys have norms, head by head; by default, if the first layer has them. */
  readonly hasHeadNorms?: true;
  /** There are norms behind attention and the feed-forward part; by default, if the first layer has them. */
  readonly hasPostNorms?: true;
  /**
   * What tensors of folders are called, as a pattern with `{layer}` and `{expert}`, to what GGUF files call
   * them, without `.weight` and `.bias`; beside the usual names.
   */
  readonly tensors?: Readonly<Record<string, string>>;
  /** Values of fields that a config.json lacks: defaults, or fields that it calls by another name. */
  readonly fields?: (field: (key: string) => unknown) => Readonly<Record<string, unknown>>;
  /** The last word about a configuration; `field` reads the file's own fields. */
  readonly configure?: (config: ModelConfig, field: (key: string) => unknown) => ModelConfig;
}

const gemmaNames: Readonly<Record<string, string>> = {
  'model.layers.{layer}.post_attention_layernorm': 'blk.{layer}.post_attention_norm',
  'model.layers.{layer}.pre_feedforward_layernorm': 'blk.{layer}.ffn_norm',
  'model.layers.{layer}.post_feedforward_layernorm': 'blk.{layer}.post_ffw_norm',
};

const gemmaFields: Readonly<Record<string, unknown>> = {
  tie_word_embeddings: true,
  rms_norm_eps: 1e-6,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  head_dim: 256,
  query_pre_attn_scalar: 256,
  sliding_window: 4096,
};

const qwenFields: Readonly<Record<string, unknown>> = {
  use_sliding_window: false,
  sliding_window: 4096,
  max_window_layers: 28,
  rms_norm_eps: 1e-6,
};

const families: readonly ModelFamily[] = [
  {
    name: 'llama',
    types: ['llama', 'mistral', 'mixtral'],
    layout: 'interleaved',
    tensors: {
      'model.layers.{layer}.block_sparse_moe.gate': 'blk.{layer}.ffn_gate_inp',
      'model.layers.{layer}.block_sparse_moe.experts.{expert}.w1': 'blk.{layer}.ffn_gate_exps',
      'model.layers.{layer}.block_sparse_moe.experts.{expert}.w3': 'blk.{layer}.ffn_up_exps',
      'model.layers.{layer}.block_sparse_moe.experts.{expert}.w2': 'blk.{layer}.ffn_down_exps',
    },
    fields: () => ({ norm_topk_prob: true }),
  },
  { name: 'qwen2', hasLateWindows: true, fields: () => qwenFields },
  {
    name: 'qwen3',
    hasHeadNorms: true,
    hasLateWindows: true,
    fields: () => ({ ...qwenFields, head_dim: 128 }),
  },
  {
    name: 'qwen3moe',
    types: ['qwen3_moe'],
    hasHeadNorms: true,
    fields: () => ({ ...qwenFields, norm_topk_prob: false }),
  },
  {
    name: 'gemma2',
    gate: 'gelu',
    growsEmbedding: true,
    pattern: 2,
    scaledByWidth: 46,
    normOffset: 1,
    hasPostNorms: true,
    tensors: gemmaNames,
    fields: () => gemmaFields,
  },
  {
    name: 'gemma3',
    types: ['gemma3_text', 'gemma3'],
    gate: 'gelu',
    growsEmbedding: true,
    pattern: 6,
    windowBase: 10_000,
    scaledByWidth: 62,
    normOffset: 1,
    hasHeadNorms: true,
    hasPostNorms: true,
    tensors: gemmaNames,
    fields: () => ({
      ...gemmaFields,
      vocab_size: 262_208,
      max_position_embeddings: 131_072,
      rope_theta: 1_000_000,
    }),
  },
  { name: 'phi3' },
];

/** All families, those of a reader first. */
export function allFamilies(more: readonly ModelFamily[]): readonly ModelFamily[] {
  return [...more, ...families];
}

/** What tensors of folders are usually called. */
const usualNames: Readonly<Record<string, string>> = {
  'model.embed_tokens': 'token_embd',
  'model.norm': 'output_norm',
  lm_head: 'output',
  'model.layers.{layer}.input_layernorm': 'blk.{layer}.attn_norm',
  'model.layers.{layer}.post_attention_layernorm': 'blk.{layer}.ffn_norm',
  'model.layers.{layer}.self_attn.q_proj': 'blk.{layer}.attn_q',
  'model.layers.{layer}.self_attn.k_proj': 'blk.{layer}.attn_k',
  'model.layers.{layer}.self_attn.v_proj': 'blk.{layer}.attn_v',
  'model.layers.{layer}.self_attn.qkv_proj': 'blk.{layer}.attn_qkv',
  'model.layers.{layer}.self_attn.o_proj': 'blk.{layer}.attn_output',
  'model.layers.{layer}.self_attn.q_norm': 'blk.{layer}.attn_q_norm',
  'model.layers.{layer}.self_attn.k_norm': 'blk.{layer}.attn_k_norm',
  'model.layers.{layer}.mlp.gate_proj': 'blk.{layer}.ffn_gate',
  'model.layers.{layer}.mlp.up_proj': 'blk.{layer}.ffn_up',
  'model.layers.{layer}.mlp.gate_up_proj': 'blk.{layer}.ffn_up',
  'model.layers.{layer}.mlp.down_proj': 'blk.{layer}.ffn_down',
  'model.layers.{layer}.mlp.gate': 'blk.{layer}.ffn_gate_inp',
  'model.layers.{layer}.mlp.experts.{expert}.gate_proj': 'blk.{layer}.ffn_gate_exps',
  'model.layers.{layer}.mlp.experts.{expert}.up_proj': 'blk.{layer}.ffn_up_exps',
  'model.layers.{layer}.mlp.experts.{expert}.down_proj': 'blk.{layer}.ffn_down_exps',
};

/** What a tensor of a folder is to the decoder. */
export interface NamedTensor {
  /** As GGUF files have it. */
  readonly name: string;
  readonly layer?: number;
  /** Which of the experts it is of, that are one weight. */
  readonly expert?: number;
}

/** A function that tells what a tensor of a folder of this family is; undefined for unknown ones. */
export function namesOf(family: ModelFamily): (tensor: string) => NamedTensor | undefined {
  const names = { ...usualNames, ...family.tensors };
  return (tensor) => {
    const [, stem = '', end] = /^(.*)\.(weight|bias)$/.exec(tensor) ?? [];
    // Numbers in the order in which they stand: the layer, then the expert.
    const found: number[] = [];
    const pattern = stem.replaceAll(/(?<=^|\.)\d+(?=\.|$)/g, (digits) => {
      found.push(Number(digits));
      return found.length === 1 ? '{layer}' : '{expert}';
    });
    const known = Object.hasOwn(names, pattern) ? names[pattern] : undefined;
    if (known === undefined) return undefined;
    const [layer, expert] = found;
    return {
      name: `${known.replace('{layer}', String(layer))}.${end}`,
      ...(layer === undefined ? {} : { layer }),
      ...(expert === undefined ? {} : { expert }),
    };
  };
}
