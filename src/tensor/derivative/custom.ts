// Derivatives that users define: `customVjp` in reverse mode, `customJvp` in forward mode. Either gives the
// other mode too.

import { customInputs, Derivative, type Custom } from '../../autograd/custom.ts';
import { transposeOf } from '../../autograd/jvp/transpose.ts';
import { showValue, TensorError } from '../../errors.ts';
import { distinct, fullLike } from '../../ir/build.ts';
import { isInexact } from '../../ir/dtype.ts';
import { showType } from '../../ir/infer.ts';
import type { GraphBuilder, Node } from '../../ir/graph.ts';
import { sameShape } from '../../ir/shape.ts';
import { expectFunction, expectSynchronous } from '../expect.ts';
import { cut, walkGradient } from '../handle/gradient.ts';
import { withOpen } from '../handle/recorded.ts';
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
import { isSource, tensorAt } from './result.ts';

/**
 * A node as a tensor for a rule, which may differentiate with respect to it: a constant gets a node
 * of its own, apart from equal ones.
 */
function face(node: Node): Tensor {
  return new Tensor(unscheduledHandle(isFree(node) ? distinct(node) : node, isInexact(node.dtype)));
}

/**
 * Calls a rule on faces: only what it gives counts. Gradients lead to the faces, also where they stand for all
 * iterations of a loop, so what the rule's own derivatives give can be differentiated again.
 */
function ruled<T>(op: string, faces: readonly Tensor[], call: () => T): T {
  const nodes = faces.map(nodeOf).filter(({ dtype }) => isInexact(dtype));
  const given = withOpen(nodes, () => inScratch(() => withGrad(true, call)));
  expectSynchronous(op, given);
  return given;
}

/** Cotangents in an array, one for each of so many arguments. */
function nodesOf(op: string, given: unknown, count: number): (Node | undefined)[] {
  if (!Array.isArray(given)) {
    const problem = `the rule must give one cotangent per argument in an array, got ${showValue(given)}`;
    throw new TensorError('E_VALUE', op, problem, 'undefined stands for none');
  }
  if (given.length !== count) {
    const problem = `the rule gave ${given.length} cotangent(s) for ${count} argument(s)`;
    throw new TensorError('E_GRAD', op, problem);
  }
  return given.map((each: Tensor | undefined) => (each === undefined ? undefined : nodeOf(each)));
}

/** What values depend on and gradients may lead to, apart from the arguments. */
function capturedBy(values: readonly Node[], args: readonly Node[]): readonly Node[] {
  const found: Node[] = [];
  walkGradient(values, (node) => {
    if (args.includes(node)) return false;
    if (isSource(node)) found.push(node);
    return !found.includes(node);
  });
  return found;
}

/**
 * A derivative by the first `count` of the arguments of its nodes. The others are what the function captures: the
 * rule says nothing of it, so that a derivative for it is E_GRAD.
 */
function byArguments(op: string, count: number, { results, pull, push }: Custom): Custom {
  const own = <T>(list: readonly T[]): readonly T[] => list.slice(0, count);
  const refuse = (args: readonly Node[], asked: readonly unknown[]): void => {
    const node = args.find((_, i) => i >= count && asked[i] !== undefined && asked[i] !== false);
    if (node === undefined) return;
    const problem = `a derivative is being taken for ${showType(node)}, which the function captures: the rule speaks of arguments only`;
    throw new TensorError('E_GRAD', op, problem, 'pass what is made of it as an argument, or detach it');
  };
  return {
    results,
    pull: (b, args, values, gs, wanted) => {
      refuse(args, wanted);
      const found = pull(b, own(args), values, gs, own(wanted));
      return args.map((_, i) => found[i]);
    },
    ...(push !== undefined && {
      push: (b, args, values, tangents) => {
        refuse(args, tangents);
        return push(b, own(args), values, own(tangents));
      },
    }),
  };
}

/** `fn` with a derivative, which is made for results of one structure. */
function customised<R>(
  op: string,
  fn: (...args: Tensor[]) => R,
  derivativeOf: (flat: Flat) => Custom,
): (...args: Tensor[]) => R {
  const known = new Map<string, Derivative>();
  return (...args) => {
    const output = fn(...args);
    expectSynchronous(op, output);
    const flat = flatten(output, op);
    const values = flat.leaves.map((leaf, i) => tensorAt(op, 'result', leaf, flat.paths[i]!));
    const kind = JSON.stringify([flat.structure, args.length]);
    const derivative = known.get(kind) ?? new Derivative(byArguments(op, args.length, derivativeOf(flat)));
    known.set(kind, derivative);
    const tracked =
      gradEnabled() &&
      [...args, ...values].some((each) => currentHandleUnchecked(handleOf(each)).requiresGrad);
    const nodes = values.map(nodeOf);
    const own = args.map(nodeOf);
    const given = tracked ? [...own, ...capturedBy(nodes, own)] : own;
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
 * second derivatives follow from it, and tangents where it is linear in `g`. If it contains a `whileLoop`, which has
 * no transpose, tangents are those of `fn`. The result may be a tree of tensors; `g` and `value` are trees like it then,
 * and one call of the rule serves all.
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
      const [ofGs, ofArgs, ofValues] = [gs.map(face), args.map(face), values.map(face)];
      const tree = (faces: readonly Tensor[]): R => unflatten(structure, faces) as R;
      const given = ruled('customVjp', [...ofGs, ...ofArgs, ...ofValues], () =>
        rule(tree(ofGs), ofArgs, tree(ofValues)),
      );
      return nodesOf('customVjp', given, args.length);
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
      const [ofArgs, ofValues] = [args.map(face), values.map(face)];
      const tree = unflatten(structure, ofValues) as R;
      const given = ruled('customJvp', [...along, ...ofArgs, ...ofValues], () => rule(ofArgs, along, tree));
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
