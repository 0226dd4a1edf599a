// npy: NumPy's own files in every dtype and order, round trips, and a refusal by name and place for what is malformed.

import { readFileSync, readdirSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ParseError, TensorError } from '../../src/errors.ts';
import { fromFortranOrder, swapEndian } from '../../src/io/host.ts';
import { readNpy, writeNpy, type HostTensor } from '../../src/io/index.ts';
import {
  dtypeBytes,
  dtypes,
  isComplex,
  isDType,
  partType,
  type DType,
  type RealDType,
} from '../../src/ir/dtype.ts';
import { sizeOf, stridesOf } from '../../src/ir/shape.ts';
import { failure, hostTensor, refusesEveryPrefix, survivesDamage } from './format.ts';

const folder = new URL('../fixtures/npy/', import.meta.url);
const fixture = (name: string): Uint8Array => readFileSync(new URL(`${name}.npy`, folder));
const fixtures = readdirSync(folder).map((file) => file.replace('.npy', ''));
const ofNumpy = dtypes.filter((dtype) => dtype !== 'bf16');

/** A version 1 file with `header` as it stands and `size` zero bytes of data. */
function file(header: string, size = 0): Uint8Array {
  const head = `\x93NUMPY\x01\0${String.fromCharCode(header.length & 255, header.length >> 8)}${header}`;
  return Uint8Array.from({ length: head.length + size }, (_, at) => head.charCodeAt(at) || 0);
}

/** A header, each value as text. */
const dict = (descr: string, order = 'False', shape = '(2,)'): string =>
  `{'descr': ${descr}, 'fortran_order': ${order}, 'shape': ${shape}}`;

/** The values as numbers, read without the code under test. */
function values({ dtype, data }: HostTensor): number[] {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  const read: Readonly<Record<RealDType, (at: number) => number | bigint>> = {
    bool: (at) => view.getUint8(at),
    i8: (at) => view.getInt8(at),
    u8: (at) => view.getUint8(at),
    i16: (at) => view.getInt16(at, true),
    u16: (at) => view.getUint16(at, true),
    i32: (at) => view.getInt32(at, true),
    u32: (at) => view.getUint32(at, true),
    i64: (at) => view.getBigInt64(at, true),
    u64: (at) => view.getBigUint64(at, true),
    f16: (at) => {
      const bits = view.getUint16(at, true);
      const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
      const size = exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25);
      return bits >> 15 === 1 ? -size : size;
    },
    bf16: () => NaN,
    f32: (at) => view.getFloat32(at, true),
    f64: (at) => view.getFloat64(at, true),
  };
  const own = partType(dtype);
  const width = dtypeBytes(own);
  return Array.from({ length: data.length / width }, (_, i) => Number(read[own](i * width)));
}

describe('readNpy', () => {
  const numeric = fixtures.filter((name) => isDType(name.split('-')[0]!) && !name.startsWith('bool'));

  test.each(numeric)('%s.npy, written by NumPy, holds what NumPy put there', (name) => {
    const tensor = readNpy(fixture(name));
    const dtype = name.split('-')[0] as DType;
    const value = (i: number): number =>
      dtype.startsWith('u') ? i : /^[fc]/.test(dtype) ? (i - 5) / 8 : i - 5;
    expect([tensor.dtype, tensor.shape]).toEqual([dtype, [2, 3, 4]]);
    // Real parts as floats are, imaginary ones a quarter of the place.
    const parts = (i: number): number[] => (isComplex(dtype) ? [value(i), i / 4] : [value(i)]);
    expect(values(tensor)).toEqual(Array.from({ length: 24 }, (_, i) => parts(i)).flat());
    expect(tensor.data.byteOffset % dtypeBytes(dtype)).toBe(0);
  });

  test('NumPy’s files of every dtype it shares with us, both orders and both endians, are there', () => {
    const wide = ofNumpy.filter((dtype) => dtypeBytes(dtype) > 1).length;
    expect(numeric).toHaveLength(2 * (ofNumpy.length - 1) + 2 * wide);
  });

  test('bools, rank 0, rank 1, no elements and header versions 2 and 3 read', () => {
    const bools = readNpy(fixture('bool'));
    expect([bools.dtype, bools.shape]).toEqual(['bool', [2, 3, 4]]);
    expect([...bools.data]).toEqual(Array.from({ length: 24 }, (_, i) => (i % 3 === 0 ? 1 : 0)));
    const scalar = readNpy(fixture('rank-0'));
    expect([scalar.dtype, scalar.shape, values(scalar)]).toEqual(['f32', [], [2.5]]);
    expect(readNpy(fixture('no-elements'))).toEqual({ dtype: 'f32', shape: [0, 3], data: new Uint8Array() });
    for (const name of ['rank-1', 'version-2', 'version-3']) {
      const tensor = readNpy(fixture(name));
      expect([tensor.dtype, tensor.shape, values(tensor)]).toEqual(['i32', [3], [0, 1, 2]]);
    }
  });

  test.each([
    ['structured', /structured dtypes are not supported/],
    ['structured', /\[\["a","<f4"\],\["b","<i4"\]\]/],
    ['object', /descr "\|O"/],
    ['text', /descr "<U2"/],
    ['long-double', /descr "<f16"/],
    ['time', /descr "<M8\[s\]"/],
  ])('NumPy’s %s arrays are refused by their dtype', (name, message) => {
    const fault = failure(() => readNpy(fixture(`refused-${name}`)));
    expect(fault).toBeInstanceOf(ParseError);
    expect(fault).toMatchObject({ code: 'E_FORMAT', message: expect.stringMatching(message) });
  });

  test.each<[string, Uint8Array, RegExp]>([
    ['another magic', new TextEncoder().encode('PK\x03\x04 and so on'), /byte 0: .*NUMPY/],
    ['version 4', Uint8Array.of(0x93, 78, 85, 77, 80, 89, 4, 0, 0, 0), /unknown version 4.0/],
    ['version 1.1', Uint8Array.of(0x93, 78, 85, 77, 80, 89, 1, 1, 0, 0), /unknown version 1.1/],
    ['an empty header', file(''), /header, byte 10: expected a value, found the end/],
    ['a list', file('[]'), /not a dict/],
    ['no descr', file(`{'fortran_order': False, 'shape': ()}`), /descr missing/],
    ['no order', file(`{'descr': '<f4', 'shape': ()}`), /fortran_order .* missing/],
    ['no shape', file(`{'descr': '<f4', 'fortran_order': False}`), /shape .* missing/],
    ['another key', file(`{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}`), /unknown key: x/],
    ['a key twice', file(`{'descr': '<f4', 'descr': '<f4'}`), /byte \d+: the key descr is given twice/],
    ['an order that is no bool', file(dict(`'<f4'`, '1'), 8), /fortran_order .* 1/],
    ['a shape that is a number', file(dict(`'<f4'`, 'False', '(2)'), 8), /shape .* 2/],
    ['a negative size', file(dict(`'<f4'`, 'False', '(-2,)'), 8), /shape .* \[-2\]/],
    ['a size past 2^53', file(dict(`'<f4'`, 'False', `(${'9'.repeat(30)},)`), 8), /shape .* \[1e\+30\]/],
    ['a product past 2^53', file(dict(`'<f4'`, 'False', '(4294967296, 4294967296)'), 8), /too many/],
    ['too few bytes', file(dict(`'<f4'`), 7), /f32\[2\] takes 8 bytes, the file holds 7/],
    ['too many bytes', file(dict(`'<f4'`), 9), /f32\[2\] takes 8 bytes, the file holds 9/],
    ['bf16 as void', file(dict(`'<V2'`), 4), /"<V2"/],
    ['a string that does not end', file(`{'descr`), /byte 11: a string does not end/],
    ['text after the dict', file(`${dict(`'<f4'`)} 1`, 8), /expected nothing more, found "1"/],
    ['nesting without end', file('('.repeat(60000)), /nested too deeply/],
  ])('%s is refused, by name and place', (_, bytes, message) => {
    const fault = failure(() => readNpy(bytes));
    expect(fault).toBeInstanceOf(ParseError);
    expect(fault).toMatchObject({ code: 'E_FORMAT', message: expect.stringMatching(message) });
    expect(String(fault).length).toBeLessThan(400);
  });

  test('headers as other writers spell them read: double quotes, long integers, native order', () => {
    const header = `{"shape": (2L, 1L), "fortran_order": False, "descr": "=f4"}\n`;
    expect(readNpy(file(header, 8))).toEqual({ dtype: 'f32', shape: [2, 1], data: new Uint8Array(8) });
  });

  test('every proper prefix of a file is refused', () => {
    for (const name of ['i16-fortran-big-endian', 'version-2', 'rank-0'])
      refusesEveryPrefix(fixture(name), readNpy);
  });

  test('damaged bytes give an error or a whole tensor', () => {
    for (const name of ['f32', 'i16-fortran-big-endian', 'version-3'])
      survivesDamage(fixture(name), (bytes) => [readNpy(bytes)]);
  });

  test('a Fortran-ordered file of a million axes of size 1 reads at once', () => {
    const header = `{'descr': '|u1', 'fortran_order': True, 'shape': (${'1,'.repeat(1e6)}64)}`;
    const bytes = new Uint8Array(12 + header.length + 64);
    bytes.set([0x93, 78, 85, 77, 80, 89, 2, 0]);
    new DataView(bytes.buffer).setUint32(8, header.length, true);
    bytes.set(new TextEncoder().encode(header), 12);
    expect(readNpy(bytes).shape.length).toBe(1e6 + 1);
  });
});

describe('writeNpy', () => {
  test('what is written reads back, for every dtype and shape', () => {
    fc.assert(
      fc.property(hostTensor(ofNumpy), (tensor) => {
        expect(readNpy(writeNpy(tensor))).toEqual(tensor);
      }),
      { numRuns: 500 },
    );
  });

  test('the values begin at a multiple of 64, after a line end', () => {
    fc.assert(
      fc.property(hostTensor(ofNumpy), (tensor) => {
        const bytes = writeNpy(tensor);
        const start = bytes.length - tensor.data.length;
        expect([start % 64, bytes[start - 1]]).toEqual([0, 0x0a]);
      }),
    );
  });

  test('gives NumPy’s own bytes where NumPy leaves no spare room', () => {
    const tensor: HostTensor = { dtype: 'i32', shape: [3], data: new Uint8Array(12) };
    const text = new TextDecoder('latin1').decode(writeNpy(tensor));
    expect(text.slice(10, 128).trimEnd()).toBe(`{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }`);
  });

  test('a header over 64 KiB is version 2', () => {
    const tensor: HostTensor = {
      dtype: 'u8',
      shape: new Array<number>(30_000).fill(1),
      data: Uint8Array.of(9),
    };
    const bytes = writeNpy(tensor);
    expect(bytes[6]).toBe(2);
    expect(readNpy(bytes)).toEqual(tensor);
  });

  test('bf16 and a tensor with the wrong bytes are refused', () => {
    const data = new Uint8Array(2);
    expect(failure(() => writeNpy({ dtype: 'bf16', shape: [1], data }))).toMatchObject({ code: 'E_DTYPE' });
    const fault = failure(() => writeNpy({ dtype: 'f32', shape: [1], data }));
    expect(fault).toBeInstanceOf(TensorError);
    expect(String(fault)).toMatch(/f32\[1\] takes 4 bytes, not 2/);
  });
});

describe('byte order', () => {
  test('element i of a Fortran-ordered array moves to its C-order place', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(4), { maxLength: 4 }), fc.constantFrom(1, 2, 4, 8), (shape, width) => {
        const size = sizeOf(shape);
        const bytes = Uint8Array.from({ length: size * width }, (_, at) => at * 7);
        const out = fromFortranOrder(bytes, shape, width);
        const strides = stridesOf(shape);
        for (let flat = 0; flat < size; flat++) {
          let [from, step] = [0, 1];
          shape.forEach((extent, axis) => {
            from += (Math.floor(flat / strides[axis]!) % extent) * step;
            step *= extent;
          });
          expect(out.subarray(flat * width, (flat + 1) * width)).toEqual(
            bytes.subarray(from * width, (from + 1) * width),
          );
        }
      }),
    );
  });

  test('swapping twice changes nothing, swapping once reverses each element', () => {
    expect([...swapEndian(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8), 4)]).toEqual([4, 3, 2, 1, 8, 7, 6, 5]);
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 16, maxLength: 16 }),
        fc.constantFrom(1, 2, 4, 8),
        (bytes, width) => {
          expect(swapEndian(swapEndian(bytes, width), width)).toEqual(bytes);
        },
      ),
    );
  });
});
