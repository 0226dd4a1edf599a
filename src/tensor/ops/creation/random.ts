// Random tensors. The generator (generator.ts) advances by ⌈n/4⌉ counts when a draw of n elements
// is recorded, whatever becomes of it, so neither laziness nor fusion changes what later draws
// give.

import { TensorError } from '../../../errors.ts';
import { add, binary, broadcast, cast, fullLike, mul, reduce, unary, where } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { integerRange, isFloat, isInexact, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { toShape } from '../../../ir/shape.ts';
import { watch } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import { drawnBy } from './keys.ts';
import { record } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { createOptions, type CreateOptions } from './creation.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkFloat, show } from '../operand.ts';
import { digitsOf, words, dropoutOf, normalOf, gumbelOf, uniformOf } from '../../formula/noise.ts';
import { sliceAxis } from '../../formula/layout.ts';

/** By what a draw is made. @internal */
export interface KeyOption {
  /** A key (see `key`): the numbers depend on it alone, and the generator stays where it is. */
  readonly key?: Tensor;
}

/** @internal */
export interface DrawOptions<T extends DType = DType> extends CreateOptions<T>, KeyOption {}

const keyOption: arg.Table<KeyOption> = { key: aTensor };
const drawOptions: arg.Table<DrawOptions> = { ...createOptions, ...keyOption };

function floatType(op: string, options: CreateOptions): DType {
  const dtype = options.dtype ?? 'f32';
  if (!isFloat(dtype))
    throw new TensorError('E_DTYPE', op, `${dtype} has no fractions`, 'a float dtype, or randint');
  return dtype;
}

const takesRand = arg.takes<typeof rand>(
  ['the shape', arg.inside()],
  ['options', arg.options<DrawOptions>(drawOptions)],
);

/**
 * Uniform in [0, 1).
 *
 * @jax jax.random.uniform
 * @example
 * sn.rand([3], { dtype: 'f32' });
 */
export function rand<T extends DType = 'f32'>(
  shape: readonly number[],
  options: DrawOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesRand('rand', shape, options);
  const to = toShape('rand', shape);
  const dtype = floatType('rand', options);
  return drawnBy('rand', options.key, () => record([], (b) => uniformOf(b, to, dtype)));
}

/**
 * Normal with mean 0 and variance 1.
 *
 * @jax jax.random.normal
 * @example
 * sn.randn([3], { dtype: 'f32' });
 */
export function randn<T extends DType = 'f32'>(
  shape: readonly number[],
  options: DrawOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesRand('randn', shape, options);
  const to = toShape('randn', shape);
  const dtype = floatType('randn', options);
  return drawnBy('randn', options.key, () => record([], (b) => normalOf(b, to, dtype)));
}

const takesRandLike = arg.takes<typeof randLike>(
  ['the operand', aTensor],
  ['options', arg.options<DrawOptions>(drawOptions)],
);

/**
 * Uniform in [0, 1), in x's shape and dtype.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.randLike(x);
 */
export function randLike<D extends DType, T extends DType = D>(
  x: Tensor<D>,
  options: DrawOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesRandLike('randLike', x, options);
  const dtype = floatType('randLike', { dtype: options.dtype ?? x.dtype });
  return drawnBy('randLike', options.key, () => record([], (b) => uniformOf(b, x.shape, dtype)));
}

/**
 * Normal with mean 0 and variance 1, in x's shape and dtype.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.randnLike(x);
 */
export function randnLike<D extends DType, T extends DType = D>(
  x: Tensor<D>,
  options: DrawOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesRandLike('randnLike', x, options);
  const dtype = floatType('randnLike', { dtype: options.dtype ?? x.dtype });
  return drawnBy('randnLike', options.key, () => record([], (b) => normalOf(b, x.shape, dtype)));
}

export interface UniformOptions<T extends DType = DType> extends DrawOptions<T> {
  /** 0 by default. */
  readonly low?: number;
  /** 1 by default; itself excluded. */
  readonly high?: number;
}

const takesUniform = arg.takes<typeof uniform>(
  ['the shape', arg.inside()],
  ['options', arg.options<UniformOptions>({ ...drawOptions, low: arg.finite, high: arg.finite })],
);

/**
 * Uniform in [low, high).
 *
 * @jax jax.random.uniform
 * @example
 * sn.uniform([3], { dtype: 'f32' });
 */
export function uniform<T extends DType = 'f32'>(
  shape: readonly number[],
  options: UniformOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesUniform('uniform', shape, options);
  const { low = 0, high = 1 } = options;
  const to = toShape('uniform', shape);
  const dtype = floatType('uniform', options);
  return drawnBy('uniform', options.key, () =>
    record([], (b) => {
      const unit = uniformOf(b, to, formula.wideType(dtype));
      const drawn = cast(b, add(b, mul(b, unit, high - low), low), dtype);
      // Rounding may give the end, but for the 24 bits of a draw in f64: the number before it is the most.
      const most = high - Math.abs(high) * 1.25 * 2 ** -digitsOf(dtype);
      return dtype === 'f64' || most < low ? drawn : binary(b, 'min', drawn, most);
    }),
  );
}

export interface NormalOptions<T extends DType = DType> extends DrawOptions<T> {
  /** The mean; 0 by default. */
  readonly mean?: number;
  /** The standard deviation; 1 by default. */
  readonly std?: number;
}

const takesNormal = arg.takes<typeof normal>(
  ['the shape', arg.inside()],
  ['options', arg.options<NormalOptions>({ ...drawOptions, mean: arg.finite, std: arg.notNegative })],
);

/**
 * Normal with the given mean and standard deviation (0 and 1 by default).
 *
 * @jax jax.random.normal
 * @example
 * sn.normal([3], { dtype: 'f32' });
 */
export function normal<T extends DType = 'f32'>(
  shape: readonly number[],
  options: NormalOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesNormal('normal', shape, options);
  const { mean = 0, std = 1 } = options;
  const to = toShape('normal', shape);
  const dtype = floatType('normal', options);
  return drawnBy('normal', options.key, () =>
    record([], (b) => {
      const standard = normalOf(b, to, formula.wideType(dtype));
      return cast(b, add(b, mul(b, standard, std), mean), dtype);
    }),
  );
}

const takesRandint = arg.takes<typeof randint>(
  ['low', arg.integer],
  ['high', arg.integer],
  ['the shape', arg.inside()],
  ['options', arg.options<DrawOptions>(drawOptions)],
);

/**
 * Whole numbers in [low, high), i32 by default: the upper half of word · (high − low), as Lemire
 * (2019).
 *
 * @jax jax.random.randint
 * @example
 * sn.randint(0, 2, [3], { dtype: 'f32' });
 */
export function randint(
  low: number,
  high: number,
  shape: readonly number[],
  options: DrawOptions = {},
): Tensor {
  takesRandint('randint', low, high, shape, options);
  const to = toShape('randint', shape);
  const range = high - low;
  const inside = Number.isInteger(low) && low >= -(2 ** 31) && high <= 2 ** 32;
  if (!inside || !Number.isInteger(range) || range < 1 || range > 2 ** 32) {
    throw new TensorError('E_VALUE', 'randint', `[${low}, ${high}) holds no 32-bit integers`);
  }
  const { dtype = 'i32' } = options;
  const [least, most] = integerRange(dtype);
  if (!isInexact(dtype) && (low < least || high - 1 > most)) {
    const problem = `${dtype} does not hold all integers of [${low}, ${high})`;
    throw new TensorError('E_VALUE', 'randint', problem, "{ dtype: 'i64' }, which holds all of 32 bits");
  }
  return drawnBy('randint', options.key, () =>
    record([], (b) => {
      const bits = words(b, to);
      const below = range === 2 ** 32 ? bits : binary(b, 'mulhi', bits, range);
      if (low >= 0) return cast(b, add(b, below, low), dtype);
      return cast(b, add(b, cast(b, below, high > 2 ** 31 ? 'i64' : 'i32'), low), dtype);
    }),
  );
}

const takesRandperm = arg.takes<typeof randperm>(
  ['n', arg.count(0)],
  ['options', arg.options<KeyOption>(keyOption)],
);

/**
 * 0 … n−1 in random order (i32): a sort of as many random words.
 *
 * @jax jax.random.permutation
 * @example
 * sn.randperm(4);
 */
export function randperm(n: number, options: KeyOption = {}): Tensor<'i32'> {
  takesRandperm('randperm', n, options);
  return drawnBy('randperm', options.key, () =>
    record([], (b) => formula.orderOf(b, words(b, [n]), 0, false)),
  );
}

const takesBernoulli = arg.takes<typeof bernoulli>(
  ['the operand', aTensor],
  ['options', arg.options<KeyOption>(keyOption)],
);

/**
 * 1 with the probability that the element gives, else 0.
 *
 * @jax jax.random.bernoulli
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * sn.bernoulli(p);
 */
export function bernoulli<D extends DType>(x: Tensor<D>, options: KeyOption = {}): Tensor<D> {
  takesBernoulli('bernoulli', x, options);
  checkFloat('bernoulli', x);
  watch(
    'bernoulli',
    'E_VALUE',
    [x],
    (b, [node]) => {
      const axes = x.shape.map((_, axis) => axis);
      return [reduce(b, 'min', node!, axes), reduce(b, 'max', node!, axes)];
    },
    ([low, high]) =>
      low! >= 0 && high! <= 1 ? undefined : `probabilities must be in [0, 1]: ${low! >= 0 ? high : low}`,
  );
  return drawnBy('bernoulli', options.key, () =>
    apply([x], (b, p) => {
      const compute = formula.wideType(x.dtype);
      return cast(b, binary(b, 'lt', uniformOf(b, x.shape, compute), cast(b, p, compute)), x.dtype);
    }),
  );
}

export interface DropoutOptions {
  /** Without training x stays as it is; true by default. */
  readonly training?: boolean;
}

export interface SeededDropoutOptions extends DropoutOptions, KeyOption {
  /**
   * An integer in [0, 2³²) that decides the mask by itself: the same seed zeroes the same elements,
   * and the generator stays where it is; by default the generator decides.
   */
  readonly seed?: number;
}

const seedOf32: arg.Kind<number> = arg.kind(
  'an integer in [0, 2³²)',
  (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 32,
);

const takesDropout = arg.takes<typeof dropout>(
  ['the operand', aTensor],
  ['p', arg.optional(arg.share)],
  ['options', arg.options<SeededDropoutOptions>({ training: arg.flag, seed: seedOf32, ...keyOption })],
);

/**
 * Zeroes each element with probability `p` and scales the others by 1 / (1 − p) (Srivastava et al.,
 * 2014).
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.dropout(x, 0.5);
 * @example <caption>seed</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.dropout(x, 0.5, { seed: 3 });
 */
export function dropout<D extends DType>(
  x: Tensor<D>,
  p = 0.5,
  options: SeededDropoutOptions = {},
): Tensor<D> {
  takesDropout('dropout', x, p, options);
  checkFloat('dropout', x);
  if (options.seed !== undefined && options.key !== undefined)
    throw new TensorError('E_VALUE', 'dropout', 'the mask is decided by a seed or by a key, not by both');
  if (options.training === false || p === 0) return x;
  return drawnBy('dropout', options.key, () => apply([x], (b, node) => dropoutOf(b, node, p, options.seed)));
}

export interface MultinomialOptions extends KeyOption {
  /** Draws one after another from the same weights; false (all different) by default. */
  readonly replacement?: boolean;
}

const takesMultinomial = arg.takes<typeof multinomial>(
  ['the weights', aTensor],
  ['the count', arg.count(1)],
  ['options', arg.options<MultinomialOptions>({ replacement: arg.flag, ...keyOption })],
);

/**
 * `count` positions of the last axis (i32) drawn by weights that need not add up to 1. With
 * replacement a draw is where the running sum of weights passes a uniform number; without, the
 * largest of log weight + Gumbel noise win.
 *
 * @jax jax.random.choice
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * sn.multinomial(p, 2);
 */
export function multinomial(weights: Tensor, count: number, options: MultinomialOptions = {}): Tensor<'i32'> {
  takesMultinomial('multinomial', weights, count, options);
  const op = 'multinomial';
  checkFloat(op, weights);
  if (weights.rank === 0 || weights.shape.at(-1) === 0)
    throw new TensorError('E_SHAPE', op, `expects weights: ${show(weights)}`);
  const size = weights.shape.at(-1)!;
  const last = weights.rank - 1;
  if (options.replacement !== true && count > size) {
    throw new TensorError(
      'E_VALUE',
      op,
      `cannot draw ${count} different ones of ${size}`,
      '{ replacement: true }',
    );
  }
  watch(
    op,
    'E_VALUE',
    [weights],
    (b, [node]) => {
      const all = weights.shape.map((_, axis) => axis);
      const sums = reduce(b, 'sum', cast(b, node!, formula.wideType(weights.dtype)), [last]);
      const lowest = reduce(b, 'min', cast(b, node!, sums.dtype), all);
      return [lowest, reduce(b, 'min', sums, all.slice(0, -1)), reduce(b, 'max', sums, all.slice(0, -1))];
    },
    ([lowest, low, high]) => {
      if (!(lowest! >= 0)) return `weights must not be negative or NaN: ${lowest}`;
      if (high === Infinity) return 'weights must be finite, and so must be their sum';
      return low! > 0 ? undefined : 'the weights of a row are all 0';
    },
  );
  const lead = weights.shape.slice(0, -1);
  return drawnBy('multinomial', options.key, () =>
    apply([weights], (b, node) => {
      const wide = formula.stopGradient(b, cast(b, node, formula.wideType(weights.dtype)));
      if (options.replacement === true) return cumulativeDraw(b, wide, [...lead, count]);
      const noise = gumbelOf(b, weights.shape, wide.dtype);
      const order = formula.orderOf(b, add(b, unary(b, 'log', wide), noise), last, true);
      return sliceAxis(b, order, last, 0, count);
    }),
  );
}

/** How many running sums each uniform number has reached: [.., count] from weights [.., n]. */
function cumulativeDraw(b: GraphBuilder, weights: Node, shape: readonly number[]): Node {
  const from = dims(weights);
  const [last, size] = [from.length - 1, from.at(-1)!];
  const running = (x: Node, monoid: 'sum' | 'max'): Node =>
    b.add('scan', [x], { monoid, axis: last, reverse: false, exclusive: false }) as Node;
  // Sums are made of parts, between which rounding may raise them where a weight is 0: only weights above 0 raise these.
  const none = fullLike(b, weights, 0);
  const sums = running(where(b, binary(b, 'lt', none, weights), running(weights, 'sum'), none), 'max');
  const total = sliceAxis(b, sums, last, size - 1, 1);
  const goal = mul(b, uniformOf(b, shape, weights.dtype), broadcast(b, total, shape));
  const place = b.add('searchSorted', [sums, goal], { right: true }) as Node;
  return binary(b, 'min', place, size - 1);
}
