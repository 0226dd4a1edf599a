// Muon (Jordan et al., 2024), by PyTorch's formulas: momentum of a matrix, made orthogonal by a few
// steps of a Newton–Schulz iteration. Other parameters want another optimizer beside it.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { add, div, maximum, mul, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { matmul } from '../../tensor/ops/product/matmul.ts';
import { transpose } from '../../tensor/ops/shape/view.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { FamilyOptimizer, family, type ClassOptions, type FunctionalOptions } from '../family.ts';
import type { FunctionalOptimizer } from '../functional.ts';
import type { Trainable } from '../optimizer.ts';
import { length, refuseComplex, type Rule, type ShapedSlot } from '../rule.ts';

interface MuonSettings {
  /** Taken from the parameter itself: p −= lr·weightDecay·p; 0.1 by default. */
  readonly weightDecay?: number;
  /** How much of the running mean of gradients is kept; 0.95 by default. */
  readonly momentum?: number;
  /** Looks ahead along the momentum; true by default. */
  readonly nesterov?: boolean;
  /** a, b and c of a step X → aX + (bA + cA²)X with A = XXᵀ. */
  readonly nsCoefficients?: readonly [number, number, number];
  /** The least norm that is divided by; 1e-7 by default. */
  readonly eps?: number;
  /** Steps of the iteration; 5 by default. */
  readonly nsSteps?: number;
  /**
   * How the rate depends on the shape: `original`, √max(1, rows/columns), by default, or
   * `matchRmsAdamW`, 0.2·√max(rows, columns).
   */
  readonly adjustLr?: 'original' | 'matchRmsAdamW';
}

/** The learning rate is 0.001 by default. */
export type MuonOptions = ClassOptions<MuonSettings>;

const described = family<MuonSettings>({
  className: 'Muon',
  functionName: 'muon',
  settings: {
    weightDecay: arg.notNegative,
    momentum: arg.share,
    nesterov: arg.flag,
    nsCoefficients: arg.tupleOf<readonly [number, number, number]>(arg.number, arg.number, arg.number),
    eps: arg.positive,
    nsSteps: arg.count(1),
    adjustLr: arg.oneOf('original', 'matchRmsAdamW'),
  },
  lr: 1e-3,
  rule: muonRule,
});

const matrix: ShapedSlot = {
  start: 0,
  shape: (of, dtype) => {
    refuseComplex('muon', dtype);
    if (of.length === 2) return of;
    const problem = `a parameter must be a matrix, got one of shape [${of.join(', ')}]`;
    throw new TensorError('E_SHAPE', 'muon', problem, 'another optimizer (AdamW) for what is no matrix');
  },
};

/** The orthogonal matrix next to `x`, roughly: singular values come to lie around 1. */
function orthogonal(x: Tensor, settings: MuonSettings): Tensor {
  const { nsCoefficients = [3.4445, -4.775, 2.0315], eps = 1e-7, nsSteps = 5 } = settings;
  const [a, b, c] = nsCoefficients;
  const [rows = 0, columns = 0] = x.shape;
  const turned = rows > columns;
  let at = turned ? transpose(x, 0, 1) : x;
  at = div(at, maximum(length(at), eps));
  for (let i = 0; i < nsSteps; i++) {
    const gram = matmul(at, transpose(at, 0, 1));
    const update = add(mul(gram, b), mul(matmul(gram, gram), c));
    at = add(mul(at, a), matmul(update, at));
  }
  return turned ? transpose(at, 0, 1) : at;
}

function muonRule(settings: MuonSettings): Rule {
  const { weightDecay = 0.1, momentum = 0.95, nesterov = true, adjustLr = 'original' } = settings;
  return {
    slots: { mean: matrix },
    step({ value, grad, slots, lr }) {
      const past = slots['mean']!;
      const mean = add(past, mul(sub(grad, past), 1 - momentum));
      const along = nesterov ? add(grad, mul(sub(mean, grad), momentum)) : mean;
      const [rows = 0, columns = 0] = value.shape;
      const larger = Math.max(rows, columns);
      const adjust =
        adjustLr === 'original' ? Math.sqrt(Math.max(1, rows / columns)) : 0.2 * Math.sqrt(larger);
      const step = mul(orthogonal(along, settings), adjust);
      const moved = weightDecay === 0 ? step : add(step, mul(value, weightDecay));
      return { value: sub(value, mul(moved, lr)), slots: { mean } };
    },
  };
}

/** p −= lr·(an orthogonal matrix near the momentum), for matrices only. */
export class Muon extends FamilyOptimizer<MuonSettings> {
  constructor(params: Trainable<MuonOptions>, options: MuonOptions = {}) {
    super(described, params, options);
  }
}

/** `Muon` as functions on trees. */
export function muon(options: FunctionalOptions<MuonSettings> = {}): FunctionalOptimizer {
  return described.functions(options);
}
