// Parametrisations: a weight that is computed of others whenever it is read. The layer gets a class
// of its own between it and its own one, whose getter computes the weight, as PyTorch does it; what
// is trained and saved are the tensors that the weight is computed of, under PyTorch's names:
// `parametrizations.weight.original0`.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { isFloat } from '../../ir/dtype.ts';
import { noteChange } from '../../tensor/tracing.ts';
import { targetOf } from '../../tensor/layer/watch.ts';
import { noGrad } from '../../tensor/derivative/transform.ts';
import { randn } from '../../tensor/ops/creation/random.ts';
import { div, maximum, mul } from '../../tensor/ops/elementwise/arithmetic.ts';
import { cast } from '../../tensor/ops/elementwise/cast.ts';
import { sqrt, square } from '../../tensor/ops/elementwise/elementwise.ts';
import { withAutocastType } from '../../tensor/autocast.ts';
import { matmul } from '../../tensor/ops/product/matmul.ts';
import { sum } from '../../tensor/ops/reduce/reduce.ts';
import { moveaxis, reshape, transpose } from '../../tensor/ops/shape/view.ts';
import { show } from '../../tensor/ops/operand.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { Module, nameOf, outputAxis } from '../module.ts';
import { parameter } from '../parameters.ts';

/** What a weight is computed of. */
abstract class Parametrization extends Module {
  /** The weight. */
  abstract override forward(): Tensor;
}

/** The norm of each slice of an axis, or of everything, as a tensor that broadcasts to x. */
function lengths(x: Tensor, axis: number | undefined): Tensor {
  const others = x.shape.map((_, i) => i).filter((i) => i !== axis);
  // Not `norm`, which autocast knows.
  return sqrt(sum(square(x), others, { keepdim: axis !== undefined, dtype: x.dtype }));
}

/** weight = g · v / ‖v‖ (Salimans and Kingma, 2016). */
class WeightNorm extends Parametrization {
  /** The lengths. */
  original0: Tensor;
  /** The directions. */
  original1: Tensor;
  readonly axis: number | undefined;

  constructor(weight: Tensor, axis: number | undefined) {
    super();
    this.axis = axis;
    [this.original0, this.original1] = noGrad(() => [
      parameter(copied(lengths(weight, axis))),
      parameter(copied(weight)),
    ]);
  }

  forward(): Tensor {
    const { original0: length, original1: direction, axis } = this;
    return mul(direction, div(length, lengths(direction, axis)));
  }
}

/**
 * Singular vectors, nearly: a step of the power method better at each reading in training. In
 * PyTorch's dictionaries `U` is `_u`, as every capital is.
 */
class SingularVectors extends Module {
  U: Tensor;
  V: Tensor;

  constructor(u: Tensor, v: Tensor) {
    super();
    [this.U, this.V] = [u, v];
  }

  override buffers(): readonly string[] {
    return ['U', 'V'];
  }

  forward(): [u: Tensor, v: Tensor] {
    return [this.U, this.V];
  }
}

/** weight = original / σ, its greatest singular value (Miyato et al., 2018). */
class SpectralNorm extends Parametrization {
  original: Tensor;
  /** Where PyTorch keeps them. */
  readonly 0: SingularVectors;
  readonly axis: number;
  readonly steps: number;
  readonly eps: number;

  constructor(weight: Tensor, axis: number, steps: number, eps: number) {
    super();
    [this.axis, this.steps, this.eps] = [axis, steps, eps];
    this.original = noGrad(() => parameter(copied(weight)));
    const matrix = this.matrix();
    const [rows, columns] = matrix.shape as [number, number];
    const start = (size: number): Tensor =>
      noGrad(() => copied(this.unit(randn([size], { dtype: weight.dtype }))));
    this[0] = new SingularVectors(start(rows), start(columns));
    // PyTorch's first vectors have been through so many steps as well.
    this.improve(15);
  }

  forward(): Tensor {
    if (this.training) this.improve(this.steps);
    const { original } = this;
    const { U: u, V: v } = this[0];
    const sigma = withAutocastType(undefined, () => matmul(u.detach(), matmul(this.matrix(), v.detach())));
    return div(original, sigma);
  }

  /** The weight as a matrix whose rows are slices of the axis. */
  protected matrix(): Tensor {
    const turned = moveaxis(this.original, this.axis, 0);
    return reshape(turned, [turned.shape[0]!, turned.size / turned.shape[0]!]);
  }

  protected unit(x: Tensor): Tensor {
    return div(x, maximum(lengths(x, undefined), this.eps));
  }

  /** Steps of the power method: u ← W·v, v ← Wᵀ·u, both of length 1. */
  protected improve(steps: number): void {
    noGrad(() =>
      withAutocastType(undefined, () => {
        const matrix = this.matrix();
        const held = this[0];
        let [u, v] = [held.U, held.V];
        for (let i = 0; i < steps; i++) {
          u = this.unit(matmul(matrix, v));
          v = this.unit(matmul(transpose(matrix, 0, 1), u));
        }
        held.U.assign(cast(u, held.U.dtype));
        held.V.assign(cast(v, held.V.dtype));
      }),
    );
  }
}

/** The value in a tensor of its own. */
function copied(x: Tensor): Tensor {
  return mul(x.detach(), 1);
}

/** Parametrisations by the weight that each computes. */
type ByName = Readonly<Record<string, Parametrization>>;
interface Parametrized {
  readonly parametrizations: ByName;
}

/** The classes with getters, by the class that they stand for and the weight that they compute. */
const classes = new WeakMap<object, Map<string, object>>();
/** The class that a layer had before. */
const plainClasses = new WeakMap<object, object>();

/** The prototype with a getter for the weight; one for each class, so that copies are alike. */
function withGetter(prototype: object, name: string): object {
  let known = classes.get(prototype);
  if (known === undefined) classes.set(prototype, (known = new Map()));
  let made = known.get(name);
  if (made === undefined) {
    made = Object.create(prototype, {
      [name]: {
        get(this: Parametrized): Tensor {
          return this.parametrizations[name]!.forward();
        },
        configurable: true,
      },
    }) as object;
    plainClasses.set(made, prototype);
    known.set(name, made);
  }
  return made;
}

function parametrize<M extends Module>(
  op: string,
  layer: M,
  name: string,
  make: (weight: Tensor) => Parametrization,
): M {
  const target = (targetOf(layer) ?? layer) as unknown as Record<string, unknown> & Partial<Parametrized>;
  const weight = Object.hasOwn(target, name) ? target[name] : undefined;
  if (!(weight instanceof Tensor) || !isFloat(weight.dtype)) {
    const problem = `${name} of ${nameOf(layer)} is no tensor of floats of its own`;
    throw new TensorError('E_VALUE', op, problem, 'the name of a weight that has no parametrisation yet');
  }
  const computed = make(weight);
  Reflect.deleteProperty(target, name);
  Object.assign(target, { parametrizations: { ...target.parametrizations, [name]: computed } });
  Object.setPrototypeOf(target, withGetter(Object.getPrototypeOf(target) as object, name));
  noteChange();
  return layer;
}

const aLayer: arg.Kind<Module> = arg.kind('a layer (a Module)', (value) => value instanceof Module);

export interface WeightNormOptions {
  /** Which tensor of the layer; `weight` by default. */
  readonly name?: string;
  /** The axis whose slices have a length each, 0 by default; `null` for one length of all. */
  readonly axis?: number | null;
}

const anAxis: arg.Kind<number | null> = {
  accepts: (value) => value === null || arg.integer.accepts(value),
  refuse: (op, what, value) => arg.integer.refuse(op, what, value),
};
const takesWeightNorm = arg.takes<(layer: Module, options?: WeightNormOptions) => unknown>(
  ['the layer', aLayer],
  ['options', arg.options<WeightNormOptions>({ name: arg.text, axis: anAxis })],
);

/** Makes a layer's weight the product of a length and a direction, which are trained instead. */
export function weightNorm<M extends Module>(layer: M, options: WeightNormOptions = {}): M {
  takesWeightNorm('weightNorm', layer, options);
  const { name = 'weight', axis = 0 } = options;
  return parametrize(
    'weightNorm',
    layer,
    name,
    (weight) => new WeightNorm(weight, axis === null ? undefined : axisOf('weightNorm', axis, weight)),
  );
}

function axisOf(op: string, axis: number, weight: Tensor): number {
  const at = axis < 0 ? axis + weight.rank : axis;
  if (at >= 0 && at < weight.rank) return at;
  throw new TensorError('E_VALUE', op, `there is no axis ${axis} of ${show(weight)}`);
}

export interface SpectralNormOptions {
  /** Which tensor of the layer; `weight` by default. */
  readonly name?: string;
  /** Steps of the power method at each reading in training; 1 by default. */
  readonly powerIterations?: number;
  /** The least length that is divided by; 1e-12 by default. */
  readonly eps?: number;
  /** The axis of outputs; 0 by default, 1 of transposed convolutions. */
  readonly axis?: number;
}

const takesSpectralNorm = arg.takes<(layer: Module, options?: SpectralNormOptions) => unknown>(
  ['the layer', aLayer],
  [
    'options',
    arg.options<SpectralNormOptions>({
      name: arg.text,
      powerIterations: arg.count(1),
      eps: arg.positive,
      axis: arg.integer,
    }),
  ],
);

/** Divides a layer's weight by its greatest singular value, which is followed while it is trained. */
export function spectralNorm<M extends Module>(layer: M, options: SpectralNormOptions = {}): M {
  takesSpectralNorm('spectralNorm', layer, options);
  const { [outputAxis]: ofOutputs = 0 } = layer as { readonly [outputAxis]?: number };
  const { name = 'weight', powerIterations = 1, eps = 1e-12, axis = ofOutputs } = options;
  return parametrize('spectralNorm', layer, name, (weight) => {
    if (weight.rank < 2) {
      const problem = `a weight must be a matrix at the least, got ${show(weight)}`;
      throw new TensorError('E_SHAPE', 'spectralNorm', problem);
    }
    return new SpectralNorm(weight, axisOf('spectralNorm', axis, weight), powerIterations, eps);
  });
}

const takesRemove = arg.takes<(layer: Module, name?: string) => unknown>(
  ['the layer', aLayer],
  ['the name', arg.optional(arg.text)],
);

/** Makes a weight what it is computed as now, a parameter again; gives the layer. */
export function removeParametrization<M extends Module>(layer: M, name: string = 'weight'): M {
  takesRemove('removeParametrization', layer, name);
  const target = (targetOf(layer) ?? layer) as unknown as Record<string, unknown> & {
    parametrizations?: ByName;
  };
  const prototype = Object.getPrototypeOf(target) as object;
  if (!Object.hasOwn(target.parametrizations ?? {}, name) || !Object.hasOwn(prototype, name)) {
    const problem = `${name} has no parametrisation, or another one was put on after it`;
    throw new TensorError('E_VALUE', 'removeParametrization', problem, 'the latest one first');
  }
  const { training } = layer;
  // The weight as in use: reading it changes nothing.
  const computed = target.parametrizations![name]!;
  computed.training = false;
  const weight = noGrad(() => parameter(copied(computed.forward())));
  computed.training = training;
  const { [name]: _, ...left } = target.parametrizations!;
  if (Object.keys(left).length > 0) target.parametrizations = left;
  else Reflect.deleteProperty(target, 'parametrizations');
  Object.setPrototypeOf(target, plainClasses.get(prototype)!);
  target[name] = weight;
  noteChange();
  return layer;
}
