// The index of a checkpoint in several files, as Hugging Face writes it: `weight_map` has the file of each tensor that lies in one. Sinter
// adds `pieces`, for tensors that lie in several, and in `metadata.sinter` what is no tensor.

import { ParseError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { dtypeBytes, type DType } from '../../ir/dtype.ts';
import { sizeOf } from '../../ir/shape.ts';
import { safetensorsDType, safetensorsName } from '../../io/safetensors.ts';
import type { RngState } from '../../tensor/generator.ts';
import type { TensorRegion } from './region.ts';

/** The name that Hugging Face looks for. */
export const indexName = 'model.safetensors.index.json';

/** The file of a rank, of a save with this id. */
export function dataFileName(id: string, rank: number, size: number): string {
  const number = (value: number): string => String(value).padStart(5, '0');
  return `model-${id}-${number(rank + 1)}-of-${number(size)}.safetensors`;
}

/** The id of a new save. */
export function newSaveId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}

/** Whether a file is what a save has written, or began to write, that is none of `kept`. */
export function isOldFile(name: string, kept: ReadonlySet<string>): boolean {
  const isData = /^model-[0-9a-f]{16}-\d{5,}-of-\d{5,}\.safetensors(\.[0-9a-f-]+\.tmp)?$/.test(name);
  const isUnfinishedIndex = name.startsWith(`${indexName}.`) && name.endsWith('.tmp');
  return (isData || isUnfinishedIndex) && !kept.has(name);
}

/** A part of a tensor, and the file where it lies under the tensor's name. */
export interface StoredPiece extends TensorRegion {
  readonly file: string;
}

/** A tensor that lies in several files. */
export interface CutTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly pieces: readonly StoredPiece[];
}

export interface CheckpointIndex {
  /** What tells this save from others; undefined where Sinter has not written it. */
  readonly id: string | undefined;
  /** The file of each tensor that lies in one. */
  readonly files: ReadonlyMap<string, string>;
  readonly cut: ReadonlyMap<string, CutTensor>;
  readonly rng: RngState | undefined;
  /** What is no tensor, as `pack` of train/packed.ts writes it. */
  readonly plain: unknown;
}

/** The text of an index, of which `bytes` are those of all tensors. */
export function writeIndex({ id, files, cut, rng, plain }: CheckpointIndex, bytes: number): string {
  const pieces = [...cut].map(
    ([name, { dtype, shape, pieces }]) => [name, { dtype: safetensorsName(dtype), shape, pieces }] as const,
  );
  const index = {
    metadata: { total_size: bytes, sinter: { version: 1, id, rng, plain } },
    weight_map: Object.fromEntries(files),
    ...(cut.size === 0 ? {} : { pieces: Object.fromEntries(pieces) }),
  };
  return `${JSON.stringify(index, undefined, 1)}\n`;
}

/** The index of a text. Throws ParseError E_FORMAT, which names `file`. */
export function readIndex(op: string, file: string, text: string): CheckpointIndex {
  const fail = (problem: string): never => {
    throw damaged(op, file, problem);
  };
  const object = (value: unknown, what: string): Readonly<Record<string, unknown>> =>
    arg.isPlainObject(value) ? value : fail(`${what} is no object`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    fail(`it is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  const { weight_map: map, pieces = {}, metadata = {} } = object(parsed, 'it');
  const files = Object.entries(object(map, 'weight_map')).map(
    ([name, value]) =>
      [name, fileIn(value) ?? fail(`weight_map: ${name} lies in no file of the folder`)] as const,
  );
  const cut = Object.entries(object(pieces, 'pieces')).map(([name, value]) => {
    const { dtype: stored, shape, pieces: parts } = object(value, `the entry of ${name}`);
    const dtype = safetensorsDType(stored) ?? fail(`${name}: there is no dtype ${String(stored)}`);
    if (!isSizes(shape) || !Array.isArray(parts)) return fail(`${name} has no shape, or no pieces`);
    const read = parts.map((part: unknown): StoredPiece => {
      const { offset, shape: sizes, file: place } = object(part, `a piece of ${name}`);
      if (!isSizes(offset) || !isSizes(sizes)) return fail(`a piece of ${name} has no offset, or no shape`);
      return {
        offset,
        shape: sizes,
        file: fileIn(place) ?? fail(`a piece of ${name} lies in no file of the folder`),
      };
    });
    return [name, { dtype, shape, pieces: read }] as const;
  });
  const own = object(metadata, 'metadata')['sinter'];
  const { version, id, rng, plain } =
    own === undefined ? ({} as Record<string, unknown>) : object(own, 'metadata.sinter');
  if (own !== undefined && version !== 1) fail(`it is of version ${String(version)}, not 1`);
  if (rng !== undefined && !isRng(rng)) return fail('the state of the random generator is none');
  return {
    id: typeof id === 'string' ? id : undefined,
    files: new Map(files),
    cut: new Map(cut),
    rng,
    plain,
  };
}

/** The error of a checkpoint whose files do not belong together. */
export function damaged(op: string, file: string, problem: string): ParseError {
  return new ParseError(
    'E_FORMAT',
    op,
    `${file}: ${problem}\n  try: another checkpoint, or copy its files again`,
  );
}

/** Bytes of a tensor. */
export function bytesIn({ dtype, shape }: Pick<CutTensor, 'dtype' | 'shape'>): number {
  return dtypeBytes(dtype) * sizeOf(shape);
}

/** The name of a file in the folder of the index: an index must not lead elsewhere. */
function fileIn(value: unknown): string | undefined {
  return typeof value === 'string' && /^[^/\\]+$/.test(value) && value !== '..' ? value : undefined;
}

function isSizes(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

function isRng(value: unknown): value is RngState {
  const isCount = (text: unknown): boolean => typeof text === 'string' && /^\d+$/.test(text);
  return arg.isPlainObject(value) && isCount(value['seed']) && isCount(value['counter']);
}
