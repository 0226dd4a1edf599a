// Averages of parameters along a training: exponential moving averages (Polyak and Juditsky, 1992)
// and equal ones (stochastic weight averaging: Izmailov et al., 2018). The averaged tensors are a
// tree like the parameters', which a model loads or a function is given.

import * as arg from '../ir/arguments.ts';
import { isComplex, isInexact, type DType } from '../ir/dtype.ts';
import { full, tensor } from '../tensor/ops/creation/creation.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { add, div, mul, sub } from '../tensor/ops/elementwise/arithmetic.ts';
import { Tensor } from '../tensor/tensor.ts';
import { anew } from '../tensor/derivative/anew.ts';
import { checkSameStructure, flatten, unflatten } from '../tensor/tree.ts';
import { slotType } from './rule.ts';

export interface AverageOptions {
  /** How much of the average is kept at each update; 0.999 by default. */
  readonly decay?: number;
}

/** An average so far; itself a tree. */
export interface AverageState<P> {
  /** The averaged parameters. */
  readonly average: P;
  /** i32[]: updates done. */
  readonly count: Tensor;
}

/** An average as two functions on trees, which may be compiled. */
export interface ParameterAverage {
  /** An average of nothing but these parameters. */
  init<P>(params: P): AverageState<P>;
  /** The average with these parameters taken in. */
  update<P>(state: AverageState<P>, params: P): AverageState<P>;
}

const takesEma = arg.takes<typeof ema>(['options', arg.options<AverageOptions>({ decay: arg.share })]);

/** average ← decay·average + (1 − decay)·parameters. Integers are taken as they are. */
export function ema(options: AverageOptions = {}): ParameterAverage {
  takesEma('ema', options);
  const { decay = 0.999 } = options;
  return averaging('ema', () => 1 - decay);
}

/** The equal average of all parameters that it was given: average ← average + (p − average) / (n + 1). */
export function swa(): ParameterAverage {
  return averaging('swa', (count, wide) => div(1, add(cast(count, wide), 1)));
}

/** `weight` says, in the dtype of a sum, how much of the new parameters is taken in after `count` updates. */
function averaging(op: string, weight: (count: Tensor, wide: DType) => Tensor | number): ParameterAverage {
  return {
    init: (params) => {
      const flat = flatten(params, op);
      const leaves = flat.leaves.map((leaf) => (leaf instanceof Tensor ? copied(leaf) : leaf));
      return {
        average: unflatten(flat.structure, leaves) as typeof params,
        count: tensor(1, { dtype: 'i32' }),
      };
    },
    update: <P>({ average, count }: AverageState<P>, params: P): AverageState<P> =>
      anew((own) => {
        const [past, now] = [flatten(average, op), flatten(params, op)];
        checkSameStructure(op, 'the average', past, 'the parameters', now);
        const leaves = now.leaves.map((value, i) => {
          const old = past.leaves[i];
          if (!(value instanceof Tensor) || !(old instanceof Tensor)) return value;
          if (!isInexact(value.dtype)) return value.detach();
          const wide = slotType(value.dtype);
          // Complex numbers keep both of their parts.
          const widened = (x: Tensor): Tensor => (isComplex(x.dtype) ? own(x) : cast(own(x), wide));
          const kept = widened(old);
          return cast(add(kept, mul(sub(widened(value), kept), weight(count, wide))), value.dtype);
        });
        return { average: unflatten(past.structure, leaves) as P, count: add(count, 1) };
      }),
  };
}

/** The value in memory of its own, which a later step of an optimizer may not write over. */
function copied(value: Tensor): Tensor {
  return isInexact(value.dtype)
    ? anew((own) => add(own(value), full([], 0, { dtype: value.dtype })))
    : value.detach();
}
