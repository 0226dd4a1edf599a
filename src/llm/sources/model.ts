// A model as one of the sources gives it.

import type { TextCodec } from '../codec.ts';
import type { ModelConfig } from '../config/config.ts';
import type { WeightSource } from '../decoder/weights.ts';

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
