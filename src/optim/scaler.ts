// Loss scaling (Micikevicius et al., 2018), by the rule of PyTorch's GradScaler: the loss is
// multiplied by a scale, so that gradients of f16 do not vanish, and gradients are divided by it
// before the step. A step whose gradients overflowed is left out, and the scale falls; after some
// steps without one it grows. As functions on trees nothing is read back: a step is chosen or not in
// the graph. The class reads one flag a step.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { isInexact } from '../ir/dtype.ts';
import { aTensor } from '../tensor/expect.ts';
import { anew } from '../tensor/derivative/anew.ts';
import { noGrad } from '../tensor/derivative/transform.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { add, div, mul } from '../tensor/ops/elementwise/arithmetic.ts';
import { eq, isFinite, logicalAnd, where } from '../tensor/ops/elementwise/compare.ts';
import { all } from '../tensor/ops/reduce/reduce.ts';
import { tensor } from '../tensor/ops/creation/creation.ts';
import { show } from '../tensor/ops/operand.ts';
import { madeScalar } from '../tensor/record.ts';
import { Tensor } from '../tensor/tensor.ts';
import { treeLeaves, treeMap } from '../tensor/tree.ts';
import type { FunctionalOptimizer, OptimizerState, UpdateOptions } from './functional.ts';
import { Optimizer } from './optimizer.ts';
import { slotType } from './rule.ts';

export interface ScalerOptions {
  /** The first scale; 65,536 by default. */
  readonly initScale?: number;
  /** What the scale is multiplied by after `growthInterval` steps in a row; 2 by default. */
  readonly growthFactor?: number;
  /** What the scale is multiplied by where gradients overflowed; 0.5 by default. */
  readonly backoffFactor?: number;
  /** Steps without an overflow until the scale grows; 2000 by default. */
  readonly growthInterval?: number;
}

const settings: arg.Table<ScalerOptions> = {
  initScale: arg.positive,
  growthFactor: arg.positive,
  backoffFactor: arg.share,
  growthInterval: arg.count(1),
};
const takesOptions = arg.takes<(options?: ScalerOptions) => unknown>([
  'options',
  arg.options<ScalerOptions>(settings),
]);

function complete(options: ScalerOptions): Required<ScalerOptions> {
  return { initScale: 65_536, growthFactor: 2, backoffFactor: 0.5, growthInterval: 2000, ...options };
}

/** A scale and what it depends on; itself a tree. */
export interface ScalerState {
  /** f32[]: what losses are multiplied by. */
  readonly scale: Tensor;
  /** i32[]: steps without an overflow since the scale changed. */
  readonly tracker: Tensor;
}

/** Loss scaling as functions on trees, which may be compiled. */
export interface LossScaling {
  init(): ScalerState;
  /** The loss times the scale: what gradients are to be taken of. */
  scale(loss: Tensor, state: ScalerState): Tensor;
  /** The gradients without the scale, and whether all of them are finite (bool[]). */
  unscale<G>(grads: G, state: ScalerState): [grads: G, finite: Tensor];
  /** `next` where the gradients were finite, else `old`: trees of one structure. */
  choose<T>(finite: Tensor, next: T, old: T): T;
  /** The scale for the next step. */
  update(state: ScalerState, finite: Tensor): ScalerState;
}

const takesLoss = arg.takes<(loss: Tensor) => unknown>(['the loss', aTensor]);

/** Loss scaling as functions: `scaled` puts them around an optimizer. */
export function gradScaler(options: ScalerOptions = {}): LossScaling {
  takesOptions('gradScaler', options);
  const { initScale, growthFactor, backoffFactor, growthInterval } = complete(options);
  return {
    init: () => ({ scale: tensor(initScale), tracker: tensor(0, { dtype: 'i32' }) }),
    scale(loss, { scale }) {
      takesLoss('gradScaler.scale', loss);
      return mul(loss, scale);
    },
    unscale: <G>(grads: G, { scale }: ScalerState): [G, Tensor] =>
      anew((own) => {
        const inverse = div(1, own(scale));
        return [
          treeMap((grad) => unscaled('gradScaler', own(grad), inverse), grads),
          finiteAll(treeLeaves(grads)),
        ];
      }),
    choose: (finite, next, old) =>
      anew((own) =>
        treeMap(
          (now, before) => {
            const taken = where(finite, own(now), own(before));
            return before.requiresGrad ? taken.requiresGrad_() : taken;
          },
          next,
          old,
        ),
      ),
    update: ({ scale, tracker }, finite) =>
      noGrad(() => {
        const count = add(tracker, 1);
        const grows = eq(count, growthInterval);
        const kept = where(grows, mul(scale, growthFactor), scale);
        // As PyTorch: a scale that overflows does not grow.
        const next = where(isFinite(kept), kept, scale);
        return {
          scale: where(finite, next, mul(scale, backoffFactor)),
          tracker: cast(where(finite, where(grows, 0, count), 0), 'i32'),
        };
      }),
  };
}

/** A gradient without the scale. Throws E_DTYPE at one of f16, which has overflowed or vanished already. */
function unscaled(op: string, grad: Tensor, inverse: Tensor): Tensor {
  if (!isInexact(grad.dtype)) return grad;
  if (grad.dtype === 'f16') {
    const problem = `gradients are to be of f32, got ${show(grad)}`;
    throw new TensorError('E_DTYPE', op, problem, 'parameters of f32, with the forward pass in autocast');
  }
  return cast(mul(grad, inverse), grad.dtype);
}

/** bool[]: whether every element of every tensor of floats or complex numbers is finite. */
function finiteAll(grads: readonly Tensor[]): Tensor {
  const inexact = grads.filter(({ dtype }) => isInexact(dtype));
  const flags = inexact.map((grad) => all(isFinite(grad)));
  return flags.reduce((a, b) => logicalAnd(a, b), tensor(true));
}

/** The state of a scaled optimizer. */
export interface ScaledState {
  readonly optimizer: OptimizerState;
  readonly scaler: ScalerState;
}

/** An optimizer whose gradients are of a scaled loss. */
export interface ScaledOptimizer {
  init(params: unknown): ScaledState;
  /** The loss times the scale: what the gradients that `update` takes are of. */
  scale(loss: Tensor, state: ScaledState): Tensor;
  /** As of the optimizer; parameters and its state stay where a gradient is not finite. */
  update<P>(params: P, grads: P, state: ScaledState, options?: UpdateOptions): [P, ScaledState];
}

const anOptimizer: arg.Kind<FunctionalOptimizer> = arg.kind(
  'a functional optimizer (adam(), sgd(), …)',
  (value) => arg.isPlainObject(value) && arg.isCallable(value['init']) && arg.isCallable(value['update']),
);
const takesScaled = arg.takes<typeof scaled>(
  ['the optimizer', anOptimizer],
  ['options', arg.options<ScalerOptions>(settings)],
);

/** A functional optimizer for gradients of a scaled loss, without reading anything back. */
export function scaled(optimizer: FunctionalOptimizer, options: ScalerOptions = {}): ScaledOptimizer {
  takesScaled('scaled', optimizer, options);
  const scaling = gradScaler(options);
  return {
    init: (params) => ({ optimizer: optimizer.init(params), scaler: scaling.init() }),
    scale: (loss, { scaler }) => scaling.scale(loss, scaler),
    update: <P>(params: P, grads: P, state: ScaledState, update: UpdateOptions = {}): [P, ScaledState] => {
      const [own, finite] = scaling.unscale(grads, state.scaler);
      const [next, after] = optimizer.update(params, own, state.optimizer, update);
      return [
        scaling.choose(finite, next, params),
        {
          optimizer: scaling.choose(finite, after, state.optimizer),
          scaler: scaling.update(state.scaler, finite),
        },
      ];
    },
  };
}

/** The state of a GradScaler, as plain data. */
export interface GradScalerState {
  readonly scale: number;
  readonly tracker: number;
}

type AnyOptimizer = Pick<Optimizer<object>, 'parameters' | 'step'>;

const aClassOptimizer: arg.Kind<AnyOptimizer> = arg.kind(
  'an optimizer (new Adam(…), …)',
  (value) => value instanceof Optimizer,
);
const takesOptimizer = arg.takes<(optimizer: AnyOptimizer) => unknown>(['the optimizer', aClassOptimizer]);
const takesScaleState = arg.takes<(state: GradScalerState) => unknown>([
  'the state',
  arg.settings<GradScalerState>({ scale: arg.positive, tracker: arg.count(0) }, ['scale', 'tracker']),
]);

/**
 * Loss scaling for loops: `scaler.scale(loss).backward(); await scaler.step(optimizer);
 * scaler.update()`.
 */
export class GradScaler {
  readonly #options: Required<ScalerOptions>;
  #state: GradScalerState;
  /** Of the optimizers since the last update: whether their gradients were finite. */
  #seen = new Map<AnyOptimizer, Tensor | boolean>();

  constructor(options: ScalerOptions = {}) {
    takesOptions('GradScaler', options);
    this.#options = complete(options);
    this.#state = { scale: this.#options.initScale, tracker: 0 };
  }

  /** What losses are multiplied by now. */
  get factor(): number {
    return this.#state.scale;
  }

  /** The loss times the scale. */
  scale(loss: Tensor): Tensor {
    takesLoss('GradScaler.scale', loss);
    return mul(loss, madeScalar(this.#state.scale, slotType(loss.dtype), 'scale of a loss'));
  }

  /** Divides the gradients of an optimizer's parameters by the scale, as clipping wants. */
  unscale(optimizer: AnyOptimizer): void {
    takesOptimizer('GradScaler.unscale', optimizer);
    if (this.#seen.has(optimizer)) {
      const problem = 'the gradients of this optimizer are without the scale already';
      throw new TensorError('E_STATE', 'GradScaler.unscale', problem, 'update() after its step');
    }
    const owners = optimizer.parameters().filter(({ grad }) => grad !== undefined);
    if (owners.length === 0)
      throw new TensorError('E_GRAD', 'GradScaler', 'no parameter has a gradient', 'call backward first');
    const flag = noGrad(() => {
      const grads = owners.map(({ grad }) => grad!);
      const finite = finiteAll(grads);
      const inverse = ({ dtype }: Tensor): Tensor =>
        madeScalar(1 / this.#state.scale, slotType(dtype), 'inverse of the scale of a loss');
      const own = grads.map((grad) => unscaled('GradScaler', grad, inverse(grad)));
      owners.forEach((owner, i) => (owner.grad = own[i]));
      return finite;
    });
    this.#seen.set(optimizer, flag);
  }

  /**
   * Takes the optimizer's step, unless a gradient is not finite; whether it did. Reads one flag back.
   */
  async step(optimizer: AnyOptimizer): Promise<boolean> {
    takesOptimizer('GradScaler.step', optimizer);
    if (!this.#seen.has(optimizer)) this.unscale(optimizer);
    const flag = this.#seen.get(optimizer);
    if (!(flag instanceof Tensor)) {
      const problem = 'this optimizer has taken its step since the last update';
      throw new TensorError('E_STATE', 'GradScaler.step', problem, 'update() after each step');
    }
    const finite = (await flag.item()) === true;
    this.#seen.set(optimizer, finite);
    if (finite) optimizer.step();
    return finite;
  }

  /** Chooses the scale of the next step, by what the steps since the last update met. */
  update(): void {
    const flags = [...this.#seen.values()];
    if (flags.length === 0 || flags.some((flag) => flag instanceof Tensor)) {
      const problem = 'no step has been taken since the last update';
      throw new TensorError('E_STATE', 'GradScaler.update', problem, 'await scaler.step(optimizer) first');
    }
    const { growthFactor, backoffFactor, growthInterval } = this.#options;
    const { scale, tracker } = this.#state;
    const count = tracker + 1;
    const grown = Math.fround(scale * growthFactor);
    if (flags.includes(false)) this.#state = { scale: scale * backoffFactor, tracker: 0 };
    else if (count < growthInterval) this.#state = { scale, tracker: count };
    else this.#state = { scale: Number.isFinite(grown) ? grown : scale, tracker: 0 };
    this.#seen = new Map();
  }

  /** What to save, and to go on from. */
  stateDict(): GradScalerState {
    return this.#state;
  }

  /** Goes back to a saved state. */
  loadStateDict(state: GradScalerState): void {
    takesScaleState('GradScaler.loadStateDict', state);
    this.#state = { scale: state.scale, tracker: state.tracker };
  }
}
