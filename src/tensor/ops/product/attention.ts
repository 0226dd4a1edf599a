// Scaled dot-product attention (Vaswani et al., 2017), written as matmul, scale, mask, softmax,
// matmul: the compiler recognises the pattern and streams over the keys, so that the scores are
// never stored in memory.

import { TensorError } from '../../../errors.ts';
import { cast, mul, permute } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { isFloat } from '../../../ir/dtype.ts';
import { broadcastShapes } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkFloat, show } from '../operand.ts';
import { flatten, unflatten, unsqueeze } from '../shape/view.ts';
import { attentionWeights } from './attention-weights.ts';
import { matmulNodes, productType } from './contract.ts';
import { dropoutOf } from '../../formula/noise.ts';

export interface AttentionOptions {
  /**
   * bool: true where a query may see a key. Float: added to the scores. Broadcasts to [.., queries,
   * keys]; by default every query sees every key.
   */
  readonly mask?: Tensor;
  /** Query i sees keys 0 … i; false by default. */
  readonly isCausal?: boolean;
  /** 1 / √d by default. */
  readonly scale?: number;
  /** Probability with which weights are dropped; 0 by default. */
  readonly dropout?: number;
  /**
   * Heads (axis −3) of k and v are each shared by a run of q's, whose number they divide (Ainslie et
   * al., 2023); false by default.
   */
  readonly enableGqa?: boolean;
}

const takesScaledDotProductAttention = arg.takes<typeof scaledDotProductAttention>(
  ['each of q, k, v', aTensor],
  ['each of q, k, v', aTensor],
  ['each of q, k, v', aTensor],
  [
    'options',
    arg.options<AttentionOptions>({
      mask: aTensor,
      isCausal: arg.flag,
      scale: arg.number,
      dropout: arg.share,
      enableGqa: arg.flag,
    }),
  ],
);

/**
 * softmax(q·kᵀ·scale)·v for q [.., Sq, d], k [.., Sk, d], v [.., Sk, dv]; leading axes broadcast. A
 * query that may see no key gives zeros, with gradient zero.
 *
 * @jax jax.nn.dot_product_attention
 * @example
 * const q = sn.tensor([[1, 0], [0.5, 2]]);
 * const k = sn.tensor([[1, 1], [0, 2], [3, 0]]);
 * const v = sn.tensor([[1], [2], [4]]);
 * sn.scaledDotProductAttention(q, k, v);
 * @example <caption>causal</caption>
 * const q = sn.tensor([[1, 0], [0.5, 2]]);
 * sn.scaledDotProductAttention(q, q, q, { isCausal: true });
 */
export function scaledDotProductAttention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  options: AttentionOptions = {},
): Tensor {
  takesScaledDotProductAttention('scaledDotProductAttention', q, k, v, options);
  if (options.enableGqa === true) return groupedAttention(q, k, v, options);
  const op = 'scaledDotProductAttention';
  const { mask, isCausal = false, scale = 1 / Math.sqrt(q.shape.at(-1) ?? 1), dropout = 0 } = options;
  checkFloat(op, q, k, v);
  const fits = q.rank >= 2 && k.rank >= 2 && v.rank >= 2;
  if (!fits || q.shape.at(-1) !== k.shape.at(-1) || k.shape.at(-2) !== v.shape.at(-2)) {
    throw new TensorError('E_SHAPE', op, `expects q [..,Sq,d], k [..,Sk,d], v [..,Sk,dv]: ${show(q, k, v)}`);
  }
  const lead = broadcastShapes(op, q.shape.slice(0, -2), k.shape.slice(0, -2));
  broadcastShapes(op, lead, v.shape.slice(0, -2));
  const shape = [...lead, q.shape.at(-2)!, k.shape.at(-2)!];
  if (mask !== undefined) checkMask(op, mask, shape);
  const dtype = productType(op, q, k, v);
  return apply([q, k, v, mask], (b, query, key, value, m) => {
    const axes = k.shape.map((_, axis) => axis);
    const turned = permute(b, cast(b, key, dtype), [...axes.slice(0, -2), k.rank - 1, k.rank - 2]);
    // Scores of 16-bit floats stay in f32, and the softmax of them: the dot gives its accumulator.
    const wide = formula.wideType(dtype);
    const scores = mul(b, matmulNodes(b, cast(b, query, dtype), turned, wide), scale);
    const weights = attentionWeights(b, scores, m, isCausal);
    const kept = dropout === 0 ? weights : dropoutOf(b, weights, dropout);
    // Matrix units multiply what is as narrow as the values: weights are rounded to that, sums are
    // not.
    return cast(b, matmulNodes(b, cast(b, kept, dtype), cast(b, value, dtype), wide), dtype);
  });
}

/**
 * Attention whose queries come in groups, one for each head of k and v: an axis of its own, which k
 * and v lack, so that nothing of theirs is repeated.
 */
function groupedAttention(q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions): Tensor {
  const op = 'scaledDotProductAttention';
  const [heads, shared, values] = [q, k, v].map((x) => x.shape.at(-3)) as (number | undefined)[];
  if (heads === undefined || shared === undefined || shared !== values || heads % shared !== 0)
    throw new TensorError('E_SHAPE', op, `q's heads must be a multiple of k's and v's: ${show(q, k, v)}`);
  const { mask } = options;
  const grouped = (x: Tensor, groups: number): Tensor => unflatten(x, -3, [shared, groups]);
  const isPerHead = mask !== undefined && mask.rank >= 3 && mask.shape.at(-3) !== 1;
  const spread =
    mask === undefined || mask.rank < 3
      ? mask
      : isPerHead
        ? grouped(mask, heads / shared)
        : unsqueeze(mask, -3);
  const rest = { ...options, enableGqa: false, ...(spread === undefined ? {} : { mask: spread }) };
  const out = scaledDotProductAttention(grouped(q, heads / shared), unsqueeze(k, -3), unsqueeze(v, -3), rest);
  return flatten(out, -4, -3);
}

function checkMask(op: string, mask: Tensor, shape: readonly number[]): void {
  const integer = mask.dtype !== 'bool' && !isFloat(mask.dtype);
  const lead = shape.length - mask.rank;
  const fits = lead >= 0 && mask.shape.every((dim, axis) => dim === 1 || dim === shape[axis + lead]);
  if (integer || !fits) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `the mask must be bool or float and broadcast to [${shape.join(',')}]: ${show(mask)}`,
    );
  }
}
