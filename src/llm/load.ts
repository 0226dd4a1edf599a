// loadModel: weights are read one after the other and brought to the device, and become a model.

import { showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { aSignal } from '../io/source/bytes.ts';
import { deviceTarget, setDevice } from '../tensor/device.ts';
import { blockSize, cacheTypes, isCacheType, type CacheType } from './decoder/cache.ts';
import { Decoder, turnsOf } from './decoder/decoder.ts';
import { loadWeights } from './decoder/weights.ts';
import { programsOf } from './engine/programs.ts';
import { slotsFor } from './engine/sequence.ts';
import { LanguageModel } from './model.ts';
import { textPackages, type TextPackages } from './text/packages.ts';
import type { ModelFamily } from './config/families.ts';
import type { SourceInput } from '../io/source/source.ts';
import { folderOf, type ModelInput } from './sources/folder.ts';
import type { ModelSource, QuantizeTo } from './sources/model.ts';

/** How far loading has come, in bytes. */
export interface LoadProgress {
  readonly loaded: number;
  readonly total: number;
}

export interface LoadModelOptions {
  /**
   * The device that this process computes on from here on; see `setDevice`; by default the one in
   * use.
   */
  readonly device?: string;
  /** Tokens that a text may have; by default what the model was made for, 4096 at most. */
  readonly contextLength?: number;
  /**
   * What keys and values are kept in: f32 (the default), f16, or q8_0, blocks of 8 bits, which take 9/32 of the memory of
   * f32 and need heads whose size is a multiple of 32.
   */
  readonly cacheType?: CacheType;
  /** Texts that may be written at once, each with a cache of its own; 1 by default. */
  readonly sequences?: number;
  /** Told of the bytes that have come; none by default. */
  readonly onProgress?: (progress: LoadProgress) => void;
  /** Ends the loading, with the signal's reason; none by default. */
  readonly signal?: AbortSignal;
  /**
   * Optional packages, in pages: `{ jinja: () => import('@huggingface/jinja') }` for conversations;
   * by default the installed ones.
   */
  readonly packages?: TextPackages;
  /**
   * Blocks that float weights are brought into as they are loaded; by default they stay as they are. Rows that
   * the blocks do not fill become q8_0, or stay too.
   */
  readonly quantize?: QuantizeTo;
  /** Families of models beside those that are known; none by default. */
  readonly families?: readonly ModelFamily[];
}

const quantizable: readonly QuantizeTo[] = ['q8_0', 'q4_0', 'q4_k', 'q6_k'];

const op = 'loadModel';

const takesOptions = arg.takes<(options?: LoadModelOptions) => void>([
  'the options',
  arg.options<LoadModelOptions>({
    device: arg.text,
    contextLength: arg.anything(),
    cacheType: arg.anything(),
    sequences: arg.anything(),
    onProgress: arg.callable<(progress: LoadProgress) => void>(),
    signal: aSignal,
    packages: textPackages,
    quantize: arg.anything(),
    families: arg.anything(),
  }),
]);

function count(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new TensorError(
    'E_VALUE',
    op,
    `${name} must be a whole number of at least 1, got ${showValue(value)}`,
  );
}

function checkCache(type: CacheType, headSize: number): void {
  if (!isCacheType(type)) {
    const problem = `cacheType must be ${cacheTypes.join(', ')}, got ${showValue(type)}`;
    throw new TensorError('E_VALUE', op, problem);
  }
  if (type !== 'q8_0' || headSize % blockSize === 0) return;
  const problem = `a cache of q8_0 needs heads of a multiple of ${blockSize} values, and the model's have ${headSize}`;
  throw new TensorError('E_VALUE', op, problem, 'f16');
}

/**
 * Opens a model and brings it to the device: a GGUF file, or a folder of Hugging Face with config.json and safetensors
 * files. A file is a path (Node), a URL, a Blob or bytes, or a list of these; a folder is a path (Node), a URL that ends
 * in `/`, a list of Files, or a Map of files by their names. Throws E_VALUE for options that are not what they must be, E_SHAPE where
 * weights are not those of the configuration.
 */
export async function loadModel(
  input: ModelInput | ModelSource,
  options: LoadModelOptions = {},
): Promise<LanguageModel> {
  takesOptions(op, options);
  const source = isModelSource(input) ? input : await openModel(input, options);
  try {
    return await modelOf(source, options);
  } finally {
    await source.close?.();
  }
}

function isModelSource(input: unknown): input is ModelSource {
  return typeof input === 'object' && input !== null && 'config' in input && 'weights' in input;
}

/** Opens a file or a folder by what it is. */
async function openModel(input: ModelInput, options: LoadModelOptions): Promise<ModelSource> {
  const { signal, quantize } = options;
  if (quantize !== undefined && !quantizable.includes(quantize)) {
    const problem = `quantize must be one of ${quantizable.join(', ')}, got ${showValue(quantize)}`;
    throw new TensorError('E_VALUE', op, problem);
  }
  const folder = await folderOf(input);
  if (folder !== undefined) {
    const { folderSource } = await import('./sources/huggingface.ts');
    return folderSource(folder, options);
  }
  const [{ openGguf }, { ggufSource }] = await Promise.all([
    import('../io/gguf/open.ts'),
    import('./sources/gguf.ts'),
  ]);
  const file = await openGguf(input as SourceInput | readonly SourceInput[], { signal });
  try {
    return await ggufSource(file, options);
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function modelOf(source: ModelSource, options: LoadModelOptions): Promise<LanguageModel> {
  const { cacheType = 'f32', signal, onProgress } = options;
  const { config, weights, sizes, codec } = source;
  const room = count('contextLength', options.contextLength ?? Math.min(config.contextLength, 4096));
  if (room > config.contextLength) {
    const problem = `contextLength is ${room}, and the model was made for ${config.contextLength}`;
    throw new TensorError('E_VALUE', op, problem, 'a rope scaling in its configuration for longer texts');
  }
  checkCache(cacheType, config.headSize);
  const sequences = count('sequences', options.sequences ?? 1);
  if (options.device !== undefined) setDevice(options.device);
  const target = await deviceTarget();
  const total = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  let loaded = 0;
  const tree = await loadWeights(weights, config, {
    most: Math.min(target.limits.bindingBytes, target.limits.bufferBytes),
    loaded: (name) => {
      signal?.throwIfAborted();
      loaded += sizes.get(name) ?? 0;
      onProgress?.({ loaded, total });
    },
  });
  const decoder = new Decoder(config, tree, turnsOf(config, slotsFor(room), room, source.ropeFactors));
  const runner = { decoder, programs: programsOf(decoder), room, cacheType };
  // On devices that work beside the host, it asks for a token before it has read the last one.
  const ahead = target.isBesideHost ? 1 : 0;
  return new LanguageModel({
    runner,
    codec,
    sequences,
    ahead,
    rowCost: target.furtherRow,
    weightBytes: weightBytesOf(source),
    free: () => decoder.dispose(),
  });
}

/** Bytes of the weights that a token reads: of an embedding that is no head one row, of experts those that are chosen. */
function weightBytesOf({ config, sizes }: ModelSource): number {
  const { experts } = config;
  const used = experts === undefined ? 1 : experts.used / experts.count;
  let bytes = 0;
  for (const [name, size] of sizes) {
    const isLookedUp = name === 'token_embd.weight' && sizes.has('output.weight');
    bytes += isLookedUp ? size / config.vocabulary : name.includes('_exps.') ? size * used : size;
  }
  return bytes;
}
