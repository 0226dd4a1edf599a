// Reverse-mode derivatives of functions: `grad`, `valueAndGrad`, `vjp`, `gradients`, and `noGrad`. Forward
// mode is in forward.ts.

import { cotangents } from '../../autograd/vjp.ts';
import type { DType } from '../../ir/dtype.ts';
import type { Unknown } from '../inferred.ts';
import * as arg from '../../ir/arguments.ts';
import { showValue, TensorError } from '../../errors.ts';
import { add, full } from '../../ir/build.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { checkAlive, leavesOf, seedNode } from '../handle/gradient.ts';
import { showHandle } from '../handle/handle.ts';
import { expectFunction, expectSynchronous, expectTensor } from '../expect.ts';
import { nodeOf } from '../record.ts';
import {
  builder,
  currentHandleUnchecked,
  dropPending,
  leafOf,
  nodeFor,
  withGrad,
} from '../handle/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';
import type { WithTensors } from '../trace/traceable.ts';
import { checkSameStructure, flatten, unflatten } from '../tree.ts';
import { linearFunction, type LinearMap } from './linear.ts';
import { closed, result, tensorAt } from './result.ts';
import { callOpen, checkArgnums, treeLike, variablesOf, type Argnums } from './variables.ts';

export { traceFunction } from '../tracing.ts';

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

export interface GradOptions<N extends Argnums = Argnums> {
  /** Which arguments to differentiate; default 0. With a list, the gradients come as a list. */
  readonly argnums?: N;
  /**
   * The function gives `[loss, aux]`: what comes with the loss, a tree, is handed out beside the
   * gradient; false by default.
   */
  readonly hasAux?: boolean;
}

/** Options of a function that gives something besides its loss. */
type WithAux<N extends Argnums> = GradOptions<N> & { readonly hasAux: true };

const takesGrad = arg.takes<(fn: unknown, options?: GradOptions) => unknown>(
  ['the function', arg.callable<unknown>()],
  // Which arguments there are shows when the function is called.
  ['options', arg.options<GradOptions>({ argnums: arg.inside(), hasAux: arg.flag })],
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
 * (frozen, constant, of integers or booleans) have gradient 0. With `hasAux` it gives
 * `{ grad, aux }`.
 */
export function grad<A extends unknown[], X, const N extends Argnums = 0>(
  fn: (...args: A) => readonly [Tensor, X],
  options: WithAux<N>,
): (...args: A) => { grad: GradientOf<A, N>; aux: X };
export function grad<A extends unknown[], const N extends Argnums = 0>(
  fn: (...args: A) => Tensor,
  options?: GradOptions<N>,
): (...args: A) => GradientOf<A, N>;
export function grad<A extends unknown[]>(
  fn: (...args: A) => unknown,
  options: GradOptions = {},
): (...args: A) => unknown {
  takesGrad('grad', fn, options);
  return (...args) => {
    const { value, gradient, aux } = differentiate('grad', fn, args, options);
    // Only the gradient is wanted; the value is computed where it serves the gradient.
    const unread = handleOf(value);
    if (!unread.isKept) dropPending(unread);
    return options.hasAux === true ? { grad: gradient, aux } : gradient;
  };
}

/** As `grad`, giving the value as well; with `hasAux`, `{ value, grad, aux }`. */
export function valueAndGrad<A extends unknown[], X, const N extends Argnums = 0, D extends DType = Unknown>(
  fn: (...args: A) => readonly [Tensor<D>, X],
  options: WithAux<N>,
): (...args: A) => { value: Tensor<D>; grad: GradientOf<A, N>; aux: X };
export function valueAndGrad<A extends unknown[], const N extends Argnums = 0, D extends DType = Unknown>(
  fn: (...args: A) => Tensor<D>,
  options?: GradOptions<N>,
): (...args: A) => { value: Tensor<D>; grad: GradientOf<A, N> };
export function valueAndGrad<A extends unknown[]>(
  fn: (...args: A) => unknown,
  options: GradOptions = {},
): (...args: A) => unknown {
  takesGrad('valueAndGrad', fn, options);
  return (...args) => {
    const { value, gradient, aux } = differentiate('valueAndGrad', fn, args, options);
    return options.hasAux === true ? { value, grad: gradient, aux } : { value, grad: gradient };
  };
}

function differentiate<A extends unknown[]>(
  op: string,
  fn: (...args: A) => unknown,
  args: A,
  { argnums = 0, hasAux = false }: GradOptions,
): { value: Tensor; gradient: unknown; aux: unknown } {
  const { output, pull } = pullback(op, fn, args, checkArgnums(op, argnums, args));
  const [loss, aux] = hasAux ? withAux(op, output) : [output, undefined];
  if (!(loss instanceof Tensor)) {
    const hint =
      Array.isArray(loss) && loss[0] instanceof Tensor ? '{ hasAux: true } for [loss, aux]' : undefined;
    throw new TensorError('E_VALUE', op, `the function must return one tensor, got ${showValue(loss)}`, hint);
  }
  const gradients = pull([nodeOf(loss)])([seedNode(op, handleOf(loss), undefined)]);
  const gradient = typeof argnums === 'number' ? gradients[0] : gradients;
  return { value: closed(loss), gradient, aux: hasAux ? closedTree(op, aux) : undefined };
}

function withAux(op: string, output: unknown): readonly [loss: unknown, aux: unknown] {
  if (Array.isArray(output) && output.length === 2) return [output[0], output[1]];
  const problem = `with hasAux the function must return [loss, aux], got ${showValue(output)}`;
  throw new TensorError('E_VALUE', op, problem, 'return [loss, aux]');
}

/** What leaves the function beside its loss; what is no tensor stays as it is. */
function closedTree(op: string, tree: unknown): unknown {
  const { leaves, structure } = flatten(tree, op);
  return unflatten(
    structure,
    leaves.map((leaf) => (leaf instanceof Tensor ? closed(leaf) : leaf)),
  );
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
  for (const tensor of values) handleOf(tensor).pull();
  const back = pull(nodes);
  const value = unflatten(flat.structure, values) as R;
  return {
    value,
    vjp: (seed) => {
      const seeds = flatten(seed, 'vjp');
      checkSameStructure('vjp', 'the result', flat, 'the seed', seeds);
      const seedNodes = seeds.leaves.map((leaf, i) =>
        seedNode('vjp', handleOf(outputs[i]!), handleOf(tensorAt('vjp', 'seed', leaf, seeds.paths[i]!))),
      );
      return back(seedNodes) as Extract<WithTensors<A>, unknown[]>;
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

interface Pullback {
  readonly output: unknown;
  /** What takes cotangents of outputs to those of the chosen arguments, as trees like them. */
  readonly pull: (outputs: readonly Node[]) => (seeds: readonly Node[]) => unknown[];
}

/** Calls `fn` with the tensors of the chosen arguments replaced by distinct nodes for them. */
export function pullback<A extends unknown[]>(
  op: string,
  fn: (...args: A) => unknown,
  args: A,
  places: readonly number[],
): Pullback {
  const variables = variablesOf(op, args, places, 'gradients');
  const { nodes, chosen } = variables;
  const output = callOpen(op, fn as (...args: never[]) => unknown, variables);
  const pull: Pullback['pull'] = (outputs) => {
    const back = linearFunction(op, (seeds) => cotangents(builder(), outputs, seeds, nodes));
    return (seeds) => pulled(back, seeds);
  };
  const pulled = (back: LinearMap, seeds: readonly Node[]): unknown[] => {
    const untracked = new Set<Node>();
    const found = back(seeds);
    const gradients = nodes.map((node, i) =>
      result(found[i] ?? full(builder(), dims(node), 0, node.dtype), untracked),
    );
    return chosen.map((each) => treeLike(each, gradients, untracked));
  };
  return { output, pull };
}
