// Tensors from files and into files: converts between the bytes of this folder's formats and
// tensors. Every dtype keeps its own bytes, so f16 and bf16 are not rounded.

import { SinterError, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import type { DType } from '../ir/dtype.ts';
import { aTensor } from '../tensor/expect.ts';
import type { Known, Told } from '../tensor/inferred.ts';
import { fromBytes } from '../tensor/record.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { bytesOf } from '../tensor/values.ts';
import { checkHostTensor, hostTensor, type HostTensor } from './host.ts';
import { readIdx } from './idx.ts';
import { readNpy, writeNpy } from './npy.ts';
import { readSafetensors, writeSafetensors, type Safetensors } from './safetensors.ts';
import type { FileLocation } from '../platform.ts';

const takesHost = arg.takes<typeof fromHostTensor>(['the tensor', hostTensor]);
const takesTensor = arg.takes<typeof toHostTensor>(['the tensor', aTensor]);
const takesBytes = arg.takes<typeof loadNpy>(['the file', arg.bytes]);

/** A tensor of host data. The bytes are not copied: they must not change afterwards. */
export function fromHostTensor<D extends DType>(tensor: HostTensor<D>): Tensor<Told<D>> {
  takesHost('fromHostTensor', tensor);
  checkHostTensor('fromHostTensor', tensor);
  return fromBytes(tensor.data, tensor.shape, tensor.dtype) as Tensor<Told<D>>;
}

/**
 * The computed value of a tensor as host data, which may share memory with the tensor and must not
 * be changed.
 */
export async function toHostTensor<D extends DType>(tensor: Tensor<D>): Promise<HostTensor<Known<D>>> {
  takesTensor('toHostTensor', tensor);
  const { dtype, shape }: { dtype: Known<D>; shape: readonly number[] } = tensor;
  return { dtype, shape, data: await bytesOf(tensor) };
}

function readAlready(file: unknown): file is Safetensors {
  return typeof file === 'object' && file !== null && 'tensors' in file && file.tensors instanceof Map;
}

const bytesOrRead: arg.Kind<Uint8Array | Safetensors> = {
  accepts: (value) => arg.bytes.accepts(value) || readAlready(value),
  refuse: (op, what, value) => arg.bytes.refuse(op, what, value),
};
const takesLoadSafetensors = arg.takes<typeof loadSafetensors>(['the file', bytesOrRead]);

/**
 * The tensors of a safetensors file (or of `readSafetensors`) by name. They share memory with its
 * bytes, which must not change afterwards. Throws ParseError E_FORMAT.
 */
export function loadSafetensors(file: Uint8Array | Safetensors): Record<string, Tensor> {
  takesLoadSafetensors('loadSafetensors', file);
  const { tensors } = readAlready(file) ? file : readSafetensors(file);
  return Object.fromEntries([...tensors].map(([name, host]) => [name, fromHostTensor(host)]));
}

const byName: arg.Kind<Readonly<Record<string, Tensor>>> = arg.kind(
  'tensors by name',
  (value) => arg.isPlainObject(value) && Object.values(value).every((at) => aTensor.accepts(at)),
  (value) => (value instanceof Map ? 'Object.fromEntries(map)' : undefined),
);
const takesSaveSafetensors = arg.takes<typeof saveSafetensors>(
  ['the tensors', byName],
  ['the metadata', arg.optional(arg.texts)],
);

/** A safetensors file of tensors, such as `stateDict` gives, and of free text by key. */
export async function saveSafetensors(
  tensors: Readonly<Record<string, Tensor>>,
  metadata: Readonly<Record<string, string>> = {},
): Promise<Uint8Array> {
  takesSaveSafetensors('saveSafetensors', tensors, metadata);
  const read = Object.entries(tensors).map(
    async ([name, tensor]) => [name, await toHostTensor(tensor)] as const,
  );
  return writeSafetensors(await Promise.all(read), metadata);
}

/**
 * The array of an npy file, sharing its bytes where their order allows. Throws ParseError E_FORMAT.
 */
export function loadNpy(bytes: Uint8Array): Tensor {
  takesBytes('loadNpy', bytes);
  return fromHostTensor(readNpy(bytes));
}

/** An npy file of a tensor. Rejects with E_DTYPE for bf16, which NumPy does not have. */
export async function saveNpy(tensor: Tensor): Promise<Uint8Array> {
  takesTensor('saveNpy', tensor);
  return writeNpy(await toHostTensor(tensor));
}

/**
 * The array of an idx file, the format of MNIST (gzip: see `gunzip`). Throws ParseError E_FORMAT.
 */
export function loadIdx(bytes: Uint8Array): Tensor {
  takesBytes('loadIdx', bytes);
  return fromHostTensor(readIdx(bytes));
}

const aPath: arg.Kind<FileLocation> = arg.kind(
  'a path or a file: URL',
  (value) => (typeof value === 'string' && value !== '') || value instanceof URL,
);
const takesReadFile = arg.takes<typeof readFile>(['the path', aPath]);

/** The bytes of a file, under Node; E_UNSUPPORTED in a page. */
export async function readFile(path: FileLocation): Promise<Uint8Array> {
  takesReadFile('readFile', path);
  const { readFile: read } = await files('readFile');
  return unbroken('readFile', path, () => read(path));
}

const takesWriteFile = arg.takes<typeof writeFile>(['the path', aPath], ['the bytes', arg.bytes]);

/** Writes a file, under Node; E_UNSUPPORTED in a page. */
export async function writeFile(path: FileLocation, bytes: Uint8Array): Promise<void> {
  takesWriteFile('writeFile', path, bytes);
  const { writeFile: write } = await files('writeFile');
  await unbroken('writeFile', path, () => write(path, bytes));
}

/**
 * Like `writeFile`, but it replaces the file as a whole or not at all: a reader finds the old file or the
 * new one, also after a crash.
 */
export async function replaceFile(path: FileLocation, bytes: Uint8Array): Promise<void> {
  takesWriteFile('replaceFile', path, bytes);
  const { replaceFile: replace } = await files('replaceFile');
  await unbroken('replaceFile', path, () => replace(path, bytes));
}

/** What a file gives; E_IO where that fails. */
async function unbroken<T>(op: string, path: FileLocation, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SinterError('E_IO', `${op}: ${String(path)}: ${reason}`, { cause });
  }
}

async function files(op: string): Promise<typeof import('./files.ts')> {
  if (typeof process !== 'undefined' && process.versions?.node !== undefined) return import('./files.ts');
  const hint = op === 'readFile' ? 'fetch, and its arrayBuffer()' : 'a Blob of the bytes, to download';
  throw new TensorError('E_UNSUPPORTED', op, 'a page has no files', hint);
}
