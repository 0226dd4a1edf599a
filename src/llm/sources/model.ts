// A model as one of the sources gives it.

import type { TextCodec } from '../codec.ts';
import type { ModelConfig } from '../config/config.ts';
import type { ModelFamily } from '../config/families.ts';
import type { WeightSource } from '../decoder/weights.ts';
import type { TextOptions } from '../text/packages.ts';

/** What float weights can be brought into as they are loaded. */
export type QuantizeTo = 'q8_0' | 'q4_0' | 'q4_k' | 'q6_k';

/** How a source is opened. */
export interface ModelSourceOptions extends TextOptions {
  /** Ends the reading, with the signal's reason; none by default. */
  readonly signal?: AbortSignal | undefined;
  /** What float weights become; they stay as they are by default. */
  readonly quantize?: QuantizeTo | undefined;
  /** Families beside those that are known; none by default. */
  readonly families?: readonly ModelFamily[] | undefined;
}

/** A model as a source has it: what it is made of, and where its weights are. */
export interface ModelSource {
  readonly config: ModelConfig;
  readonly weights: WeightSource;
  /** Names and bytes of all weights, for reports of progress. */
  readonly sizes: ReadonlyMap<string, number>;
  readonly codec?: TextCodec | undefined;
  /** What divides the frequencies of rotary embeddings. */
  readonly ropeFactors?: ArrayLike<number> | undefined;
  /** Gives back what the source holds open. */
  close?(): Promise<void> | void;
}
