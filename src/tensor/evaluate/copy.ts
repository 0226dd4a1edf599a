// copy: takes a device buffer and gives a new one with the same bytes, made on the device by a
// program of one copy step. Used for donated memory that another value shares: the copy is
// overwritten instead.

import type { Device, LoadedProgram } from '../../runtime/device.ts';
import type { Program, ProgramBuffer } from '../../runtime/program.ts';
import { targetOf } from '../../schedule/target.ts';
import { Resident } from '../storage/resident.ts';

const copiers = new WeakMap<Device, Map<number, LoadedProgram>>();

/**
 * Queues a copy of a buffer's first bytes, by default of all; gives the new one, which may have room
 * for more: `isCleared` has zeros there.
 */
export function copied(
  source: Resident,
  bytes: number = source.buffer.bytes,
  room: number = bytes,
  isCleared = false,
): Resident {
  const { device, buffer } = source;
  const fresh = new Resident(device, device.allocate(room));
  try {
    if (isCleared) device.write(fresh.buffer, new Uint8Array(room));
    copier(device, bytes).run([buffer], [fresh.buffer], []);
  } catch (error) {
    fresh.release();
    throw error;
  }
  return fresh;
}

/** Sizes that a device keeps programs for. */
const mostCopiers = 64;

function copier(device: Device, bytes: number): LoadedProgram {
  const known = copiers.get(device) ?? new Map<number, LoadedProgram>();
  copiers.set(device, known);
  const loaded = known.get(bytes) ?? device.load(copyProgram(device, bytes));
  known.delete(bytes);
  known.set(bytes, loaded);
  for (const [oldest, copies] of known) {
    if (known.size <= mostCopiers) break;
    known.delete(oldest);
    copies.destroy();
  }
  return loaded;
}

/** A program that copies a buffer of so many bytes. */
export function copyProgram(device: Device, bytes: number): Program {
  const buffer = (name: string, role: 'input' | 'output'): ProgramBuffer => {
    return { name, role, bytes, dtype: 'u32', shape: [bytes / 4] };
  };
  return {
    version: 1,
    // The compiler of programs of the other form may not have been found yet.
    target: device.facts.first ?? targetOf(device.facts).id,
    kernels: [],
    buffers: [buffer('from', 'input'), buffer('to', 'output')],
    packs: [],
    arenas: [],
    steps: [{ kind: 'copy', from: 0, to: 1 }],
    inputs: [0],
    outputs: [1],
    donated: [],
    scalars: [],
  };
}
