// Family: an optimizer in its two forms, as a class and as functions on trees, from one description:
// its name, its options with their checks, its learning rate and its rule.

import * as arg from '../ir/arguments.ts';
import { add, div, remainder } from '../tensor/ops/elementwise/arithmetic.ts';
import { eq, where } from '../tensor/ops/elementwise/compare.ts';
import { ceil, neg } from '../tensor/ops/elementwise/elementwise.ts';
import type { TensorLike } from '../tensor/tensor.ts';
import { functional, type FunctionalOptimizer } from './functional.ts';
import {
  Optimizer,
  rateOperand,
  rateOptions,
  trainable,
  type RateOptions,
  type Trainable,
} from './optimizer.ts';
import { clockAt, type Rule } from './rule.ts';

/** What every optimizer takes. */
export interface CommonSettings {
  /** Ascends the gradients rather than descending them; false by default. */
  readonly maximize?: boolean;
  /** Moves the parameters at every so many steps only, by the mean of the gradients; 1 by default. */
  readonly accumulate?: number;
}

/** Options of the functional form: the settings, and a learning rate that may be a tensor. */
export type FunctionalOptions<S> = S & CommonSettings & { readonly lr?: TensorLike };

/** Options of the class. */
export type ClassOptions<S> = S & CommonSettings & RateOptions;

export interface OptimizerFamily<S extends object> {
  /** Checks of arguments, under the names of the class and of the function. */
  readonly class: (params: Trainable<ClassOptions<S>>, options: ClassOptions<S>) => void;
  readonly functions: (options: FunctionalOptions<S>) => FunctionalOptimizer;
  /** The rule and the rate that options ask for. */
  readonly define: (options: ClassOptions<S>) => {
    readonly rule: Rule;
    readonly lr: RateOptions['lr'] & {};
  };
}

/** What a family is described by. */
interface Description<S extends object> {
  readonly className: string;
  readonly functionName: string;
  readonly settings: arg.Table<S>;
  /** The learning rate where none is given. */
  readonly lr: number;
  readonly rule: (settings: S) => Rule;
}

export function family<S extends object>(of: Description<S>): OptimizerFamily<S> {
  const common = { ...of.settings, maximize: arg.flag, accumulate: arg.count(1) };
  // The table has the settings' keys and the two that stand here, which a type parameter hides.
  const classTable = { ...common, ...rateOptions } as unknown as arg.Table<ClassOptions<S>>;
  const functionTable = { ...common, lr: rateOperand } as unknown as arg.Table<FunctionalOptions<S>>;
  type Params = Trainable<ClassOptions<S>>;
  const takesClass = arg.takes<(params: Params, options: ClassOptions<S> | undefined) => void>(
    ['the parameters', trainable(classTable)],
    ['options', arg.options<ClassOptions<S>>(classTable)],
  );
  const takesFunction = arg.takes<(options: FunctionalOptions<S> | undefined) => void>([
    'options',
    arg.options<FunctionalOptions<S>>(functionTable),
  ]);
  const rule = (settings: S & CommonSettings): Rule => {
    const descending = of.rule(settings);
    const directed = settings.maximize === true ? ascending(descending) : descending;
    const { accumulate = 1 } = settings;
    return accumulate === 1 ? directed : accumulating(directed, accumulate);
  };
  return {
    class: (params, options) => takesClass(of.className, params, options),
    functions: (options) => {
      takesFunction(of.functionName, options);
      return functional(of.functionName, rule(options), options.lr ?? of.lr);
    },
    define: (options) => ({ rule: rule(options), lr: options.lr ?? of.lr }),
  };
}

/** The rule, up the gradient. */
function ascending(rule: Rule): Rule {
  return { slots: rule.slots, step: (at) => rule.step({ ...at, grad: neg(at.grad) }) };
}

/**
 * The rule at every `every`-th step, on the mean of the gradients since the last. The other steps
 * compute it as well, and keep what was: a compiled step has no branches.
 */
function accumulating(rule: Rule, every: number): Rule {
  return {
    slots: { ...rule.slots, gathered: 0 },
    step(at) {
      const gathered = add(at.slots['gathered']!, at.grad);
      const isDue = eq(remainder(at.clock.time, every), 0);
      const clock = clockAt(ceil(div(at.clock.time, every)));
      const next = rule.step({ ...at, grad: div(gathered, every), clock });
      const kept = Object.keys(rule.slots).map((name) => [
        name,
        where(isDue, next.slots[name]!, at.slots[name]!),
      ]);
      return {
        value: where(isDue, next.value, at.value),
        slots: { ...Object.fromEntries(kept), gathered: where(isDue, 0, gathered) },
      };
    },
  };
}

/** The class of a family. */
export abstract class FamilyOptimizer<S extends object> extends Optimizer<ClassOptions<S>> {
  protected constructor(
    of: OptimizerFamily<S>,
    params: Trainable<ClassOptions<S>>,
    options: ClassOptions<S>,
  ) {
    of.class(params, options);
    super(params, options, of.define);
  }
}
