// The random generator: a seed and a counter of Philox 4x32-10 (Salmon et al., 2011). A draw of n
// elements takes ⌈n/4⌉ counts when it is recorded, so neither laziness nor dead code changes what
// later draws give. Inside a compiled function the words become run-time scalars, supplied anew at
// each call.

import { showValue, TensorError } from '../errors.ts';
import type { Node } from '../ir/graph.ts';
import type { RandomWords } from './recording/handle.ts';
import { builder, currentTrace } from './recording/recording.ts';

/** A snapshot of the generator; JSON-serialisable. */
export interface RngState {
  /** Decimal, 0 ≤ seed < 2⁶⁴. */
  readonly seed: string;
  /** Groups of four words drawn so far; decimal, 0 ≤ counter < 2⁶⁴. */
  readonly counter: string;
}

let seed = entropy();
let counter = 0n;

/** A start that differs from process to process. */
function entropy(): bigint {
  const words = crypto.getRandomValues(new Uint32Array(2));
  return (BigInt(words[0]!) << 32n) | BigInt(words[1]!);
}

/**
 * Seeds the generator: the same seed gives the same numbers, on every device. Integers are taken
 * modulo 2⁶⁴.
 */
export function manualSeed(value: number | bigint): void {
  if (typeof value !== 'bigint' && !Number.isSafeInteger(value)) {
    throw new TensorError('E_VALUE', 'manualSeed', `expects an integer, got ${showValue(value)}`);
  }
  seed = BigInt.asUintN(64, BigInt(value));
  counter = 0n;
}

/** The generator's state, for `restoreRngState`. */
export function saveRngState(): RngState {
  return { seed: String(seed), counter: String(counter) };
}

/**
 * Goes back to a saved state: what is drawn next repeats what was drawn then. Throws E_VALUE on
 * anything else.
 */
export function restoreRngState(state: RngState): void {
  const word = (name: 'seed' | 'counter'): bigint => {
    const text = String((state as { [key in typeof name]?: unknown } | undefined)?.[name]);
    if (/^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n) return BigInt(text);
    throw new TensorError('E_VALUE', 'restoreRngState', `${name} is no 64-bit unsigned integer: ${text}`);
  };
  [seed, counter] = [word('seed'), word('counter')];
}

/** The words for a draw of `n` elements; advances the generator. */
export function drawCounter(n: number): RandomWords {
  const groups = BigInt(Math.ceil(n / 4));
  const trace = currentTrace();
  if (trace !== undefined) return trace.draw(groups);
  const at = takeCounts(groups);
  const words = [...split(seed), ...split(at)];
  const b = builder();
  return words.map(
    (value) => b.add('constant', [], { value, dtype: 'u32' }) as Node,
  ) as unknown as RandomWords;
}

/** Advances the counter; gives where it was. */
export function takeCounts(groups: bigint): bigint {
  const at = counter;
  counter = BigInt.asUintN(64, counter + groups);
  return at;
}

export function currentSeed(): bigint {
  return seed;
}

/** Low and high 32 bits. */
export function split(value: bigint): [number, number] {
  return [Number(BigInt.asUintN(32, value)), Number(BigInt.asUintN(32, value >> 32n))];
}
