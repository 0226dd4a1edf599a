// npz, NumPy's file of several arrays: a zip archive whose members are npy files. Reads stored and
// deflated members, checked by their CRC-32; writes stored ones.

import { ParseError, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { Allowance, limitTable, type LimitOptions } from './allowance.ts';
import { entriesOf, type HostTensor } from './host.ts';
import { readNpy, writeNpy } from './npy.ts';
import { contentOf, crc32, elsewhere, joined, membersOf, signatures, sizes } from './zip.ts';

const takesReadNpz = arg.takes<typeof readNpz>(
  ['the file', arg.bytes],
  ['options', arg.options<LimitOptions>(limitTable)],
);

/**
 * The arrays of an npz file by name. Data may share memory with `bytes`. Rejects with ParseError
 * E_FORMAT, E_LIMIT where they unpack to more than `maxBytes`.
 */
export async function readNpz(
  bytes: Uint8Array,
  options: LimitOptions = {},
): Promise<Map<string, HostTensor>> {
  takesReadNpz('readNpz', bytes, options);
  const allowance = new Allowance('readNpz', bytes.length, options.maxBytes);
  const tensors = new Map<string, HostTensor>();
  for (const member of membersOf(bytes, 'npz')) {
    const name = member.name.replace(/\.npy$/, '');
    if (tensors.has(name)) throw broken(`the member ${name} is there twice`);
    tensors.set(name, readNpy(await contentOf(bytes, member, 'npz', allowance)));
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

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'npz', problem);
}
