// The kinds of arguments that are tensors (see ir/arguments.ts for the others), and the same checks
// by themselves, for what stands behind a public function. Each throws E_VALUE naming the
// operation, what is expected, and what came.

import { showValue, TensorError } from '../errors.ts';
import { callable, dtype as dtypeKind, listOf, type Kind } from '../ir/arguments.ts';
import { isPlainObject } from '../ir/arguments.ts';
import { isDType } from '../ir/dtype.ts';
import { checkUsable } from './handle/recording.ts';
import { handleOf, Tensor, type TensorLike } from './tensor.ts';

/** A tensor that has not been given up. */
export const aTensor: Kind<Tensor> = {
  accepts: (value) => value instanceof Tensor && handleOf(value).gone === undefined,
  refuse(op, what, value): never {
    if (value instanceof Tensor) checkUsable(handleOf(value), op);
    const isThenable = typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
    const hint = isThenable ? 'await it first' : 'tensor(…) makes one of numbers and arrays';
    throw new TensorError('E_VALUE', op, `${what} must be a tensor, got ${showValue(value)}`, hint);
  },
};

/** A tensor, a number or a boolean. */
export const anOperand: Kind<TensorLike> = {
  accepts: (value) => typeof value === 'number' || typeof value === 'boolean' || aTensor.accepts(value),
  refuse(op, what, value): never {
    if (value instanceof Tensor) return aTensor.refuse(op, what, value);
    const isData = Array.isArray(value) || ArrayBuffer.isView(value) || typeof value === 'bigint';
    const hint = isData ? 'tensor(…) around it' : undefined;
    throw new TensorError('E_VALUE', op, `expects tensors or numbers, got ${showValue(value)}`, hint);
  },
};

const anyTensors = listOf(aTensor);

/** An array of tensors. */
export const tensors: Kind<readonly Tensor[]> = {
  accepts: (value) => anyTensors.accepts(value),
  refuse(op, what, value): never {
    if (Array.isArray(value)) return anyTensors.refuse(op, what, value);
    const problem = `expects ${what} as an array of tensors, got ${showValue(value)}`;
    throw new TensorError('E_VALUE', op, problem, value instanceof Tensor ? 'one array: [x, y]' : undefined);
  },
};

/** Requires a tensor; `what` is its part in the operation. */
export function expectTensor(op: string, what: string, value: unknown): asserts value is Tensor {
  if (!aTensor.accepts(value)) aTensor.refuse(op, what, value);
}

/** Requires an array of tensors. */
export function expectTensors(op: string, what: string, list: unknown): void {
  if (!tensors.accepts(list)) tensors.refuse(op, what, list);
}

/** Requires a tensor, a number or a boolean. */
export function expectOperand(op: string, value: unknown): void {
  if (!anOperand.accepts(value)) anOperand.refuse(op, 'an operand', value);
}

/** Requires a number; NaN and infinities are numbers. */
export function expectNumber(op: string, what: string, value: unknown): void {
  if (typeof value === 'number') return;
  throw new TensorError('E_VALUE', op, `${what} must be a number, got ${showValue(value)}`);
}

/** Requires a string. */
export function expectText(op: string, what: string, value: unknown): void {
  if (typeof value === 'string') return;
  throw new TensorError('E_VALUE', op, `${what} must be a string, got ${showValue(value)}`);
}

/** Requires the name of a dtype. */
export function expectDType(op: string, dtype: unknown): void {
  if (!dtypeKind.accepts(dtype)) dtypeKind.refuse(op, 'the dtype', dtype);
}

/** Requires an object of options: `{ dtype: 'i32' }`, not `'i32'`. */
export function expectOptions(op: string, options: unknown): void {
  if (isPlainObject(options)) return;
  const hint = typeof options === 'string' && isDType(options) ? `{ dtype: '${options}' }` : undefined;
  throw new TensorError('E_VALUE', op, `expects options as an object, got ${showValue(options)}`, hint);
}

const aFunction = callable<unknown>();

/** Requires a function. */
export function expectFunction(op: string, value: unknown): void {
  if (!aFunction.accepts(value)) aFunction.refuse(op, 'the function', value);
}

/**
 * Requires that what a function gave is there already. A scope such as `noGrad` or a trace ends
 * when its function returns, so what an asynchronous function or a generator did later would
 * silently lie outside.
 */
export function expectSynchronous(op: string, result: unknown): void {
  if (silenced(result)) {
    throw new TensorError(
      'E_VALUE',
      op,
      'the function is asynchronous: operations after its first await would not be recorded',
      'record in a function without await, and read data outside: await y.data()',
    );
  }
  const kind = Object.prototype.toString.call(result);
  if (kind !== '[object Generator]' && kind !== '[object AsyncGenerator]') return;
  throw new TensorError('E_VALUE', op, 'the function is a generator: it has not run yet', 'a plain function');
}

/**
 * Whether a value is a promise; if so its rejection is marked as handled, since the caller throws
 * an error of its own.
 */
export function silenced(value: unknown): boolean {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function';
  if (!isObject || typeof (value as { then?: unknown }).then !== 'function') return false;
  (value as PromiseLike<unknown>).then(undefined, () => undefined);
  return true;
}
