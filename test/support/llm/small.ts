// Small models of every family with seeded weights: as a source for the decoder, and as plain arrays
// for its reference.

import { tensor } from '../../../src/index.ts';
import type { ModelConfig, ModelSource, Weight } from '../../../src/llm/index.ts';
import { randomArray } from '../random/values.ts';

/** Weights as they are stored: row-major f32. */
export interface StoredWeight {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

export interface SmallModel {
  readonly config: ModelConfig;
  readonly weights: ReadonlyMap<string, StoredWeight>;
}

const rope = { layout: 'halves', dims: 8, base: 10_000, scaling: { kind: 'none' } } as const;

/** A plain configuration; families differ from it in a few fields. */
export const plain: ModelConfig = {
  architecture: 'llama',
  layers: 2,
  width: 24,
  hidden: 40,
  heads: 4,
  keyHeads: 2,
  headSize: 8,
  vocabulary: 50,
  contextLength: 64,
  epsilon: 1e-5,
  rope: { ...rope, layout: 'interleaved' },
  windowRope: { ...rope, layout: 'interleaved' },
  windows: [undefined, undefined],
  scale: 1 / Math.sqrt(8),
  embeddingScale: 1,
  normOffset: 0,
  gate: 'silu',
  hasHeadNorms: false,
  hasPostNorms: false,
};

interface Traits {
  readonly hasBiases?: boolean;
  readonly isFused?: boolean;
  readonly isTied?: boolean;
}

const local = { ...rope, base: 100 };

/** A small model of each family. */
export const families: Readonly<Record<string, readonly [Partial<ModelConfig>, Traits]>> = {
  llama: [{}, {}],
  mistral: [{ windows: [5, 5] }, { isTied: true }],
  qwen2: [
    { architecture: 'qwen2', rope, windowRope: rope },
    { hasBiases: true, isTied: true },
  ],
  qwen3: [{ architecture: 'qwen3', rope, windowRope: rope, hasHeadNorms: true }, {}],
  gemma2: [
    {
      architecture: 'gemma2',
      rope,
      windowRope: rope,
      windows: [4, undefined],
      scoreCap: 2,
      logitCap: 3,
      embeddingScale: Math.sqrt(24),
      normOffset: 1,
      gate: 'gelu',
      hasPostNorms: true,
    },
    { isTied: true },
  ],
  gemma3: [
    {
      architecture: 'gemma3',
      rope: { ...rope, scaling: { kind: 'linear', factor: 4 } },
      windowRope: local,
      windows: [6, undefined],
      embeddingScale: Math.sqrt(24),
      gate: 'gelu',
      hasHeadNorms: true,
      hasPostNorms: true,
    },
    { isTied: true },
  ],
  phi3: [
    {
      architecture: 'phi3',
      keyHeads: 4,
      rope: { ...rope, dims: 6 },
      windowRope: { ...rope, dims: 6 },
    },
    { isFused: true },
  ],
  mixtral: [{ architecture: 'mixtral', experts: { count: 4, used: 2, hidden: 16, isNormalised: true } }, {}],
  qwen3moe: [
    {
      architecture: 'qwen3moe',
      rope,
      windowRope: rope,
      hasHeadNorms: true,
      experts: { count: 8, used: 3, hidden: 16, isNormalised: false },
    },
    {},
  ],
};

/** The model of a family, of weights that a seed makes. */
export function smallModel(family: string, seed = 1): SmallModel {
  const [changes, traits] = families[family]!;
  const config = { ...plain, ...changes };
  const { width, hidden, heads, keyHeads, headSize, vocabulary, experts } = config;
  const weights = new Map<string, StoredWeight>();
  let next = seed * 1000;
  const add = (name: string, shape: number[], scale: number, shift = 0): void => {
    const { data } = randomArray('f32', shape, next++, 'tame');
    weights.set(name, {
      shape,
      data: Float32Array.from(data as Float32Array, (value) => value * scale + shift),
    });
  };
  const matrix = (name: string, ...shape: number[]): void => add(name, shape, 0.8 / Math.sqrt(shape.at(-1)!));
  const gain = (name: string, size: number): void => add(name, [size], 0.1, 1 - config.normOffset);
  const [queries, keys] = [heads * headSize, keyHeads * headSize];
  matrix('token_embd.weight', vocabulary, width);
  gain('output_norm.weight', width);
  if (traits.isTied !== true) matrix('output.weight', vocabulary, width);
  for (let i = 0; i < config.layers; i++) {
    const at = `blk.${i}.`;
    gain(`${at}attn_norm.weight`, width);
    gain(`${at}ffn_norm.weight`, width);
    if (config.hasPostNorms) gain(`${at}post_attention_norm.weight`, width);
    if (config.hasPostNorms) gain(`${at}post_ffw_norm.weight`, width);
    if (config.hasHeadNorms) gain(`${at}attn_q_norm.weight`, headSize);
    if (config.hasHeadNorms) gain(`${at}attn_k_norm.weight`, headSize);
    if (traits.isFused === true) {
      matrix(`${at}attn_qkv.weight`, queries + 2 * keys, width);
      matrix(`${at}ffn_up.weight`, 2 * hidden, width);
    } else {
      for (const [name, size] of [
        ['q', queries],
        ['k', keys],
        ['v', keys],
      ] as const) {
        matrix(`${at}attn_${name}.weight`, size, width);
        if (traits.hasBiases === true) add(`${at}attn_${name}.bias`, [size], 0.3);
      }
    }
    matrix(`${at}attn_output.weight`, width, queries);
    if (experts !== undefined) {
      matrix(`${at}ffn_gate_inp.weight`, experts.count, width);
      matrix(`${at}ffn_gate_exps.weight`, experts.count, experts.hidden, width);
      matrix(`${at}ffn_up_exps.weight`, experts.count, experts.hidden, width);
      matrix(`${at}ffn_down_exps.weight`, experts.count, width, experts.hidden);
      continue;
    }
    if (traits.isFused !== true) {
      matrix(`${at}ffn_gate.weight`, hidden, width);
      matrix(`${at}ffn_up.weight`, hidden, width);
    }
    matrix(`${at}ffn_down.weight`, width, hidden);
  }
  return { config, weights };
}

/** A small model as `loadModel` takes it. */
export function sourceOf({ config, weights }: SmallModel): ModelSource {
  return {
    config,
    sizes: new Map([...weights].map(([name, { data }]) => [name, data.byteLength])),
    weights: {
      has: (name) => weights.has(name),
      kind: () => 'f32',
      load: (names): Promise<Weight> => {
        const found = names.flatMap((name) => weights.get(name) ?? []);
        const [first] = found;
        if (first === undefined) throw new Error(`there is no ${names.join(', ')}`);
        const rows = found.reduce((sum, { shape }) => sum + (shape[0] ?? 1), 0);
        const all = Float32Array.from(found.flatMap(({ data }) => [...data]));
        return Promise.resolve(tensor(all, { shape: [rows, ...first.shape.slice(1)] }));
      },
    },
  };
}
