// Automatic mixed precision (Micikevicius et al., 2018), by PyTorch's lists: inside of a scope,
// products and convolutions take operands of 16 bits, and what needs range or many terms (powers,
// softmax, norms, sums, losses) takes 16-bit operands as f32. An operation asks for its type by its
// name; f64, integers and complex numbers are left alone, and everything else promotes as ever. The
// casts are nodes: equal ones are one, and gradients come back in the dtype of the parameter.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import type { DType } from '../ir/dtype.ts';
import { expectSynchronous } from './expect.ts';
import { currentSession } from './session.ts';

/** The 16-bit dtype of products. */
export type AutocastType = 'f16' | 'bf16';

/** The dtype of products now; undefined outside of scopes. */
export function autocastType(): AutocastType | undefined {
  return currentSession().autocast;
}

const narrow: ReadonlySet<string> = new Set(
  [
    'addbmm addmm addmv addr baddbmm bmm einsum linear matmul mm mv prelu scaledDotProductAttention cell',
    'conv1d conv2d conv3d convTranspose1d convTranspose2d convTranspose3d',
  ].flatMap((names) => names.split(' ')),
);

const wide: ReadonlySet<string> = new Set(
  [
    'acos asin cosh sinh tan erfinv exp expm1 log log10 log1p log2 pow reciprocal rsqrt softplus',
    'cumprod cumsum prod sum norm renorm normalize cdist dist pdist cosineSimilarity',
    'layerNorm groupNorm softmax logSoftmax softmin',
    'bceWithLogits cosineEmbeddingLoss crossEntropy gaussianNllLoss hingeEmbeddingLoss huberLoss klDiv',
    'l1Loss marginRankingLoss mseLoss multilabelMarginLoss multilabelSoftMarginLoss multiMarginLoss',
    'nllLoss poissonNllLoss smoothL1Loss softMarginLoss tripletMarginLoss ctcLoss',
  ].flatMap((names) => names.split(' ')),
);

/** The dtype that an operation takes operands of this common dtype in. */
export function castedType(op: string, dtype: DType): DType {
  const { autocast: chosen } = currentSession();
  if (chosen === undefined) return dtype;
  const isHalf = dtype === 'f16' || dtype === 'bf16';
  if ((isHalf || dtype === 'f32') && narrow.has(op)) return chosen;
  if (isHalf && op === 'bceLoss') {
    const problem = `probabilities of ${dtype} are too coarse for logarithms near 0 and 1`;
    throw new TensorError('E_DTYPE', op, problem, "bceWithLogits on the logits, or x.cast('f32')");
  }
  return isHalf && wide.has(op) ? 'f32' : dtype;
}

/** Runs a function with products in this dtype, or with `undefined` outside of all scopes. */
export function withAutocastType<T>(dtype: AutocastType | undefined, fn: () => T): T {
  const session = currentSession();
  const before = session.autocast;
  session.autocast = dtype;
  try {
    return fn();
  } finally {
    session.autocast = before;
  }
}

export interface AutocastOptions {
  /** The dtype of products and convolutions; f16 by default. */
  readonly dtype?: AutocastType;
  /** With false everything is as outside of any scope; true by default. */
  readonly enabled?: boolean;
}

const options = arg.options<AutocastOptions>({ dtype: arg.oneOf('f16', 'bf16'), enabled: arg.flag });
const takesAutocast = arg.takes<(fn: () => unknown, options?: AutocastOptions) => unknown>(
  ['the function', arg.callable()],
  ['options', options],
);

function typeOf({ dtype = 'f16', enabled = true }: AutocastOptions): AutocastType | undefined {
  return enabled ? dtype : undefined;
}

/**
 * Runs a function in mixed precision: products in 16 bits, what needs range or exactness in f32. A
 * forward pass and its loss belong inside; `backward` and the optimizer's step may be outside.
 */
export function autocast<T>(fn: () => T, options: AutocastOptions = {}): T {
  takesAutocast('autocast', fn, options);
  const result = withAutocastType(typeOf(options), fn);
  expectSynchronous('autocast', result);
  return result;
}

const takesWithAutocast = arg.takes<
  (fn: (...args: never[]) => unknown, options?: AutocastOptions) => unknown
>(['the function', arg.callable()], ['options', options]);

/** The function, run in mixed precision whenever it is called: see `autocast`. */
export function withAutocast<A extends unknown[], R>(
  fn: (...args: A) => R,
  options: AutocastOptions = {},
): (...args: A) => R {
  takesWithAutocast('withAutocast', fn as (...args: never[]) => unknown, options);
  const dtype = typeOf(options);
  return (...args) => {
    const result = withAutocastType(dtype, () => fn(...args));
    expectSynchronous('withAutocast', result);
    return result;
  };
}
