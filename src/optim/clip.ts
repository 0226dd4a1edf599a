// Clipping gradients, by the norm of all of them together (Pascanu et al., 2013) or element by
// element; both on trees, and on the gradients that `backward` left at parameters.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { isComplex, isFloat, isInexact } from '../ir/dtype.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { abs, clamp, sqrt, square } from '../tensor/ops/elementwise/elementwise.ts';
import { add, div, maximum, minimum, mul, pow } from '../tensor/ops/elementwise/arithmetic.ts';
import { sum } from '../tensor/ops/reduce/reduce.ts';
import { amax } from '../tensor/ops/reduce/extremum.ts';
import { show } from '../tensor/ops/operand.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { anew, type Own } from '../tensor/derivative/anew.ts';
import { noGrad } from '../tensor/derivative/transform.ts';
import { treeLeaves, treeMap } from '../tensor/tree.ts';
import { slotType } from './rule.ts';

export interface ClipOptions {
  /** Which norm: 2 by default, Infinity for the largest absolute value. */
  readonly p?: number;
}

/** A tensor, or a tree of them; what is no tensor stays. */
const gradients: arg.Kind<unknown> = arg.kind(
  'tensors, or a tree of them',
  (value) => typeof value === 'object' && value !== null,
);
const takesClipByNorm = arg.takes<(grads: unknown, maxNorm: number, options?: ClipOptions) => unknown>(
  ['gradients', gradients],
  ['the norm', arg.notNegative],
  ['options', arg.options<ClipOptions>({ p: arg.positive })],
);

/**
 * Scales all gradients of a tree alike so that their common norm is at most `maxNorm`; gives that
 * norm before.
 */
export function clipByNorm<G>(
  grads: G,
  maxNorm: number,
  options: ClipOptions = {},
): [grads: G, norm: Tensor] {
  takesClipByNorm('clipByNorm', grads, maxNorm, options);
  return anew((own) => clipped('clipByNorm', grads, maxNorm, options, own));
}

function clipped<G>(
  op: string,
  grads: G,
  maxNorm: number,
  options: ClipOptions,
  own: Own,
): [grads: G, norm: Tensor] {
  const norm = commonNorm(op, treeLeaves(grads).map(own), options.p ?? 2);
  const scale = minimum(div(maxNorm, add(norm, 1e-6)), 1);
  const scaled = (grad: Tensor): Tensor => {
    if (!isInexact(grad.dtype)) return grad;
    const wide = isComplex(grad.dtype) ? own(grad) : cast(own(grad), slotType(grad.dtype));
    return cast(mul(wide, scale), grad.dtype);
  };
  return [treeMap(scaled, grads), norm];
}

const takesClipByValue = arg.takes<(grads: unknown, limit: number) => unknown>(
  ['gradients', gradients],
  ['the limit', arg.notNegative],
);

/** Brings every element of every gradient of a tree into [−limit, limit]. */
export function clipByValue<G>(grads: G, limit: number): G {
  takesClipByValue('clipByValue', grads, limit);
  return anew((own) => limited('clipByValue', grads, limit, own));
}

function limited<G>(op: string, grads: G, limit: number, own: Own): G {
  const held = (grad: Tensor): Tensor => {
    if (isComplex(grad.dtype)) {
      const problem = `complex gradients have no order: ${show(grad)}`;
      throw new TensorError('E_DTYPE', op, problem, 'clipGradNorm or clipByNorm');
    }
    return isFloat(grad.dtype) ? clamp(own(grad), -limit, limit) : grad;
  };
  return treeMap(held, grads);
}

const parametersKind: arg.Kind<object> = arg.kind(
  'a model, or a tree of tensors',
  (value) => typeof value === 'object' && value !== null,
);
const takesClipGradNorm = arg.takes<typeof clipGradNorm>(
  ['the parameters', parametersKind],
  ['the norm', arg.notNegative],
  ['options', arg.options<ClipOptions>({ p: arg.positive })],
);

/** `clipByNorm` on the gradients of the parameters of a model or tree. */
export function clipGradNorm(params: object, maxNorm: number, options: ClipOptions = {}): Tensor {
  takesClipGradNorm('clipGradNorm', params, maxNorm, options);
  const owners = withGradients('clipGradNorm', params);
  const given = owners.map(({ grad }) => grad!);
  const [grads, norm] = noGrad(() => clipped('clipGradNorm', given, maxNorm, options, same));
  owners.forEach((param, i) => (param.grad = grads[i]));
  return norm;
}

const takesClipGradValue = arg.takes<typeof clipGradValue>(
  ['the parameters', parametersKind],
  ['the limit', arg.notNegative],
);

/** `clipByValue` on the gradients of the parameters of a model or tree. */
export function clipGradValue(params: object, limit: number): void {
  takesClipGradValue('clipGradValue', params, limit);
  for (const param of withGradients('clipGradValue', params)) {
    param.grad = noGrad(() => limited('clipGradValue', param.grad, limit, same));
  }
}

const same: Own = (x) => x;

function withGradients(op: string, params: object): Tensor[] {
  const found = [...new Set(treeLeaves(params))].filter(({ grad }) => grad !== undefined);
  if (found.length > 0) return found;
  throw new TensorError('E_GRAD', op, 'no parameter has a gradient', 'call backward first');
}

/** The p-norm of all elements of all tensors, as rank 0. */
function commonNorm(op: string, all: readonly Tensor[], p: number): Tensor {
  const grads = all.filter(({ dtype }) => isInexact(dtype));
  if (grads.length === 0) throw new TensorError('E_VALUE', op, 'there are no gradients');
  const wide = grads.map((grad) => cast(isComplex(grad.dtype) ? abs(grad) : grad, slotType(grad.dtype)));
  if (p === Infinity) return wide.map((grad) => amax(abs(grad))).reduce((a, b) => maximum(a, b));
  const power = (grad: Tensor): Tensor => (p === 2 ? square(grad) : pow(abs(grad), p));
  const total = wide.map((grad) => sum(power(grad))).reduce((a, b) => add(a, b));
  return p === 2 ? sqrt(total) : pow(total, 1 / p);
}
