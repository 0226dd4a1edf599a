// The functional face of optimizers, for `compile`: parameters, gradients and state are trees, and a step gives new ones. The
// step's number is part of the state, and what depends on it is computed in the graph.

import { tensor } from '../tensor/ops/creation.ts';
import { add } from '../tensor/ops/elementwise.ts';
import { Tensor, type TensorLike } from '../tensor/tensor.ts';
import { noGrad } from '../tensor/transform.ts';
import { checkSameStructure, flatten, treeLeaves, unflatten } from '../tensor/tree.ts';
import { applyRule, graphClock, startSlots, type Rule, type Slots } from './rule.ts';

/** What goes from step to step beside the parameters; itself a tree. */
export interface OptimizerState {
  /** i32[]: steps done. */
  readonly step: Tensor;
  /** One per parameter, in the order of the tree. */
  readonly slots: readonly Slots[];
}

export interface UpdateOptions {
  /** This step's learning rate, instead of the optimizer's: a number, or a tensor such as an argument of the function. */
  readonly lr?: TensorLike;
}

/** An optimizer as two functions on trees. */
export interface FunctionalOptimizer {
  /** The state before the first step. */
  init(params: unknown): OptimizerState;
  /** New parameters (without history) and the state after this step; `grads` has the structure of `params`. */
  update<P>(params: P, grads: P, state: OptimizerState, options?: UpdateOptions): [P, OptimizerState];
}

/** The functional form of a rule. */
export function functional(op: string, rule: Rule, rate: TensorLike): FunctionalOptimizer {
  return {
    init: (params) => ({
      step: tensor(0, { dtype: 'i32' }),
      slots: treeLeaves(params).map((param) => startSlots(rule, param)),
    }),
    update: <P>(params: P, grads: P, state: OptimizerState, { lr = rate }: UpdateOptions = {}) =>
      noGrad((): [P, OptimizerState] => {
        const flat = flatten(params, op);
        const given = flatten(grads, op);
        checkSameStructure(op, 'the parameters', flat, 'the gradients', given);
        const step = add(state.step, 1);
        const slots: Slots[] = [];
        const leaves = flat.leaves.map((value, i) => {
          if (!(value instanceof Tensor)) return value;
          const clock = graphClock(step, value.dtype);
          const before = state.slots[slots.length]!;
          const at = { value, grad: given.leaves[i] as Tensor, slots: before, lr, clock };
          const next = applyRule(rule, at);
          slots.push(next.slots);
          return next.value;
        });
        return [unflatten(flat.structure, leaves) as P, { step, slots }];
      }),
  };
}
