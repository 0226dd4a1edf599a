// What the functions and classes of `sinter/data` take.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encode } from 'fast-png';
import { ones } from '../../../src/index.ts';
import * as data from '../../../src/data/index.ts';
import { saveNpy } from '../../../src/io/index.ts';
import {
  bools,
  count,
  finite,
  flag,
  fn,
  integer,
  like,
  maybe,
  meaning,
  notNegative,
  options,
  positive,
  t,
  text,
  word,
  type Meaning,
} from '../kinds.ts';
import type { Rows } from './operation.ts';

/** What can be run through. */
const lists = [
  'emptyList',
  'numbers',
  'texts',
  'nested',
  'holes',
  'tensors',
  'map',
  'set',
  'floats',
  'bytes',
  'bigints',
] as const;
const set: Meaning = meaning(() => data.fromArray([1, 2]));
const source = like(
  meaning(() => 0, ...lists),
  set.sample,
);
const seed = meaning(() => 1, 'bigint', 'negative', 'number', 'large');
const amount = meaning(() => 1, 'number');
const sampler = meaning(() => data.sequentialSampler(2));
const weights = meaning(() => [1, 2], 'emptyList', 'floats', 'bytes');
const indices = meaning(() => [0, 1], 'emptyList', 'bytes');
const trees = ['tensor', 'bool', 'integers', 'tensors'] as const;

const image = encode({ width: 1, height: 1, channels: 3, data: Uint8Array.of(1, 2, 3) });
const folder = mkdtempSync(join(tmpdir(), 'sinter-rows-'));
mkdirSync(join(folder, 'images', 'a'), { recursive: true });
writeFileSync(join(folder, 'images', 'a', 'a.png'), image);
const path = join(folder, 'x.npy');
writeFileSync(path, await saveNpy(ones([2])));
process.once('exit', () => rmSync(folder, { recursive: true }));
const pixels = { channels: like(count, () => 3), size: meaning(() => [2, 2]), maxBytes: notNegative };

export const dataRows: Rows = {
  fromArray: [meaning(() => [1], 'emptyList', 'numbers', 'texts', 'nested', 'holes', 'tensors')],
  stream: [meaning(() => () => [1], 'function', 'asynchronous')],
  fromArrays: [meaning(() => Float32Array.of(1), 'floats', 'bytes', 'bigints')],
  TensorDataset: [meaning(() => [ones([2])], ...trees)],
  concat: [source, source],
  filter: [source, fn],
  map: [source, fn],
  take: [source, amount],
  repeat: [source, amount],
  zip: [set, set].map((at) => ({ ...at, accepts: new Set(lists) })),
  subset: [set, indices],
  randomSplit: [set, meaning(() => [1, 1]), options({ seed })],
  shuffle: [source, options({ buffer: count, seed })],
  sequentialSampler: [amount],
  randomSampler: [amount, options({ seed, replacement: flag, count: amount })],
  subsetRandomSampler: [meaning(() => [0, 1], 'emptyList'), options({ seed })],
  weightedSampler: [weights, options({ seed, replacement: flag, count: amount })],
  shardedSampler: [
    sampler,
    options({ shard: meaning(() => 0, 'number'), shards: like(count, () => 2), dropLast: flag }, [
      'shard',
      'shards',
    ]),
  ],
  batchSampler: [sampler, options({ batchSize: count, dropLast: flag }, ['batchSize'])],
  DataLoader: [
    source,
    options({
      batchSize: count,
      shuffle: flag,
      seed,
      sampler,
      batchSampler: meaning(() => data.batchSampler(data.sequentialSampler(2), { batchSize: 1 })),
      dropLast: flag,
      collate: fn,
      prefetch: amount,
      workers: options(
        { count, module: text('./a.js'), name: text('a'), data: word('a'), timeout: positive },
        ['count', 'module'],
      ),
    }),
  ],
  collate: [meaning(() => [1, 2], 'numbers', 'texts', 'nested', 'holes', 'tensors')],
  fromFiles: [meaning(() => ({ x: path }), 'text', 'bytes', 'emptyObject')],
  readCsv: [
    meaning(() => new TextEncoder().encode('a\n1\n'), 'text', 'bytes'),
    options({
      columns: meaning(() => ({ a: 'number' }), 'emptyObject'),
      header: meaning(() => ['a'], 'emptyList', 'texts'),
      maxBytes: notNegative,
      delimiter: like(text(''), () => ','),
      reader: meaning(() => ({ parse: () => [] })),
    }),
  ],
  readParquet: [
    meaning(() => Uint8Array.of(1), 'text', 'bytes'),
    options(
      {
        columns: meaning(() => ['a'], 'emptyList', 'texts'),
        compressors: meaning(() => ({}), 'emptyObject', 'object', 'bare'),
        reader: meaning(() => ({
          parquetMetadata: () => ({}),
          parquetSchema: () => ({ children: [{ element: { name: 'a' } }] }),
          parquetReadObjects: () => Promise.resolve([]),
        })),
        maxBytes: notNegative,
      },
      ['reader'],
    ),
  ],
  readImage: [meaning(() => image, 'text', 'bytes'), options(pixels)],
  imageFiles: [meaning(() => [{ file: image, label: 1 }], 'emptyList'), options(pixels)],
  imageFolder: [meaning(() => join(folder, 'images'), 'text'), options(pixels)],
  progress: [
    meaning(() => [1], ...lists, 'map', 'set'),
    options({ label: text('a'), total: amount, note: fn, every: notNegative, onReport: fn }),
  ],
  scalar: [
    meaning(() => 1, 'infinity', 'fraction', 'negative', 'large', 'number', 'nan', 'true', 'bigint'),
    maybe(word('f32')),
  ],
};

const classes = like(count, () => 2);
const labels = { threshold: finite, ignoreIndex: integer };
const average = word('macro', 'micro');
const perClass = { ...labels, classes, average };
const bins = options({ bins: count, range: meaning(() => [0, 1]) });

export const metricRows: Rows = {
  Metric: [meaning(() => data.metrics.mean())],
  accuracy: [options({ ...labels, topK: count, average: word('micro'), classes })],
  confusionMatrix: [options({ ...labels, classes, normalize: word('all') }, ['classes'])],
  precision: [options(perClass, ['classes'])],
  recall: [options(perClass, ['classes'])],
  f1: [options({ ...perClass, beta: positive }, ['classes'])],
  auc: [bins],
  averagePrecision: [bins],
  rocAuc: [t(2), bools(2)],
  averagePrecisionScore: [t(2), bools(2)],
  mae: [],
  mean: [],
  mse: [],
  perplexity: [options({ ignoreIndex: integer })],
  r2: [],
  overAll: [fn],
};
