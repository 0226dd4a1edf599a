// Tensors between files and commands: npy, npz, safetensors, TensorProto and images by a file's
// ending.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { SinterError } from '../../errors.ts';
import { tensor, type DType } from '../../index.ts';
import {
  fromHostTensor,
  readNpy,
  readNpz,
  readSafetensors,
  toHostTensor,
  writeNpy,
  writeNpz,
  writeSafetensors,
  type HostTensor,
} from '../../io/index.ts';
import { UsageError } from '../command.ts';
import { fromPackage } from '../../packages/missing.ts';

const formats = '.npy, .npz, .safetensors or .pb';

/** `NAME=FILE` or `FILE` by itself. */
export interface NamedFile {
  readonly name: string | undefined;
  readonly file: string;
}

export function namedFile(text: string): NamedFile {
  const [, name, file] = /^([^=]*)=(.*)$/s.exec(text) ?? [undefined, undefined, text];
  return { name, file };
}

function endingOf(file: string): string {
  return /\.[^./\\]*$/.exec(file)?.[0].toLowerCase() ?? '';
}

/**
 * The tensor in a file; `FILE#NAME` picks one of several. Throws UsageError at endings and names
 * that are not there.
 */
export async function readTensorFile(place: string): Promise<HostTensor> {
  const [, file = place, member] = /^(.*)#([^#]*)$/s.exec(place) ?? [];
  switch (endingOf(file)) {
    case '.npy':
      return readNpy(await bytesOf(file));
    case '.npz':
      return picked(file, member, await readNpz(await bytesOf(file)));
    case '.safetensors':
      return picked(file, member, readSafetensors(await bytesOf(file)).tensors);
    case '.pb': {
      const { readTensorProto } = await protoFile(file);
      return readTensorProto(await bytesOf(file));
    }
    default:
      throw new UsageError(`${place} is neither a file of a tensor (${formats}) nor a list of numbers`);
  }
}

function protoFile(file: string): Promise<typeof import('../../onnx/tensor-file.ts')> {
  return fromPackage('@bufbuild/protobuf', `${file}: this format`, () => import('../../onnx/tensor-file.ts'));
}

async function bytesOf(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new UsageError(`there is no file ${file}`);
    throw error;
  }
}

function picked(
  file: string,
  member: string | undefined,
  tensors: ReadonlyMap<string, HostTensor>,
): HostTensor {
  const [only] = tensors.values();
  const found = member === undefined && tensors.size === 1 ? only : tensors.get(member ?? '');
  if (found !== undefined) return found;
  const names = [...tensors.keys()].slice(0, 12).join(', ') || 'nothing';
  const problem = member === undefined ? `holds ${tensors.size} tensors` : `holds no tensor '${member}'`;
  throw new UsageError(
    `${file} ${problem}: it has ${names}\n  try: NAME=${file}#${[...tensors.keys()][0] ?? 'TENSOR'}`,
  );
}

/**
 * Writes tensors by name; formats of one tensor take one only. Throws UsageError at other endings.
 */
export async function writeTensorFile(file: string, tensors: ReadonlyMap<string, HostTensor>): Promise<void> {
  await writeFile(file, await encoded(file, tensors));
}

async function encoded(file: string, tensors: ReadonlyMap<string, HostTensor>): Promise<Uint8Array> {
  switch (endingOf(file)) {
    case '.npy':
      return writeNpy(only(file, tensors)[1]);
    case '.npz':
      return writeNpz(tensors);
    case '.safetensors':
      return writeSafetensors(tensors);
    case '.pb': {
      const { writeTensorProto } = await protoFile(file);
      const [name, host] = only(file, tensors);
      return writeTensorProto({ name, ...host });
    }
    default:
      throw new UsageError(`--output: ${file} is of no known kind: expected ${formats}`);
  }
}

/** Throws UsageError where a file of this ending cannot be written, before anything is computed. */
export function checkWritable(file: string): void {
  if (!['.npy', '.npz', '.safetensors', '.pb'].includes(endingOf(file)))
    throw new UsageError(`--output: ${file} is of no known kind: expected ${formats}`);
  checkFolder('--output', file);
}

/** Throws UsageError where there is no folder for a file, before anything is computed. */
export function checkFolder(option: string, file: string): void {
  if (!existsSync(dirname(file)))
    throw new UsageError(`${option}: there is no folder ${dirname(file)} for ${basename(file)}`);
}

function only(file: string, tensors: ReadonlyMap<string, HostTensor>): [string, HostTensor] {
  const [first] = tensors;
  if (first !== undefined && tensors.size === 1) return first;
  const names = [...tensors.keys()].join(', ');
  throw new UsageError(
    `--output: ${file} takes one tensor, and there are ${tensors.size}: ${names}\n  try: --output NAME=FILE for each, or a .npz or .safetensors file`,
  );
}

/**
 * The tensor in another dtype, as NumPy's f64 and i64 files need it for models of f32 and i32.
 * Throws E_DTYPE between kinds, and where an integer does not fit.
 */
export async function inDType(host: HostTensor, dtype: DType, what: string): Promise<HostTensor> {
  if (host.dtype === dtype) return host;
  const kind = (one: DType): string => (one === 'bool' ? one : /^b?f/.test(one) ? 'floats' : 'integers');
  const refuse = (problem: string): SinterError =>
    new SinterError('E_DTYPE', `${what} is ${dtype}, got ${host.dtype}${problem}`);
  if (kind(host.dtype) !== kind(dtype)) throw refuse('');
  const numbers = Array.from((await fromHostTensor(host).data()) as Iterable<number | bigint>);
  const isBig = dtype === 'i64' || dtype === 'u64';
  if (kind(dtype) === 'integers') {
    const bits = Number(dtype.slice(1));
    const wraps = (value: bigint): bigint =>
      dtype.startsWith('i') ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
    const lost = numbers.find((value) => wraps(BigInt(value)) !== BigInt(value));
    if (lost !== undefined) throw refuse(`: ${lost} does not fit`);
  }
  const items = numbers.map((value) => (isBig ? BigInt(value) : Number(value)));
  return toHostTensor(tensor(items as number[], { dtype, shape: [...host.shape] }));
}
