// Bytes of a file that are read in pieces, and the errors if they cannot be read.

import { SinterError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';

/** What ends a piece of work early. */
export const aSignal: arg.Kind<AbortSignal> = arg.kind(
  'an AbortSignal',
  (value) => value instanceof AbortSignal,
);

/** Bytes at a place, read by pieces. */
export interface ByteSource {
  /** What messages call it by. */
  readonly name: string;
  /** Bytes in all. */
  readonly size: number;
  /**
   * The bytes from `begin` up to `end`, exactly; both lie within `size`. They may share memory with the
   * source and must not be changed.
   */
  read(begin: number, end: number, signal?: AbortSignal): Promise<Uint8Array>;
  /** Gives back what the source holds; nothing can be read afterwards. */
  close(): Promise<void>;
}

/** What a place gives; E_IO where that fails. */
export async function unbroken<T>(op: string, name: string, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (cause) {
    if (cause instanceof SinterError || isAbort(cause)) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SinterError('E_IO', `${op}: ${name}: ${reason}`, { cause });
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError');
}

/** The bytes, if they are as many as were asked for; E_IO else. */
export function complete(
  op: string,
  name: string,
  begin: number,
  end: number,
  bytes: Uint8Array,
): Uint8Array {
  if (bytes.length === end - begin) return bytes;
  const problem = `bytes ${begin} to ${end} were asked for, ${bytes.length} of ${end - begin} came`;
  throw new SinterError('E_IO', `${op}: ${name}: ${problem}`);
}
