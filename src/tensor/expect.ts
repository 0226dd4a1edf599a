// What operations ask of arguments that no type checker has seen: the mistakes of JavaScript users, told in one voice. Each
// check throws E_VALUE (E_DTYPE for names of dtypes) naming the operation, what is expected, and what came.

import { showValue, TensorError } from '../errors.ts';
import { dtypes, isDType } from '../ir/dtype.ts';
import { Tensor } from './tensor.ts';

/** Requires a tensor; `what` is its part in the operation. */
export function expectTensor(op: string, what: string, value: unknown): asserts value is Tensor {
  if (value instanceof Tensor) return;
  const isThenable = typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
  const hint = isThenable ? 'await it first' : 'tensor(…) makes one of numbers and arrays';
  throw new TensorError('E_VALUE', op, `${what} must be a tensor, got ${showValue(value)}`, hint);
}

/** Requires an array of tensors. */
export function expectTensors(op: string, what: string, list: unknown): void {
  if (!Array.isArray(list)) {
    const hint = list instanceof Tensor ? 'one array: [x, y]' : undefined;
    throw new TensorError(
      'E_VALUE',
      op,
      `expects ${what} as an array of tensors, got ${showValue(list)}`,
      hint,
    );
  }
  list.forEach((item, i) => expectTensor(op, `${what}[${i}]`, item));
}

/** Requires a tensor, a number or a boolean. */
export function expectOperand(op: string, value: unknown): void {
  if (value instanceof Tensor || typeof value === 'number' || typeof value === 'boolean') return;
  const hint = Array.isArray(value) || ArrayBuffer.isView(value) ? 'tensor(…) around it' : undefined;
  throw new TensorError('E_VALUE', op, `expects tensors or numbers, got ${showValue(value)}`, hint);
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
  if (typeof dtype === 'string' && isDType(dtype)) return;
  throw new TensorError(
    'E_DTYPE',
    op,
    `no dtype is called ${typeof dtype === 'string' ? `'${dtype}'` : showValue(dtype)}`,
    `one of ${dtypes.join(' ')}`,
  );
}

/** Requires an object of options: `{ dtype: 'i32' }`, not `'i32'`. */
export function expectOptions(op: string, options: unknown): void {
  if (
    typeof options === 'object' &&
    options !== null &&
    !Array.isArray(options) &&
    !(options instanceof Tensor)
  )
    return;
  const hint = typeof options === 'string' && isDType(options) ? `{ dtype: '${options}' }` : undefined;
  throw new TensorError('E_VALUE', op, `expects options as an object, got ${showValue(options)}`, hint);
}

/** Requires a function. */
export function expectFunction(op: string, value: unknown): void {
  if (typeof value === 'function') return;
  throw new TensorError('E_VALUE', op, `expects a function, got ${showValue(value)}`);
}

/**
 * Requires that what a function gave is there already. A scope such as `noGrad` or a trace ends when its function returns, so
 * what an asynchronous function or a generator did later would silently lie outside.
 */
export function expectSynchronous(op: string, result: unknown): void {
  if (silenced(result)) {
    throw new TensorError(
      'E_VALUE',
      op,
      'the function is asynchronous: what it does after its first await would not count',
      'record in a function without await, and read data outside: await y.data()',
    );
  }
  const kind = Object.prototype.toString.call(result);
  if (kind !== '[object Generator]' && kind !== '[object AsyncGenerator]') return;
  throw new TensorError('E_VALUE', op, 'the function is a generator: it has not run yet', 'a plain function');
}

/** Whether a value is a promise; if so its rejection is nobody's: the caller gets an error of its own. */
export function silenced(value: unknown): boolean {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function';
  if (!isObject || typeof (value as { then?: unknown }).then !== 'function') return false;
  (value as PromiseLike<unknown>).then(undefined, () => undefined);
  return true;
}
