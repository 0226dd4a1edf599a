// Optimizer: the interface for loops of `loss.backward(); opt.step(); opt.zeroGrad()`. Parameters
// and slots are assigned in place, and every step asks for their values, so a loop records one step
// at a time and runs the same program again; its rate and what depends on its number are scalars of it.

import { showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { aTensor, expectTensor } from '../tensor/expect.ts';
import { sameShape } from '../ir/shape.ts';
import { show } from '../tensor/ops/operand.ts';
import { madeScalar } from '../tensor/record.ts';
import { noteKnown } from '../tensor/layer/held.ts';
import { Tensor, type TensorLike } from '../tensor/tensor.ts';
import { isTracing } from '../tensor/tracing.ts';
import { assigning, computeAll, convert } from '../tensor/values.ts';
import { trainedLeaves } from '../tensor/derivative/trainable.ts';
import { noGrad } from '../tensor/derivative/transform.ts';
import { flatten, treeLeaves, TreeNode } from '../tensor/tree.ts';
import { applyRule, eagerClock, slotType, startSlots, type Rule, type Slots } from './rule.ts';
import type { Schedule } from './schedule/closed-form.ts';

export interface RateOptions {
  /**
   * The learning rate, or a schedule that gives it for each call of `step`; by default what the
   * optimizer's own options say.
   */
  readonly lr?: number | Schedule;
}

/** A learning rate, or a schedule of it. */
const aRate: arg.Kind<number | Schedule> = arg.kind(
  'a number of at least 0, or a schedule',
  (value) => arg.notNegative.accepts(value) || arg.isCallable(value),
);

export const rateOptions: arg.Table<RateOptions> = { lr: aRate };

/** A learning rate of functional optimizers. */
export const rateOperand: arg.Kind<TensorLike> = {
  accepts: (value) => arg.notNegative.accepts(value) || aTensor.accepts(value),
  refuse: (op, what, value) =>
    typeof value === 'number' ? arg.notNegative.refuse(op, what, value) : aTensor.refuse(op, what, value),
};

/** Parameters with options of their own; what is not given is as for the others. */
export type ParameterGroup<O> = O & { readonly params: unknown };

/** What to optimize: a model or any tree of tensors, or groups of these. */
export type Trainable<O> = object | readonly ParameterGroup<O>[];

/** A tree of tensors, or groups of them with options of this table. */
export function trainable<O extends object>(table: arg.Table<O>): arg.Kind<Trainable<O>> {
  const group = arg.settings<{ readonly params: unknown }>({ ...table, params: arg.inside<unknown>() });
  const isTree = (value: unknown): boolean =>
    value instanceof Tensor || value instanceof TreeNode || Array.isArray(value) || arg.isPlainObject(value);
  return {
    accepts: (value) =>
      isTree(value) && (!isGroups(value as object) || (value as unknown[]).every((at) => group.accepts(at))),
    refuse(op, what, value): never {
      if (isTree(value)) return arg.listOf(group).refuse(op, what, value);
      const problem = `${what} must be a model, tensors, or groups of them, got ${showValue(value)}`;
      throw new TensorError('E_VALUE', op, problem);
    },
  };
}

/** What `loadStateDict` needs to go on as before; all but `tensors` is plain data. */
export interface OptimizerStateDict {
  /** Calls of `step` so far. */
  readonly step: number;
  /** Steps that each parameter took part in. */
  readonly steps: readonly number[];
  /** Slots by parameter and name, e.g. `0.mean`. */
  readonly tensors: Readonly<Record<string, Tensor>>;
}

/** Tensors by name. */
const slotsByName: arg.Kind<Readonly<Record<string, Tensor>>> = arg.kind(
  'an object of tensors',
  (value) => arg.isPlainObject(value) && Object.values(value).every((at) => aTensor.accepts(at)),
);
const takesState = arg.takes<(state: OptimizerStateDict) => void>([
  'the state',
  arg.settings<OptimizerStateDict>(
    { step: arg.count(0), steps: arg.listOf(arg.count(0)), tensors: slotsByName },
    ['step', 'steps', 'tensors'],
  ),
]);

interface Entry {
  readonly param: Tensor;
  readonly slots: Slots;
  steps: number;
}

interface Group {
  readonly rule: Rule;
  readonly entries: readonly Entry[];
  lr: number | Schedule;
}

let made = 0;

/** An optimizer over parameters; the classes `SGD`, `Adam`, … choose the rule. */
export abstract class Optimizer<O extends RateOptions> {
  readonly #name: string;
  /** Names the numbers of its steps apart from those of other optimizers. */
  readonly #own = `optimizer ${made++}`;
  readonly #groups: readonly Group[];
  #count = 0;

  protected constructor(
    params: Trainable<O>,
    options: O,
    define: (options: O) => { readonly rule: Rule; readonly lr: number | Schedule },
  ) {
    this.#name = new.target.name;
    const groups = isGroups<O>(params) ? params : [{ ...options, params }];
    const seen = new Set<Tensor>();
    this.#groups = groups.map((group) => {
      const { rule, lr } = define({ ...options, ...group });
      const tensors = new Set(treeLeaves(group.params));
      return { rule, lr, entries: [...tensors].map((param) => this.#entry(param, rule, seen)) };
    });
    if (seen.size === 0) throw new TensorError('E_VALUE', this.#name, 'there are no parameters');
    const trees = groups.map((group) => group.params);
    trainedLeaves(this.#name, 'the parameters', flatten(trees, this.#name));
    noteKnown(seen);
    // Initial values are computed now, so that the first step does not compile a separate program
    // for them.
    computeAll(seen);
  }

  #entry(param: Tensor, rule: Rule, seen: Set<Tensor>): Entry {
    if (seen.has(param)) {
      throw new TensorError('E_VALUE', this.#name, `${show(param)} is in two groups`);
    }
    expectTensor(this.#name, 'a parameter', param);
    seen.add(param);
    return { param, slots: startSlots(rule, param), steps: 0 };
  }

  /** The learning rate of the next step (of the first group). */
  get lr(): number {
    return this.#rate(this.#groups[0]!);
  }

  /** Sets the learning rate, or its schedule, for all groups; nothing is compiled anew. */
  set lr(lr: number | Schedule) {
    if (!aRate.accepts(lr)) aRate.refuse(this.#name, 'lr', lr);
    for (const group of this.#groups) group.lr = lr;
  }

  #rate({ lr }: Group): number {
    if (typeof lr === 'number') return lr;
    const rate = lr(this.#count);
    if (!arg.notNegative.accepts(rate)) arg.notNegative.refuse(this.#name, 'what the schedule gives', rate);
    return rate;
  }

  /**
   * Moves every parameter that has a gradient, and computes everything that is pending around them.
   * Throws E_STATE inside a compiled function, which would repeat the numbers of one step: there
   * `adam`, `sgd`, … belong.
   */
  step(): void {
    if (isTracing()) {
      throw new TensorError(
        'E_STATE',
        `${this.#name}.step`,
        'a compiled function would repeat the numbers of this step for ever',
        'the functional form (adam, sgd, …), whose state goes through the function',
      );
    }
    const moved: Tensor[] = [];
    assigning(() => {
      for (const group of this.#groups) {
        const lr = this.#rate(group);
        // Groups of one rate or schedule have one number; others may be equal only for now.
        const of = this.#groups.findIndex((other) => other.lr === group.lr);
        for (const entry of group.entries) {
          const { param, slots } = entry;
          const { grad } = param;
          if (grad === undefined) continue;
          entry.steps += 1;
          const dtype = slotType(param.dtype);
          // The model may have been given another dtype since the last step.
          for (const slot of Object.values(slots)) convert(slot, dtype, this.#name);
          const clock = eagerClock(entry.steps, dtype, this.#own);
          const rate = madeScalar(lr, dtype, `rate ${of} of ${this.#own}`);
          const next = applyRule(group.rule, { value: param, grad, slots, lr: rate, clock });
          param.assign(next.value);
          moved.push(param);
          for (const [name, slot] of Object.entries(slots)) {
            slot.assign(next.slots[name]!);
            moved.push(slot);
          }
        }
      }
    });
    this.#count += 1;
    computeAll(moved);
  }

  /** What it moves, group by group. */
  parameters(): Tensor[] {
    return this.#entries().map(({ param }) => param);
  }

  /** Forgets the gradients of all parameters. */
  zeroGrad(): void {
    for (const { param } of this.#entries()) param.zeroGrad();
  }

  #entries(): Entry[] {
    return this.#groups.flatMap(({ entries }) => entries);
  }

  /** The state as it is now; later steps do not change it. */
  stateDict(): OptimizerStateDict {
    const entries = this.#entries();
    const tensors = entries.flatMap(({ slots }, i) =>
      Object.entries(slots).map(([name, slot]) => [`${i}.${name}`, slot.detach()] as const),
    );
    return {
      step: this.#count,
      steps: entries.map(({ steps }) => steps),
      tensors: Object.fromEntries(tensors),
    };
  }

  /**
   * Goes back to a saved state. Throws E_VALUE or E_SHAPE when it belongs to other parameters or
   * another rule.
   */
  loadStateDict(state: OptimizerStateDict): void {
    const op = `${this.#name}.loadStateDict`;
    takesState(op, state);
    const entries = this.#entries();
    const { length } = state.steps;
    if (length !== entries.length) {
      throw new TensorError('E_VALUE', op, `the state is of ${length} parameters, not ${entries.length}`);
    }
    const slots = entries.flatMap((entry, i) =>
      Object.entries(entry.slots).map(([name, slot]) => [`${i}.${name}`, slot] as const),
    );
    for (const [name, slot] of slots) {
      const saved = state.tensors[name];
      if (saved === undefined) throw new TensorError('E_VALUE', op, `the state lacks ${name}`);
      if (sameShape(saved.shape, slot.shape) && saved.dtype === slot.dtype) continue;
      throw new TensorError('E_SHAPE', op, `${name} is ${show(slot)}, given ${show(saved)}`);
    }
    noGrad(() => {
      for (const [name, slot] of slots) slot.assign(state.tensors[name]!);
    });
    entries.forEach((entry, i) => (entry.steps = state.steps[i]!));
    this.#count = state.step;
  }
}

function isGroups<O>(params: Trainable<O>): params is readonly ParameterGroup<O>[] {
  const isGroup = (item: unknown): boolean =>
    typeof item === 'object' &&
    item !== null &&
    !(item instanceof Tensor) &&
    !(item instanceof TreeNode) &&
    'params' in item;
  return Array.isArray(params) && params.length > 0 && params.every(isGroup);
}
