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
