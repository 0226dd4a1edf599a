// Tensors from files and into files: the formats of this folder between bytes and tensors. Every dtype keeps its own bytes, so
// f16 and bf16 pass unrounded.

import { TensorError } from '../errors.ts';
import type { DType } from '../ir/dtype.ts';
import { fromBytes } from '../tensor/record.ts';
import { readBytes } from '../tensor/realise.ts';
import { handleOf, type Tensor } from '../tensor/tensor.ts';
import type { HostTensor } from './host.ts';
import { readIdx } from './idx.ts';
import { readNpy, writeNpy } from './npy.ts';
import { readSafetensors, writeSafetensors, type Safetensors } from './safetensors.ts';

/** A tensor of host data. The bytes are not copied: they must not change afterwards. */
export function fromHostTensor({ dtype, shape, data }: HostTensor): Tensor {
  return fromBytes(data, shape, dtype);
}

/** The computed value of a tensor as host data, which may share memory with the tensor and must not be changed. */
export async function toHostTensor(tensor: Tensor): Promise<HostTensor> {
  const { dtype, shape }: { dtype: DType; shape: readonly number[] } = tensor;
  return { dtype, shape, data: await readBytes(handleOf(tensor)) };
}

/**
 * The tensors of a safetensors file (or of `readSafetensors`) by name. They share memory with its bytes, which must not
 * change afterwards. Throws ParseError E_FORMAT.
 */
export function loadSafetensors(file: Uint8Array | Safetensors): Record<string, Tensor> {
  const { tensors } = file instanceof Uint8Array ? readSafetensors(file) : file;
  return Object.fromEntries([...tensors].map(([name, host]) => [name, fromHostTensor(host)]));
}

/** A safetensors file of tensors, such as `stateDict` gives, and of free text by key. */
export async function saveSafetensors(
  tensors: Readonly<Record<string, Tensor>>,
  metadata: Readonly<Record<string, string>> = {},
): Promise<Uint8Array> {
  const read = Object.entries(tensors).map(
    async ([name, tensor]) => [name, await toHostTensor(tensor)] as const,
  );
  return writeSafetensors(await Promise.all(read), metadata);
}

/** The array of an npy file, sharing its bytes where their order allows. Throws ParseError E_FORMAT. */
export function loadNpy(bytes: Uint8Array): Tensor {
  return fromHostTensor(readNpy(bytes));
}

/** An npy file of a tensor. Rejects with E_DTYPE for bf16, which NumPy does not have. */
export async function saveNpy(tensor: Tensor): Promise<Uint8Array> {
  return writeNpy(await toHostTensor(tensor));
}

/** The array of an idx file, the format of MNIST (gzip: see `gunzip`). Throws ParseError E_FORMAT. */
export function loadIdx(bytes: Uint8Array): Tensor {
  return fromHostTensor(readIdx(bytes));
}

/** The bytes of a file, under Node; E_UNSUPPORTED in a page. */
export async function readFile(path: string | URL): Promise<Uint8Array> {
  return (await files('readFile')).readFile(path);
}

/** Writes a file, under Node; E_UNSUPPORTED in a page. */
export async function writeFile(path: string | URL, bytes: Uint8Array): Promise<void> {
  await (await files('writeFile')).writeFile(path, bytes);
}

async function files(op: string): Promise<typeof import('./files.ts')> {
  if (typeof process !== 'undefined' && process.versions?.node !== undefined) return import('./files.ts');
  const hint = op === 'readFile' ? 'fetch, and its arrayBuffer()' : 'a Blob of the bytes, to download';
  throw new TensorError('E_UNSUPPORTED', op, 'a page has no files', hint);
}
