// Keys: seeds of random numbers as values (u32, [2]), as in JAX. What a function draws inside of
// `withKey` depends on the key alone, so it is the same eagerly, compiled, and at every call. New
// keys are words of Philox at counts that draws never reach (Salmon et al., 2011: words of one seed
// at different counts are independent).

import { showValue, TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { cast, reshape } from '../../../ir/build.ts';
import type { Node } from '../../../ir/graph.ts';
import { aTensor, expectSynchronous } from '../../expect.ts';
import { drawingBy, keyedWords, split } from '../../generator.ts';
import { checkInteger, show } from '../operand.ts';
import { fromHost, record } from '../../record.ts';
import { handleOf, Tensor } from '../../tensor.ts';

/** The upper words of the counts that new keys are made at; draws would reach them after 2⁶⁴ numbers. */
const SPLITTING = 0x8000_0000;
const FOLDING = 0x4000_0000;

/**
 * The key (u32, [2]) of a seed, an integer modulo 2⁶⁴: draws by it are those of a generator that
 * `manualSeed` has just given the seed.
 *
 * @jax jax.random.key
 */
export function key(seed: number | bigint): Tensor<'u32'> {
  if (typeof seed !== 'bigint' && !Number.isSafeInteger(seed))
    throw new TensorError('E_VALUE', 'key', `expects an integer, got ${showValue(seed)}`);
  return fromHost(Uint32Array.from(split(BigInt.asUintN(64, BigInt(seed)))), [2], 'u32') as Tensor<'u32'>;
}

function checkKey(op: string, value: Tensor): void {
  if (value.dtype === 'u32' && value.rank === 1 && value.size === 2) return;
  const problem = `expects a key, u32 [2]: ${show(value)}`;
  throw new TensorError('E_SHAPE', op, problem, 'key(seed), or a row of what splitKey gives');
}

const takesSplitKey = arg.takes<typeof splitKey>(
  ['the key', aTensor],
  ['the count', arg.optional(arg.count(1))],
);

/**
 * `count` new keys (u32, [count, 2]), independent of each other and of what the key itself draws.
 *
 * @jax jax.random.split
 */
export function splitKey(key: Tensor, count = 2): Tensor<'u32'> {
  takesSplitKey('splitKey', key, count);
  checkKey('splitKey', key);
  return record(
    [key],
    (b, [node]) => b.add('randomBits', keyedWords(b, node!, [0, SPLITTING]), { shape: [count, 2] }) as Node,
  ) as Tensor<'u32'>;
}

const word = arg.kind(
  'an integer in [0, 2³²)',
  (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 32,
);
const takesFoldIn = arg.takes<typeof foldIn>(
  ['the key', aTensor],
  ['the number', arg.either<Tensor, number>(aTensor, word as arg.Kind<number>)],
);

/**
 * The new key of a key and a number: of a step, of a layer. The number is an integer in [0, 2³²), or
 * an integer tensor of one element, which is taken modulo 2³².
 *
 * @jax jax.random.fold_in
 */
export function foldIn(key: Tensor, number: number | Tensor): Tensor<'u32'> {
  takesFoldIn('foldIn', key, number);
  checkKey('foldIn', key);
  const shape = [2];
  if (!(number instanceof Tensor)) {
    return record(
      [key],
      (b, [node]) => b.add('randomBits', keyedWords(b, node!, [number, FOLDING]), { shape }) as Node,
    ) as Tensor<'u32'>;
  }
  checkInteger('foldIn', 'the number', number);
  if (number.size !== 1)
    throw new TensorError('E_SHAPE', 'foldIn', `the number must be one element: ${show(number)}`);
  return record([key, number], (b, [node, places]) => {
    const low = reshape(b, cast(b, places!, 'u32'), []);
    return b.add('randomBits', keyedWords(b, node!, [low, FOLDING]), { shape }) as Node;
  }) as Tensor<'u32'>;
}

/** Runs a draw by its own key, where it has one. @internal */
export function drawnBy<T>(op: string, key: Tensor | undefined, draw: () => T): T {
  if (key === undefined) return draw();
  checkKey(op, key);
  return drawingBy(handleOf(key), draw);
}

const takesWithKey = arg.takes<typeof withKey>(['the key', aTensor], ['the function', arg.callable()]);

/**
 * Runs a function whose draws, of whatever kind, are made by this key: `rand`, dropout in layers,
 * samples of distributions. The same key gives the same numbers, and the generator stays where it
 * is. Throws E_STATE where a function compiled elsewhere draws inside.
 */
export function withKey<T>(key: Tensor, fn: () => T): T {
  takesWithKey('withKey', key, fn);
  checkKey('withKey', key);
  const result = drawingBy(handleOf(key), fn);
  expectSynchronous('withKey', result);
  return result;
}
