// What index notation calls: functions of elements, operators, and folds over indices. Each is an
// operation of tensors, with its types, its errors and its derivative.

import { isDType } from '../ir/dtype.ts';
import * as ops from '../operations/index.ts';
import { asTensor } from '../tensor/record.ts';
import { Tensor, type TensorLike } from '../tensor/tensor.ts';
import type { NotationOperator } from './syntax.ts';

/** A function of elements, by how many it takes. */
export type ElementFunction =
  | { readonly arity: 1; readonly call: (x: Tensor) => Tensor }
  | { readonly arity: 2; readonly call: (x: TensorLike, y: TensorLike) => Tensor };

const unary = {
  abs: ops.abs,
  acos: ops.acos,
  asin: ops.asin,
  atan: ops.atan,
  ceil: ops.ceil,
  cos: ops.cos,
  cosh: ops.cosh,
  erf: ops.erf,
  exp: ops.exp,
  exp2: ops.exp2,
  expm1: ops.expm1,
  floor: ops.floor,
  gelu: (x) => ops.gelu(x),
  isNan: ops.isNan,
  log: ops.log,
  log1p: ops.log1p,
  log2: ops.log2,
  reciprocal: ops.reciprocal,
  relu: ops.relu,
  round: (x) => ops.round(x),
  rsqrt: ops.rsqrt,
  sigmoid: ops.sigmoid,
  sign: ops.sign,
  silu: ops.silu,
  sin: ops.sin,
  sinh: ops.sinh,
  softplus: (x) => ops.softplus(x),
  sqrt: ops.sqrt,
  square: ops.square,
  tan: ops.tan,
  tanh: ops.tanh,
  trunc: ops.trunc,
} satisfies Readonly<Record<string, (x: Tensor) => Tensor>>;

const binary = {
  atan2: ops.atan2,
  max: ops.maximum,
  min: ops.minimum,
  pow: ops.pow,
} satisfies Readonly<Record<string, (x: TensorLike, y: TensorLike) => Tensor>>;

function rowOf<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** The function of this name, or the cast to the dtype of this name. */
export function functionOf(name: string): ElementFunction | undefined {
  if (isDType(name)) return { arity: 1, call: (x) => ops.cast(x, name) };
  const one = rowOf<(x: Tensor) => Tensor>(unary, name);
  if (one !== undefined) return { arity: 1, call: one };
  const two = rowOf<(x: TensorLike, y: TensorLike) => Tensor>(binary, name);
  return two && { arity: 2, call: two };
}

/** All names of functions, for errors. */
export const functionNames: readonly string[] = [...Object.keys(unary), ...Object.keys(binary)].toSorted();

/** What an operator does to elements. */
export const operators: Readonly<Record<NotationOperator, (x: TensorLike, y: TensorLike) => Tensor>> = {
  '||': ops.logicalOr,
  '&&': ops.logicalAnd,
  '==': ops.eq,
  '!=': ops.ne,
  '<=': ops.le,
  '>=': ops.ge,
  '<': ops.lt,
  '>': ops.gt,
  '+': ops.add,
  '-': ops.sub,
  '*': ops.mul,
  '/': ops.div,
  '//': (x, y) => ops.div(x, y, { rounding: 'floor' }),
  '%': ops.remainder,
  '**': ops.pow,
};

/** The same of numbers, where both sides are. */
export const numberOperators: Readonly<Record<NotationOperator, (x: number, y: number) => number>> = {
  '||': (x, y) => Number(x !== 0 || y !== 0),
  '&&': (x, y) => Number(x !== 0 && y !== 0),
  '==': (x, y) => Number(x === y),
  '!=': (x, y) => Number(x !== y),
  '<=': (x, y) => Number(x <= y),
  '>=': (x, y) => Number(x >= y),
  '<': (x, y) => Number(x < y),
  '>': (x, y) => Number(x > y),
  '+': (x, y) => x + y,
  '-': (x, y) => x - y,
  '*': (x, y) => x * y,
  '/': (x, y) => x / y,
  '//': (x, y) => Math.floor(x / y),
  '%': (x, y) => x - y * Math.floor(x / y),
  '**': (x, y) => x ** y,
};

/** How elements are folded along axes; `one`: along a single one. */
export type FoldFunction =
  | { readonly axes: 'any'; readonly call: (x: Tensor, axes: number[]) => Tensor }
  | { readonly axes: 'one'; readonly call: (x: Tensor, axis: number) => Tensor };

const folds = {
  all: { axes: 'any', call: (x, axes) => ops.all(x, axes) },
  any: { axes: 'any', call: (x, axes) => ops.any(x, axes) },
  argmax: { axes: 'one', call: (x, axis) => ops.argmax(x, axis) },
  argmin: { axes: 'one', call: (x, axis) => ops.argmin(x, axis) },
  logsumexp: { axes: 'any', call: (x, axes) => ops.logsumexp(x, axes) },
  max: { axes: 'any', call: (x, axes) => ops.amax(x, axes) },
  mean: { axes: 'any', call: (x, axes) => ops.mean(x, axes) },
  min: { axes: 'any', call: (x, axes) => ops.amin(x, axes) },
  prod: { axes: 'any', call: (x, axes) => ops.prod(x, axes) },
  sum: { axes: 'any', call: (x, axes) => ops.sum(x, axes) },
} satisfies Readonly<Record<string, FoldFunction>>;

export function foldOf(name: string): FoldFunction | undefined {
  return rowOf<FoldFunction>(folds, name);
}

/** All names of folds, for errors. */
export const foldNames: readonly string[] = Object.keys(folds);

/** A number as the tensor that a function of one tensor takes. */
export function tensorOf(value: TensorLike): Tensor {
  return value instanceof Tensor ? value : asTensor(value, 'f32', 'kernel');
}
