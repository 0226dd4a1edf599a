// Malformed GGUF files: whatever bytes say, they are refused by a typed error or read within the file, soon, and nothing is
// allocated for what they only claim.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { SinterError } from '../../../src/errors.ts';
import { openGguf, type ByteSource } from '../../../src/io/index.ts';
import { checkLawAsync } from '../../support/property.ts';
import { ggufBytes, values } from './files.ts';

async function sample(): Promise<Uint8Array> {
  return ggufBytes({
    metadata: {
      'general.architecture': 'llama',
      'general.alignment': 32,
      'tokenizer.ggml.tokens': ['a', 'bc', 'ü'],
      'tokenizer.ggml.scores': Float32Array.of(1, 2),
      nested: { type: 'array', items: 'array', value: [['x'], [Uint8Array.of(1, 2)]] },
      flags: [true, false],
      big: 2n ** 60n,
    },
    tensors: [
      { name: 'blk.0.w', type: 'q4_k', shape: [2, 256], data: values(512) },
      { name: 'blk.0.b', type: 'f32', shape: [3], data: values(3) },
      { name: 'head', type: 'q8_0', shape: [2, 2, 32], data: values(128) },
    ],
  });
}

/** A source that refuses to be read outside of itself. */
function guarded(bytes: Uint8Array): ByteSource {
  return {
    name: 'guarded',
    size: bytes.length,
    async read(begin, end) {
      if (!(begin >= 0 && begin <= end && end <= bytes.length)) {
        throw new Error(`bytes ${begin} to ${end} of ${bytes.length} were read`);
      }
      return bytes.slice(begin, end);
    },
    close: async () => {},
  };
}

async function tried(bytes: Uint8Array): Promise<'read' | 'refused'> {
  const before = process.cpuUsage();
  try {
    const file = await openGguf(guarded(bytes));
    let total = 0;
    for (const tensor of file.tensors.values()) {
      const data = await tensor.read();
      expect(data.length).toBe(tensor.bytes);
      total += data.length;
    }
    expect(total).toBeLessThanOrEqual(bytes.length);
    return 'read';
  } catch (error) {
    if (!(error instanceof SinterError)) throw error;
    expect(['E_FORMAT', 'E_UNSUPPORTED', 'E_VALUE']).toContain(error.code);
    expect(error.message).toMatch(/gguf|openGguf/);
    return 'refused';
  } finally {
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(1000);
  }
}

test('five hundred damaged files are refused or read within themselves', async () => {
  const file = await sample();
  const place = fc.nat(file.length - 1);
  // Bytes of counts and types more often than others: zeros, ones, all bits.
  const byte = fc.oneof(fc.constantFrom(0, 1, 8, 9, 0x7f, 0x80, 0xff), fc.nat(255));
  const flips = fc.array(fc.tuple(fc.oneof(place, fc.nat(400)), byte), { minLength: 1, maxLength: 8 });
  const tally = { read: 0, refused: 0 };
  await checkLawAsync(500, fc.tuple(flips, fc.option(place, { freq: 5 })), async ([changes, cut]) => {
    const bytes = file.slice(0, cut ?? file.length);
    for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
    tally[await tried(bytes)]++;
  });
  expect(tally.refused).toBeGreaterThan(100);
});

test('every prefix of a file is refused', async () => {
  const file = await sample();
  for (let length = 0; length < file.length - 32; length += length < 450 ? 1 : 37) {
    expect(await tried(file.slice(0, length)), `${length} bytes`).toBe('refused');
  }
});

/** A file of these words, each of so many bytes. */
function words(...parts: readonly (readonly [value: bigint | number, bytes: 4 | 8] | string)[]): Uint8Array {
  return Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'string') return Buffer.from(part);
      const out = Buffer.alloc(part[1]);
      if (part[1] === 4) out.writeUInt32LE(Number(part[0]));
      else out.writeBigUInt64LE(BigInt(part[0]));
      return out;
    }),
  );
}

const huge = 2n ** 63n;
const key = [[1, 8], 'k'] as const;

test.each<readonly [claim: string, bytes: Uint8Array, message: RegExp]>([
  ['tensors', words('GGUF', [3, 4], [huge, 8], [0, 8]), /number of tensors is 9223372036854775808/],
  ['keys', words('GGUF', [3, 4], [0, 8], [huge, 8]), /number of keys/],
  [
    'a key’s length',
    words('GGUF', [3, 4], [0, 8], [1, 8], [2n ** 40n, 8], 'aaaaaaaa'),
    /length of key 0 is 1099511627776/,
  ],
  ['items', words('GGUF', [3, 4], [0, 8], [1, 8], ...key, [9, 4], [4, 4], [2n ** 40n, 8]), /length of k is/],
  [
    'strings',
    words('GGUF', [3, 4], [0, 8], [1, 8], ...key, [9, 4], [8, 4], [2n ** 31n, 8]),
    /length of k is/,
  ],
  [
    'lists of lists',
    words(
      'GGUF',
      [3, 4],
      [0, 8],
      [1, 8],
      ...key,
      [9, 4],
      ...Array.from(
        { length: 9 },
        () =>
          [
            [9, 4],
            [1, 8],
          ] as const,
      ).flat(),
    ),
    /nests lists more than 4 deep/,
  ],
  ['version 1', words('GGUF', [1, 4], [0, 8], [0, 8]), /version 1/],
  ['big-endian', words('GGUF', [0x03000000, 4], [0, 8], [0, 8]), /big-endian/],
  ['another magic', words('GGML', [3, 4], [0, 8], [0, 8]), /does not begin with GGUF/],
  ['text that is none', words('GGUF', [3, 4], [0, 8], [1, 8], [1, 8], [0xff, 4], [0, 8]), /not UTF-8/],
  [
    'a size past counting',
    words('GGUF', [3, 4], [1, 8], [0, 8], ...key, [2, 4], [2n ** 40n, 8], [2n ** 40n, 8], [0, 4], [0, 8]),
    /no whole blocks, or too large/,
  ],
  [
    'a place outside',
    words('GGUF', [3, 4], [1, 8], [0, 8], ...key, [1, 4], [4, 8], [0, 4], [2n ** 50n, 8]),
    /takes bytes \d+ to \d+ of a file of/,
  ],
  [
    'an unknown type',
    words('GGUF', [3, 4], [1, 8], [0, 8], ...key, [1, 4], [4, 8], [99, 4], [0, 8]),
    /type 99, which is none/,
  ],
  [
    'iq2_xs',
    words('GGUF', [3, 4], [1, 8], [0, 8], ...key, [1, 4], [256, 8], [17, 4], [0, 8]),
    /is iq2_xs, which is not supported/,
  ],
])('a file that claims %s is refused at once', async (_, bytes, message) => {
  await expect(openGguf(bytes)).rejects.toThrow(message);
  expect(await tried(bytes)).toBe('refused');
});

test('tensors that share bytes or a name are refused', async () => {
  const tensor = (name: string, offset: number): (readonly [number, 4 | 8] | string)[] => [
    [1, 8],
    name,
    [1, 4],
    [16, 8],
    [0, 4],
    [offset, 8],
  ];
  const file = (...tensors: (readonly [number, 4 | 8] | string)[][]): Uint8Array =>
    Buffer.concat([words('GGUF', [3, 4], [tensors.length, 8], [0, 8], ...tensors.flat()), Buffer.alloc(512)]);
  await expect(openGguf(file(tensor('a', 0), tensor('b', 32)))).rejects.toThrow(/"b" overlaps "a"/);
  await expect(openGguf(file(tensor('a', 0), tensor('a', 64)))).rejects.toThrow(/"a" is there twice/);
  await expect(openGguf(file(tensor('a', 8)))).rejects.toThrow(/begins at 8, no multiple of 32/);
  expect((await openGguf(file(tensor('a', 0), tensor('b', 64)))).tensors.size).toBe(2);
});
