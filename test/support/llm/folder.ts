// Small models as folders of Hugging Face, of the same seeded weights as those of GGUF files: what transformers was
// asked about (scripts/llm/folder-fixtures.py), made again for our own answers.

import { writeSafetensors, type HostTensor } from '../../../src/io/index.ts';
import { packBytes } from '../../../src/ir/value.ts';
import { fileSpecs, layers, tensorsOf, tokens, vocabulary, type FileSpec, type Made } from './gguf-model.ts';

/** What a folder is made of. */
export interface FolderSpec {
  readonly name: string;
  /** The file that has the same weights. */
  readonly file: FileSpec;
  /** Whether that file also says the same of them. */
  readonly isFile?: true;
  /** `model_type`. */
  readonly type: string;
  readonly dtype?: 'f32' | 'f16' | 'bf16';
  /** Files that the tensors are spread over; one by default. */
  readonly shards?: number;
  /** Fields of config.json beside the usual ones. */
  readonly config?: Readonly<Record<string, unknown>>;
}

const file = (name: string, changes: Partial<FileSpec> = {}): FileSpec => ({
  ...fileSpecs.find((spec) => spec.name === name)!,
  ...changes,
});

const factors = (first: number, count = 8): number[] =>
  Array.from({ length: count }, (_, i) => first + i / 4);
const gemma = { hidden_activation: 'gelu_pytorch_tanh', query_pre_attn_scalar: 32, sliding_window: 6 };

/** Every family, and what their members differ in. */
export const folderSpecs: readonly FolderSpec[] = [
  { name: 'llama', file: file('llama f32'), isFile: true, type: 'llama' },
  { name: 'llama of f16', file: file('llama f32'), type: 'llama', dtype: 'f16' },
  { name: 'llama of bf16 in shards', file: file('llama f32'), type: 'llama', dtype: 'bf16', shards: 3 },
  {
    name: 'llama 3',
    file: file('llama f32'),
    type: 'llama',
    config: {
      rope_scaling: {
        rope_type: 'llama3',
        factor: 8,
        low_freq_factor: 1,
        high_freq_factor: 4,
        original_max_position_embeddings: 32,
      },
    },
  },
  {
    name: 'llama linear',
    file: file('llama f32'),
    type: 'llama',
    config: { rope_scaling: { type: 'linear', factor: 3 } },
  },
  {
    name: 'llama yarn',
    file: file('llama yarn'),
    isFile: true,
    type: 'llama',
    config: {
      rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 64 },
    },
  },
  ...(
    [
      ['of other turns', { beta_fast: 8, beta_slow: 2, attention_factor: 1.375 }],
      ['of exact turns', { beta_fast: 8, beta_slow: 2, truncate: false }],
      ['of two growths', { mscale: 0.5, mscale_all_dim: 2 }],
    ] as const
  ).map(([name, more]) => ({
    name: `llama yarn ${name}`,
    file: file('llama f32'),
    type: 'llama',
    config: {
      rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 64, ...more },
    },
  })),
  { name: 'mistral', file: file('llama f32'), type: 'mistral', config: { sliding_window: 5 } },
  {
    name: 'mixtral',
    file: file('mixtral'),
    isFile: true,
    type: 'mixtral',
    config: { num_local_experts: 4, num_experts_per_tok: 2, sliding_window: null },
  },
  { name: 'qwen2', file: file('qwen2'), isFile: true, type: 'qwen2', config: { sliding_window: 5 } },
  {
    name: 'qwen2 with windows',
    file: file('qwen2'),
    type: 'qwen2',
    config: { sliding_window: 5, use_sliding_window: true, max_window_layers: 1 },
  },
  { name: 'qwen3', file: file('qwen3'), isFile: true, type: 'qwen3' },
  {
    name: 'qwen3moe',
    file: file('qwen3moe'),
    isFile: true,
    type: 'qwen3_moe',
    config: { num_experts: 8, num_experts_per_tok: 3, norm_topk_prob: true },
  },
  {
    name: 'qwen3moe that does not share',
    file: file('qwen3moe'),
    type: 'qwen3_moe',
    config: { num_experts: 8, num_experts_per_tok: 3 },
  },
  {
    name: 'qwen3moe of every other layer',
    file: file('qwen3moe', { experts: { count: 8, used: 3, hidden: 48, dense: [0] } }),
    isFile: true,
    type: 'qwen3_moe',
    config: { num_experts: 8, num_experts_per_tok: 3, norm_topk_prob: true, decoder_sparse_step: 2 },
  },
  {
    name: 'qwen3moe of the first layer',
    file: file('qwen3moe', { experts: { count: 8, used: 3, hidden: 48, dense: [1] } }),
    type: 'qwen3_moe',
    config: { num_experts: 8, num_experts_per_tok: 3, norm_topk_prob: true, mlp_only_layers: [1] },
  },
  {
    name: 'gemma2',
    // transformers wants numbers with a point here.
    file: file('gemma2', { extra: { attn_logit_softcapping: 2.5, final_logit_softcapping: 3.5 } }),
    isFile: true,
    type: 'gemma2',
    config: { ...gemma, attn_logit_softcapping: 2.5, final_logit_softcapping: 3.5 },
  },
  {
    name: 'gemma3',
    file: file('gemma3'),
    isFile: true,
    type: 'gemma3_text',
    config: { ...gemma, rope_local_base_freq: 10_000 },
  },
  {
    name: 'gemma3 with two ropes',
    file: file('gemma3'),
    type: 'gemma3_text',
    config: {
      ...gemma,
      query_pre_attn_scalar: 20,
      layer_types: ['full_attention', 'sliding_attention'],
      rope_theta: 1_000_000,
      rope_local_base_freq: 500,
      rope_scaling: { rope_type: 'linear', factor: 8 },
    },
  },
  { name: 'phi3', file: file('phi3'), isFile: true, type: 'phi3' },
  ...[8, 20, 128].map((original) => ({
    name: `phi3 longrope of ${original}`,
    file: file('phi3'),
    type: 'phi3',
    config: {
      original_max_position_embeddings: original,
      rope_scaling: { type: 'longrope', short_factor: factors(1), long_factor: factors(3) },
    },
  })),
  // Those of 8 are long from the prompt on, those of 20 become so.
  ...[8, 20].map((original) => ({
    name: `llama dynamic of ${original}`,
    file: file('llama f32'),
    type: 'llama',
    config: {
      max_position_embeddings: original,
      rope_scaling: { rope_type: 'dynamic', factor: 8 },
    },
  })),
  {
    name: 'phi3 in part',
    file: file('phi3', { keyHeads: 2 }),
    type: 'phi3',
    config: { partial_rotary_factor: 0.5, sliding_window: 7 },
  },
];

/** A tensor's rows by heads: GGUF files of Llama have pairs side by side, folders have them in halves. */
function inHalves({ shape, data }: Made, heads: number): Float32Array {
  const [rows, columns] = shape as [number, number];
  const size = rows / heads;
  const out = new Float32Array(data.length);
  for (let row = 0; row < rows; row++) {
    const [head, at] = [Math.floor(row / size), row % size];
    const from = head * size + 2 * (at % (size / 2)) + Math.floor(at / (size / 2));
    out.set(data.subarray(from * columns, (from + 1) * columns), row * columns);
  }
  return out;
}

/** What a folder calls the tensors of a file. */
function folderName(name: string, type: string): string {
  const isGemma = type.startsWith('gemma');
  const parts: Readonly<Record<string, string>> = {
    token_embd: 'model.embed_tokens',
    output_norm: 'model.norm',
    output: 'lm_head',
    attn_norm: 'input_layernorm',
    post_attention_norm: 'post_attention_layernorm',
    ffn_norm: isGemma ? 'pre_feedforward_layernorm' : 'post_attention_layernorm',
    post_ffw_norm: 'post_feedforward_layernorm',
    attn_q: 'self_attn.q_proj',
    attn_k: 'self_attn.k_proj',
    attn_v: 'self_attn.v_proj',
    attn_qkv: 'self_attn.qkv_proj',
    attn_output: 'self_attn.o_proj',
    attn_q_norm: 'self_attn.q_norm',
    attn_k_norm: 'self_attn.k_norm',
    ffn_gate: 'mlp.gate_proj',
    ffn_up: type === 'phi3' ? 'mlp.gate_up_proj' : 'mlp.up_proj',
    ffn_down: 'mlp.down_proj',
    ffn_gate_inp: type === 'mixtral' ? 'block_sparse_moe.gate' : 'mlp.gate',
    ffn_gate_exps: type === 'mixtral' ? 'block_sparse_moe.experts.#.w1' : 'mlp.experts.#.gate_proj',
    ffn_up_exps: type === 'mixtral' ? 'block_sparse_moe.experts.#.w3' : 'mlp.experts.#.up_proj',
    ffn_down_exps: type === 'mixtral' ? 'block_sparse_moe.experts.#.w2' : 'mlp.experts.#.down_proj',
  };
  const [, layer, part = '', end] = /^(?:blk\.(\d+)\.)?(.*)\.(weight|bias)$/.exec(name)!;
  return `${layer === undefined ? '' : `model.layers.${layer}.`}${parts[part]!}.${end}`;
}

/** The tensors of a folder. */
export function folderTensors({ file: spec, type, dtype = 'f32' }: FolderSpec): [string, HostTensor][] {
  return tensorsOf(spec).flatMap((made): [string, HostTensor][] => {
    const { name, shape } = made;
    let { data } = made;
    const isRotated = spec.architecture === 'llama' && /attn_[qk]\.weight$/.test(name);
    if (isRotated) data = inHalves(made, name.includes('attn_q') ? spec.heads : spec.keyHeads);
    if (type.startsWith('gemma') && name.endsWith('norm.weight')) data = data.map((value) => value - 1);
    const called = folderName(name, type);
    const tensor = (values: Float32Array, sizes: readonly number[]): HostTensor => ({
      dtype,
      shape: sizes,
      data: packBytes({ dtype, shape: sizes, data: values }),
    });
    if (!called.includes('#')) return [[called, tensor(data, shape)]];
    const [count = 0, ...each] = shape;
    const size = data.length / count;
    return Array.from({ length: count }, (_, i) => [
      called.replace('#', String(i)),
      tensor(data.subarray(i * size, (i + 1) * size), each),
    ]);
  });
}

/** config.json. */
export function folderConfig({ file: spec, type, config }: FolderSpec): Record<string, unknown> {
  const { width, heads, keyHeads, headSize, hidden, isTied, experts } = spec;
  return {
    model_type: type,
    vocab_size: vocabulary,
    hidden_size: width,
    intermediate_size: hidden,
    ...(experts === undefined ? {} : { moe_intermediate_size: experts.hidden ?? hidden }),
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: keyHeads,
    head_dim: headSize,
    hidden_act: 'silu',
    max_position_embeddings: 256,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    tie_word_embeddings: isTied === true,
    bos_token_id: 257,
    eos_token_id: 257,
    pad_token_id: null,
    ...config,
  };
}

/** tokenizer.json of the same tokens as those of the file. */
export function tokenizerJson(): object {
  const list = tokens();
  return {
    version: '1.0',
    added_tokens: list.slice(257).map((content, i) => ({
      id: 257 + i,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      vocab: Object.fromEntries(list.slice(0, 257).map((text, i) => [text, i])),
      merges: [`${list[32]!} e`],
    },
  };
}

const utf8 = new TextEncoder();
export const jsonBytes = (value: unknown): Uint8Array => utf8.encode(JSON.stringify(value));

/** The files of a folder. */
export function folderFiles(spec: FolderSpec): Map<string, Uint8Array> {
  const tensors = folderTensors(spec);
  const { shards = 1 } = spec;
  const files = new Map<string, Uint8Array>([
    ['config.json', jsonBytes(folderConfig(spec))],
    ['tokenizer.json', jsonBytes(tokenizerJson())],
    ['tokenizer_config.json', jsonBytes({ eos_token: '<|endoftext|>' })],
    ['generation_config.json', jsonBytes({ eos_token_id: [257, 259] })],
    ['chat_template.jinja', utf8.encode('{% for message in messages %}[{{ message.content }}]{% endfor %}')],
  ]);
  if (shards === 1) return files.set('model.safetensors', writeSafetensors(tensors));
  const places: Record<string, string> = {};
  for (let i = 0; i < shards; i++) {
    const name = `model-${String(i + 1).padStart(5, '0')}-of-${String(shards).padStart(5, '0')}.safetensors`;
    const own = tensors.filter((_, at) => at % shards === i);
    for (const [tensor] of own) places[tensor] = name;
    files.set(name, writeSafetensors(own, { format: 'pt' }));
  }
  return files.set('model.safetensors.index.json', jsonBytes({ metadata: {}, weight_map: places }));
}
