// What a bundle asks of a device: memory that stays where it is, and programs bound to it once.

import type { BundledProgram } from './manifest.ts';

/** Bytes from `offset` on in memory of a machine. */
export interface ByteLocation<M> {
  readonly memory: M;
  readonly offset: number;
}

export interface Copy<M> {
  readonly from: ByteLocation<M>;
  readonly to: ByteLocation<M>;
  readonly bytes: number;
}

/** A program, and where it lies. */
export interface Binding<M> {
  readonly program: BundledProgram;
  /** The bytes of a file of the bundle: a kernel's source, or its module. */
  readonly read: (file: string) => Promise<Uint8Array<ArrayBuffer>>;
  /** Where each buffer of the program lies. */
  readonly placeOf: (buffer: number) => ByteLocation<M>;
  /** What is copied before the first step and after the last. */
  readonly before: readonly Copy<M>[];
  readonly after: readonly Copy<M>[];
}

/**
 * Runs a program: `words` are its scalars from outside. Gives the bytes at the places asked for, as
 * they are after the run.
 */
export type RunProgram<M> = (
  words: Int32Array<ArrayBuffer>,
  wanted: readonly { readonly place: ByteLocation<M>; readonly bytes: number }[],
) => Promise<Uint8Array[]>;

export interface Machine<M> {
  readonly description: string;
  /** Memory full of zeros, a multiple of 4 bytes. */
  allocate(bytes: number): M;
  /** The number of bytes and the offset are multiples of 4. */
  write(place: ByteLocation<M>, bytes: Uint8Array): void;
  read(place: ByteLocation<M>, bytes: number): Promise<Uint8Array>;
  /** Makes a program ready; nothing is compiled after that. */
  prepare(binding: Binding<M>): Promise<RunProgram<M>>;
  dispose(): void;
}
