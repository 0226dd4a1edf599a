// Datasets in files of arrays: npy, npz, safetensors and idx, gzipped or not, told by their first
// bytes.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { gunzip } from '../../io/gzip.ts';
import type { HostTensor } from '../../io/host.ts';
import { readIdx } from '../../io/idx.ts';
import { readNpy } from '../../io/npy.ts';
import { readNpz } from '../../io/npz.ts';
import { readSafetensors } from '../../io/safetensors.ts';
import { fromArrays, type RowOf } from '../arrays.ts';
import type { Dataset } from '../dataset.ts';
import { aSource, bytesOf, nameOf, type FileSource } from './source.ts';

type Files = FileSource | Readonly<Record<string, FileSource>>;

const someFiles: arg.Kind<Files> = {
  accepts: (value) =>
    aSource.accepts(value) ||
    (arg.isPlainObject(value) && Object.values(value).every((at) => aSource.accepts(at))),
  refuse: (op, what, value) => aSource.refuse(op, what, value),
};
const takesFiles = arg.takes<(files: Files) => unknown>(['the files', someFiles]);

/**
 * A dataset of arrays in files, whose first axis is of items: one file of several by name (npz,
 * safetensors), or by name a file of one each (npy, idx).
 */
export function fromFiles(file: FileSource): Promise<Dataset<RowOf<Readonly<Record<string, HostTensor>>>>>;
export function fromFiles<const S extends Readonly<Record<string, FileSource>>>(
  files: S,
): Promise<Dataset<{ readonly [K in keyof S]: HostTensor }>>;
export async function fromFiles(files: Files): Promise<Dataset<unknown>> {
  takesFiles('fromFiles', files);
  if (aSource.accepts(files)) return fromArrays(await several(files as FileSource));
  const entries = Object.entries(files as Readonly<Record<string, FileSource>>);
  const arrays = await Promise.all(entries.map(async ([name, file]) => [name, await single(file)] as const));
  return fromArrays(Object.fromEntries(arrays));
}

/** What a file's first bytes say it is; safetensors says nothing there. */
function formatOf(bytes: Uint8Array): 'gzip' | 'npy' | 'zip' | 'idx' | 'safetensors' {
  const [a, b, c, d] = bytes;
  if (a === 0x1f && b === 0x8b) return 'gzip';
  if (a === 0x93 && b === 0x4e && c === 0x55) return 'npy';
  if (a === 0x50 && b === 0x4b) return 'zip';
  return a === 0 && b === 0 && c !== 0 && d !== 0 ? 'idx' : 'safetensors';
}

async function unpacked(file: FileSource): Promise<Uint8Array> {
  const bytes = await bytesOf('fromFiles', file);
  return formatOf(bytes) === 'gzip' ? gunzip(bytes) : bytes;
}

async function single(file: FileSource): Promise<HostTensor> {
  const bytes = await unpacked(file);
  const format = formatOf(bytes);
  if (format === 'npy') return readNpy(bytes);
  if (format === 'idx') return readIdx(bytes);
  const arrays = Object.entries(await named(bytes, format));
  const [only] = arrays;
  if (arrays.length === 1 && only !== undefined) return only[1];
  const names = arrays.map(([name]) => name).join(', ');
  const problem = `${nameOf(file)} has ${arrays.length} arrays where one is meant: ${names}`;
  throw new TensorError('E_VALUE', 'fromFiles', problem, 'fromFiles(file), which takes all of them');
}

async function several(file: FileSource): Promise<Record<string, HostTensor>> {
  const bytes = await unpacked(file);
  const format = formatOf(bytes);
  if (format !== 'npy' && format !== 'idx') return named(bytes, format);
  throw new TensorError(
    'E_VALUE',
    'fromFiles',
    `${nameOf(file)} is of the format ${format}: one array, which has no name`,
    'fromFiles({ x: file })',
  );
}

async function named(bytes: Uint8Array, format: string): Promise<Record<string, HostTensor>> {
  return Object.fromEntries(format === 'zip' ? await readNpz(bytes) : readSafetensors(bytes).tensors);
}
