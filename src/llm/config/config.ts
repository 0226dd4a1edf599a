// What a decoder is made of, as plain data: sizes, and which of the parts that families of models
// differ in it has. config/gguf.ts reads it from the metadata of a GGUF file, config/hf.ts from a config.json.

/** How the angles of positions grow beyond the lengths that a model was trained on. */
export type RopeScaling =
  | { readonly kind: 'none' }
  /** Positions are divided by `factor`. */
  | { readonly kind: 'linear'; readonly factor: number }
  /** Peng et al., 2023: slow pairs are interpolated, fast ones are not, and scores grow. */
  | {
      readonly kind: 'yarn';
      readonly factor: number;
      readonly original: number;
      readonly fast: number;
      readonly slow: number;
      /** Whether the ramp between fast and slow pairs begins and ends at fractions of pairs; by default at whole ones. */
      readonly isExact?: true;
      /** What cosines and sines are multiplied by; 0.1 · ln(factor) + 1 where it is not said. */
      readonly magnitude?: number;
    }
  /** Llama 3.1: slow pairs are divided by `factor`, fast ones are not, and between them it changes smoothly. */
  | {
      readonly kind: 'llama3';
      readonly factor: number;
      readonly original: number;
      /** Turns over the original length, below which pairs are slow. */
      readonly low: number;
      /** Turns over the original length, above which pairs are fast. */
      readonly high: number;
    }
  /**
   * NTK-aware scaling that grows with the text: one longer than the original length is turned with a larger base, in all
   * of its positions, as transformers has it.
   */
  | { readonly kind: 'dynamic'; readonly factor: number; readonly original: number }
  /** Ding et al., 2024: a factor for each pair, of short and of long texts. */
  | {
      readonly kind: 'longrope';
      readonly original: number;
      readonly short: readonly number[];
      readonly long: readonly number[];
      readonly magnitude: number;
      /**
       * What is long: a text that has more tokens than the original length, as transformers has it, or a room for more,
       * whatever stands in it, as llama.cpp has it.
       */
      readonly by: 'text' | 'room';
    };

/** Rotary position embeddings (Su et al., 2021). */
export interface RopeConfig {
  /** Which elements make a pair: 2i and 2i + 1, or i and i + dims / 2. */
  readonly layout: 'interleaved' | 'halves';
  /** How many elements of a head are turned; the rest stay. */
  readonly dims: number;
  readonly base: number;
  readonly scaling: RopeScaling;
}

/** A mixture of experts (Shazeer et al., 2017) in the place of a feed-forward part. */
export interface ExpertsConfig {
  readonly count: number;
  /** How many of them a token is given to. */
  readonly used: number;
  /** Width inside an expert. */
  readonly hidden: number;
  /** Whether the weights of those chosen sum to one. */
  readonly isNormalised: boolean;
  /** Layers that have an ordinary feed-forward part instead; none by default. */
  readonly dense?: readonly number[];
}

/** A decoder: sizes and parts. */
export interface ModelConfig {
  /** The name of its family (config/families.ts). */
  readonly architecture: string;
  readonly layers: number;
  readonly width: number;
  readonly hidden: number;
  readonly heads: number;
  /** Heads of keys and values, each shared by heads / keyHeads heads of queries. */
  readonly keyHeads: number;
  readonly headSize: number;
  readonly vocabulary: number;
  /** Tokens of the longest text that the model was made for. */
  readonly contextLength: number;
  readonly epsilon: number;
  readonly rope: RopeConfig;
  /** Of layers whose attention has a window, where they have angles of their own. */
  readonly windowRope: RopeConfig;
  /** Keys that each layer sees, its own position among them; undefined: all before it. */
  readonly windows: readonly (number | undefined)[];
  /** What scores are multiplied by. */
  readonly scale: number;
  /** Scores become cap · tanh(score / cap). */
  readonly scoreCap?: number;
  readonly logitCap?: number;
  /** What rows of the embedding are multiplied by. */
  readonly embeddingScale: number;
  /** Added to the weights of norms as they are stored. */
  readonly normOffset: number;
  readonly gate: 'silu' | 'gelu';
  /** Norms of queries and keys, head by head. */
  readonly hasHeadNorms: boolean;
  /** Norms behind attention and the feed-forward part, before the residual. */
  readonly hasPostNorms: boolean;
  readonly experts?: ExpertsConfig;
}
