// Checkpoints: a training in one file, to go on from bit for bit. A safetensors file, so that other
// programs can read its tensors; how they belong together, and the state of the random generator, is
// JSON in its metadata.

import { ParseError, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { readSafetensors } from '../io/safetensors.ts';
import { loadSafetensors, readFile, replaceFile, saveSafetensors } from '../io/tensors.ts';
import { restoreRngState, saveRngState, type RngState } from '../tensor/generator.ts';
import { pack, unpack, type Packed } from './packed.ts';
import type { FileLocation } from '../platform.ts';

/** What is to be saved, or loaded, by name: models, optimizers, trees of tensors and plain data. */
export type CheckpointParts = Readonly<Record<string, unknown>>;

/** Where the bytes of a checkpoint go: a file, or a function that keeps them. */
export type CheckpointTarget = FileLocation | ((bytes: Uint8Array) => unknown);

export interface CheckpointOptions {
  /** Whether the state of the random generator goes along; true by default. */
  readonly rng?: boolean;
}

const metadataKey = 'sinter.checkpoint';

interface Header {
  readonly version: 1;
  readonly rng?: RngState;
  readonly parts: Packed;
}

const isPath = (value: unknown): boolean =>
  (typeof value === 'string' && value !== '') || value instanceof URL;
const aTarget: arg.Kind<CheckpointTarget> = arg.kind(
  'a path, a file: URL or a function of bytes',
  (value) => isPath(value) || arg.isCallable(value),
);
const aSource: arg.Kind<FileLocation | Uint8Array> = arg.kind(
  'a path, a file: URL or bytes',
  (value) => isPath(value) || arg.isBytes(value),
);
const parts: arg.Kind<CheckpointParts> = arg.kind('an object of what to save', (value) =>
  arg.isPlainObject(value),
);
const options = arg.options<CheckpointOptions>({ rng: arg.flag });
const takesSave = arg.takes<typeof saveCheckpoint>(
  ['the target', aTarget],
  ['the parts', parts],
  ['options', options],
);

/**
 * Saves a training: models, optimizers and whatever else keeps a state, tensors and plain data. A
 * file is replaced whole, or stays as it was.
 */
export async function saveCheckpoint(
  target: CheckpointTarget,
  parts: CheckpointParts,
  options: CheckpointOptions = {},
): Promise<void> {
  const op = 'saveCheckpoint';
  takesSave(op, target, parts, options);
  // Everything is taken as it is now, before the first wait.
  const { packed, tensors } = pack(op, parts);
  const header: Header = {
    version: 1,
    ...(options.rng === false ? {} : { rng: saveRngState() }),
    parts: packed,
  };
  const bytes = await saveSafetensors(tensors, { [metadataKey]: JSON.stringify(header) });
  await (typeof target === 'function' ? target(bytes) : replaceFile(target, bytes));
}

const takesLoad = arg.takes<
  (source: FileLocation | Uint8Array, parts: CheckpointParts, options?: CheckpointOptions) => unknown
>(['the source', aSource], ['the parts', parts], ['options', options]);

/**
 * Loads what `saveCheckpoint` saved. What keeps a state (models, optimizers) takes it, and stands in
 * the result; tensors and plain data come back as values. Parts that were not asked for are left.
 * Rejects with E_VALUE or E_SHAPE, and changes nothing, where the checkpoint is of something else.
 */
export async function loadCheckpoint<P extends CheckpointParts>(
  source: FileLocation | Uint8Array,
  parts: P,
  options: CheckpointOptions = {},
): Promise<P> {
  const op = 'loadCheckpoint';
  takesLoad(op, source, parts, options);
  const file = readSafetensors(
    typeof source === 'string' || source instanceof URL ? await readFile(source) : source,
  );
  const { rng, parts: packed } = headerOf(file.metadata[metadataKey]);
  const saved = (packed as { readonly object?: Readonly<Record<string, Packed>> }).object;
  if (saved === undefined) throw broken('it has no parts');
  const asked = Object.entries(saved).filter(([name]) => Object.hasOwn(parts, name));
  const wanted = { object: Object.fromEntries(asked) };
  const lost = Object.keys(parts).filter((name) => !Object.hasOwn(saved, name));
  if (lost.length > 0) {
    const problem = `the checkpoint has no ${lost.join(', ')}`;
    throw new TensorError('E_VALUE', op, problem, `it has ${Object.keys(saved).join(', ')}`);
  }
  const loaded = unpack(op, wanted, loadSafetensors(file), parts) as P;
  if (rng !== undefined && options.rng !== false) restoreRngState(rng);
  return loaded;
}

function headerOf(text: string | undefined): Header {
  if (text === undefined) throw broken('the file is no checkpoint: its metadata does not say so');
  let header: unknown;
  try {
    header = JSON.parse(text);
  } catch (cause) {
    throw broken(`its metadata is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  if (!arg.isPlainObject(header) || !arg.isPlainObject(header['parts'])) throw broken('it has no parts');
  if (header['version'] !== 1) throw broken(`it is of version ${String(header['version'])}, not 1`);
  return header as unknown as Header;
}

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'checkpoint', problem);
}
