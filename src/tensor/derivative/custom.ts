// Derivatives that users define: `customVjp` in reverse mode, `customJvp` in forward mode. Either gives the
// other mode too.

import { customInputs, derivedInputs, Derivative, type Custom } from '../../autograd/custom.ts';
import { transposeOf } from '../../autograd/jvp/transpose.ts';
import { variable } from '../../autograd/variable.ts';
import { showValue, TensorError } from '../../errors.ts';
import { distinct, fullLike } from '../../ir/build.ts';
import { isInexact } from '../../ir/dtype.ts';
import { showType } from '../../ir/infer.ts';
import type { GraphBuilder, Node } from '../../ir/graph.ts';
import { sameShape } from '../../ir/shape.ts';
import { expectFunction, expectSynchronous } from '../expect.ts';
import { cut } from '../handle/gradient.ts';
import { isDifferentiating, isOpen } from '../handle/recorded.ts';
import { nodeOf } from '../record.ts';
import {
  builder,
  currentHandleUnchecked,
  dropPending,
  gradEnabled,
  inScratch,
  isFree,
  recordedHandle,
  unscheduledHandle,
  withGrad,
} from '../handle/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';
import { checkSameStructure, flatten, unflatten, type Flat } from '../tree.ts';
import { tensorAt } from './result.ts';

/**
 * A node as a tensor for a rule, which may differentiate with respect to it: a constant gets a node
 * of its own, apart from equal ones.
 */
function face(node: Node): Tensor {
  return new Tensor(unscheduledHandle(isFree(node) ? distinct(node) : node, isInexact(node.dtype)));
}

/** Calls a rule: only what it gives counts. */
function ruled<T>(op: string, call: () => T): T {
  const given = inScratch(() => withGrad(true, call));
  expectSynchronous(op, given);
  return given;
}

/** Cotangents or tangents in an array, one for each argument. */
function nodesOf(op: string, given: unknown): (Node | undefined)[] {
  if (Array.isArray(given))
    return given.map((each: Tensor | undefined) => (each === undefined ? undefined : nodeOf(each)));
  const problem = `the rule must give one cotangent per argument in an array, got ${showValue(given)}`;
  throw new TensorError('E_VALUE', op, problem, 'undefined stands for none');
}

/**
 * Throws E_GRAD where values that were recorded after a node depend on what a derivative is being taken for, and
 * not by the arguments alone: the rule says nothing of that. What was detached is no part of it.
 */
function checkCaptured(op: string, values: readonly Node[], args: readonly Node[], before: Node): void {
  const seen = new Set(values);
  for (const node of seen) {
    if (args.includes(node)) continue;
    if (isOpen(node)) {
      const problem = `a derivative is being taken for ${showType(node)}, which the function captures: the rule speaks of arguments only`;
      throw new TensorError(
        'E_GRAD',
        op,
        problem,
        'pass what is made of it as an argument, or detach it outside of the function',
      );
    }
    // What operations within the function gave has no history: the node in front of it may have one.
    const isOwn = node.id > before.id && node.inputs.every(({ id }) => id > before.id);
    if (node.op === 'stopGradient' && !isOwn) continue;
    for (const input of derivedInputs(node)) if (isInexact(input.dtype)) seen.add(input);
  }
}

/** `fn` with a derivative, which is made for results of one structure. */
function customised<R>(
  op: string,
  fn: (...args: Tensor[]) => R,
  derivativeOf: (flat: Flat) => Custom,
): (...args: Tensor[]) => R {
  const known = new Map<string, Derivative>();
  return (...args) => {
    const before = gradEnabled() && isDifferentiating() ? variable({ dtype: 'bool', shape: [] }) : undefined;
    const output = withGrad(false, () => fn(...args));
    expectSynchronous(op, output);
    const flat = flatten(output, op);
    const values = flat.leaves.map((leaf, i) => tensorAt(op, 'result', leaf, flat.paths[i]!));
    const structure = JSON.stringify(flat.structure);
    const derivative = known.get(structure) ?? new Derivative(derivativeOf(flat));
    known.set(structure, derivative);
    const tracked = gradEnabled() && args.some((arg) => currentHandleUnchecked(handleOf(arg)).requiresGrad);
    const nodes = values.map(nodeOf);
    const given = args.map(nodeOf);
    if (before !== undefined) checkCaptured(op, nodes, given, before);
    const results = nodes.map((value, i) => {
      const node = derivative.node(builder(), customInputs(value, given, nodes), i);
      dropPending(handleOf(values[i]!));
      const leads = tracked && isInexact(node.dtype);
      return new Tensor(recordedHandle(leads ? node : cut(node), leads));
    });
    return unflatten(flat.structure, results) as R;
  };
}

/**
 * `fn` with a derivative of the user's: `rule(g, args, value)` gives the cotangent of each argument
 * from the cotangent `g` of the result, or undefined for none. It is made of tensor operations, so
 * second derivatives follow from it, and tangents where it is linear in `g`. The result may be a
 * tree of tensors; `g` and `value` are trees like it then, and one call of the rule serves all.
 */
export function customVjp<R = Tensor>(
  fn: (...args: Tensor[]) => R,
  rule: (g: R, args: readonly Tensor[], value: R) => readonly (Tensor | undefined)[],
): (...args: Tensor[]) => R {
  expectFunction('customVjp', fn);
  expectFunction('customVjp', rule);
  return customised('customVjp', fn, ({ structure, leaves }) => ({
    results: leaves.length,
    pull: (_, args, values, gs) => {
      const tree = (nodes: readonly Node[]): R => unflatten(structure, nodes.map(face)) as R;
      const given = ruled('customVjp', () => rule(tree(gs), args.map(face), tree(values)));
      return nodesOf('customVjp', given);
    },
  }));
}

/**
 * `fn` with a derivative of the user's, forwards: `rule(args, tangents, value)` gives the tangent of
 * the result, a tree like it, from those of the arguments, in which it is linear. Gradients are its
 * transpose. Throws E_GRAD where a tangent is not like its value, or the rule is not linear.
 */
export function customJvp<R = Tensor>(
  fn: (...args: Tensor[]) => R,
  rule: (args: readonly Tensor[], tangents: readonly Tensor[], value: R) => R,
): (...args: Tensor[]) => R {
  expectFunction('customJvp', fn);
  expectFunction('customJvp', rule);
  return customised('customJvp', fn, (flat) => {
    const { structure, leaves } = flat;
    const push = (
      b: GraphBuilder,
      args: readonly Node[],
      values: readonly Node[],
      tangents: readonly (Node | undefined)[],
    ): Node[] => {
      const along = tangents.map((tangent, i) => face(tangent ?? fullLike(b, args[i]!, 0)));
      const tree = unflatten(structure, values.map(face)) as R;
      const given = ruled('customJvp', () => rule(args.map(face), along, tree));
      const found = flatten(given, 'customJvp');
      checkSameStructure('customJvp', 'the result', flat, 'its tangent', found);
      return found.leaves.map((leaf, i) => {
        const node = nodeOf(tensorAt('customJvp', 'tangent', leaf, found.paths[i]!));
        const value = values[i]!;
        if (node.dtype === value.dtype && sameShape(node.shape, value.shape)) return node;
        const problem = `the result is ${showType(value)}, but its tangent ${showType(node)}`;
        throw new TensorError('E_GRAD', 'customJvp', problem);
      });
    };
    return {
      results: leaves.length,
      push,
      pull: (b, args, values, gs, wanted) =>
        transposeOf(b, 'customJvp', args, wanted, gs, (tangents) => push(b, args, values, tangents)),
    };
  });
}
