// The configuration of a decoder from the metadata of a GGUF file.

import type { Architecture, ExpertsConfig, ModelConfig, RopeConfig, RopeScaling } from './config.ts';
import { ParseError, showValue } from '../../errors.ts';

/** What of a GGUF file its configuration is read from. */
interface GgufConfigSource {
  readonly metadata: { get(key: string): unknown };
  readonly tensors: { get(name: string): { readonly shape: readonly number[] } | undefined };
}

/** How the families differ in what their files do not say. */
interface Family {
  readonly layout: RopeConfig['layout'];
  readonly gate?: 'gelu';
  /** Rows of the embedding are multiplied by √width. */
  readonly growsEmbedding?: true;
  /** Every so many layers one sees all keys; the others have a window. */
  readonly pattern?: number;
  /** The base of layers with a window. */
  readonly windowBase?: number;
  /** The number of layers at which heads are scaled by width / heads instead of their size. */
  readonly scaledByWidth?: number;
}

const families: Readonly<Partial<Record<string, Family>>> = {
  llama: { layout: 'interleaved' },
  qwen2: { layout: 'halves' },
  qwen3: { layout: 'halves' },
  qwen3moe: { layout: 'halves' },
  gemma2: { layout: 'halves', gate: 'gelu', growsEmbedding: true, pattern: 2, scaledByWidth: 46 },
  gemma3: {
    layout: 'halves',
    gate: 'gelu',
    growsEmbedding: true,
    pattern: 6,
    windowBase: 10_000,
    scaledByWidth: 62,
  },
  phi3: { layout: 'halves' },
} satisfies Partial<Record<Architecture, Family>>;

/** What a GGUF file says of its decoder. Throws ParseError where it does not say enough, or a family that is unknown. */
export function configFromGguf({ metadata, tensors }: GgufConfigSource): ModelConfig {
  const all = new ConfigFields('gguf', (key) => metadata.get(key));
  const name = all.text('general.architecture');
  const family = name === undefined ? undefined : families[name];
  if (name === undefined || family === undefined) {
    const known = Object.keys(families).join(', ');
    throw all.fail(`general.architecture is ${name ?? 'missing'}: expected one of ${known}`);
  }
  const own = new ConfigFields('gguf', (key) => metadata.get(`${name}.${key}`));
  const layers = own.count('block_count');
  const width = own.count('embedding_length');
  const heads = alike(own, 'attention.head_count', layers);
  const headSize = own.count('attention.key_length', width / heads);
  if (own.count('attention.value_length', headSize) !== headSize) {
    throw own.fail('attention.value_length differs from attention.key_length, which is not supported');
  }
  const embedding = tensors.get('token_embd.weight');
  const contextLength = own.count('context_length');
  const rope: RopeConfig = {
    layout: family.layout,
    dims: own.count('rope.dimension_count', headSize),
    base: own.number('rope.freq_base', 10_000),
    scaling: scalingOf(own, contextLength, tensors),
  };
  const experts = expertsOf(own);
  const window = own.maybe('attention.sliding_window');
  const pattern =
    family.pattern === undefined ? 0 : own.count('attention.sliding_window_pattern', family.pattern);
  const [scoreCap, logitCap] = ['attn_logit_softcapping', 'final_logit_softcapping'].map((key) =>
    own.maybe(key),
  );
  const isGrown = family.scaledByWidth === layers;
  return checked(own, {
    architecture: name as Architecture,
    layers,
    width,
    hidden: own.maybe('expert_feed_forward_length') ?? alike(own, 'feed_forward_length', layers),
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
    hasHeadNorms: tensors.get('blk.0.attn_q_norm.weight') !== undefined,
    hasPostNorms: tensors.get('blk.0.post_attention_norm.weight') !== undefined,
    ...(experts === undefined ? {} : { experts }),
  });
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

function expertsOf(own: ConfigFields): ExpertsConfig | undefined {
  const count = own.maybe('expert_count') ?? 0;
  if (count === 0) return undefined;
  const hidden = own.maybe('expert_feed_forward_length') ?? own.count('feed_forward_length');
  return { count, used: own.count('expert_used_count'), hidden, isNormalised: true };
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
      };
    default:
      throw own.fail(`rope.scaling.type is ${kind}: expected none, linear, yarn or longrope`);
  }
}

// What a configuration has to be for a decoder to be built of it.

/** The window of each layer: `size` where `has` says so; none of any where there is no size. */
function windowsOf(
  layers: number,
  size: number | undefined,
  has: (layer: number) => boolean,
): readonly (number | undefined)[] {
  return Array.from({ length: layers }, (_, i) =>
    size !== undefined && size > 0 && has(i) ? size : undefined,
  );
}

/** The configuration, if its sizes go together. Throws ParseError where they do not. */
function checked(fields: ConfigFields, config: ModelConfig): ModelConfig {
  const { heads, keyHeads, headSize, rope, experts, width, hidden, windows } = config;
  const whole = Object.entries({ width, hidden, heads, keyHeads, headSize });
  for (const [name, value] of whole) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw fields.fail(`${name} must be a whole number, got ${value}`);
  }
  if (heads % keyHeads !== 0) {
    throw fields.fail(`${heads} heads of queries are no multiple of ${keyHeads} heads of keys`);
  }
  if (rope.dims % 2 !== 0 || rope.dims > headSize) {
    throw fields.fail(
      `rope turns ${rope.dims} elements of heads of ${headSize}: expected an even number, at most that`,
    );
  }
  if (experts !== undefined && experts.used > experts.count) {
    throw fields.fail(`tokens are given to ${experts.used} of ${experts.count} experts`);
  }
  const odd = windows.find((size) => size !== undefined && !Number.isSafeInteger(size));
  if (odd !== undefined) throw fields.fail(`a window must be a whole number, got ${odd}`);
  return config;
}

// Reading fields of a description that a file brings: numbers of either width, text, each
// missing or of another kind an error that names the field.

/** A number as a field of a file has it. */
function numberOf(value: unknown): number | undefined {
  if (typeof value === 'bigint') return Number(value);
  return typeof value === 'number' ? value : undefined;
}

/** Typed access to the fields of a description. `what` names the file in errors. */
class ConfigFields {
  readonly #what: string;
  readonly #get: (key: string) => unknown;

  constructor(what: string, get: (key: string) => unknown) {
    this.#what = what;
    this.#get = get;
  }

  /** The error of a description that cannot be used. */
  fail(problem: string): ParseError {
    return new ParseError('E_FORMAT', this.#what, problem);
  }

  /** Whatever is there; undefined and null where nothing is. */
  raw(key: string): unknown {
    return this.#get(key) ?? undefined;
  }

  /** A finite number, or undefined where there is none. */
  maybe(key: string): number | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    const number = numberOf(value);
    if (number !== undefined && Number.isFinite(number)) return number;
    throw this.fail(`${key} must be a number, got ${showValue(value)}`);
  }

  number(key: string, fallback?: number): number {
    const value = this.maybe(key) ?? fallback;
    if (value === undefined) throw this.fail(`${key} is missing`);
    return value;
  }

  /** A whole number of at least 1. */
  count(key: string, fallback?: number): number {
    const value = this.number(key, fallback);
    if (Number.isSafeInteger(value) && value >= 1) return value;
    throw this.fail(`${key} must be a whole number of at least 1, got ${value}`);
  }

  text(key: string): string | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === 'string') return value;
    throw this.fail(`${key} must be text, got ${showValue(value)}`);
  }

  numbers(key: string): readonly number[] | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
    const list = isList ? Array.from(value as ArrayLike<unknown>, numberOf) : [undefined];
    if (list.every((item): item is number => item !== undefined)) return list;
    throw this.fail(`${key} must be a list of numbers, got ${showValue(value)}`);
  }
}
