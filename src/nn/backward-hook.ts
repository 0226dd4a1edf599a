// Hooks on the way back, as PyTorch has them: what goes into a layer and what comes out of it pass
// an identity each. The derivative of the outer one sees the gradients of the results, that of the
// inner one the gradients of the arguments, and calls the hook with both.

import { showValue, TensorError } from '../errors.ts';
import { isComplex, isInexact, promote, type DType } from '../ir/dtype.ts';
import { sameShape, sizeOf } from '../ir/shape.ts';
import { customVjp } from '../tensor/derivative/custom.ts';
import type { Surrounding } from '../tensor/layer/hooks.ts';
import { real } from '../tensor/ops/complex/complex.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { narrow } from '../tensor/ops/shape/indexing.ts';
import { cat } from '../tensor/ops/shape/join.ts';
import { reshape } from '../tensor/ops/shape/view.ts';
import { show } from '../tensor/ops/operand.ts';
import { Tensor } from '../tensor/tensor.ts';
import { flatten, unflatten } from '../tensor/tree.ts';

/** Gradients of the tensors that a layer took or gave, in order; undefined of what has none. */
export type Gradients = readonly (Tensor | undefined)[];

/**
 * Sees the gradients of what `forward` took and gave; gives the former anew (an array, or the only
 * one), or nothing.
 */
export type FullBackwardHook<L = object> = (layer: L, gradInput: Gradients, gradOutput: Gradients) => unknown;

type Rule = (grads: readonly Tensor[]) => readonly Tensor[];

/** The tensors, whose gradients pass through `rule`, all at once. */
function passing(values: readonly Tensor[], rule: Rule): Tensor[] {
  const [first] = values;
  if (first === undefined) return [];
  if (values.length === 1) {
    const identity = customVjp(
      (x) => x!.detach(),
      (grad) => rule([grad]),
    );
    return [identity(first)];
  }
  // One vector has one derivative.
  const wide = values.map(({ dtype }) => dtype).reduce((a: DType, b: DType) => promote(a, b));
  const packed = (list: readonly Tensor[]): Tensor =>
    cat(
      list.map((value) => reshape(cast(value, wide), [value.size])),
      0,
    );
  const parts = (vector: Tensor): Tensor[] => {
    let start = 0;
    return values.map(({ shape, dtype }) => {
      const size = sizeOf(shape);
      const part = reshape(narrow(vector, 0, start, size), shape);
      start += size;
      return cast(isComplex(wide) && !isComplex(dtype) ? real(part) : part, dtype);
    });
  };
  const identity = customVjp(
    (x) => x!.detach(),
    (grad) => [packed(rule(parts(grad)))],
  );
  return parts(identity(packed(values)));
}

/** The tree, with its differentiable tensors replaced. */
function replaced(tree: unknown, replace: (values: readonly Tensor[]) => readonly Tensor[]): unknown {
  const flat = flatten(tree, 'registerFullBackwardHook');
  const places = flat.leaves.flatMap((leaf, i) =>
    leaf instanceof Tensor && isInexact(leaf.dtype) && leaf.requiresGrad ? [i] : [],
  );
  const next = replace(places.map((i) => flat.leaves[i] as Tensor));
  const leaves = [...flat.leaves];
  places.forEach((place, i) => (leaves[place] = next[i]!));
  return unflatten(flat.structure, leaves);
}

/** Which tensors of a tree of arguments have gradients. */
function placesOfTensors(tree: unknown): boolean[] {
  return flatten(tree, 'registerFullBackwardHook').leaves.flatMap((leaf) =>
    leaf instanceof Tensor ? [isInexact(leaf.dtype) && leaf.requiresGrad] : [],
  );
}

function spread(grads: readonly Tensor[], tracked: readonly boolean[]): Gradients {
  let next = 0;
  return tracked.map((isTracked) => (isTracked ? grads[next++] : undefined));
}

/** What surrounds `forward` so that the hook is called on the way back. */
export function backwardHook(hook: FullBackwardHook): Surrounding {
  return (layer, forward, args) => {
    let gradOutput: Gradients = [];
    const inputs = placesOfTensors(args);
    const takes = inputs.includes(true);
    const marked = takes
      ? replaced(args, (values) =>
          passing(values, (grads) => answered(layer, hook, grads, inputs, gradOutput)),
        )
      : args;
    const value = forward(marked as readonly unknown[]);
    const outputs = placesOfTensors(value);
    return replaced(value, (values) =>
      passing(values, (grads) => {
        gradOutput = spread(grads, outputs);
        // Where no argument has a gradient, nothing later calls the hook.
        if (!takes) {
          const given = hook(
            layer,
            inputs.map(() => undefined),
            gradOutput,
          );
          if (given !== undefined) refuse('no argument of forward has a gradient that it could replace');
        }
        return grads;
      }),
    );
  };
}

/** The gradients that go on. */
function answered(
  layer: object,
  hook: FullBackwardHook,
  grads: readonly Tensor[],
  inputs: readonly boolean[],
  gradOutput: Gradients,
): readonly Tensor[] {
  const given = hook(layer, spread(grads, inputs), gradOutput);
  if (given === undefined) return grads;
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (list.length !== inputs.length)
    refuse(`it gave ${list.length} gradient(s) for ${inputs.length} tensor(s)`);
  const next = list.filter((_, i) => inputs[i]);
  return next.map((grad, i) => {
    const old = grads[i]!;
    if (grad === undefined) return old;
    if (grad instanceof Tensor && grad.dtype === old.dtype && sameShape(grad.shape, old.shape)) return grad;
    return refuse(
      `it gave ${grad instanceof Tensor ? show(grad) : showValue(grad)} for a gradient ${show(old)}`,
    );
  });
}

function refuse(problem: string): never {
  throw new TensorError(
    'E_GRAD',
    'registerFullBackwardHook',
    problem,
    'nothing, to leave gradients as they are',
  );
}
