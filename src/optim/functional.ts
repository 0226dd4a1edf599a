// The functional interface of optimizers, for `compile`: parameters, gradients and state are trees,
// and a step gives new ones. The step's number is part of the state, and what depends on it is
// computed in the graph.

import { showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { isComplex, isInexact } from '../ir/dtype.ts';
import { sameShape } from '../ir/shape.ts';
import { tensor } from '../tensor/ops/creation/creation.ts';
import { add } from '../tensor/ops/elementwise/arithmetic.ts';
import { show } from '../tensor/ops/operand.ts';
import { Tensor, type TensorLike } from '../tensor/tensor.ts';
import { trainedLeaves } from '../tensor/derivative/trainable.ts';
import { anew } from '../tensor/derivative/anew.ts';
import { checkSameStructure, flatten, unflatten, type Flat } from '../tensor/tree.ts';
import { rateOperand } from './optimizer.ts';
import { applyRule, graphClock, slotShape, slotType, startSlots, type Rule, type Slots } from './rule.ts';

/** What is passed from step to step beside the parameters; itself a tree. */
export interface OptimizerState {
  /** i32[]: steps done. */
  readonly step: Tensor;
  /** One per tensor, in the order of the tree; without slots for those that are not trained. */
  readonly slots: readonly Slots[];
}

export interface UpdateOptions {
  /**
   * This step's learning rate, instead of the optimizer's: a number, or a tensor such as an argument
   * of the function; the optimizer's by default.
   */
  readonly lr?: TensorLike;
}

/**
 * An optimizer as two functions on trees. Of a module what requires gradients is trained, and
 * everything else comes back as it is; of plain arrays and objects every float is.
 */
export interface FunctionalOptimizer {
  /** The state before the first step. */
  init(params: unknown): OptimizerState;
  /**
   * New parameters (without history, and requiring gradients as the old ones do) and the state
   * after this step. Inside of a function that is differentiated, its derivative goes through the
   * step. `grads` and `state` fit `params`: throws E_VALUE or E_SHAPE, naming the place, where they
   * do not.
   */
  update<P>(params: P, grads: P, state: OptimizerState, options?: UpdateOptions): [P, OptimizerState];
}

const isSlot = (value: unknown): boolean =>
  typeof value === 'number' ||
  (arg.isPlainObject(value) && typeof value['start'] === 'number' && arg.isCallable(value['shape']));
const aRule: arg.Kind<Rule> = arg.kind('a rule { slots, step }', (value) => {
  if (!arg.isPlainObject(value)) return false;
  const { slots, step } = value;
  return arg.isPlainObject(slots) && Object.values(slots).every(isSlot) && arg.isCallable(step);
});
const takesRule = arg.takes<typeof functional>(
  ['the name', arg.text],
  ['the rule', aRule],
  ['the learning rate', rateOperand],
);
const updateOptions = arg.options<UpdateOptions>({ lr: rateOperand });

/** What moves a parameter. */
interface Mover {
  readonly rule: Rule;
  readonly rate: TensorLike;
}

/** What functional optimizers are made of, for those that are made of several. */
const movers = new WeakMap<FunctionalOptimizer, (path: string) => Mover | undefined>();

/** The functional form of a rule. */
export function functional(op: string, rule: Rule, rate: TensorLike): FunctionalOptimizer {
  takesRule('functional', op, rule, rate);
  const only = { rule, rate };
  return moving(op, () => only);
}

/** A share of the parameters, by their paths in the tree (`.layers[0].bias`), and its optimizer. */
export type PartitionEntry = readonly [match: RegExp, optimizer: FunctionalOptimizer];

const anOptimizer: arg.Kind<FunctionalOptimizer> = arg.kind(
  'a functional optimizer (adam(), sgd(), …)',
  (value) => typeof value === 'object' && value !== null && movers.has(value as FunctionalOptimizer),
);
const aPattern: arg.Kind<RegExp> = arg.kind('a regular expression', (value) => value instanceof RegExp);
const takesPartition = arg.takes<typeof partition>([
  'the entries',
  arg.listOf(arg.tupleOf<readonly [RegExp, FunctionalOptimizer]>(aPattern, anOptimizer)),
]);

/**
 * One optimizer a group of parameters: of the entries, the first whose pattern is found in a
 * parameter's path moves it. `partition([[/bias$/, adamW({ weightDecay: 0 })], [/./, adamW()]])`.
 * Throws E_VALUE, naming the path, where none is. A rate that `update` is given is that of all.
 */
export function partition(entries: readonly PartitionEntry[]): FunctionalOptimizer {
  takesPartition('partition', entries);
  return moving('partition', (path) => {
    const entry = entries.find(([match]) => path.search(match) >= 0);
    return entry === undefined ? undefined : movers.get(entry[1])?.(path);
  });
}

/** An optimizer of a rule and a rate for each path. */
function moving(op: string, moverAt: (path: string) => Mover | undefined): FunctionalOptimizer {
  const moverOf = ({ path, value }: Member): Mover => {
    const mover = moverAt(path);
    if (mover !== undefined) return mover;
    const problem = `no entry is for ${show(value)}${at(path)}`;
    throw new TensorError('E_VALUE', op, problem, 'a last entry [/./, optimizer] for all others');
  };
  const optimizer: FunctionalOptimizer = {
    init: (params) => {
      const members = parametersOf(op, flatten(params, op));
      const slots = members.map((member) =>
        member.trained ? startSlots(moverOf(member).rule, member.value) : {},
      );
      return { step: tensor(0, { dtype: 'i32' }), slots };
    },
    update: <P>(params: P, grads: P, state: OptimizerState, options: UpdateOptions = {}) => {
      if (!updateOptions.accepts(options)) updateOptions.refuse(op, 'options', options);
      return anew((own): [P, OptimizerState] => {
        const flat = flatten(params, op);
        const given = flatten(grads, op);
        checkSameStructure(op, 'the parameters', flat, 'the gradients', given);
        const members = parametersOf(op, flat);
        checkState(op, (member) => moverOf(member).rule, members, state);
        const step = add(state.step, 1);
        const slots = [...state.slots];
        const leaves = [...flat.leaves];
        members.forEach((member, i) => {
          const { value, path, leaf, trained } = member;
          if (!trained) return;
          const { rule, rate } = moverOf(member);
          const grad = own(gradientAt(op, path, value, given.leaves[leaf]));
          const clock = graphClock(step, value.dtype);
          const lr = options.lr ?? rate;
          const past = Object.entries(slots[i]!).map(([name, slot]) => [name, own(slot)] as const);
          const next = applyRule(rule, {
            value: own(value),
            grad,
            slots: Object.fromEntries(past),
            lr: lr instanceof Tensor ? own(lr) : lr,
            clock,
          });
          slots[i] = next.slots;
          leaves[leaf] = value.requiresGrad ? next.value.requiresGrad_() : next.value;
        });
        return [unflatten(flat.structure, leaves) as P, { step, slots }];
      });
    },
  };
  movers.set(optimizer, moverAt);
  return optimizer;
}

/** A tensor of the tree. */
interface Member {
  readonly value: Tensor;
  readonly path: string;
  /** Its place among the leaves. */
  readonly leaf: number;
  readonly trained: boolean;
}

function parametersOf(op: string, flat: Flat): Member[] {
  const trained = trainedLeaves(op, 'the parameters', flat);
  const [only] = flat.leaves;
  if (flat.structure.kind === 'leaf' && !(only instanceof Tensor) && typeof only !== 'number')
    throw new TensorError('E_VALUE', op, `the parameters must be a tree of tensors, got ${showValue(only)}`);
  return flat.leaves.flatMap((value, leaf): Member[] => {
    const path = flat.paths[leaf]!;
    if (value instanceof Tensor) return [{ value, path, leaf, trained: trained[leaf]! }];
    if (typeof value !== 'number') return [];
    const problem = `a parameter is a tensor, got ${value}${at(path)}`;
    throw new TensorError('E_VALUE', op, problem, `sn.tensor(${value})`);
  });
}

const at = (path: string): string => (path === '' ? '' : ` at ${path}`);

/**
 * The gradient of a parameter. Throws E_SHAPE unless it has its shape, and E_VALUE where it is no
 * tensor of floats.
 */
function gradientAt(op: string, path: string, value: Tensor, grad: unknown): Tensor {
  if (!(grad instanceof Tensor) || !isInexact(grad.dtype)) {
    const got = grad instanceof Tensor ? show(grad) : showValue(grad);
    throw new TensorError('E_VALUE', op, `the gradient${at(path)} must be a tensor of floats, got ${got}`);
  }
  if (sameShape(grad.shape, value.shape) && isComplex(grad.dtype) === isComplex(value.dtype)) return grad;
  const problem = `the gradient${at(path)} is ${show(grad)}, of a parameter ${show(value)}`;
  throw new TensorError('E_SHAPE', op, problem);
}

/** Throws unless the state is one of these rules and these parameters. */
function checkState(
  op: string,
  ruleOf: (member: Member) => Rule,
  members: readonly Member[],
  state: OptimizerState,
): void {
  const hint = 'the state that init(params) gave for this tree, or update after it';
  const fail = (code: 'E_VALUE' | 'E_SHAPE', problem: string): never => {
    throw new TensorError(code, op, problem, hint);
  };
  const given: unknown = state;
  if (typeof given !== 'object' || given === null || !('step' in given) || !('slots' in given)) {
    fail('E_VALUE', `a state has step and slots, got ${showValue(given)}`);
  }
  const { step, slots } = state;
  if (!(step instanceof Tensor) || step.dtype !== 'i32' || step.shape.length > 0) {
    fail(
      'E_VALUE',
      `the state's step must be i32[], got ${step instanceof Tensor ? show(step) : showValue(step)}`,
    );
  }
  if (!Array.isArray(slots)) fail('E_VALUE', `the state's slots must be an array, got ${showValue(slots)}`);
  if (slots.length !== members.length) {
    const first = members[slots.length];
    const which = first === undefined ? '' : `: nothing is kept for ${show(first.value)}${at(first.path)}`;
    fail('E_VALUE', `the state is of ${slots.length} tensors, the tree has ${members.length}${which}`);
  }
  members.forEach((member, i) => {
    const { value, path, trained } = member;
    if (!trained) return;
    for (const [name, kept] of Object.entries(ruleOf(member).slots)) {
      const slot: unknown = (slots[i] as Slots | undefined)?.[name];
      if (!(slot instanceof Tensor)) {
        fail('E_VALUE', `the state has no ${name} for ${show(value)}${at(path)}, which is trained`);
      } else if (!sameShape(slot.shape, slotShape(kept, value)) || slot.dtype !== slotType(value.dtype)) {
        fail('E_SHAPE', `the state's ${name}${at(path)} is ${show(slot)}, of a parameter ${show(value)}`);
      }
    }
  });
}
