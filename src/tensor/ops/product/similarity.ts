// The similarity of vectors: the cosine of the angle between them.

import * as arg from '../../../ir/arguments.ts';
import { broadcast, cast, div, full, mul, reduce, where, binary } from '../../../ir/build.ts';
import type { DType } from '../../../ir/dtype.ts';
import { dims, type Node } from '../../../ir/graph.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { normOf } from '../../formula/elementwise.ts';
import { checkFloat, fit, operandType } from '../operand.ts';

export interface CosineSimilarityOptions {
  /** Each norm counts at least as this; 1e-8 by default. */
  readonly eps?: number;
}

const takesCosineSimilarity = arg.takes<typeof cosineSimilarity>(
  ['x', aTensor],
  ['y', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<CosineSimilarityOptions>({ eps: arg.number })],
);

/**
 * Σ x·y / (‖x‖·‖y‖) along an axis (1 by default).
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const w = sn.tensor([[1, 0, 2], [3, 1, 0]]);
 * sn.cosineSimilarity(x, w);
 */
export function cosineSimilarity(
  x: Tensor,
  y: Tensor,
  axis = 1,
  options: CosineSimilarityOptions = {},
): Tensor {
  takesCosineSimilarity('cosineSimilarity', x, y, axis, options);
  const op = 'cosineSimilarity';
  const { eps = 1e-8 } = options;
  checkFloat(op, x, y);
  const dtype: DType = operandType(op, [x, y], 'float');
  return fit(
    op,
    [x, y],
    () => formula.wideType(dtype),
    (b, p, q) => {
      // One element is a vector of one.
      const at = normalizeAxis(op, axis, Math.max(1, dims(p).length));
      const along = dims(p).length === 0 ? [] : [at];
      const unit = (node: Node): Node => {
        const size = normOf(b, node, 2, along);
        const minSize = full(b, dims(size), eps, size.dtype);
        const kept = where(b, binary(b, 'lt', size, minSize), minSize, size);
        return div(b, node, broadcast(b, kept, dims(node)));
      };
      return cast(b, reduce(b, 'sum', mul(b, unit(p), unit(q)), along), dtype);
    },
  );
}
