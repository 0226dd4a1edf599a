// Masked operations that keep their lines: softmax and its kin, norms divided out, running sums and
// products, and sums of two masked powers.

import * as arg from '../../../ir/arguments.ts';
import { TensorError } from '../../../errors.ts';
import { add, binary, cast, div, neg, reshape, sub, unary, where, fullLike } from '../../../ir/build.ts';
import type { DType } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { record } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkFloat, checkImaginaryKept, checkInexact, show } from '../operand.ts';
import { checkMask, floatOf, keptOr, maskOptions, normNode, type MaskOptions } from './masks.ts';

const takesLine = arg.takes<(x: Tensor, axis: number, options?: MaskOptions) => Tensor>(
  ['the operand', aTensor],
  ['axis', arg.integer],
  ['options', arg.options<MaskOptions>(maskOptions)],
);

function overLine(
  op: string,
  x: Tensor,
  axis: number,
  options: MaskOptions,
  dtype: DType,
  make: (b: GraphBuilder, x: Node, mask: Node | undefined, axis: number) => Node,
): Tensor {
  checkMask(op, x, options.mask);
  checkImaginaryKept(op, x, options.dtype ?? dtype);
  const at = normalizeAxis(op, axis, Math.max(1, x.rank));
  const line = x.rank === 0 ? [1] : x.shape;
  return apply([x, options.mask], (b, node, mask) => {
    const wide = reshape(b, cast(b, node, formula.wideType(dtype)), line);
    return cast(b, reshape(b, make(b, wide, mask, at), x.shape), options.dtype ?? dtype);
  });
}

/**
 * eˣ / Σ eˣ along an axis over the elements where the mask is true; 0 elsewhere.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.softmax(x, 1, { mask });
 */
export function softmax(x: Tensor, axis: number, options: MaskOptions = {}): Tensor {
  takesLine('masked.softmax', x, axis, options);
  checkFloat('masked.softmax', x);
  return overLine('masked.softmax', x, axis, options, floatOf(x, options), (b, node, mask, at) =>
    formula.softmax(b, keptOr(b, node, mask, -Infinity), [at]),
  );
}

/**
 * The logarithm of `masked.softmax`: −∞ where the mask is false.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.logSoftmax(x, 1, { mask });
 */
export function logSoftmax(x: Tensor, axis: number, options: MaskOptions = {}): Tensor {
  takesLine('masked.logSoftmax', x, axis, options);
  checkFloat('masked.logSoftmax', x);
  return overLine('masked.logSoftmax', x, axis, options, floatOf(x, options), (b, node, mask, at) =>
    formula.logSoftmax(b, keptOr(b, node, mask, -Infinity), [at]),
  );
}

/**
 * `masked.softmax` of −x.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.softmin(x, 1, { mask });
 */
export function softmin(x: Tensor, axis: number, options: MaskOptions = {}): Tensor {
  takesLine('masked.softmin', x, axis, options);
  checkFloat('masked.softmin', x);
  return overLine('masked.softmin', x, axis, options, floatOf(x, options), (b, node, mask, at) =>
    formula.softmax(b, neg(b, keptOr(b, node, mask, Infinity)), [at]),
  );
}

export interface MaskedNormalizeOptions extends MaskOptions {
  /** The least norm that is divided by; 1e-12 by default. */
  readonly eps?: number;
}

const takesNormalize = arg.takes<typeof normalize>(
  ['the operand', aTensor],
  ['p', arg.number],
  ['axis', arg.integer],
  ['options', arg.options<MaskedNormalizeOptions>({ ...maskOptions, eps: arg.number })],
);

/**
 * x by its p-norm along an axis, over the elements where the mask is true; 0 elsewhere.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.normalize(x, 2, 1, { mask });
 */
export function normalize(x: Tensor, p: number, axis: number, options: MaskedNormalizeOptions = {}): Tensor {
  takesNormalize('masked.normalize', x, p, axis, options);
  checkInexact('masked.normalize', x);
  const { eps = 1e-12, ...rest } = options;
  return overLine('masked.normalize', x, axis, rest, floatOf(x, rest), (b, node, mask, at) => {
    const length = binary(b, 'max', normNode(b, node, mask, p, [at]), eps);
    return div(b, keptOr(b, node, mask, 0), formula.spreadTo(b, cast(b, length, node.dtype), node));
  });
}

function running(op: string, monoid: 'sum' | 'prod', x: Tensor, axis: number, options: MaskOptions): Tensor {
  const dtype = options.dtype ?? formula.sumType(x.dtype);
  if (dtype === 'bool') throw new TensorError('E_DTYPE', op, `cannot accumulate in bool: ${show(x)}`);
  return overLine(op, x, axis, options, dtype, (b, node, mask, at) => {
    const kept = keptOr(b, node, mask, monoid === 'sum' ? 0 : 1);
    return b.add('scan', [kept], { monoid, axis: at, reverse: false, exclusive: false }) as Node;
  });
}

/**
 * Running sums of the elements where the mask is true.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.cumsum(x, 1, { mask });
 */
export function cumsum(x: Tensor, axis: number, options: MaskOptions = {}): Tensor {
  takesLine('masked.cumsum', x, axis, options);
  return running('masked.cumsum', 'sum', x, axis, options);
}

/**
 * Running products of the elements where the mask is true.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.cumprod(x, 1, { mask });
 */
export function cumprod(x: Tensor, axis: number, options: MaskOptions = {}): Tensor {
  takesLine('masked.cumprod', x, axis, options);
  return running('masked.cumprod', 'prod', x, axis, options);
}

export interface MaskedLogaddexpOptions {
  /** Which elements of x count; all by default. */
  readonly inputMask?: Tensor;
  /** Which elements of y count; all by default. */
  readonly otherMask?: Tensor;
}

const takesLogaddexp = arg.takes<typeof logaddexp>(
  ['the operand', aTensor],
  ['the other', aTensor],
  ['options', arg.options<MaskedLogaddexpOptions>({ inputMask: aTensor, otherMask: aTensor })],
);

/**
 * log(eˣ + eʸ) of the elements where their masks are true; −∞ where neither is.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.logaddexp(x, y, { inputMask: mask, otherMask: mask });
 */
export function logaddexp(x: Tensor, y: Tensor, options: MaskedLogaddexpOptions = {}): Tensor {
  takesLogaddexp('masked.logaddexp', x, y, options);
  checkFloat('masked.logaddexp', x, y);
  if (x.dtype !== y.dtype || x.rank !== y.rank || x.shape.some((dim, i) => dim !== y.shape[i]))
    throw new TensorError('E_SHAPE', 'masked.logaddexp', `expects two of one type: ${show(x, y)}`);
  const { inputMask, otherMask } = options;
  checkMask('masked.logaddexp', x, inputMask);
  checkMask('masked.logaddexp', y, otherMask);
  const masks = [inputMask, otherMask].filter((mask) => mask !== undefined);
  return record([x, y, ...masks], (b, [left, right, ...given]) => {
    const wide = [left!, right!].map((node) => cast(b, node, formula.wideType(x.dtype)));
    const own = inputMask === undefined ? undefined : given[0];
    const other = otherMask === undefined ? undefined : given.at(-1);
    const [p, q] = [keptOr(b, wide[0]!, own, -Infinity), keptOr(b, wide[1]!, other, -Infinity)];
    return cast(b, sumOfPowers(b, p, q), x.dtype);
  });
}

/** max(x, y) + log1p(e^−|x − y|); two equal infinities differ by 0. */
function sumOfPowers(b: GraphBuilder, x: Node, y: Node): Node {
  const same = binary(b, 'eq', x, y);
  const away = where(b, same, fullLike(b, x, 0), sub(b, x, y));
  const decay = unary(b, 'exp', formula.negativeAbs(b, away));
  return add(b, binary(b, 'max', x, y), unary(b, 'log1p', decay));
}
