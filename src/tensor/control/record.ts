// Records the body of a loop: your function is called once, on tracers, and becomes a region.

import { showValue, TensorError } from '../../errors.ts';
import { add, binary, cast, full } from '../../ir/build.ts';
import { isWide } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { sameShape } from '../../ir/shape.ts';
import { expectSynchronous } from '../expect.ts';
import { showHandle } from '../handle/handle.ts';
import { asTensor, numberOf, record, recordMany } from '../record.ts';
import { currentHandle, withGrad, withTrace } from '../handle/recording.ts';
import { handleOf, Tensor, type TensorLike } from '../tensor.ts';
import { flatten, unflatten, type Flat } from '../tree.ts';
import { loopNodes, type LoopForm } from './loop.ts';
import { LoopScope } from './scope.ts';

/** A tree whose leaves are tensors, numbers among them made tensors of rank 0. */
export interface Values {
  readonly flat: Flat;
  readonly tensors: readonly Tensor[];
}

const isNumber = (leaf: unknown): boolean => typeof leaf === 'number' || numberOf(leaf) !== undefined;

export function valuesOf(op: string, what: string, tree: unknown): Values {
  const flat = flatten(tree, op);
  const tensors = flat.leaves.map((leaf, i) => {
    if (leaf instanceof Tensor) return leaf;
    if (typeof leaf === 'number') return asTensor(leaf, 'f32', op);
    const at = flat.paths[i] === '' ? '' : ` at ${flat.paths[i]}`;
    throw new TensorError(
      'E_VALUE',
      op,
      `${what}${at} must be a tensor or a number, got ${showValue(leaf)}`,
      'a value that is the same in every iteration is simply used in the function',
    );
  });
  return { flat, tensors };
}

/** What one iteration gives: the next carries and slices, from those of the last and where it stands. */
export type IterationBody = (
  index: Tensor,
  carry: unknown,
  slice: unknown,
) => readonly [carry: unknown, given: unknown];

export interface LoopRequest {
  readonly op: string;
  readonly init: unknown;
  readonly slices: unknown;
  readonly iteration: IterationBody;
  readonly form: LoopForm;
  /** What is added to the counter. */
  readonly first: number;
  /** Whether there is another iteration on a carry; without it, there are as many as `form` says. */
  readonly condition?: (carry: unknown) => unknown;
}

/** Records a loop; gives the last carries and the stacked slices. */
export function recordLoop({
  op,
  init,
  slices,
  iteration,
  form,
  first,
  condition,
}: LoopRequest): [carry: unknown, given: unknown] {
  const start = valuesOf(op, 'the carry', init);
  const stacks = valuesOf(op, 'the slices', slices);
  return recordTyped(start.tensors, false);

  function recordTyped(starts: readonly Tensor[], isAgain: boolean): [carry: unknown, given: unknown] {
    const scope = new LoopScope(op);
    const traced = withTrace(scope, () =>
      withGrad(true, () => {
        const count = scope.parameter({ dtype: 'i32', shape: [] });
        const carries = starts.map((tensor) => scope.parameter(tensor));
        const parts = stacks.tensors.map(({ dtype, shape }) =>
          scope.parameter({ dtype, shape: shape.slice(1) }),
        );
        const index = first === 0 ? count : plusFirst(count, first);
        const result = iteration(
          index,
          unflatten(start.flat.structure, carries),
          unflatten(stacks.flat.structure, parts),
        );
        expectSynchronous(op, result);
        if (!Array.isArray(result) || result.length !== 2)
          throw new TensorError(
            'E_VALUE',
            op,
            `the function must return [carry, slice], got ${showValue(result)}`,
            'return [carry, undefined] if you want no slices',
          );
        const next = nextOf(op, start.flat, starts, result[0]);
        const given = result[1] === undefined ? undefined : valuesOf(op, 'the slice', result[1]);
        const going =
          condition === undefined
            ? []
            : [
                flagOf(
                  op,
                  condition(
                    unflatten(
                      start.flat.structure,
                      next.map(({ tensor }) => tensor),
                    ),
                  ),
                ),
              ];
        const kept = scope.found.map(({ facts }) => scope.parameter(facts));
        const greatest = recordMany(
          [...kept, ...scope.found.map(({ facts }) => new Tensor(facts))],
          (b, nodes) => kept.map((_, i) => binary(b, 'max', nodes[i]!, nodes[kept.length + i]!)),
        );
        const nodesOf = (list: readonly Tensor[]): Node[] =>
          list.map((tensor) => currentHandle(handleOf(tensor), op).node);
        return {
          body: {
            count: nodesOf([count])[0]!,
            carries: nodesOf([...going.map((flag) => scope.parameter(flag)), ...carries, ...kept]),
            slices: nodesOf(parts),
            next: nodesOf([...going, ...next.map(({ tensor }) => tensor), ...greatest]),
            given: nodesOf(given?.tensors ?? []),
          },
          wider: next.map(({ wider }) => wider),
          structure: given?.flat.structure,
        };
      }),
    );
    // A carry that begins as a plain number takes the dtype that the function gives it.
    if (!isAgain && traced.wider.some((dtype) => dtype !== undefined)) {
      const cast = starts.map((tensor, i) => {
        const dtype = traced.wider[i];
        return dtype === undefined ? tensor : asTensor(start.flat.leaves[i] as TensorLike, dtype, op);
      });
      return recordTyped(cast, true);
    }
    const captured = scope.captured.map(({ outside }) => new Tensor(outside));
    const flags =
      condition === undefined ? [] : [flagOf(op, condition(unflatten(start.flat.structure, starts)))];
    const nothing = scope.found.map(({ facts: { dtype, shape } }) =>
      recordMany([], (b) => [full(b, shape, isWide(dtype) ? 0n : 0, dtype)]),
    );
    const held = [...flags, ...starts, ...nothing.flat()];
    const operands = [...held, ...stacks.tensors, ...captured];
    const body = { ...traced.body, captured: scope.captured.map(({ parameter }) => parameter) };
    const results = recordMany(operands, (b, nodes) => {
      const inputs = {
        carries: nodes.slice(0, held.length),
        stacks: nodes.slice(held.length, held.length + stacks.tensors.length),
        captured: nodes.slice(held.length + stacks.tensors.length),
      };
      return loopNodes(b, body, inputs, form);
    });
    const own = flags.length + starts.length;
    scope.found.forEach(({ tell }, i) => tell(handleOf(results[own + i]!)));
    const carry = unflatten(start.flat.structure, results.slice(flags.length, own));
    const given =
      traced.structure === undefined ? undefined : unflatten(traced.structure, results.slice(held.length));
    return [carry, given];
  }
}

function plusFirst(count: Tensor, first: number): Tensor {
  return recordMany([count], (b, [node]) => [add(b, node!, first)])[0]!;
}

/** The carries that an iteration returns, and the dtypes that those which began as numbers should have. */
function nextOf(
  op: string,
  start: Flat,
  starts: readonly Tensor[],
  tree: unknown,
): { readonly tensor: Tensor; readonly wider: Tensor['dtype'] | undefined }[] {
  const found = flatten(tree, op);
  const isSame =
    found.paths.length === start.paths.length && found.paths.every((path, i) => path === start.paths[i]);
  if (!isSame) {
    const places = (flat: Flat): string => `{${flat.paths.map((path) => path || 'a tensor').join(', ')}}`;
    throw new TensorError(
      'E_VALUE',
      op,
      `the carry is a tree of ${places(start)} before an iteration and of ${places(found)} after it`,
      'return a carry of the same structure as the first one',
    );
  }
  return found.leaves.map((leaf, i) => {
    const before = starts[i]!;
    if (!(leaf instanceof Tensor) && typeof leaf !== 'number')
      throw new TensorError('E_VALUE', op, `the carry must be tensors, got ${showValue(leaf)}`);
    const tensor = asTensor(leaf, before.dtype, op);
    const at = start.paths[i] === '' ? 'the carry' : `the carry at ${start.paths[i]}`;
    const [was, is] = [handleOf(before), handleOf(tensor)].map(showHandle);
    if (!sameShape(tensor.shape, before.shape))
      throw new TensorError(
        'E_SHAPE',
        op,
        `${at} is ${was} before an iteration and ${is} after it: every iteration must return the same shape`,
        'begin with a carry of the shape that the function returns, or reshape, sum or slice what it returns',
      );
    if (tensor.dtype === before.dtype) return { tensor, wider: undefined };
    if (isNumber(start.leaves[i]) && !tensor.weak) return { tensor, wider: tensor.dtype };
    if (!tensor.weak)
      throw new TensorError(
        'E_DTYPE',
        op,
        `${at} is ${was} before an iteration and ${is} after it: every iteration must return the same dtype`,
        `begin with a carry of ${tensor.dtype}, or return .cast('${before.dtype}')`,
      );
    return { tensor: tensor.cast(before.dtype), wider: undefined };
  });
}

/** What a condition gave, as the i32 that a loop is guarded by. */
export function flagOf(op: string, given: unknown): Tensor {
  expectSynchronous(op, given);
  if (!(given instanceof Tensor) || given.shape.length > 0 || given.dtype !== 'bool')
    throw new TensorError(
      'E_VALUE',
      op,
      `the condition must give a bool tensor of rank 0, got ${given instanceof Tensor ? showHandle(handleOf(given)) : showValue(given)}`,
      'compare tensors (x.lt(y)), and reduce to one (all(), any())',
    );
  return record([given], (b, [node]) => cast(b, node!, 'i32'));
}
