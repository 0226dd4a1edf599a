// Types of functions that are traced, and of what stands in for them. A number among the arguments
// is a tensor while the function is traced, because it may be another at each call: so the function
// has to say `Tensor`, and its callers may pass a number.

import type { Tensor } from '../tensor.ts';
import type { TreeNode } from '../tree.ts';

/** What is one thing, not a tree of them. */
type Whole =
  | Tensor
  | TreeNode
  | string
  | boolean
  | bigint
  | symbol
  | null
  | undefined
  | ((...args: never[]) => unknown);

/**
 * What a traced function is given for arguments of these types: tensors for numbers. Settings of
 * layers stay as they are.
 */
export type WithTensors<T> = unknown extends T
  ? T
  : T extends number
    ? Tensor
    : T extends Whole
      ? T
      : { [K in keyof T]: WithTensors<T[K]> };

/** As `WithTensors`, of what may be written down as a literal, whose type is read-only then. */
export type AsCarried<T> = unknown extends T
  ? T
  : T extends number
    ? Tensor
    : T extends Whole
      ? T
      : { -readonly [K in keyof T]: AsCarried<T[K]> };

/** What a traced function may be called with: a number wherever it takes a tensor. */
export type CalledWith<T> = unknown extends T
  ? T
  : T extends Tensor
    ? T | number
    : T extends Whole | number
      ? T
      : { [K in keyof T]: CalledWith<T[K]> };

/**
 * A function of these arguments that can be traced. One that declares a `number`, alone or within a
 * tree, is an error here: "Type 'Tensor' is not assignable to type 'number'".
 */
export type Traceable<A extends unknown[], R> = ((...args: A) => R) &
  ((...args: Extract<WithTensors<A>, unknown[]>) => R);
