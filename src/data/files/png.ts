// PNG files before they are decoded (https://www.w3.org/TR/png/): every size is held to the bytes that
// are there, and the picture is unpacked within its size. Decoders are given the chunks that make
// the picture alone, so that nothing else of a file can cost anything.

import { ParseError } from '../../errors.ts';
import type { Allowance } from '../../io/allowance.ts';
import { inflate } from '../../io/gzip.ts';
import { crc32, joined } from '../../io/zip.ts';

const signature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] as const;
/** Samples of a pixel by the type of its colours, and how many bits they may have. */
const colours: Readonly<Record<number, { readonly samples: number; readonly depths: readonly number[] }>> = {
  0: { samples: 1, depths: [1, 2, 4, 8, 16] },
  2: { samples: 3, depths: [8, 16] },
  3: { samples: 1, depths: [1, 2, 4, 8] },
  4: { samples: 2, depths: [8, 16] },
  6: { samples: 4, depths: [8, 16] },
};
/** Where each of Adam7's pictures begins, and how far its pixels lie apart: by column and by row. */
const passes = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;
/** Bytes that one deflated byte can become at most, rounded up. */
const mostExpansion = 1040;

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'png', problem);
}

interface Chunk {
  readonly name: string;
  readonly data: Uint8Array;
  /** With its length, name and checksum. */
  readonly whole: Uint8Array;
}

function* chunksOf(bytes: Uint8Array): Generator<Chunk, void, undefined> {
  if (signature.some((byte, at) => bytes[at] !== byte)) throw broken('it does not begin as PNG files do');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at: number = signature.length; ;) {
    if (at + 12 > bytes.length) throw broken(`it ends at byte ${bytes.length}, before IEND`);
    const end = at + 12 + view.getUint32(at);
    const name = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    if (end > bytes.length) throw broken(`byte ${at}: a chunk runs past the end of the file`);
    yield { name, data: bytes.subarray(at + 8, end - 4), whole: bytes.subarray(at, end) };
    if (name === 'IEND') return;
    at = end;
  }
}

/** A PNG file with what makes its picture alone, which is there whole. Throws ParseError E_FORMAT, and E_LIMIT. */
export async function checkedPng(bytes: Uint8Array, allowance: Allowance): Promise<Uint8Array> {
  const kept: Chunk[] = [];
  for (const chunk of chunksOf(bytes)) {
    const { name, data, whole } = chunk;
    // What begins with a small letter is not needed for the picture, but for the colour that stands for none.
    if (/^[a-z]/.test(name) && name !== 'tRNS') continue;
    if (!['IHDR', 'PLTE', 'tRNS', 'IDAT', 'IEND'].includes(name))
      throw broken(`the chunk ${name} is not known`);
    const isFirst = kept.length === 0;
    if (isFirst !== (name === 'IHDR')) throw broken('IHDR is not its first chunk, and that alone');
    if (name !== 'IDAT' && kept.some((other) => other.name === name)) throw broken(`${name} is there twice`);
    const told = new DataView(whole.buffer, whole.byteOffset + whole.length - 4).getUint32(0);
    if (crc32(whole.subarray(4, -4)) !== told) throw broken(`${name} is damaged: its CRC-32 is another`);
    if (name === 'PLTE' && (data.length % 3 !== 0 || data.length > 768 || data.length === 0))
      throw broken(`its palette has ${data.length} bytes`);
    kept.push(chunk);
  }
  const header = kept[0]!.data;
  const [width, height, size] = sizesOf(header);
  if (header[9] === 3 && !kept.some(({ name }) => name === 'PLTE')) throw broken('it has no palette');
  const packed = kept.flatMap(({ name, data }) => (name === 'IDAT' ? [data] : []));
  const packedSize = packed.reduce((sum, { length }) => sum + length, 0);
  if (size > mostExpansion * packedSize)
    throw broken(`${packedSize} bytes cannot unpack to the ${size} of its picture`);
  allowance.spend(Math.max(size, 3 * width * height), `a picture of ${width} × ${height} pixels`);
  await inflate('deflate', packed, size, 'png');
  return joined([Uint8Array.from(signature), ...kept.map(({ whole }) => whole)]);
}

/** Width, height, and bytes of the picture with a filter a row. */
function sizesOf(header: Uint8Array): [width: number, height: number, bytes: number] {
  if (header.length !== 13) throw broken(`IHDR has ${header.length} bytes`);
  const view = new DataView(header.buffer, header.byteOffset);
  const [width, height] = [view.getUint32(0), view.getUint32(4)];
  const [depth = 0, type = 0, compression, filter, interlace = 0] = header.subarray(8);
  const colour = colours[type];
  if (width < 1 || height < 1 || width >= 2 ** 31 || height >= 2 ** 31)
    throw broken(`it is said to have ${width} × ${height} pixels`);
  if (colour === undefined || !colour.depths.includes(depth))
    throw broken(`there are no samples of ${depth} bits in colours of type ${type}`);
  if (compression !== 0 || filter !== 0 || interlace > 1) throw broken('it is packed in no known way');
  const bits = colour.samples * depth;
  const bytesOf = (columns: number, rows: number): number =>
    columns === 0 ? 0 : rows * (1 + Math.ceil((columns * bits) / 8));
  const size =
    interlace === 0
      ? bytesOf(width, height)
      : passes.reduce(
          (sum, [x, y, dx, dy]) => sum + bytesOf(Math.ceil((width - x) / dx), Math.ceil((height - y) / dy)),
          0,
        );
  return [width, height, size];
}
