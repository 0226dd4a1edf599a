// Arguments that a derivative is taken with respect to. A function is differentiated by calling it
// on its arguments under nodes of their own, in the same recording: so derivatives nest, work
// inside `compile`, and see captured tensors as constants.

import { showValue, TensorError } from '../../errors.ts';
import { distinct, full } from '../../ir/build.ts';
import { isInexact } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { expectSynchronous } from '../expect.ts';
import { showHandle } from '../handle/handle.ts';
import { withDerivative } from '../handle/recorded.ts';
import { asTensor, nodeOf } from '../record.ts';
import { builder, currentTrace, unscheduledHandle, withGrad } from '../handle/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';
import { callOnCopies, flatten, unflatten, type Flat } from '../tree.ts';
import { result } from './result.ts';
import { trainedLeaves } from './trainable.ts';

/** An argument that derivatives are taken for. */
export interface Chosen {
  readonly flat: Flat;
  /**
   * Where each leaf stands among the nodes to differentiate with respect to; undefined for what is
   * not differentiated.
   */
  readonly places: readonly (number | undefined)[];
}

/** The arguments of one call. */
export interface Variables {
  /** Nodes of their own, one for each tensor or number that may change. */
  readonly nodes: readonly Node[];
  /** What the function is called with. */
  readonly args: readonly unknown[];
  /** In the order in which they were chosen. */
  readonly chosen: readonly Chosen[];
}

/**
 * What changes of an argument: of modules what is trained (`gradients`), or every float of the tree
 * (`tangents`).
 */
export type VariableKind = 'gradients' | 'tangents';

/** Nodes of their own for the tensors of the chosen arguments. Throws E_GRAD at what is no float. */
export function variablesOf(
  op: string,
  args: readonly unknown[],
  places: readonly number[],
  kind: VariableKind,
): Variables {
  const trace = currentTrace();
  if (trace !== undefined) trace.differentiates = true;
  const nodes: Node[] = [];
  const taken = new Map<number, Chosen>();
  const called = args.map((arg, i) => {
    if (!places.includes(i)) return arg;
    const flat = flatten(arg, op);
    const changes = changing(op, `argument ${i}`, flat, kind);
    const at: (number | undefined)[] = [];
    const leaves = flat.leaves.map((leaf, k) => {
      at.push(undefined);
      if (!(leaf instanceof Tensor) && typeof leaf !== 'number') return leaf;
      const tensor = asTensor(leaf, 'f32');
      if (!isInexact(tensor.dtype) && flat.owned[k] === false) {
        const path = flat.paths[k] === '' ? '' : ` at ${flat.paths[k]}`;
        throw new TensorError(
          'E_GRAD',
          op,
          `argument ${i}${path} is ${showHandle(handleOf(tensor))}: only floats have ${kind}`,
          'pass it as another argument',
        );
      }
      if (leaf instanceof Tensor && changes[k] === false) return leaf;
      const node = distinct(nodeOf(tensor));
      at[k] = nodes.push(node) - 1;
      const handle = unscheduledHandle(node, true);
      if (tensor.weak) handle.comesFrom('number');
      return new Tensor(handle);
    });
    taken.set(i, { flat, places: at });
    return unflatten(flat.structure, leaves);
  });
  return { nodes, args: called, chosen: places.map((i) => taken.get(i)!) };
}

function changing(op: string, what: string, flat: Flat, kind: VariableKind): boolean[] {
  if (kind === 'gradients') return trainedLeaves(op, what, flat);
  return flat.leaves.map((leaf) => leaf instanceof Tensor && isInexact(leaf.dtype));
}

/** Calls the function on its variables, while derivatives with respect to them are taken. */
export function callOpen(
  op: string,
  fn: (...args: never[]) => unknown,
  { nodes, args }: Pick<Variables, 'nodes' | 'args'>,
): unknown {
  const output = withDerivative(nodes, () =>
    withGrad(true, () => callOnCopies(op, () => fn(...(args as never[])))),
  );
  expectSynchronous(op, output);
  return output;
}

/**
 * A tree like the chosen argument, of the gradients of its variables; zeros of what does not change.
 */
export function treeLike(
  { flat, places }: Chosen,
  gradients: readonly Tensor[],
  untracked: Set<Node>,
): unknown {
  const leaves = flat.leaves.map((leaf, k) => {
    const place = places[k];
    if (place !== undefined) return gradients[place];
    if (!(leaf instanceof Tensor)) return leaf;
    return result(full(builder(), leaf.shape, 0, leaf.dtype), untracked);
  });
  return unflatten(flat.structure, leaves);
}

/** Which arguments to differentiate: one by its place, or a list of places. */
export type Argnums = number | readonly number[];

/** The places that `argnums` names. Throws E_VALUE at one that the call does not have. */
export function checkArgnums(op: string, argnums: Argnums, args: readonly unknown[]): readonly number[] {
  const chosen = typeof argnums === 'number' ? [argnums] : argnums;
  for (const index of Array.isArray(chosen) ? chosen : [chosen]) {
    if (typeof index === 'number' && index in args) continue;
    throw new TensorError(
      'E_VALUE',
      op,
      `there is no argument ${showValue(index)}: the call has ${args.length}`,
    );
  }
  return chosen;
}
