// Which language a target's kernels are written in: the one table from targets to emitters.

import { CompilerBug } from '../../errors.ts';
import type { ProgramTileMap, TargetId } from '../../runtime/program.ts';
import { emitCuda } from './cuda/emit.ts';
import type { Loop } from '../loop/loop.ts';
import { isSerial } from './wasm/atomic.ts';
import { emitWasm } from './wasm/emit.ts';
import { emitWgsl } from './wgsl/emit.ts';

/** A kernel's source, and what else its launch needs. */
export interface Emitted {
  readonly source: string;
  /** The source as readable text, where it is bytes; written on demand. */
  readonly text?: () => string;
  /** Bytes of workgroup memory that the launch gives. */
  readonly sharedBytes?: number;
  /** Tensor maps that the launch passes. */
  readonly tileMaps?: readonly ProgramTileMap[];
  /** Workgroups run in order, on one thread. */
  readonly serial?: boolean;
}

/**
 * What emitters are told besides the Loop: words of the program's scalar block; instructions that
 * not every machine has.
 */
interface EmitOptions {
  readonly scalarSlots: number;
  readonly relaxedSimd?: boolean;
}

export type Emitter = (loop: Loop, options: EmitOptions) => Emitted;

const emitters: Readonly<Record<TargetId, Emitter>> = {
  wgsl: (loop, options) => ({ source: emitWgsl(loop, options) }),
  cuda: (loop) => emitCuda(loop),
  wasm: (loop, options) => {
    const { bytes, ...needs } = emitWasm(loop, options);
    return { source: base64(bytes), ...needs, ...(isSerial(loop) && { serial: true }) };
  },
  interpreter: (loop) => {
    throw new CompilerBug('emit', `${loop.name}: the interpreter runs graphs, not kernels`);
  },
};

/** Bytes as text. */
function base64(bytes: Uint8Array): string {
  let letters = '';
  // As many arguments at a time as every engine takes.
  for (let i = 0; i < bytes.length; i += 4096) letters += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(letters);
}

/** The emitter of a target's language. */
export function emitterOf(target: TargetId): Emitter {
  return emitters[target];
}
