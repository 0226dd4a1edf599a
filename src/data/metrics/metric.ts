// Metrics: figures over many batches whose running state stays on the device. Each is four functions
// of trees of tensors, which may be compiled into a step; `Metric` keeps the state for them.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { noGrad } from '../../tensor/derivative/transform.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { isTracing } from '../../tensor/tracing.ts';
import { checkSameStructure, flatten, treeLeaves } from '../../tensor/tree.ts';
import { computeAll } from '../../tensor/values.ts';

/** A metric as functions. `A` is what an update is given: predictions and targets, mostly. */
export interface MetricFunctions<S, A extends readonly unknown[] = readonly [Tensor, Tensor]> {
  /** The state before anything was seen: a tree of tensors. */
  init(): S;
  /** The state with a batch taken in. */
  update(state: S, ...batch: A): S;
  /** The figure. */
  compute(state: S): Tensor;
  /** The state of what two states have seen together. */
  merge(a: S, b: S): S;
}

const functions: arg.Kind<MetricFunctions<unknown, readonly never[]>> = arg.kind(
  'a metric, such as metrics.accuracy()',
  (value) => {
    if (typeof value !== 'object' || value === null) return false;
    const given = value as Readonly<Record<string, unknown>>;
    return ['init', 'update', 'compute', 'merge'].every((name) => typeof given[name] === 'function');
  },
  (value) => (typeof value === 'function' ? 'call it: metrics.accuracy()' : undefined),
);
const takesMetric = arg.takes<(metric: MetricFunctions<unknown, readonly never[]>) => unknown>([
  'the argument',
  functions,
]);

/** A metric with the state of what it has seen: `update` with each batch, `compute` at the end. */
export class Metric<S, A extends readonly unknown[] = readonly [Tensor, Tensor]> {
  readonly #functions: MetricFunctions<S, A>;
  #state: S;

  constructor(metric: MetricFunctions<S, A>) {
    takesMetric('Metric', metric as unknown as MetricFunctions<unknown, readonly never[]>);
    this.#functions = metric;
    this.#state = noGrad(() => metric.init());
  }

  /** The state so far, as a tree of tensors. */
  get state(): S {
    return this.#state;
  }

  /** Goes on from a state, such as one that was saved. */
  load(state: S): void {
    this.#expectOutside('load');
    this.#expectLike('load', state);
    this.#state = state;
  }

  /** Takes a batch in. Nothing is read; derivatives do not look into it. */
  update(...batch: A): void {
    this.#expectOutside('update');
    // What has become of the update before: a program of one update, instead of one of them all.
    computeAll(treeLeaves(this.#state));
    this.#state = noGrad(() => this.#functions.update(this.#state, ...batch));
  }

  /** The figure over all that was seen. */
  compute(): Tensor {
    return noGrad(() => this.#functions.compute(this.#state));
  }

  /** Forgets what was seen. */
  reset(): void {
    this.#expectOutside('reset');
    this.#state = noGrad(() => this.#functions.init());
  }

  /** Takes in what another metric of the same kind has seen. */
  merge(other: Metric<S, A>): void {
    this.#expectOutside('merge');
    if (!(other instanceof Metric))
      throw new TensorError('E_VALUE', 'merge', `expects a Metric, got ${showValue(other)}`);
    this.#expectLike('merge', other.#state);
    this.#state = noGrad(() => this.#functions.merge(this.#state, other.#state));
  }

  /** Refuses the state of another kind of metric; one that grows has no fixed structure. */
  #expectLike(op: string, state: S): void {
    const own = flatten(this.#functions.init(), op);
    const other = flatten(state, op);
    if (own.leaves.length > 0)
      checkSameStructure(op, 'the state of this metric', own, 'the given one', other);
  }

  #expectOutside(op: string): void {
    if (!isTracing()) return;
    const problem = 'a function that is being compiled cannot change what lies outside of it';
    const hint =
      'the functions of the metric: state = metric.update(state, …), with the state handed in and out';
    throw new TensorError('E_STATE', op, problem, hint);
  }
}
