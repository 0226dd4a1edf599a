// idx and gunzip: round trips, refusals by name, and MNIST's own files where they are at hand.

import { existsSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ParseError } from '../../src/errors.ts';
import { gunzip, readIdx, writeIdx } from '../../src/io/index.ts';
import { failure, hostTensor, refusesEveryPrefix, survivesDamage } from './format.ts';

const ofIdx = ['u8', 'i8', 'i16', 'i32', 'f32', 'f64'] as const;

describe('readIdx', () => {
  test('reads big-endian sizes and values', () => {
    const bytes = Uint8Array.of(0, 0, 0x0b, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0x01, 0x02, 0xff, 0xfe);
    expect(readIdx(bytes)).toEqual({ dtype: 'i16', shape: [1, 2], data: Uint8Array.of(2, 1, 0xfe, 0xff) });
    const float = readIdx(Uint8Array.of(0, 0, 0x0d, 0, 0x3f, 0xc0, 0, 0));
    expect([float.shape, new DataView(float.data.buffer).getFloat32(0, true)]).toEqual([[], 1.5]);
  });

  test('what is written reads back, for every dtype and shape', () => {
    fc.assert(
      fc.property(hostTensor(ofIdx), (tensor) => {
        expect(readIdx(writeIdx(tensor))).toEqual(tensor);
      }),
      { numRuns: 300 },
    );
  });

  test.each<[string, Uint8Array, RegExp]>([
    ['nothing', new Uint8Array(), /magic number, at byte 0/],
    ['a gzipped file', Uint8Array.of(0x1f, 0x8b, 8, 0), /gunzip it first/],
    ['another magic', Uint8Array.of(0, 1, 8, 0), /two zero bytes/],
    ['an unknown type', Uint8Array.of(0, 0, 0x0a, 0), /byte 2: unknown type code 0xa/],
    ['a short list of sizes', Uint8Array.of(0, 0, 8, 2, 0, 0, 0, 1), /sizes: 4 of 8 bytes/],
    ['too few values', Uint8Array.of(0, 0, 8, 1, 0, 0, 0, 2, 1), /u8\[2\] takes 2 bytes, the file holds 1/],
    [
      'too many values',
      Uint8Array.of(0, 0, 8, 1, 0, 0, 0, 1, 1, 1),
      /u8\[1\] takes 1 bytes, the file holds 2/,
    ],
    ['a huge size', new Uint8Array(16).fill(255).fill(0, 0, 2).fill(8, 2, 3).fill(3, 3, 4), /too many/],
  ])('%s is refused, by name', (_, bytes, message) => {
    const fault = failure(() => readIdx(bytes));
    expect(fault).toBeInstanceOf(ParseError);
    expect(fault).toMatchObject({ code: 'E_FORMAT', message: expect.stringMatching(message) });
  });

  test('every proper prefix is refused and damage gives an error or a whole tensor', () => {
    const file = writeIdx({ dtype: 'i16', shape: [2, 3], data: new Uint8Array(12).fill(5) });
    refusesEveryPrefix(file, readIdx);
    survivesDamage(file, (bytes) => [readIdx(bytes)]);
  });

  test('dtypes, ranks and sizes that idx lacks are refused', () => {
    const data = new Uint8Array(4);
    expect(failure(() => writeIdx({ dtype: 'u32', shape: [1], data }))).toMatchObject({ code: 'E_DTYPE' });
    const shape = new Array<number>(256).fill(1);
    expect(failure(() => writeIdx({ dtype: 'i32', shape, data }))).toMatchObject({ code: 'E_LIMIT' });
  });

  test('MNIST’s own files read', async (context) => {
    const folder = new URL('../../../shared/data/mnist/', import.meta.url);
    if (!existsSync(folder)) context.skip('the MNIST files are not on this machine');
    const read = async (name: string) => readIdx(await gunzip(readFileSync(new URL(name, folder))));
    const images = await read('t10k-images-idx3-ubyte.gz');
    const labels = await read('t10k-labels-idx1-ubyte.gz');
    expect([images.dtype, images.shape]).toEqual(['u8', [10000, 28, 28]]);
    expect([labels.dtype, labels.shape]).toEqual(['u8', [10000]]);
    expect([...labels.data.subarray(0, 5)]).toEqual([7, 2, 1, 0, 4]);
  });
});

describe('gunzip', () => {
  const bytes = Uint8Array.from({ length: 200_000 }, (_, at) => (at * at) >> 7);
  const packed = new Uint8Array(gzipSync(bytes));

  test('unpacks what gzip packed', async () => {
    expect(await gunzip(packed)).toEqual(bytes);
    expect(await gunzip(gzipSync(new Uint8Array()))).toEqual(new Uint8Array());
  });

  test.each([
    ['nothing', new Uint8Array()],
    ['a cut file', packed.slice(0, -1)],
    ['a cut header', packed.slice(0, 6)],
    ['a wrong checksum', packed.with(packed.length - 8, packed.at(-8)! ^ 1)],
    ['text', new TextEncoder().encode('not gzip')],
  ])('%s is refused', async (_, damaged) => {
    await expect(gunzip(damaged)).rejects.toMatchObject({ name: 'ParseError', code: 'E_FORMAT' });
  });

  test('more than the limit is refused before it is held', async () => {
    expect(await gunzip(packed, { limit: bytes.length })).toHaveLength(bytes.length);
    await expect(gunzip(packed, { limit: bytes.length - 1 })).rejects.toThrow(/more than 199999 bytes/);
  });
});
