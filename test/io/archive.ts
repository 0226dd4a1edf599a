// Archives and pickles that no program writes, byte by byte.

import { deflateRawSync } from 'node:zlib';
import { crc32 } from '../../src/io/zip.ts';

export interface ArchiveMember {
  readonly name: string;
  readonly content: Uint8Array;
  readonly isDeflated?: boolean;
  /** Which member's bytes this one's entry leads to; its own by default. */
  readonly at?: number;
}

/** A zip archive of these members. */
export function archive(members: readonly ArchiveMember[]): Uint8Array {
  const parts: Buffer[] = [];
  const places: number[] = [];
  let at = 0;
  const facts = ({ content, isDeflated = false }: ArchiveMember, packed: number): Buffer => {
    const out = Buffer.alloc(22);
    out.writeUInt16LE(20, 0);
    out.writeUInt16LE(isDeflated ? 8 : 0, 4);
    out.writeUInt32LE(crc32(content), 10);
    out.writeUInt32LE(packed, 14);
    out.writeUInt32LE(content.length, 18);
    return out;
  };
  const packs = members.map(({ content, isDeflated }) =>
    isDeflated ? deflateRawSync(content) : Buffer.from(content),
  );
  members.forEach((member, i) => {
    places.push(at);
    if (member.at !== undefined) return;
    const name = Buffer.from(member.name);
    const lengths = Buffer.alloc(4);
    lengths.writeUInt16LE(name.length, 0);
    const record = [Buffer.from('PK\u0003\u0004'), facts(member, packs[i]!.length), lengths, name, packs[i]!];
    parts.push(...record);
    at += record.reduce((sum, { length }) => sum + length, 0);
  });
  const begin = at;
  members.forEach((member, i) => {
    const name = Buffer.from(member.name);
    const rest = Buffer.alloc(18);
    rest.writeUInt16LE(name.length, 0);
    rest.writeUInt32LE(places[member.at ?? i]!, 14);
    const record = [Buffer.from('PK\u0001\u0002\u0014\u0000'), facts(member, packs[i]!.length), rest, name];
    parts.push(...record);
    at += record.reduce((sum, { length }) => sum + length, 0);
  });
  const end = Buffer.alloc(22);
  end.write('PK\u0005\u0006');
  end.writeUInt16LE(members.length, 8);
  end.writeUInt16LE(members.length, 10);
  end.writeUInt32LE(at - begin, 12);
  end.writeUInt32LE(begin, 16);
  return new Uint8Array(Buffer.concat([...parts, end]));
}

/** A file of torch.save with this pickle, in Latin-1, and this storage, called 0. */
export function torchFile(pickle: string, storage: Uint8Array = new Uint8Array(16)): Uint8Array {
  return archive([
    { name: 'a/data.pkl', content: Uint8Array.from(Buffer.from(`\u0080\u0002${pickle}.`, 'latin1')) },
    { name: 'a/data/0', content: storage },
  ]);
}

const text = (value: string): string => `X${String.fromCharCode(value.length)}\0\0\0${value}`;
const ints = (values: readonly number[]): string =>
  `(${values.map((value) => `K${String.fromCharCode(value)}`).join('')}t`;

/** Opcodes of a view of the storage, of a type such as `Float`. */
export function tensorView(
  type: string,
  offset: number,
  shape: readonly number[],
  strides: readonly number[],
): string {
  const storage = `(${text('storage')}ctorch\n${type}Storage\n${text('0')}${text('cpu')}K\x10tQ`;
  return `ctorch._utils\n_rebuild_tensor_v2\n(${storage}K${String.fromCharCode(offset)}${ints(shape)}${ints(strides)}\x89}tR`;
}
