// Limited-memory BFGS (Nocedal and Wright, Numerical Optimization, 2nd edition, algorithm 7.4 and
// 7.5), with PyTorch's options: each step evaluates the loss several times, and reads numbers back
// to decide how far to go. The vectors stay on the device.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { isComplex, isInexact, partType } from '../ir/dtype.ts';
import { expectTensor } from '../tensor/expect.ts';
import { add, div, mul, sub } from '../tensor/ops/elementwise/arithmetic.ts';
import { viewAsComplex, viewAsReal } from '../tensor/ops/complex/complex.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { abs } from '../tensor/ops/elementwise/elementwise.ts';
import { amax } from '../tensor/ops/reduce/extremum.ts';
import { sum } from '../tensor/ops/reduce/reduce.ts';
import { zeros } from '../tensor/ops/creation/creation.ts';
import { cat } from '../tensor/ops/shape/join.ts';
import { narrow } from '../tensor/ops/shape/indexing.ts';
import { reshape } from '../tensor/ops/shape/view.ts';
import { trainable } from './optimizer.ts';
import { noteKnown } from '../tensor/layer/held.ts';
import { madeScalar } from '../tensor/record.ts';
import { isTracing } from '../tensor/tracing.ts';
import { noGrad } from '../tensor/derivative/transform.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { trainedLeaves } from '../tensor/derivative/trainable.ts';
import { flatten, treeLeaves } from '../tensor/tree.ts';
import { strongWolfe, type LossPoint } from './line-search.ts';

export interface LbfgsOptions {
  /** The length of a step along the direction, or the first that a line search tries; 1 by default. */
  readonly lr?: number;
  /** Directions that a call of `step` follows at most; 20 by default. */
  readonly maxIter?: number;
  /** Evaluations of the loss in a call of `step` at most; 1.25 times `maxIter` by default. */
  readonly maxEval?: number;
  /** The largest element of a gradient that is as good as 0; 1e-7 by default. */
  readonly toleranceGrad?: number;
  /** The least change of the loss, and of an element of the parameters; 1e-9 by default. */
  readonly toleranceChange?: number;
  /** Pairs of steps and changes of gradients that are kept; 100 by default. */
  readonly historySize?: number;
  /** How far along a direction to go: `lr` by default, or to a point of Wolfe's strong conditions. */
  readonly lineSearch?: 'strongWolfe';
}

/** A model, or tensors in arrays and plain objects. */
const trees: arg.Kind<object> = trainable<object>({});
const takesLbfgs = arg.takes<typeof LBFGS>(
  ['the parameters', trees],
  [
    'options',
    arg.options<LbfgsOptions>({
      lr: arg.positive,
      maxIter: arg.count(1),
      maxEval: arg.count(1),
      toleranceGrad: arg.notNegative,
      toleranceChange: arg.notNegative,
      historySize: arg.count(1),
      lineSearch: arg.oneOf('strongWolfe'),
    }),
  ],
);
const takesStep = arg.takes<(closure: LossClosure) => unknown>(['the closure', arg.callable<LossClosure>()]);

/** Forgets the gradients, computes the loss, calls `backward` on it and gives it. */
export type LossClosure = () => Tensor | Promise<Tensor>;

interface Pair {
  /** The step, the change of the gradient, and 1 / their product. */
  readonly step: Tensor;
  readonly change: Tensor;
  readonly curvature: number;
}

/** Quasi-Newton steps for smooth losses of whole batches: `await optimizer.step(closure)`. */
export class LBFGS {
  readonly #params: readonly Tensor[];
  readonly #options: Required<Omit<LbfgsOptions, 'lineSearch'>> & Pick<LbfgsOptions, 'lineSearch'>;
  #pairs: readonly Pair[] = [];
  /** What the last step left behind: its direction's history goes on from this gradient. */
  #last: { readonly gradient: Tensor; readonly step: Tensor } | undefined = undefined;
  #steps = 0;

  constructor(params: object, options: LbfgsOptions = {}) {
    takesLbfgs('LBFGS', params, options);
    const { maxIter = 20 } = options;
    this.#options = {
      lr: 1,
      maxIter,
      maxEval: Math.floor((maxIter * 5) / 4),
      toleranceGrad: 1e-7,
      toleranceChange: 1e-9,
      historySize: 100,
      ...options,
    };
    const tensors = [...new Set(treeLeaves(params))];
    for (const tensor of tensors) expectTensor('LBFGS', 'a parameter', tensor);
    // Integers have no gradients, and no place in a vector of floats.
    this.#params = tensors.filter(({ dtype }) => isInexact(dtype));
    if (this.#params.length === 0) throw new TensorError('E_VALUE', 'LBFGS', 'there are no parameters');
    trainedLeaves('LBFGS', 'the parameters', flatten(params, 'LBFGS'));
    noteKnown(new Set(this.#params));
  }

  /** Forgets the gradients of all parameters. */
  zeroGrad(): void {
    for (const param of this.#params) param.zeroGrad();
  }

  /**
   * Follows up to `maxIter` directions. Gives the loss before the first. Throws E_STATE inside a
   * compiled function, which cannot read the loss.
   */
  async step(closure: LossClosure): Promise<number> {
    takesStep('LBFGS.step', closure);
    if (isTracing()) {
      const problem = 'a compiled function cannot read the loss that decides how far to go';
      throw new TensorError('E_STATE', 'LBFGS.step', problem, 'compile the closure instead');
    }
    const { lr, maxIter, maxEval, toleranceGrad, toleranceChange } = this.#options;
    let evaluations = 1;
    let at = await this.#evaluate(closure);
    const before = at.loss;
    if ((await largest(at.gradient)) <= toleranceGrad) return before;
    for (let i = 1; i <= maxIter; i++) {
      const direction = await this.#direction(at.gradient);
      const slope = await inner(at.gradient, direction);
      if (slope > -toleranceChange) break;
      const first = this.#steps++ === 0;
      const start = first ? Math.min(1, 1 / (await number(sum(abs(at.gradient))))) * lr : lr;
      if (i === maxIter && this.#options.lineSearch === undefined) {
        // The next call computes the loss where this one ends.
        const step = mul(direction, along(direction, start));
        this.#scatter(add(this.#values(), step));
        this.#last = { gradient: at.gradient, step };
        break;
      }
      const next = await this.#follow(closure, at, direction, slope, start);
      evaluations += next.evaluations;
      this.#last = { gradient: at.gradient, step: mul(direction, along(direction, next.length)) };
      const change = Math.abs(next.point.loss - at.loss);
      at = next.point;
      if (evaluations >= maxEval) break;
      if ((await largest(at.gradient)) <= toleranceGrad) break;
      if ((await largest(direction)) * next.length <= toleranceChange || change < toleranceChange) break;
    }
    return before;
  }

  /** Goes along a direction, and leaves the parameters there. */
  async #follow(
    closure: LossClosure,
    from: LossPoint,
    direction: Tensor,
    slope: number,
    start: number,
  ): Promise<{ readonly point: LossPoint; readonly length: number; readonly evaluations: number }> {
    const origin = this.#values();
    const visit = async (length: number): Promise<LossPoint> => {
      this.#go(origin, direction, length);
      return this.#evaluate(closure);
    };
    if (this.#options.lineSearch === undefined) {
      return { point: await visit(start), length: start, evaluations: 1 };
    }
    const alongside = (point: LossPoint): Promise<number> => inner(point.gradient, direction);
    const bound = await largest(direction);
    const tolerance = this.#options.toleranceChange;
    const found = await strongWolfe({ visit, alongside, from, slope, start, bound, tolerance });
    this.#go(origin, direction, found.length);
    return found;
  }

  #go(origin: Tensor, direction: Tensor, length: number): void {
    this.#scatter(add(origin, mul(direction, along(direction, length))));
  }

  #values(): Tensor {
    return this.#gather((param) => param);
  }

  /** −H·gradient, with H of the pairs so far (algorithm 7.4). */
  async #direction(gradient: Tensor): Promise<Tensor> {
    const last = this.#last;
    if (last !== undefined) {
      const { step } = last;
      const change = noGrad(() => sub(gradient, last.gradient));
      const curvature = await inner(change, step);
      // Pairs of no or negative curvature would make the matrix indefinite.
      if (curvature > 1e-10) {
        const pairs = [...this.#pairs, { step, change, curvature: 1 / curvature }];
        this.#pairs = pairs.slice(-this.#options.historySize);
      }
    }
    return noGrad(() => {
      let q = mul(gradient, -1);
      const bend = (curvature: number): Tensor => madeScalar(curvature, gradient.dtype, 'inverse curvature');
      const weights: Tensor[] = [];
      for (const { step, change, curvature } of this.#pairs.toReversed()) {
        const weight = mul(sum(mul(step, q)), bend(curvature));
        weights.unshift(weight);
        q = sub(q, mul(change, weight));
      }
      const newest = this.#pairs.at(-1);
      if (newest !== undefined) {
        const { change, curvature } = newest;
        q = div(q, mul(sum(mul(change, change)), bend(curvature)));
      }
      this.#pairs.forEach(({ step, change, curvature }, i) => {
        q = add(q, mul(step, sub(weights[i]!, mul(sum(mul(change, q)), bend(curvature)))));
      });
      return q;
    });
  }

  async #evaluate(closure: LossClosure): Promise<LossPoint> {
    const loss = await closure();
    expectTensor('LBFGS.step', 'what the closure gives', loss);
    const gradient = this.#gather((param) => param.grad ?? zeros(param.shape, { dtype: param.dtype }));
    return { loss: Number(await loss.item()), gradient };
  }

  /** One vector of what there is of each parameter, in parts where it is complex. */
  #gather(of: (param: Tensor) => Tensor): Tensor {
    const wide = this.#params.some(({ dtype }) => partType(dtype) === 'f64') ? 'f64' : 'f32';
    const parts = (x: Tensor): Tensor => (isComplex(x.dtype) ? viewAsReal(x) : x);
    return noGrad(() =>
      cat(this.#params.map((param) => reshape(cast(parts(of(param).detach()), wide), [countOf(param)]))),
    );
  }

  /** Gives each parameter its part of a vector. */
  #scatter(vector: Tensor): void {
    noGrad(() => {
      let start = 0;
      for (const param of this.#params) {
        const { dtype, shape } = param;
        const count = countOf(param);
        // What does not require gradients stays: a layer's state may have changed since it was read.
        if (param.requiresGrad) {
          const part = cast(narrow(vector, 0, start, count), partType(dtype));
          param.assign(isComplex(dtype) ? viewAsComplex(reshape(part, [...shape, 2])) : reshape(part, shape));
        }
        start += count;
      }
    });
  }
}

/** How many numbers a parameter is. */
function countOf({ dtype, size }: Tensor): number {
  return isComplex(dtype) ? 2 * size : size;
}

/** How far a step goes, as a number of the recorded step. */
function along({ dtype }: Tensor, length: number): Tensor {
  return madeScalar(length, dtype, 'length of a step');
}

async function number(x: Tensor): Promise<number> {
  return Number(await x.item());
}

function inner(x: Tensor, y: Tensor): Promise<number> {
  return number(noGrad(() => sum(mul(x, y))));
}

function largest(x: Tensor): Promise<number> {
  return number(noGrad(() => amax(abs(x))));
}
