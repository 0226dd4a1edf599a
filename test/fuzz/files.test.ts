// Files of tensors that were changed anywhere: safetensors, npy, npz, idx, gzip and torch.save.
//
// SINTER_SEED repeats a run, SINTER_FUZZ_CASE one case of it, and SINTER_FUZZ_TRACE=1 says each case before it runs.

import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { test } from 'vitest';
import {
  gunzip,
  loadNpy,
  loadSafetensors,
  loadTorch,
  readIdx,
  readNpy,
  readNpz,
  readSafetensors,
  readTorch,
  writeIdx,
  writeNpy,
  writeNpz,
  writeSafetensors,
  type HostTensor,
} from '../../src/io/index.ts';
import { archive, tensorView, torchFile } from '../io/archive.ts';
import { keepsTo, type Subject } from './law.ts';
import { mutated, mutatedText, type Draw } from './mutate.ts';

const f32: HostTensor = { dtype: 'f32', shape: [2, 3], data: new Uint8Array(24).fill(60) };
const u8: HostTensor = { dtype: 'u8', shape: [4], data: Uint8Array.of(1, 2, 3, 4) };
const bool: HostTensor = { dtype: 'bool', shape: [2, 1], data: Uint8Array.of(1, 0) };
const named = [
  ['layer.weight', f32],
  ['step', u8],
  ['mask', bool],
] as const;

function reader(
  whole: Uint8Array | readonly Uint8Array[],
  read: (bytes: Uint8Array) => unknown,
  inner?: (draw: Draw) => Uint8Array,
): Subject<Uint8Array> {
  const all = Array.isArray(whole) ? (whole as readonly Uint8Array[]) : [whole as Uint8Array];
  const make = (draw: Draw): Uint8Array =>
    inner !== undefined && draw(3) > 0 ? inner(draw) : mutated(draw, all[draw(all.length)]!);
  return { whole: all, make, read, sizeOf: ({ length }) => length };
}

test('safetensors', () =>
  keepsTo(
    reader(writeSafetensors(named, { format: 'pt' }), (bytes) => {
      readSafetensors(bytes);
      return loadSafetensors(bytes);
    }),
    15_000,
    300,
  ));

test('npy', () =>
  keepsTo(
    reader(writeNpy(f32), (bytes) => {
      readNpy(bytes);
      loadNpy(bytes);
    }),
    15_000,
    300,
  ));

test('npz', () =>
  keepsTo(
    reader(writeNpz(named), readNpz, (draw) => {
      // A changed member in an archive that is sound.
      const content = mutated(draw, writeNpy(f32));
      const name = mutatedText(draw, 'layer.npy');
      return archive([
        { name, content, isDeflated: draw(2) === 0 },
        { name: 'b.npy', content },
      ]);
    }),
    10_000,
    200,
  ));

test('idx', () => keepsTo(reader(writeIdx(f32), readIdx), 10_000, 300));

const packed = gzipSync(writeIdx(f32));
test('gzip', () =>
  keepsTo(
    reader(packed, (bytes) => gunzip(bytes)),
    2000,
    100,
  ));

const kept = ['checkpoint', 'model'].map(
  (name) => new Uint8Array(readFileSync(new URL(`../fixtures/torch-files/${name}.pt`, import.meta.url))),
);
const pickle =
  `}q\0(X\x01\0\0\0a${tensorView('Float', 0, [2, 2], [1, 2])}X\x01\0\0\0b${tensorView('Bool', 0, [3], [1])}` +
  `X\x01\0\0\0c](K\x01K\x02NX\x04\0\0\0thenNeu`;
test('files of torch.save', () =>
  keepsTo(
    reader(
      [...kept, torchFile(pickle)],
      async (bytes) => {
        await readTorch(bytes);
        return loadTorch(bytes);
      },
      // A changed pickle in an archive that is sound.
      (draw) => torchFile(mutatedText(draw, pickle)),
    ),
    15_000,
    200,
  ));
