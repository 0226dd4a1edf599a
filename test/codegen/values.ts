// Random arguments for tests of generated code. The seed is printed by property.ts and can be set with SINTER_SEED.

import { seed } from '../support/property.ts';

let state = seed >>> 0;

/** Begins the sequence anew. */
export function restartValues(): void {
  state = seed >>> 0;
}

/** A pseudo-random integer in [0, end). A linear congruence is random enough for arguments. */
export function randomInt(end: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  const high = state >>> 8;
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor(((high * 2 ** 24 + (state >>> 8)) / 2 ** 48) * end);
}

/** A pseudo-random number in [0, 1). */
export function randomUnit(): number {
  return randomInt(2 ** 24) / 2 ** 24;
}

const word = new Uint32Array(1);
const real = new Float32Array(word.buffer);

/** Any f32, infinities and NaN included, small exponents as likely as large ones. */
export function randomReal(): number {
  word[0] = randomInt(2 ** 32);
  return real[0]!;
}
