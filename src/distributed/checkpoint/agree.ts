// What ranks tell each other of a save or a load, so that it succeeds on all of them or on none.

import { SinterError, type ErrorCode } from '../../errors.ts';
import { collectiveError } from '../call.ts';
import type { World } from '../world.ts';

/** Bytes that a rank says. */
const wordsBytes = 4096;

interface Words {
  /** What has gone wrong on the rank. */
  readonly problem?: { readonly code: ErrorCode; readonly message: string };
  readonly note: string;
}

/** What a rank has come to, before it tells it. */
export type Outcome<T> = { readonly value: T } | { readonly error: unknown };

export async function outcomeOf<T>(work: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    return { error };
  }
}

/**
 * Waits for all ranks. Gives what this one has come to, and the notes of all, in their order. Throws where it failed on any of them: its own error
 * here, and elsewhere one that names the rank.
 */
export function agree<T>(
  world: World,
  op: string,
  outcome: Outcome<T>,
  note: string,
): { readonly value: T; readonly notes: readonly string[] } {
  const { communicator, size } = world;
  const all = new Uint8Array(wordsBytes * size);
  const group = Array.from({ length: size }, (_, rank) => rank);
  try {
    communicator.run({ action: { kind: 'allGather' }, dtype: 'u8', group }, encoded(op, outcome, note), all);
  } catch (error) {
    // The others are told of this one's error, and it is what caused that the collective failed.
    throw 'error' in outcome ? outcome.error : error;
  }
  if ('error' in outcome) throw outcome.error;
  const words = group.map((rank) => decoded(all.subarray(rank * wordsBytes, (rank + 1) * wordsBytes)));
  for (const [rank, { problem }] of words.entries())
    if (problem !== undefined)
      throw new SinterError(problem.code, `${op}: on rank ${rank}: ${problem.message}`);
  return { value: outcome.value, notes: words.map(({ note: said }) => said) };
}

/** Throws E_COLLECTIVE where ranks have said different things. */
export function expectSame(world: World, op: string, notes: readonly string[], problem: string): void {
  const other = notes.findIndex((note) => note !== notes[0]);
  if (other > 0)
    throw collectiveError(
      world.engine,
      `${op}: rank ${other} ${problem} than rank 0`,
      'the same calls on all ranks',
    );
}

function encoded(op: string, outcome: Outcome<unknown>, note: string): Uint8Array {
  const words: Words = 'error' in outcome ? { problem: problemOf(op, outcome.error), note } : { note };
  const bytes = new Uint8Array(wordsBytes).fill(0x20);
  bytes.set(new TextEncoder().encode(JSON.stringify(words)).subarray(0, wordsBytes));
  return bytes;
}

function decoded(bytes: Uint8Array): Words {
  return JSON.parse(new TextDecoder().decode(bytes.slice())) as Words;
}

/** An error in words short enough to be sent, whatever its characters. */
function problemOf(op: string, error: unknown): NonNullable<Words['problem']> {
  const code = error instanceof SinterError ? error.code : 'E_WORKER';
  const message = error instanceof Error ? error.message : String(error);
  return { code, message: message.replace(`${op}: `, '').slice(0, 600) };
}
