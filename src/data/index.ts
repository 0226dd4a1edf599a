// `sinter/data`: datasets, samplers, loaders of batches, progress, and metrics that stay on the device.

// Datasets
export { fromArray, stream, type Dataset, type Stream } from './dataset.ts';
export { fromArrays, TensorDataset, type HostArrays, type RowOf } from './arrays.ts';
export {
  concat,
  filter,
  map,
  randomSplit,
  repeat,
  subset,
  take,
  zip,
  type SplitOptions,
  type Zipped,
} from './combine.ts';
export { shuffle, type ShuffleOptions } from './shuffle.ts';

// Files
export { fromFiles } from './files/arrays.ts';
export { readCsv, type ColumnType, type CsvOptions, type CsvPackage, type CsvRow } from './files/csv.ts';
export {
  imageFiles,
  imageFolder,
  type ImageFile,
  type ImageFolder,
  type LabelledImage,
} from './files/folder.ts';
export { readImage, type ImageOptions } from './files/image.ts';
export { readParquet, type ParquetOptions, type ParquetPackage } from './files/parquet.ts';
export type { FileSource } from './files/source.ts';

// Samplers
export {
  batchSampler,
  randomSampler,
  sequentialSampler,
  shardedSampler,
  subsetRandomSampler,
  weightedSampler,
  type BatchOptions,
  type BatchSampler,
  type RandomSamplerOptions,
  type Sampler,
  type SeedOptions,
  type ShardOptions,
  type WeightedSamplerOptions,
} from './sampler.ts';
export type { Seed } from './draws.ts';

// Batches
export { DataLoader, type LoaderOptions, type LoaderState } from './loader.ts';
export { collate } from './collate.ts';
export { scalar, type Collated, type ElementArray, type ElementTensor, type ItemLeaf } from './item.ts';
export type { WorkerOptions } from './workers/pool.ts';
export type { WorkerContext } from './workers/message.ts';

// Progress
export { progress, type ProgressOptions, type ProgressReport } from './progress.ts';

// Metrics
export * as metrics from './metrics/metrics.ts';
