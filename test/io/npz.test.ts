// npz: round trips, archives as NumPy packs them, and a refusal by name and place for what is malformed.

import { deflateRawSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ParseError, SinterError } from '../../src/errors.ts';
import { packedBytes } from '../../src/io/host.ts';
import { readNpz, writeNpy, writeNpz, type HostTensor } from '../../src/io/index.ts';
import { dtypes } from '../../src/ir/dtype.ts';
import { seed } from '../support/property.ts';
import { hostTensor } from './format.ts';

const x: HostTensor = { dtype: 'f32', shape: [2], data: new Uint8Array(Float32Array.of(1, -2).buffer) };
const y: HostTensor = { dtype: 'i64', shape: [], data: new Uint8Array(BigInt64Array.of(7n).buffer) };

/** An archive whose only member is packed by `method`, from one whose member is stored. */
function repacked(tensor: HostTensor, method: number, packed: Uint8Array): Uint8Array {
  const stored = writeNpz([['x', tensor]]);
  const size = writeNpy(tensor).length;
  // 30 bytes and the name `x.npy`, then the member, then the directory.
  const [head, tail] = [stored.slice(0, 35), stored.slice(35 + size)];
  for (const [record, at] of [
    [head, 8],
    [tail, 10],
  ] as const) {
    const view = new DataView(record.buffer);
    view.setUint16(at, method, true);
    view.setUint32(at + 10, packed.length, true);
  }
  new DataView(tail.buffer, tail.length - 22).setUint32(16, head.length + packed.length, true);
  return new Uint8Array(Buffer.concat([head, packed, tail]));
}

describe('what is written', () => {
  test('is read again: names in any alphabet, every dtype of NumPy', async () => {
    const tensor = hostTensor(dtypes.filter((dtype) => dtype !== 'bf16'));
    const name = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((text) => !text.endsWith('.npy'));
    const archives = fc.uniqueArray(fc.tuple(name, tensor), { selector: ([key]) => key, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(archives, async (tensors) => {
        const found = await readNpz(writeNpz(tensors));
        expect([...found]).toEqual(tensors.map(([key, host]) => [key, host]));
      }),
      { seed, numRuns: 100 },
    );
  });

  test('has no bf16, which NumPy has not', () => {
    const data = new Uint8Array(2);
    expect(() => writeNpz([['a', { dtype: 'bf16', shape: [1], data }]])).toThrow(/bf16/);
  });
});

describe('what is read', () => {
  test('may be deflated, may stand behind other bytes of a comment’s length', async () => {
    const archive = repacked(x, 8, new Uint8Array(deflateRawSync(writeNpy(x))));
    expect((await readNpz(archive)).get('x')).toEqual(x);
    const remark = new Uint8Array([...archive, 0x68, 0x69]);
    new DataView(remark.buffer).setUint16(archive.length - 2, 2, true);
    expect((await readNpz(remark)).get('x')).toEqual(x);
  });

  test.each([
    ['no archive', new Uint8Array(100), 'the file has no directory: it is no zip archive'],
    [
      'other bytes',
      writeNpz([['x', x]]).map((byte, at) => (at === 170 ? byte ^ 1 : byte)),
      'x.npy is damaged: its CRC-32 is another',
    ],
    ['another method', repacked(x, 12, writeNpy(x)), 'x.npy is compressed by method 12'],
    [
      'a member twice',
      writeNpz([
        ['x', x],
        ['x', y],
      ]),
      'the member x is there twice',
    ],
    [
      'more than deflate can hold',
      (() => {
        const archive = repacked(x, 8, new Uint8Array(deflateRawSync(writeNpy(x))));
        new DataView(archive.buffer).setUint32(archive.length - 22 - 51 + 24, 2 ** 31, true);
        return archive;
      })(),
      'x.npy cannot unpack to 2147483648 bytes',
    ],
  ])('refuses %s', async (_, archive, words) => {
    const fault: unknown = await readNpz(archive).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(ParseError);
    expect(fault).toMatchObject({ code: 'E_FORMAT', message: expect.stringContaining(words) });
  });

  test('and damaged is refused or holds what it claims', async () => {
    const files = [
      writeNpz([
        ['x', x],
        ['y', y],
      ]),
      repacked(x, 8, new Uint8Array(deflateRawSync(writeNpy(x)))),
    ];
    const damage = fc.tuple(
      fc.constantFrom(...files),
      fc.array(fc.tuple(fc.nat(1000), fc.nat(255)), { minLength: 1, maxLength: 6 }),
      fc.nat(1000),
    );
    await fc.assert(
      fc.asyncProperty(damage, async ([file, flips, cut]) => {
        const bytes = file.slice(0, cut < file.length ? cut : file.length);
        for (const [at, value] of flips) if (at < bytes.length) bytes[at] = value;
        try {
          const tensors = await readNpz(bytes);
          for (const { dtype, shape, data } of tensors.values())
            expect(data.length).toBe(packedBytes(dtype, shape));
        } catch (fault) {
          if (!(fault instanceof SinterError && fault.code === 'E_FORMAT')) throw fault;
        }
      }),
      { seed, numRuns: 500 },
    );
  });
});
