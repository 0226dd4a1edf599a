// Which language a target's kernels are written in: the one table from targets to emitters. Each is a chunk of its own: a page loads that of its device.

import { CompilerBug } from '../../errors.ts';
import { Slot } from '../../slot.ts';
import type { ProgramTileMap, TargetId } from '../../runtime/program.ts';
import type { emitC } from './c/emit.ts';
import type { emitCuda } from './cuda/emit.ts';
import type { Loop } from '../loop/loop.ts';
import type { emitWasm } from './wasm/emit.ts';
import type { emitWgsl } from './wgsl/emit.ts';

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
 * not every machine has; lanes of f32 in a register.
 */
interface EmitOptions {
  readonly scalarSlots: number;
  readonly relaxedSimd?: boolean;
  readonly lanes?: 4 | 8 | 16;
}

export type EmitLoop = (loop: Loop, options: EmitOptions) => Emitted;

/** The writers of each language; the interpreter runs graphs. */
export type Languages = {
  readonly wgsl: Slot<typeof emitWgsl>;
  readonly cuda: Slot<typeof emitCuda>;
  readonly wasm: Slot<typeof emitWasm>;
  readonly c: Slot<typeof emitC>;
};

export const languages: Languages = {
  wgsl: new Slot('the emitter of WGSL'),
  cuda: new Slot('the emitter of CUDA C'),
  wasm: new Slot('the emitter of WebAssembly'),
  c: new Slot('the emitter of C'),
};

const emitters: Readonly<Record<TargetId, EmitLoop>> = {
  wgsl: (loop, options) => ({ source: languages.wgsl.value(loop, options) }),
  cuda: (loop) => languages.cuda.value(loop),
  wasm: (loop, options) => {
    const { bytes, ...needs } = languages.wasm.value(loop, options);
    return { source: base64(bytes), ...needs };
  },
  c: (loop, options) => languages.c.value(loop, options),
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
export function emitterOf(target: TargetId): EmitLoop {
  return emitters[target];
}
