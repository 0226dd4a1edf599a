// Members of zip archives, stored or deflated, checked by their CRC-32. Nothing in a file is trusted.

import { ParseError } from '../errors.ts';
import type { Allowance } from './allowance.ts';
import { inflate } from './gzip.ts';

export const signatures = { local: 0x04034b50, central: 0x02014b50, end: 0x06054b50 } as const;
/** Bytes of the records before what varies in length. */
export const sizes = { local: 30, central: 46, end: 22 } as const;
const longestComment = 0xffff;
/** What stands in 32 bits where a 64-bit record has the number. */
export const elsewhere = 0xffffffff;
/**
 * Bytes that one deflated byte can become at most, rounded up: archives that declare more are
 * refused before anything is unpacked.
 */
const mostExpansion = 1040;

/** A file in an archive. */
export interface ZipMember {
  readonly name: string;
  readonly method: number;
  readonly crc: number;
  readonly packed: number;
  readonly size: number;
  readonly at: number;
  /** Where its packed bytes begin. */
  readonly start: number;
}

export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/**
 * What the directory at the archive's end lists: members that lie apart from each other, so that all
 * of them are no more than the archive.
 */
export function membersOf(bytes: Uint8Array, format: string): ZipMember[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const last = bytes.length - sizes.end;
  let end = last;
  while (end >= 0 && end >= last - longestComment && view.getUint32(end, true) !== signatures.end) end--;
  if (end < 0 || end < last - longestComment)
    throw broken(format, 'the file has no directory: it is no zip archive');
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  const members: ZipMember[] = [];
  for (let i = 0; i < count; i++) {
    if (at + sizes.central > end || view.getUint32(at, true) !== signatures.central)
      throw broken(format, `byte ${at}: entry ${i} of ${count} of the directory is not there`);
    const length = view.getUint16(at + 28, true);
    const next = at + sizes.central + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    if (next > end) throw broken(format, `byte ${at}: an entry of the directory runs past its end`);
    const name = new TextDecoder().decode(
      new Uint8Array(bytes.subarray(at + sizes.central, at + sizes.central + length)),
    );
    if ((view.getUint16(at + 8, true) & 1) !== 0) throw broken(format, `${name} is encrypted`);
    const [crc, packed, size] = [16, 20, 24].map((offset) => view.getUint32(at + offset, true)) as [
      number,
      number,
      number,
    ];
    const place = view.getUint32(at + 42, true);
    if ([packed, size, place].includes(elsewhere))
      throw broken(format, `${name} has 4 GiB or more: not supported`);
    if (place + sizes.local > bytes.length || view.getUint32(place, true) !== signatures.local)
      throw broken(format, `byte ${place}: ${name} is not there`);
    const start = place + sizes.local + view.getUint16(place + 26, true) + view.getUint16(place + 28, true);
    if (start + packed > bytes.length) throw broken(format, `${name} ends after the file does`);
    members.push({ name, method: view.getUint16(at + 10, true), crc, packed, size, at: place, start });
    at = next;
  }
  let reached = 0;
  for (const member of members.toSorted((a, b) => a.at - b.at)) {
    if (member.at < reached)
      throw broken(format, `byte ${member.at}: ${member.name} overlaps the one before`);
    reached = member.start + member.packed;
  }
  return members;
}

/** The bytes of a member, which are counted where they are not those of the archive. */
export async function contentOf(
  bytes: Uint8Array,
  { name, method, crc, packed, size, start }: ZipMember,
  format: string,
  allowance: Allowance,
): Promise<Uint8Array> {
  const stored = bytes.subarray(start, start + packed);
  switch (method) {
    case 0:
      if (packed !== size || crc32(stored) !== crc)
        throw broken(format, `${name} is damaged: its CRC-32 is another`);
      return stored;
    case 8: {
      if (size > mostExpansion * (packed + 1)) throw broken(format, `${name} cannot unpack to ${size} bytes`);
      allowance.spend(size, name);
      // A zip's deflated bytes with a gzip's header and trailer: the platform unpacks them and
      // checks the CRC.
      const trailer = new DataView(new ArrayBuffer(8));
      trailer.setUint32(0, crc, true);
      trailer.setUint32(4, size, true);
      const header = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff);
      return inflate('gzip', [header, stored, new Uint8Array(trailer.buffer)], size, `${format}: ${name}`);
    }
    default:
      throw broken(format, `${name} is compressed by method ${method}: expected 0 (stored) or 8 (deflate)`);
  }
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0xedb88320;
  return crc;
});

/** The checksum of zip and gzip. */
export function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = crcTable[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

function broken(format: string, problem: string): ParseError {
  return new ParseError('E_FORMAT', format, problem);
}
