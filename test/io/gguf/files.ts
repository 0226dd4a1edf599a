// GGUF files in memory for these tests, and values to put into them.

import { writeGguf, type GgufContents } from '../../../src/io/index.ts';
import { blockFormats, type BlockFormat } from '../../../src/ir/blocks/format.ts';

/** The bytes that `writeGguf` writes. */
export async function ggufBytes(contents: GgufContents): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const size = await writeGguf({ write: (bytes) => void parts.push(bytes.slice()) }, contents);
  const out = new Uint8Array(await new Blob(parts).arrayBuffer());
  if (out.length !== size) throw new Error(`${out.length} bytes were written, ${size} are told`);
  return out;
}

/** Values between −1 and 1 that depend on their place alone. */
export function values(count: number, salt = 1): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => Math.sin(salt * 12.9898 + i * 78.233));
}

/** A tensor of every format of blocks, two rows each. */
export function everyFormat(): {
  name: BlockFormat;
  type: BlockFormat;
  shape: number[];
  data: Float32Array;
}[] {
  return blockFormats.map((type, i) => ({ name: type, type, shape: [2, 256], data: values(512, i) }));
}
