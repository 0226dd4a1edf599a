// `sinter/llm`: language models from their files: text, conversations, scores and embeddings.

export type { ChatMessage, TextCodec, TextStream } from './codec.ts';
export type { ExpertsConfig, ModelConfig, RopeConfig, RopeScaling } from './config/config.ts';
export type { ModelFamily } from './config/families.ts';
export { cacheTypes, isCacheType, type CacheType } from './decoder/cache.ts';
export type { BlockWeight, Weight, WeightSource } from './decoder/weights.ts';
export { Generation, type Finish, type Piece, type Timings } from './engine/generation.ts';
export type { Constraint } from './engine/writer.ts';
export { constraintOf, Grammar } from './grammar/constraint.ts';
export { jsonGrammar } from './grammar/json.ts';
export { parseGrammar } from './grammar/notation.ts';
export { loadModel, type LoadModelOptions, type LoadProgress } from './load.ts';
export type { ModelInput } from './sources/folder.ts';
export type { ModelSource, QuantizeTo } from './sources/model.ts';
export { LanguageModel } from './model.ts';
export type { DraftedModel, DraftModel, GenerateOptions } from './options.ts';
export type { SamplingOptions } from './sampling/options.ts';
export { textOfGguf } from './text/gguf.ts';
export { textOfJson, type TokenizerFiles } from './text/json.ts';
export type { TextOptions, TextPackages } from './text/packages.ts';
