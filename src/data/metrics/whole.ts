// A metric that needs all predictions at once: the batches are kept, and put together when the
// figure is asked for.

import * as arg from '../../ir/arguments.ts';
import { TensorError } from '../../errors.ts';
import { expectTensor } from '../../tensor/expect.ts';
import { cat } from '../../tensor/ops/shape/join.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { MetricFunctions } from './metric.ts';

/** The batches so far. */
export interface Kept {
  readonly preds: readonly Tensor[];
  readonly targets: readonly Tensor[];
}

type Figure = (preds: Tensor, targets: Tensor) => Tensor;

const takesFigure = arg.takes<typeof overAll>(['the function', arg.callable<Figure>()]);

/**
 * A figure of all predictions and targets together, joined along their first axis: `overAll(rocAuc)`.
 * The state grows with every batch, so it does not belong into a compiled step.
 */
export function overAll(figure: Figure): MetricFunctions<Kept> {
  takesFigure('overAll', figure);
  return {
    init: () => ({ preds: [], targets: [] }),
    update: (state, preds, targets) => {
      expectTensor('overAll', 'the predictions', preds);
      expectTensor('overAll', 'the targets', targets);
      return { preds: [...state.preds, preds.detach()], targets: [...state.targets, targets.detach()] };
    },
    compute: ({ preds, targets }) => {
      if (preds.length === 0) throw new TensorError('E_STATE', 'overAll', 'there was no batch yet');
      return figure(cat(preds, 0), cat(targets, 0));
    },
    merge: (a, b) => ({ preds: [...a.preds, ...b.preds], targets: [...a.targets, ...b.targets] }),
  };
}
