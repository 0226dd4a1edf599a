// Small models as GGUF files, of seeded weights: what llama.cpp was asked about
// (scripts/llm/peer.ts), made again for our own answers.

import { writeGguf, type GgufTensorGiven, type GgufType } from '../../../src/io/index.ts';

/** What a file is made of. */
export interface FileSpec {
  readonly name: string;
  readonly architecture: string;
  readonly type: GgufType;
  readonly width: number;
  readonly heads: number;
  readonly keyHeads: number;
  readonly headSize: number;
  readonly hidden: number;
  readonly experts?: {
    readonly count: number;
    readonly used: number;
    /** Width inside of an expert; `hidden` by default. */
    readonly hidden?: number;
    /** Layers that have none. */
    readonly dense?: readonly number[];
  };
  /** The first factors of LongRoPE, of short and of long texts. */
  readonly factors?: readonly [short: number, long: number];
  readonly window?: number;
  /** Keys of the architecture that others do not have. */
  readonly extra?: Readonly<Record<string, number | string>>;
  readonly isTied?: true;
}

const small = { width: 64, heads: 4, keyHeads: 2, headSize: 32, hidden: 96 } as const;
const wide = { width: 256, heads: 4, keyHeads: 2, headSize: 64, hidden: 256 } as const;

/** Types of blocks on one architecture, and architectures of floats. */
export const fileSpecs: readonly FileSpec[] = [
  ...(['f32', 'f16', 'q8_0', 'q4_0'] as const).map((type) => ({
    name: `llama ${type}`,
    architecture: 'llama',
    type,
    ...small,
  })),
  ...(['q4_k', 'q6_k'] as const).map((type) => ({
    name: `llama ${type}`,
    architecture: 'llama',
    type,
    ...wide,
  })),
  { name: 'mixtral', architecture: 'llama', type: 'f32', ...small, experts: { count: 4, used: 2 } },
  { name: 'qwen2', architecture: 'qwen2', type: 'f32', ...small, headSize: 16, isTied: true },
  { name: 'qwen3', architecture: 'qwen3', type: 'f32', ...small },
  { name: 'qwen3moe', architecture: 'qwen3moe', type: 'f32', ...small, experts: { count: 8, used: 3 } },
  {
    name: 'gemma2',
    architecture: 'gemma2',
    type: 'f32',
    ...small,
    window: 6,
    isTied: true,
    extra: { attn_logit_softcapping: 2, final_logit_softcapping: 3 },
  },
  { name: 'gemma3', architecture: 'gemma3', type: 'f32', ...small, window: 6, isTied: true },
  { name: 'phi3', architecture: 'phi3', type: 'f32', ...small, keyHeads: 4, headSize: 16 },
  {
    name: 'llama yarn',
    architecture: 'llama',
    type: 'f32',
    ...small,
    extra: {
      'rope.scaling.type': 'yarn',
      'rope.scaling.factor': 4,
      'rope.scaling.original_context_length': 64,
    },
  },
  {
    name: 'llama yarn of another magnitude',
    architecture: 'llama',
    type: 'f32',
    ...small,
    extra: {
      'rope.scaling.type': 'yarn',
      'rope.scaling.factor': 4,
      'rope.scaling.original_context_length': 64,
      'rope.scaling.attn_factor': 1.25,
    },
  },
  {
    name: 'llama linear',
    architecture: 'llama',
    type: 'f32',
    ...small,
    extra: { 'rope.scaling.type': 'linear', 'rope.scaling.factor': 3 },
  },
  ...[32, 256].map((original) => ({
    name: `phi3 longrope of ${original}`,
    architecture: 'phi3',
    type: 'f32' as const,
    ...small,
    keyHeads: 4,
    headSize: 16,
    factors: [1, 3] as const,
    extra: { 'rope.scaling.original_context_length': original, 'rope.scaling.attn_factor': 1.125 },
  })),
];

export const vocabulary = 264;
export const layers = 2;

/** Numbers of a normal distribution, the same for the same seed. */
function normals(seed: number): () => number {
  let state = (Math.imul(seed, 2654435761) ^ 0x9e3779b9) >>> 0 || 1;
  const uniform = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return (state + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** A tensor of a model. */
export interface Made {
  readonly name: string;
  readonly shape: readonly number[];
  readonly type: GgufType;
  readonly data: Float32Array;
}

/** The tensors of a model, as GGUF files have them. */
export function tensorsOf(spec: FileSpec): Made[] {
  const { architecture, width, heads, keyHeads, headSize, hidden, experts } = spec;
  const tensors: Made[] = [];
  const add = (name: string, shape: number[], type: GgufType, scale: number, shift = 0): void => {
    const next = normals(tensors.length + 1);
    const size = shape.reduce((all, each) => all * each, 1);
    tensors.push({
      name,
      shape,
      type,
      data: Float32Array.from({ length: size }, () => next() * scale + shift),
    });
  };
  const matrix = (name: string, ...shape: number[]): void =>
    add(`${name}.weight`, shape, spec.type, 0.7 / Math.sqrt(shape.at(-1)!));
  const gain = (name: string, size: number): void => add(`${name}.weight`, [size], 'f32', 0.1, 1);
  const [queries, keys] = [heads * headSize, keyHeads * headSize];
  add('token_embd.weight', [vocabulary, width], spec.type, spec.isTied === true ? 0.1 : 0.5);
  gain('output_norm', width);
  if (spec.isTied !== true) matrix('output', vocabulary, width);
  const isGemma = architecture.startsWith('gemma');
  for (let i = 0; i < layers; i++) {
    const at = `blk.${i}.`;
    gain(`${at}attn_norm`, width);
    gain(`${at}ffn_norm`, width);
    if (isGemma) {
      gain(`${at}post_attention_norm`, width);
      gain(`${at}post_ffw_norm`, width);
    }
    if (['qwen3', 'qwen3moe', 'gemma3'].includes(architecture)) {
      gain(`${at}attn_q_norm`, headSize);
      gain(`${at}attn_k_norm`, headSize);
    }
    const isFused = architecture === 'phi3';
    if (isFused) matrix(`${at}attn_qkv`, queries + 2 * keys, width);
    else {
      for (const [name, size] of [
        ['q', queries],
        ['k', keys],
        ['v', keys],
      ] as const) {
        matrix(`${at}attn_${name}`, size, width);
        if (architecture === 'qwen2') add(`${at}attn_${name}.bias`, [size], 'f32', 0.1);
      }
    }
    matrix(`${at}attn_output`, width, queries);
    if (experts !== undefined && experts.dense?.includes(i) !== true) {
      const inside = experts.hidden ?? hidden;
      add(`${at}ffn_gate_inp.weight`, [experts.count, width], 'f32', 1 / Math.sqrt(width));
      matrix(`${at}ffn_gate_exps`, experts.count, inside, width);
      matrix(`${at}ffn_up_exps`, experts.count, inside, width);
      matrix(`${at}ffn_down_exps`, experts.count, width, inside);
      continue;
    }
    if (!isFused) matrix(`${at}ffn_gate`, hidden, width);
    matrix(`${at}ffn_up`, isFused ? 2 * hidden : hidden, width);
    matrix(`${at}ffn_down`, width, hidden);
  }
  for (const [i, name] of ['short', 'long'].entries()) {
    const first = spec.factors?.[i];
    if (first === undefined) continue;
    const data = Float32Array.from({ length: headSize / 2 }, (_, pair) => first + pair / 4);
    tensors.push({ name: `rope_factors_${name}.weight`, shape: [data.length], type: 'f32', data });
  }
  return tensors;
}

/** The bytes of GPT-2's alphabet, one merge, an end of text, and names up to the vocabulary's size. */
export function tokens(): string[] {
  const shown: string[] = [];
  let extra = 0;
  for (let byte = 0; byte < 256; byte++) {
    const isPlain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    shown.push(String.fromCodePoint(isPlain ? byte : 256 + extra++));
  }
  shown.push(`${shown[32]!}e`, '<|endoftext|>');
  // Names that llama.cpp looks up for some architectures.
  shown.push('<unk>', '<s>', '</s>');
  while (shown.length < vocabulary) shown.push(`<unused${shown.length}>`);
  return shown;
}

/** The file of a model, by default of seeded weights. */
export async function ggufBytes(
  spec: FileSpec,
  tensors: readonly GgufTensorGiven[] = tensorsOf(spec),
): Promise<Uint8Array> {
  const { architecture, width, heads, keyHeads, headSize, hidden, experts, window } = spec;
  const list = tokens();
  const own: Record<string, number | string> = {
    block_count: layers,
    context_length: 256,
    embedding_length: width,
    feed_forward_length: hidden,
    'attention.head_count': heads,
    'attention.head_count_kv': keyHeads,
    'attention.key_length': headSize,
    'attention.value_length': headSize,
    'rope.dimension_count': headSize,
    vocab_size: vocabulary,
    ...(experts === undefined ? {} : { expert_count: experts.count, expert_used_count: experts.used }),
    ...(architecture === 'qwen3moe' ? { expert_feed_forward_length: experts?.hidden ?? hidden } : {}),
    ...(experts?.dense === undefined ? {} : { leading_dense_block_count: experts.dense.length }),
    ...(window === undefined ? {} : { 'attention.sliding_window': window }),
  };
  const typed = Object.entries({ ...own, ...spec.extra }).map(([key, value]) => {
    const isFloat = /softcapping$|^rope\.scaling\.(?:factor|attn_factor|yarn_.*)$/.test(key);
    return [`${architecture}.${key}`, isFloat ? { type: 'f32', value } : value] as const;
  });
  const pieces: Uint8Array[] = [];
  await writeGguf(
    { write: (piece: Uint8Array) => void pieces.push(piece.slice()) },
    {
      metadata: {
        'general.architecture': architecture,
        'general.name': spec.name,
        ...(Object.fromEntries(typed) as Record<string, number>),
        [`${architecture}.attention.layer_norm_rms_epsilon`]: { type: 'f32', value: 1e-5 },
        [`${architecture}.rope.freq_base`]: { type: 'f32', value: 10_000 },
        'tokenizer.ggml.model': 'gpt2',
        'tokenizer.ggml.pre': 'gpt-2',
        'tokenizer.ggml.tokens': list,
        'tokenizer.ggml.token_type': {
          type: 'array',
          items: 'i32',
          value: Int32Array.from(list, (_, i) => (i < 257 ? 1 : i === 257 ? 3 : 5)),
        },
        'tokenizer.ggml.merges': [`${list[32]!} e`],
        'tokenizer.ggml.bos_token_id': 257,
        'tokenizer.ggml.eos_token_id': 257,
        'tokenizer.ggml.add_bos_token': false,
        'tokenizer.chat_template': '{% for message in messages %}[{{ message.content }}]{% endfor %}',
      },
      tensors,
    },
  );
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
