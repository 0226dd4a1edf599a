// The random generator: a seed and a counter of Philox 4x32-10 (Salmon et al., 2011). A draw of n
// elements takes ⌈n/4⌉ counts when it is recorded, so neither laziness nor dead code changes what
// later draws give. Inside a compiled function the words become run-time scalars, supplied anew at
// each call. Inside of `withKey` (keys.ts) a tensor is the seed, and counts start from 0 there.

import { showValue, TensorError } from '../errors.ts';
import { madeNumber, reshape } from '../ir/build.ts';
import type { GraphBuilder, Node } from '../ir/graph.ts';
import type { Handle, MappingScope, RandomWords, TraceScope } from './handle/handle.ts';
import { builder, currentMapping, currentTrace, nodeFor } from './handle/recording.ts';
import { SessionPart } from './session.ts';

/** A snapshot of the generator; JSON-serialisable. */
export interface RngState {
  /** Decimal, 0 ≤ seed < 2⁶⁴. */
  readonly seed: string;
  /** Groups of four words drawn so far; decimal, 0 ≤ counter < 2⁶⁴. */
  readonly counter: string;
}

/** A tensor of two words that draws take the place of the seed from, and how far they have come. */
interface Keyed {
  readonly key: Handle;
  /** Functions that are traced inside draw by the generator's rules: they outlive the key. */
  readonly trace: TraceScope | undefined;
  /** The function that was being mapped where the key came into use. */
  readonly mapping: MappingScope | undefined;
  counter: bigint;
}

interface Generator {
  seed: bigint;
  counter: bigint;
  /** The key of the `withKey` that code runs in, if there is one. */
  keyed: Keyed | undefined;
}

const generator = new SessionPart((): Generator => ({ seed: entropy(), counter: 0n, keyed: undefined }));

/** A start that differs from session to session. */
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
  const { current } = generator;
  current.seed = BigInt.asUintN(64, BigInt(value));
  current.counter = 0n;
}

/** The generator's state, for `restoreRngState`. */
export function saveRngState(): RngState {
  const { seed, counter } = generator.current;
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
  const [seed, counter] = [word('seed'), word('counter')];
  Object.assign(generator.current, { seed, counter });
}

/** The key that draws are made by here. */
function currentKey(): Keyed | undefined {
  const { keyed } = generator.current;
  return keyed?.trace === currentTrace() ? keyed : undefined;
}

/** Whether what is recorded now draws by a key. */
export function isDrawingByKey(): boolean {
  return currentKey() !== undefined;
}

/** Runs `fn` with draws by this key (u32, [2]) from count 0 on, whatever the generator's state. */
export function drawingBy<T>(key: Handle, fn: () => T): T {
  const { current } = generator;
  const before = current.keyed;
  current.keyed = { key, trace: currentTrace(), mapping: currentMapping(), counter: 0n };
  try {
    return fn();
  } finally {
    current.keyed = before;
  }
}

/** The words for a draw of `n` elements; advances the generator, or the count of the key in use. */
export function drawCounter(n: number): RandomWords {
  const groups = BigInt(Math.ceil(n / 4));
  const mapping = currentMapping();
  const own = currentKey();
  // The innermost says: a key inside of a function that is mapped, or that around its key.
  if (mapping !== undefined && own?.mapping !== mapping) return mapping.draw(n);
  if (own !== undefined) {
    const at = own.counter;
    own.counter += groups;
    return keyedWords(builder(), nodeFor(own.key), split(at));
  }
  const trace = currentTrace();
  if (trace !== undefined) return trace.draw(groups);
  const at = takeCounts(groups);
  const [low, high] = split(currentSeed());
  const [atLow, atHigh] = split(at);
  return [
    madeNumber(low, 'u32', 'low word of the seed'),
    madeNumber(high, 'u32', 'high word of the seed'),
    madeNumber(atLow, 'u32', 'low word of the count'),
    madeNumber(atHigh, 'u32', 'high word of the count'),
  ];
}

/** The words of a key (u32, [2]) at a count. */
export function keyedWords(
  b: GraphBuilder,
  key: Node,
  [low, high]: readonly [low: number | Node, high: number],
): RandomWords {
  const word = (at: number): Node =>
    reshape(b, b.add('slice', [key], { start: [at], size: [1], step: [1] }) as Node, []);
  const lowWord = typeof low === 'number' ? constantWord(b, low) : low;
  return [word(0), word(1), lowWord, constantWord(b, high)];
}

function constantWord(b: GraphBuilder, value: number): Node {
  return b.add('constant', [], { value, dtype: 'u32' }) as Node;
}

/**
 * The count at which a compiled function draws so many groups. Throws E_STATE inside of `withKey`:
 * its draws are by the generator.
 */
export function takeCompiledCounts(groups: bigint): bigint {
  if (groups > 0n && currentKey() !== undefined) {
    const problem = 'a compiled function draws by the generator, not by the key of a withKey around it';
    const hint = 'compile((key, …) => withKey(key, () => …)), and give the key at each call';
    throw new TensorError('E_STATE', 'withKey', problem, hint);
  }
  return takeCounts(groups);
}

/** Advances the counter; gives where it was. */
export function takeCounts(groups: bigint): bigint {
  const { current } = generator;
  const at = current.counter;
  current.counter = BigInt.asUintN(64, at + groups);
  return at;
}

export function currentSeed(): bigint {
  return generator.current.seed;
}

/** Low and high 32 bits. */
export function split(value: bigint): [number, number] {
  return [Number(BigInt.asUintN(32, value)), Number(BigInt.asUintN(32, value >> 32n))];
}
