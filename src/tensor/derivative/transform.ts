// Functional derivatives: `grad`, `valueAndGrad`, `vjp`, `gradients`, `customVjp`, `noGrad`. A
// function is differentiated by calling it on its arguments under nodes of their own, in the same
// recording: so derivatives nest, work inside `compile`, and see captured tensors as constants.

import * as arg from '../../ir/arguments.ts';
import { registerRule } from '../../autograd/custom.ts';
import { cotangents } from '../../autograd/vjp.ts';
import { showValue, TensorError } from '../../errors.ts';
import { add, distinct, full } from '../../ir/build.ts';
import { isInexact } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { checkAlive, cut, leavesOf, seedNode } from './backward.ts';
import { showHandle, type Handle } from '../recording/handle.ts';
import { expectFunction, expectSynchronous, expectTensor } from '../expect.ts';
import { isOpen, walkGradient, withOpen } from '../recording/history.ts';
import { asTensor, nodeOf } from '../recording/record.ts';
import {
  builder,
  currentTrace,
  dropPending,
  gradEnabled,
  isFree,
  leafOf,
  unscheduledHandle,
  nodeFor,
  recordedHandle,
  currentHandleUnchecked,
  withGrad,
} from '../recording/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';
import type { WithTensors } from '../compile/traceable.ts';
import { trainedLeaves } from './trainable.ts';
import { callOnCopies, checkSameStructure, flatten, unflatten, type Flat } from '../tree.ts';

export { traceFunction } from '../compile/trace-function.ts';

/** Runs `fn` without tracking gradients: what it records has no history. */
export function noGrad<T>(fn: () => T): T {
  expectFunction('noGrad', fn);
  return scoped('noGrad', false, fn);
}

/** Runs `fn` with gradients tracked, also inside `noGrad`. */
export function enableGrad<T>(fn: () => T): T {
  expectFunction('enableGrad', fn);
  return scoped('enableGrad', true, fn);
}

function scoped<T>(op: string, on: boolean, fn: () => T): T {
  const result = withGrad(on, fn);
  expectSynchronous(op, result);
  return result;
}

/** Which arguments to differentiate: one by its place, or a list of places. */
type Argnums = number | readonly number[];

export interface GradOptions<N extends Argnums = Argnums> {
  /** Which arguments to differentiate; default 0. With a list, the gradients come as a list. */
  readonly argnums?: N;
}

const takesGrad = arg.takes<(fn: unknown, options?: GradOptions) => unknown>(
  ['the function', arg.callable<unknown>()],
  // Which arguments there are shows when the function is called.
  ['options', arg.options<GradOptions>({ argnums: arg.inside() })],
);

/**
 * What `grad` gives for arguments of types `A` and `argnums` of type `N`: a tree like the argument,
 * with tensors for numbers, or a list of such trees.
 */
export type GradientOf<A extends readonly unknown[], N extends Argnums = 0> = N extends readonly number[]
  ? { -readonly [K in keyof N]: WithTensors<A[N[K] & number]> }
  : WithTensors<A[N & number]>;

/**
 * A function that gives the gradient of `fn` (one float element) with respect to an argument: a
 * tree like that argument. Of a module what requires gradients is differentiated; its other tensors
 * (frozen, constant, of integers or booleans) have gradient 0.
 */
export function grad<A extends unknown[], const N extends Argnums = 0>(
  fn: (...args: A) => Tensor,
  options: GradOptions<N> = {},
): (...args: A) => GradientOf<A, N> {
  takesGrad('grad', fn, options);
  return (...args) => {
    const { value, gradient } = differentiate('grad', fn, args, options);
    // Only the gradient is wanted; the value is computed where it serves the gradient.
    const unread = handleOf(value);
    if (!unread.keep) dropPending(unread);
    return gradient as GradientOf<A, N>;
  };
}

/** As `grad`, giving the value as well. */
export function valueAndGrad<A extends unknown[], const N extends Argnums = 0>(
  fn: (...args: A) => Tensor,
  options: GradOptions<N> = {},
): (...args: A) => { value: Tensor; grad: GradientOf<A, N> } {
  takesGrad('valueAndGrad', fn, options);
  return (...args) => {
    const { value, gradient } = differentiate('valueAndGrad', fn, args, options);
    return { value, grad: gradient as GradientOf<A, N> };
  };
}

function differentiate<A extends unknown[]>(
  op: string,
  fn: (...args: A) => Tensor,
  args: A,
  options: GradOptions,
): { value: Tensor; gradient: unknown } {
  const { argnums = 0 } = options;
  const chosen = typeof argnums === 'number' ? [argnums] : argnums;
  for (const index of Array.isArray(chosen) ? chosen : [chosen]) {
    if (typeof index === 'number' && index in args) continue;
    throw new TensorError(
      'E_VALUE',
      op,
      `there is no argument ${showValue(index)}: the call has ${args.length}`,
    );
  }
  const { output, pull } = pullback(op, fn, args, chosen);
  if (!(output instanceof Tensor)) {
    throw new TensorError('E_VALUE', op, `the function must return one tensor, got ${showValue(output)}`);
  }
  const gradients = pull([nodeOf(output)], [seedNode(op, handleOf(output), undefined)]);
  return { value: closed(output), gradient: typeof argnums === 'number' ? gradients[0] : gradients };
}

/**
 * The value of `fn` at `args` and the function that takes a cotangent of it to the cotangents of
 * the arguments.
 */
export function vjp<A extends unknown[], R>(
  fn: (...args: A) => R,
  ...args: A
): { value: R; vjp: (seed: R) => Extract<WithTensors<A>, unknown[]> } {
  expectFunction('vjp', fn);
  const { output, pull } = pullback('vjp', fn, args, [...args.keys()]);
  const flat = flatten(output, 'vjp');
  const outputs = flat.leaves.map((leaf, i) => tensorAt('vjp', 'result', leaf, flat.paths[i]!));
  const nodes = outputs.map(nodeOf);
  const values = outputs.map(closed);
  for (const tensor of values) handleOf(tensor).pulled = true;
  const value = unflatten(flat.structure, values) as R;
  return {
    value,
    vjp: (seed) => {
      const seeds = flatten(seed, 'vjp');
      checkSameStructure('vjp', 'the result', flat, 'the seed', seeds);
      const seedNodes = seeds.leaves.map((leaf, i) =>
        seedNode('vjp', handleOf(outputs[i]!), handleOf(tensorAt('vjp', 'seed', leaf, seeds.paths[i]!))),
      );
      return pull(nodes, seedNodes) as Extract<WithTensors<A>, unknown[]>;
    },
  };
}

/**
 * Gradients of the sum of `outputs` (or of Σ seeds·outputs) with respect to `inputs`, which need
 * not be leaves. Zeros where an input has no influence. Nothing is accumulated.
 */
export function gradients(
  outputs: Tensor | readonly Tensor[],
  inputs: readonly Tensor[],
  seeds?: readonly Tensor[],
): Tensor[] {
  const results = outputs instanceof Tensor ? [outputs] : outputs;
  for (const [what, list] of [
    ['outputs', results],
    ['inputs', inputs],
    ['seeds', seeds === undefined ? [] : seeds],
  ] as const) {
    if (!Array.isArray(list))
      throw new TensorError(
        'E_VALUE',
        'gradients',
        `expects ${what} as an array of tensors, got ${showValue(list)}`,
      );
    list.forEach((item, i) => expectTensor('gradients', `${what}[${i}]`, item));
  }
  const roots = results.map(nodeOf);
  const starts = results.map((output, i) =>
    seedNode('gradients', handleOf(output), seeds?.[i] === undefined ? undefined : handleOf(seeds[i])),
  );
  const leaves = leavesOf(roots);
  const wrt = inputs.map((input) => {
    const handle = handleOf(input);
    if (!input.requiresGrad) {
      throw new TensorError('E_GRAD', 'gradients', `${showHandle(handle)} does not require gradients`);
    }
    // A leaf may stand in the history under the nodes of earlier moments.
    const nodes = new Set(leaves.filter((node) => leafOf(node) === currentHandleUnchecked(handle))).add(
      nodeFor(handle),
    );
    return [...nodes];
  });
  const found = cotangents(builder(), roots, starts, wrt.flat());
  checkAlive(found);
  const untracked = new Set<Node>();
  let next = 0;
  return wrt.map((nodes, i) => {
    const parts = nodes.map(() => found[next++]).filter((part) => part !== undefined);
    const { shape, dtype } = inputs[i]!;
    const sum =
      parts.length === 0 ? full(builder(), shape, 0, dtype) : parts.reduce((a, b) => add(builder(), a, b));
    return result(sum, untracked);
  });
}

/**
 * The result of a derivative: differentiable again as far as it depends on what is being
 * differentiated. `untracked` gathers nodes found to lead nowhere, for the results that share them.
 */
function result(node: Node, untracked: Set<Node>): Tensor {
  const tracked = isTracked(node, untracked);
  if (!tracked || !gradEnabled()) return new Tensor(recordedHandle(tracked ? cut(node) : node, false));
  return new Tensor(recordedHandle(node, true));
}

/** Whether gradients of the node lead anywhere: to a leaf or to a derivative being taken. */
function isTracked(root: Node, untracked: Set<Node> = new Set()): boolean {
  const visited: Node[] = [];
  const trace = currentTrace();
  let found = false;
  walkGradient([root], (node) => {
    found ||= leafOf(node) !== undefined || isOpen(node) || trace?.isInput(node) === true;
    if (found || untracked.has(node)) return false;
    visited.push(node);
    return true;
  });
  if (!found) for (const node of visited) untracked.add(node);
  return found;
}

/** A value that leaves the function being differentiated. */
function closed(output: Tensor): Tensor {
  const handle = handleOf(output);
  if (!handle.requiresGrad) return output;
  const node = nodeFor(handle);
  if (isTracked(node) && gradEnabled()) return output;
  dropPending(handle);
  return new Tensor(recordedHandle(cut(node), false));
}

interface Pullback {
  readonly output: unknown;
  /** Cotangents of the chosen arguments, as trees like them. */
  readonly pull: (outputs: readonly Node[], seeds: readonly Node[]) => unknown[];
}

/** An argument that derivatives are taken for. */
interface Chosen {
  readonly flat: Flat;
  /**
   * Where each leaf stands among the nodes to differentiate with respect to; undefined for what is
   * not differentiated.
   */
  readonly places: readonly (number | undefined)[];
}

/** Calls `fn` with the tensors of the chosen arguments replaced by distinct nodes for them. */
function pullback<A extends unknown[]>(
  op: string,
  fn: (...args: A) => unknown,
  args: A,
  chosen: readonly number[],
): Pullback {
  const trace = currentTrace();
  if (trace !== undefined) trace.differentiates = true;
  const wrt: Node[] = [];
  const taken = new Map<number, Chosen>();
  const called = args.map((arg, i) => {
    if (!chosen.includes(i)) return arg;
    const flat = flatten(arg, op);
    const trained = trainedLeaves(op, `argument ${i}`, flat);
    const places: (number | undefined)[] = [];
    const leaves = flat.leaves.map((leaf, k) => {
      places.push(undefined);
      if (!(leaf instanceof Tensor) && typeof leaf !== 'number') return leaf;
      const tensor = asTensor(leaf, 'f32');
      if (!isInexact(tensor.dtype) && flat.owned[k] === false) {
        const at = flat.paths[k] === '' ? '' : ` at ${flat.paths[k]}`;
        throw new TensorError(
          'E_GRAD',
          op,
          `argument ${i}${at} is ${showHandle(handleOf(tensor))}: only floats have gradients`,
          'pass it as another argument',
        );
      }
      if (leaf instanceof Tensor && trained[k] === false) return leaf;
      const node = distinct(nodeOf(tensor));
      places[k] = wrt.push(node) - 1;
      const handle = unscheduledHandle(node, true);
      handle.weak = tensor.weak;
      return new Tensor(handle);
    });
    taken.set(i, { flat, places });
    return unflatten(flat.structure, leaves);
  });
  const output = withOpen(wrt, () => withGrad(true, () => callOnCopies(op, () => fn(...(called as A)))));
  expectSynchronous(op, output);
  const pull: Pullback['pull'] = (outputs, seeds) => {
    const found = cotangents(builder(), outputs, seeds, wrt);
    const untracked = new Set<Node>();
    return chosen.map((i) => {
      const { flat, places } = taken.get(i)!;
      const leaves = flat.leaves.map((leaf, k) => {
        if (!(leaf instanceof Tensor) && typeof leaf !== 'number') return leaf;
        const { shape, dtype } = leaf instanceof Tensor ? leaf : wrt[places[k]!]!;
        const node = places[k] === undefined ? undefined : found[places[k]];
        return result(node ?? full(builder(), shape as readonly number[], 0, dtype), untracked);
      });
      return unflatten(flat.structure, leaves);
    });
  };
  return { output, pull };
}

function tensorAt(op: string, what: string, value: unknown, path: string): Tensor {
  if (value instanceof Tensor) return value;
  throw new TensorError(
    'E_VALUE',
    op,
    `the ${what}${path === '' ? '' : ` at ${path}`} must be a tensor, got ${showValue(value)}`,
  );
}

/**
 * `fn` with a derivative of the user's: `rule(g, args, value)` gives the cotangent of each argument
 * from the cotangent `g` of the result, or undefined for none. It is made of tensor operations, so
 * second derivatives follow from it.
 */
export function customVjp(
  fn: (...args: Tensor[]) => Tensor,
  rule: (g: Tensor, args: readonly Tensor[], value: Tensor) => readonly (Tensor | undefined)[],
): (...args: Tensor[]) => Tensor {
  expectFunction('customVjp', fn);
  expectFunction('customVjp', rule);
  // The rule may differentiate with respect to what it is given: a constant gets a node of its own,
  // apart from equal ones.
  const face = (node: Node): Tensor =>
    new Tensor(unscheduledHandle(isFree(node) ? distinct(node) : node, isInexact(node.dtype)));
  const number = registerRule((_, args, value, g) =>
    withGrad(true, () => {
      const given = rule(face(g), args.map(face), face(value));
      expectSynchronous('customVjp', given);
      if (Array.isArray(given)) {
        return given.map((cotangent: Tensor | undefined) =>
          cotangent === undefined ? undefined : nodeOf(cotangent),
        );
      }
      const problem = `the rule must give one cotangent per argument in an array, got ${showValue(given)}`;
      throw new TensorError('E_VALUE', 'customVjp', problem, 'undefined stands for none');
    }),
  );
  return (...args) => {
    const value = scoped('customVjp', false, () => fn(...args));
    const nodes = [value, ...args].map(nodeOf);
    const node = builder().add('customVjp', nodes, { rule: number }) as Node;
    const tracked = gradEnabled() && args.some((arg) => currentHandleUnchecked(handleOf(arg)).requiresGrad);
    const inner: Handle = handleOf(value);
    dropPending(inner);
    return new Tensor(recordedHandle(tracked ? node : cut(node), tracked));
  };
}
