// safetensors: round trips, the layout the format prescribes, and a refusal by name for everything it forbids.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ParseError, TensorError } from '../../src/errors.ts';
import { readSafetensors, writeSafetensors, type HostTensor } from '../../src/io/index.ts';
import { dtypeBytes, dtypes } from '../../src/ir/dtype.ts';
import { failure, hostTensor, refusesEveryPrefix, survivesDamage } from './format.ts';

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const f32 = (...values: number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer);

/** A file with `header` as it stands, and `size` zero bytes of data. */
function file(header: string | Uint8Array, size = 0, length?: bigint): Uint8Array {
  const bytes = typeof header === 'string' ? text(header) : header;
  const out = new Uint8Array(8 + bytes.length + size);
  new DataView(out.buffer).setBigUint64(0, length ?? BigInt(bytes.length), true);
  out.set(bytes, 8);
  return out;
}

const headerOf = (bytes: Uint8Array): string => {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  return new TextDecoder().decode(bytes.subarray(8, 8 + length));
};

/** A tensor's entry in a header, each field as text. */
const entry = (dtype: string, shape: string, offsets: string): string =>
  `{"dtype":${dtype},"shape":${shape},"data_offsets":${offsets}}`;
const good = entry('"F32"', '[2]', '[0,8]');

const sample: [string, HostTensor][] = [
  ['layer.weight', { dtype: 'f32', shape: [2, 2], data: f32(1, 2, 3, 4) }],
  ['layer.mask', { dtype: 'bool', shape: [3], data: Uint8Array.of(1, 0, 1) }],
  ['step', { dtype: 'i64', shape: [], data: Uint8Array.of(7, 0, 0, 0, 0, 0, 0, 0) }],
  ['none', { dtype: 'f16', shape: [0, 5], data: new Uint8Array() }],
];

describe('writeSafetensors', () => {
  const names = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('__proto__', 'constructor', '7', 'a"b\\'),
  );
  const files = fc.record({
    tensors: fc.uniqueArray(fc.tuple(names, hostTensor(dtypes.filter((dtype) => dtype !== 'c128'))), {
      maxLength: 6,
      selector: ([name]) => name,
    }),
    metadata: fc.array(fc.tuple(names, fc.string())).map((pairs) => Object.fromEntries(pairs)),
  });

  test('what is written reads back, for every dtype, shape and name', () => {
    fc.assert(
      fc.property(files, ({ tensors, metadata }) => {
        const kept = tensors.filter(([name]) => name !== '__metadata__');
        const back = readSafetensors(writeSafetensors(kept, metadata));
        expect([...back.tensors].sort()).toEqual([...kept].sort());
        expect(Object.entries(back.metadata).sort()).toEqual(Object.entries(metadata).sort());
      }),
      { numRuns: 500 },
    );
  });

  test('bytes depend on the contents, not on the order they are given in', () => {
    const reversed = writeSafetensors(sample.toReversed(), { b: '2', a: '1' });
    expect(reversed).toEqual(writeSafetensors(sample, { a: '1', b: '2' }));
  });

  test('the data begins at a multiple of 8 and every tensor at a multiple of its width', () => {
    fc.assert(
      fc.property(files, ({ tensors, metadata }) => {
        const bytes = writeSafetensors(
          tensors.filter(([name]) => name !== '__metadata__'),
          metadata,
        );
        const header = headerOf(bytes);
        expect((8 + text(header).length) % 8).toBe(0);
        expect(header.startsWith('{')).toBe(true);
        const back = readSafetensors(bytes);
        for (const { dtype, data } of back.tensors.values()) {
          expect(data.buffer).toBe(bytes.buffer);
          expect(data.byteOffset % dtypeBytes(dtype)).toBe(0);
        }
      }),
    );
  });

  test('the header is the one the format’s page describes', () => {
    expect(headerOf(writeSafetensors(sample, { format: 'pt' })).trimEnd()).toBe(
      '{"__metadata__":{"format":"pt"},"step":{"dtype":"I64","shape":[],"data_offsets":[0,8]},' +
        '"layer.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]},' +
        '"none":{"dtype":"F16","shape":[0,5],"data_offsets":[24,24]},' +
        '"layer.mask":{"dtype":"BOOL","shape":[3],"data_offsets":[24,27]}}',
    );
  });

  test('a name given twice, the reserved name and a tensor with the wrong bytes are refused', () => {
    const one: HostTensor = { dtype: 'u8', shape: [1], data: Uint8Array.of(1) };
    const cases: [[string, HostTensor][], RegExp][] = [
      [
        [
          ['a', one],
          ['a', one],
        ],
        /"a" is given twice/,
      ],
      [[['__metadata__', one]], /"__metadata__" is reserved/],
      [[['a', { ...one, shape: [2] }]], /a: u8\[2\] takes 2 bytes, not 1/],
    ];
    for (const [tensors, message] of cases) {
      const fault = failure(() => writeSafetensors(tensors));
      expect(fault).toBeInstanceOf(TensorError);
      expect(String(fault)).toMatch(message);
    }
  });
});

describe('readSafetensors', () => {
  test('reads tensors in any order of names, with spaces after the header', () => {
    const bytes = file(`{"b":${entry('"U8"', '[1]', '[8,9]')},"a":${good},"__metadata__":{"k":"v"}}   `, 9);
    const { tensors, metadata } = readSafetensors(bytes);
    expect([...tensors.keys()]).toEqual(['a', 'b']);
    expect(tensors.get('a')).toEqual({ dtype: 'f32', shape: [2], data: new Uint8Array(8) });
    expect(metadata).toEqual({ k: 'v' });
    expect(readSafetensors(file('{}')).tensors.size).toBe(0);
  });

  test('data that does not stand at a multiple of its width is copied, also out of a Node Buffer', () => {
    const header = `{"a":${entry('"U8"', '[1]', '[0,1]')},"b":${entry('"F64"', '[1]', '[1,9]')}}`;
    const bytes = file(header.padEnd(72), 9);
    for (const source of [bytes, Buffer.from(bytes)]) {
      source.set([1, 2, 3, 4, 5, 6, 7, 8], source.length - 8);
      const { data } = readSafetensors(source).tensors.get('b')!;
      expect(data.byteOffset % 8).toBe(0);
      expect(data).toEqual(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
      expect(data.constructor).toBe(Uint8Array);
    }
  });

  test('bool bytes other than 0 read as true', () => {
    const bytes = file(`{"a":${entry('"BOOL"', '[3]', '[0,3]')}}`, 3);
    bytes.set([0, 2, 255], bytes.length - 3);
    expect(readSafetensors(bytes).tensors.get('a')!.data).toEqual(Uint8Array.of(0, 1, 1));
  });

  test.each<[string, Uint8Array, RegExp]>([
    ['no length', new Uint8Array(3), /length: 3 of 8 bytes/],
    ['a header longer than the file', file('{}', 0, 3n), /header: 2 of 3 bytes/],
    ['a header over 100 MB', file('{}', 0, 100_000_001n), /100000001 bytes, over 100000000/],
    ['a length past 2^53', file('{}', 0, 2n ** 64n - 1n), /18446744073709551615 bytes/],
    ['an empty header', file(''), /not JSON/],
    ['text that is not JSON', file('{"a":'), /not JSON/],
    ['bytes that are not UTF-8', file(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d)), /not JSON/],
    ['a byte order mark', file(Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d)), /not JSON/],
    ['a list', file('[]'), /not a JSON object/],
    ['null', file('null'), /not a JSON object/],
    ['a name twice', file(`{"a":${good},"a":${good}}`, 8), /gives "a" twice/],
    ['a name twice, once escaped', file(`{"a":${good},"\\u0061":${good}}`, 8), /gives "a" twice/],
    ['a field twice', file(`{"a":{"dtype":"F32","dtype":"I32"}}`, 8), /gives "dtype" twice/],
    ['an entry that is no object', file('{"a":[]}'), /tensor "a": its entry is not an object/],
    ['no dtype', file('{"a":{}}'), /unknown dtype missing/],
    ['an unknown dtype', file(`{"a":${entry('"F8_E4M3"', '[2]', '[0,2]')}}`, 2), /unknown dtype "F8_E4M3"/],
    ['a dtype of Object.prototype', file(`{"a":${entry('"toString"', '[]', '[0,0]')}}`), /unknown dtype/],
    ['a dtype nested deeply', file(`{"a":{"dtype":${'['.repeat(1e5)}${']'.repeat(1e5)}}}`), /\[\[…\]\]/],
    ['a shape that is no list', file(`{"a":${entry('"U8"', '3', '[0,3]')}}`, 3), /shape .* 3/],
    ['a negative size', file(`{"a":${entry('"U8"', '[-1]', '[0,1]')}}`, 1), /shape .* \[-1\]/],
    ['a fraction as size', file(`{"a":${entry('"U8"', '[0.5]', '[0,1]')}}`, 1), /shape .* \[0.5\]/],
    ['a size past 2^53', file(`{"a":${entry('"U8"', '[1e300]', '[0,1]')}}`, 1), /shape .* \[1e\+300\]/],
    [
      'a product past 2^53',
      file(`{"a":${entry('"U8"', '[4294967296,4294967296]', '[0,1]')}}`, 1),
      /too many/,
    ],
    ['one offset', file(`{"a":${entry('"U8"', '[1]', '[0]')}}`, 1), /data_offsets .* \[0\]/],
    ['a negative offset', file(`{"a":${entry('"U8"', '[1]', '[-1,0]')}}`, 1), /data_offsets .* \[-1,0\]/],
    ['offsets the wrong way', file(`{"a":${entry('"U8"', '[1]', '[1,0]')}}`, 1), /\[1,0\] are outside/],
    ['offsets past the end', file(`{"a":${good}}`, 7), /\[0,8\] are outside the data, which has 7/],
    [
      'offsets that do not fit the shape',
      file(`{"a":${entry('"F32"', '[2]', '[0,4]')}}`, 4),
      /8 bytes, not 4/,
    ],
    ['overlap', file(`{"a":${good},"b":${entry('"F32"', '[2]', '[4,12]')}}`, 12), /"b" overlaps.* 4 .* 8/],
    [
      'a hole',
      file(`{"a":${good},"b":${entry('"F32"', '[2]', '[9,17]')}}`, 17),
      /"b" leaves a hole.* 9 .* 8/,
    ],
    ['a hole at the start', file(`{"a":${entry('"U8"', '[1]', '[1,2]')}}`, 2), /leaves a hole/],
    ['bytes after the last tensor', file(`{"a":${good}}`, 9), /end at byte 8 of the data, which has 9/],
    ['metadata that is no object', file('{"__metadata__":[]}'), /__metadata__ is not an object/],
    ['metadata that is no text', file('{"__metadata__":{"k":1}}'), /value of "k" is not a string/],
  ])('%s is refused, by name', (_, bytes, message) => {
    const fault = failure(() => readSafetensors(bytes));
    expect(fault).toBeInstanceOf(ParseError);
    expect(fault).toMatchObject({ code: 'E_FORMAT', message: expect.stringMatching(message) });
    expect(String(fault).length).toBeLessThan(400);
  });

  test('every proper prefix of a file is refused', () => {
    refusesEveryPrefix(writeSafetensors(sample, { format: 'pt' }), readSafetensors);
  });

  test('damaged bytes give an error or whole tensors', () => {
    survivesDamage(writeSafetensors(sample, { format: 'pt' }), (bytes) =>
      readSafetensors(bytes).tensors.values(),
    );
  });

  test('a name of 20 million characters reads', () => {
    const name = 'n'.repeat(2e7);
    expect([...readSafetensors(file(`{"${name}":${good}}`, 8)).tensors.keys()][0]!.length).toBe(name.length);
  });
});
