// npz, NumPy's file of several arrays: a zip archive whose members are npy files. Reads stored and
// deflated members, checked by their CRC-32; writes stored ones.

import { ParseError, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { gunzip } from './gzip.ts';
import { entriesOf, type HostTensor } from './host.ts';
import { readNpy, writeNpy } from './npy.ts';

const signatures = { local: 0x04034b50, central: 0x02014b50, end: 0x06054b50 } as const;
/** Bytes of the records before what varies in length. */
const sizes = { local: 30, central: 46, end: 22 } as const;
const longestComment = 0xffff;
/** What stands in 32 bits where a 64-bit record has the number. */
const elsewhere = 0xffffffff;
/**
 * Bytes that one deflated byte can become at most, rounded up: archives that declare more are
 * refused before anything is unpacked.
 */
const mostExpansion = 1040;

interface Member {
  readonly name: string;
  readonly method: number;
  readonly crc: number;
  readonly packed: number;
  readonly size: number;
  readonly at: number;
}

const takesReadNpz = arg.takes<typeof readNpz>(['the file', arg.bytes]);

/**
 * The arrays of an npz file by name. Data may share memory with `bytes`. Rejects with ParseError
 * E_FORMAT.
 */
export async function readNpz(bytes: Uint8Array): Promise<Map<string, HostTensor>> {
  takesReadNpz('readNpz', bytes);
  const tensors = new Map<string, HostTensor>();
  for (const member of membersOf(bytes)) {
    const name = member.name.replace(/\.npy$/, '');
    if (tensors.has(name)) throw broken(`the member ${name} is there twice`);
    tensors.set(name, readNpy(await contentOf(bytes, member)));
  }
  return tensors;
}

/**
 * An npz file of tensors by name, not compressed. Throws E_DTYPE for bf16, which NumPy does not
 * have.
 */
export function writeNpz(tensors: Iterable<readonly [string, HostTensor]>): Uint8Array {
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let at = 0;
  for (const [name, tensor] of entriesOf('writeNpz', tensors)) {
    const label = new TextEncoder().encode(`${name}.npy`);
    const content = writeNpy(tensor);
    if (label.length > 0xffff)
      throw new TensorError('E_VALUE', 'writeNpz', `${name.slice(0, 40)}… is too long`);
    const crc = crc32(content);
    // Version, flags (names are UTF-8), method, time and date (1980-01-01), then CRC and sizes.
    const facts = [20, 0x0800, 0, 0, 0x21];
    const header = record(sizes.local, label, (view) => {
      view.setUint32(0, signatures.local, true);
      facts.forEach((fact, i) => view.setUint16(4 + 2 * i, fact, true));
      [crc, content.length, content.length].forEach((fact, i) => view.setUint32(14 + 4 * i, fact, true));
      view.setUint16(26, label.length, true);
    });
    const place = at;
    directory.push(
      record(sizes.central, label, (view) => {
        view.setUint32(0, signatures.central, true);
        [20, ...facts].forEach((fact, i) => view.setUint16(4 + 2 * i, fact, true));
        [crc, content.length, content.length].forEach((fact, i) => view.setUint32(16 + 4 * i, fact, true));
        view.setUint16(28, label.length, true);
        view.setUint32(42, place, true);
      }),
    );
    parts.push(header, content);
    at += header.length + content.length;
    if (at >= elsewhere)
      throw new TensorError('E_LIMIT', 'writeNpz', 'arrays of 4 GiB and more do not fit', 'safetensors');
  }
  const length = directory.reduce((sum, entry) => sum + entry.length, 0);
  const end = record(sizes.end, new Uint8Array(), (view) => {
    view.setUint32(0, signatures.end, true);
    view.setUint16(8, directory.length, true);
    view.setUint16(10, directory.length, true);
    view.setUint32(12, length, true);
    view.setUint32(16, at, true);
  });
  return joined([...parts, ...directory, end]);
}

function record(size: number, label: Uint8Array, fill: (view: DataView) => void): Uint8Array {
  const out = new Uint8Array(size + label.length);
  fill(new DataView(out.buffer));
  out.set(label, size);
  return out;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** What the directory at the archive's end lists. */
function membersOf(bytes: Uint8Array): Member[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const last = bytes.length - sizes.end;
  let end = last;
  while (end >= 0 && end >= last - longestComment && view.getUint32(end, true) !== signatures.end) end--;
  if (end < 0 || end < last - longestComment) throw broken('the file has no directory: it is no zip archive');
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  const members: Member[] = [];
  for (let i = 0; i < count; i++) {
    if (at + sizes.central > end || view.getUint32(at, true) !== signatures.central)
      throw broken(`byte ${at}: entry ${i} of ${count} of the directory is not there`);
    const length = view.getUint16(at + 28, true);
    const next = at + sizes.central + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    if (next > end) throw broken(`byte ${at}: an entry of the directory runs past its end`);
    const name = new TextDecoder().decode(
      new Uint8Array(bytes.subarray(at + sizes.central, at + sizes.central + length)),
    );
    if ((view.getUint16(at + 8, true) & 1) !== 0) throw broken(`${name} is encrypted`);
    const [crc, packed, size] = [16, 20, 24].map((offset) => view.getUint32(at + offset, true)) as [
      number,
      number,
      number,
    ];
    const place = view.getUint32(at + 42, true);
    if ([packed, size, place].includes(elsewhere)) throw broken(`${name} has 4 GiB or more: not supported`);
    members.push({ name, method: view.getUint16(at + 10, true), crc, packed, size, at: place });
    at = next;
  }
  return members;
}

async function contentOf(
  bytes: Uint8Array,
  { name, method, crc, packed, size, at }: Member,
): Promise<Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (at + sizes.local > bytes.length || view.getUint32(at, true) !== signatures.local)
    throw broken(`byte ${at}: ${name} is not there`);
  const start = at + sizes.local + view.getUint16(at + 26, true) + view.getUint16(at + 28, true);
  if (start + packed > bytes.length) throw broken(`${name} ends after the file does`);
  const stored = bytes.subarray(start, start + packed);
  switch (method) {
    case 0:
      if (packed !== size || crc32(stored) !== crc) throw broken(`${name} is damaged: its CRC-32 is another`);
      return stored;
    case 8: {
      if (size > mostExpansion * (packed + 1)) throw broken(`${name} cannot unpack to ${size} bytes`);
      // A zip's deflated bytes with a gzip's header and trailer: the platform unpacks them and
      // checks the CRC.
      const trailer = new DataView(new ArrayBuffer(8));
      trailer.setUint32(0, crc, true);
      trailer.setUint32(4, size, true);
      const header = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff);
      return gunzip(joined([header, stored, new Uint8Array(trailer.buffer)]), { limit: size });
    }
    default:
      throw broken(`${name} is compressed by method ${method}: expected 0 (stored) or 8 (deflate)`);
  }
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0xedb88320;
  return crc;
});

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = crcTable[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'npz', problem);
}
