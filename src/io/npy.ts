// npy, NumPy's file of one array: magic, version, a Python dict that gives dtype, order and shape,
// then the values. Reads versions 1 to 3 in either byte and axis order; writes little-endian
// C-order.

import { ParseError, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { dtypeBytes, partType, type DType } from '../ir/dtype.ts';
import { showShape } from '../ir/shape.ts';
import {
  checkHostTensor,
  fromFortranOrder,
  hostTensor,
  packedBytes,
  packedView,
  showValue,
  swapEndian,
  type HostTensor,
} from './host.ts';
import { parseLiteral, type Literal } from './literal.ts';

const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59] as const; // \x93NUMPY
const codes: Readonly<Record<DType, string | undefined>> = {
  bool: 'b1',
  i8: 'i1',
  u8: 'u1',
  i16: 'i2',
  u16: 'u2',
  i32: 'i4',
  u32: 'u4',
  i64: 'i8',
  u64: 'u8',
  f16: 'f2',
  bf16: undefined,
  f32: 'f4',
  f64: 'f8',
  c64: 'c8',
  c128: 'c16',
};
const dtypeOf = new Map(Object.entries(codes).map(([dtype, code]) => [code, dtype as DType]));

const takesReadNpy = arg.takes<typeof readNpy>(['the file', arg.bytes]);

/**
 * Reads an npy file; data shares memory with `bytes` where order and alignment allow. Throws
 * ParseError E_FORMAT.
 */
export function readNpy(bytes: Uint8Array): HostTensor {
  takesReadNpy('readNpy', bytes);
  const { text, begin, end } = locateHeader(bytes);
  const { dtype, bigEndian, fortran, shape } = readHeader(text, begin);
  const expected = packedBytes(dtype, shape);
  const found = bytes.length - end;
  if (expected !== found) {
    throw broken(`${showShape(shape, dtype)} takes ${expected ?? 'too many'} bytes, the file holds ${found}`);
  }
  const width = dtypeBytes(dtype);
  let data = packedView(bytes, end, bytes.length, dtype);
  if (bigEndian && width > 1) data = swapEndian(data, dtypeBytes(partType(dtype)));
  if (fortran && shape.length > 1) data = fromFortranOrder(data, shape, width);
  return { dtype, shape, data };
}

const takesWriteNpy = arg.takes<typeof writeNpy>(['the tensor', hostTensor]);

/** An npy file of `tensor`. Throws E_DTYPE for bf16, which NumPy does not have. */
export function writeNpy(tensor: HostTensor): Uint8Array {
  takesWriteNpy('writeNpy', tensor);
  const { dtype, shape, data } = tensor;
  checkHostTensor('writeNpy', tensor);
  const code = codes[dtype];
  if (code === undefined) {
    throw new TensorError(
      'E_DTYPE',
      'writeNpy',
      `NumPy has no ${dtype}`,
      'cast to f32, or write safetensors',
    );
  }
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const descr = `${dtypeBytes(dtype) === 1 ? '|' : '<'}${code}`;
  const header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${sizes}), }`;
  // Version 1 counts the header in 16 bits, version 2 in 32. Padded with spaces so that the values
  // begin at 64·n.
  const place = (lengthBytes: number): number =>
    Math.ceil((magic.length + 2 + lengthBytes + header.length + 1) / 64) * 64;
  const lengthBytes = place(2) < 0x10000 ? 2 : 4;
  const start = place(lengthBytes);
  const out = new Uint8Array(start + data.length).fill(0x20, 0, start);
  const view = new DataView(out.buffer);
  out.set(magic);
  out.set(lengthBytes === 2 ? [1, 0] : [2, 0], magic.length);
  const textAt = magic.length + 2 + lengthBytes;
  if (lengthBytes === 2) view.setUint16(magic.length + 2, start - textAt, true);
  else view.setUint32(magic.length + 2, start - textAt, true);
  new TextEncoder().encodeInto(header, out.subarray(textAt));
  out[start - 1] = 0x0a;
  out.set(data, start);
  return out;
}

/** The header's text, the place of its first byte and of the first value. */
function locateHeader(bytes: Uint8Array): { text: string; begin: number; end: number } {
  const wrong = magic.findIndex((byte, at) => at >= bytes.length || bytes[at] !== byte);
  if (wrong >= 0) {
    if (wrong >= bytes.length) throw broken(`the file ends in the magic string, at byte ${bytes.length}`);
    throw broken(`byte ${wrong}: the file does not begin with \\x93NUMPY`);
  }
  const version = bytes[magic.length];
  if (bytes.length < magic.length + 2)
    throw broken(`the file ends in the version number, at byte ${bytes.length}`);
  if (!(version === 1 || version === 2 || version === 3) || bytes[magic.length + 1] !== 0) {
    throw broken(`byte ${magic.length}: unknown version ${version}.${bytes[magic.length + 1]}`);
  }
  const begin = magic.length + 2 + (version === 1 ? 2 : 4);
  if (bytes.length < begin) throw broken(`the file ends in the header's length, at byte ${bytes.length}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset + magic.length + 2);
  const length = version === 1 ? view.getUint16(0, true) : view.getUint32(0, true);
  const end = begin + length;
  if (end > bytes.length)
    throw broken(`the file ends in the header: ${bytes.length - begin} of ${length} bytes`);
  const encoding = version === 3 ? 'utf-8' : 'latin1';
  try {
    const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
    return { text: decoder.decode(new Uint8Array(bytes.subarray(begin, end))), begin, end };
  } catch {
    throw broken(`byte ${begin}: the header is not ${encoding} text`);
  }
}

function readHeader(
  text: string,
  begin: number,
): { dtype: DType; bigEndian: boolean; fortran: boolean; shape: readonly number[] } {
  const header = parseLiteral(text, (at, problem) => broken(`header, byte ${begin + at}: ${problem}`));
  if (!(header instanceof Map)) throw broken('the header is not a dict');
  for (const key of header.keys()) {
    if (!['descr', 'fortran_order', 'shape'].includes(key))
      throw broken(`the header has an unknown key: ${key}`);
  }
  const fortran: Literal | undefined = header.get('fortran_order');
  if (typeof fortran !== 'boolean')
    throw broken(`fortran_order is neither True nor False: ${showValue(fortran)}`);
  const shape: Literal | undefined = header.get('shape');
  if (!isSizes(shape)) throw broken(`shape is not a tuple of sizes: ${showValue(shape)}`);
  return { ...readDescr(header.get('descr')), fortran, shape };
}

function readDescr(descr: Literal | undefined): { dtype: DType; bigEndian: boolean } {
  if (typeof descr === 'string') {
    const [, order, code] = /^([<>|=]?)([a-z]\d+)$/.exec(descr) ?? [];
    const dtype = code === undefined ? undefined : dtypeOf.get(code);
    if (dtype !== undefined) return { dtype, bigEndian: order === '>' };
  }
  const kind = Array.isArray(descr) ? 'structured dtypes are' : 'this dtype is';
  throw broken(`descr ${showValue(descr)}: ${kind} not supported`);
}

function isSize(size: unknown): boolean {
  return Number.isSafeInteger(size) && Number(size) >= 0 && !Object.is(size, -0);
}

function isSizes(value: Literal | undefined): value is readonly number[] {
  return Array.isArray(value) && value.every(isSize);
}

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'npy', problem);
}
