// Rule: how an optimizer changes one parameter. A rule is written once and runs in two ways: step
// by step, where the learning rate and what depends on the step's number are JavaScript numbers
// (run-time scalars of the recorded step), and inside a compiled function, where they are rank-0
// tensors.

import { TensorError } from '../errors.ts';
import { isComplex, partType, type DType } from '../ir/dtype.ts';
import { sizeOf, type FixedShape } from '../ir/shape.ts';
import { storedType } from '../ir/stored.ts';
import { withAutocastType } from '../tensor/autocast.ts';
import { viewAsComplex, viewAsReal } from '../tensor/ops/complex/complex.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { eq, where } from '../tensor/ops/elementwise/compare.ts';
import { full, tensor } from '../tensor/ops/creation/creation.ts';
import { expm1, neg, reciprocal, sqrt, square } from '../tensor/ops/elementwise/elementwise.ts';
import { add, mul } from '../tensor/ops/elementwise/arithmetic.ts';
import { sum } from '../tensor/ops/reduce/reduce.ts';
import { madeScalar } from '../tensor/record.ts';
import { isTracing } from '../tensor/tracing.ts';
import type { Tensor, TensorLike } from '../tensor/tensor.ts';

/** What a rule keeps per parameter, by name. */
export type Slots = Readonly<Record<string, Tensor>>;

/** Quantities that depend on t, the number of this step for the parameter, from 1. */
export interface Clock {
  /** t itself: rank 0, in the dtype of the slots. */
  readonly time: Tensor;
  /** 1 / (1 − base^t): what makes a running mean that started at 0 unbiased. */
  unbias(base: number): TensorLike;
  /** `first` at step 1, `later` after it. */
  pick(first: number, later: number): TensorLike;
}

/** One step of one parameter; value, gradient and slots have one dtype. */
export interface Step {
  readonly value: Tensor;
  readonly grad: Tensor;
  readonly slots: Slots;
  readonly lr: TensorLike;
  readonly clock: Clock;
}

/** A slot that is not of its parameter's shape. */
export interface ShapedSlot {
  readonly start: number;
  /**
   * Its shape, by the parameter's (of its parts, for a complex one) and dtype. Throws where the rule
   * does not take such a parameter.
   */
  readonly shape: (parameter: FixedShape, dtype: DType) => FixedShape;
}

/** An optimizer's arithmetic on one parameter. */
export interface Rule {
  /** The slots, and the value that each starts with; a number is a slot of the parameter's shape. */
  readonly slots: Readonly<Record<string, number | ShapedSlot>>;
  step(at: Step): { readonly value: Tensor; readonly slots: Slots };
}

/**
 * The dtype of slots and of the arithmetic: f32 for 16-bit parameters, whose steps would vanish in
 * rounding, and that of the parts of complex ones.
 */
export function slotType(parameter: DType): DType {
  return partType(parameter) === 'f64' ? 'f64' : 'f32';
}

/**
 * The slots of a parameter before its first step. Outside of traces each has memory of its own, so
 * that the first step is like every other, and may donate it.
 */
export function startSlots(rule: Rule, parameter: Tensor): Slots {
  const wide = slotType(parameter.dtype);
  const start = (slot: number | ShapedSlot): Tensor => {
    const shape = slotShape(slot, parameter);
    const value = typeof slot === 'number' ? slot : slot.start;
    if (isTracing()) return full(shape, value, { dtype: wide });
    const size = sizeOf(shape);
    return tensor((wide === 'f64' ? new Float64Array(size) : new Float32Array(size)).fill(value), { shape });
  };
  return Object.fromEntries(Object.entries(rule.slots).map(([name, slot]) => [name, start(slot)]));
}

/** The shape of what a rule keeps of a parameter. */
export function slotShape(slot: number | ShapedSlot, parameter: Tensor): FixedShape {
  const { shape } = storedType(parameter);
  return typeof slot === 'number' ? shape : slot.shape(shape, parameter.dtype);
}

/**
 * Applies a rule in the dtype of the slots; the parameter is rounded once, at the end. The parts of a
 * complex parameter are parameters of their own, as in PyTorch.
 */
export function applyRule(rule: Rule, at: Step): { value: Tensor; slots: Slots } {
  const { value, grad } = at;
  if (isComplex(value.dtype)) {
    const next = applyRule(rule, { ...at, value: viewAsReal(value), grad: viewAsReal(grad) });
    return { value: viewAsComplex(next.value), slots: next.slots };
  }
  const wide = slotType(value.dtype);
  // Steps are exact also inside of `autocast`.
  const next = withAutocastType(undefined, () =>
    rule.step({ ...at, value: cast(value, wide), grad: cast(grad, wide) }),
  );
  return { value: cast(next.value, value.dtype), slots: next.slots };
}

/** Refuses complex parameters, for a rule whose rows and columns would be of their parts. */
export function refuseComplex(op: string, dtype: DType): void {
  if (!isComplex(dtype)) return;
  const problem = `does not take complex parameters, and one is ${dtype}`;
  throw new TensorError('E_DTYPE', op, problem, 'another optimizer (AdamW) for it');
}

/** The root of the sum of all squares. */
export function length(x: Tensor): Tensor {
  return sqrt(sum(square(x)));
}

/** The gradient with weight decay as a penalty on the square of the parameter. */
export function decayed(grad: Tensor, value: Tensor, weightDecay: number): Tensor {
  return weightDecay === 0 ? grad : add(grad, mul(value, weightDecay));
}

/** The clock of step `t`, known as a number; `of` names what counts the steps. */
export function eagerClock(t: number, dtype: DType, of: string): Clock {
  const wide = slotType(dtype);
  const made = (value: number, what: string): Tensor => madeScalar(value, wide, `${what} of ${of}`);
  return {
    get time() {
      return made(t, 'step');
    },
    unbias: (base) => (base === 0 ? 1 : made(1 / (1 - base ** t), `bias of ${base}`)),
    pick: (first, later) =>
      first === later ? first : made(t === 1 ? first : later, `${first}, then ${later}`),
  };
}

/** The clock of a step whose number is an i32 tensor. */
export function graphClock(t: Tensor, dtype: DType): Clock {
  return clockAt(() => cast(t, slotType(dtype)));
}

/** The clock of a step whose number is a tensor of the dtype of the slots. */
export function clockAt(t: Tensor | (() => Tensor)): Clock {
  let known = typeof t === 'function' ? undefined : t;
  const time = (): Tensor => (known ??= (t as () => Tensor)());
  const one = (value: number): Tensor => tensor(value, { dtype: time().dtype });
  return {
    get time() {
      return time();
    },
    // 1 − base^t = −(e^(t·ln base) − 1), exact also where base^t is close to 1.
    unbias: (base) => (base === 0 ? 1 : reciprocal(neg(expm1(mul(time(), Math.log(base)))))),
    pick: (first, later) => (first === later ? first : where(eq(time(), 1), one(first), one(later))),
  };
}
