// Products of layers that are no plain matrix product: a bilinear form, and pairs of elements turned
// by their position.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, broadcast, cast, mul, neg, permute, reduce, reshape, unary } from '../../../ir/build.ts';
import { dims, type Node } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkFloat, show } from '../operand.ts';
import { concat, sliceAxis } from '../../formula/layout.ts';
import { contract, productType } from './contract.ts';

const takesBilinear = arg.takes<typeof bilinear>(
  ['x', aTensor],
  ['y', aTensor],
  ['the weight', aTensor],
  ['the bias', arg.optional(aTensor)],
);

/**
 * Σᵢⱼ xᵢ·weight[o, i, j]·yⱼ + bias for x [.., I], y [.., J] and a weight [O, I, J]: [.., O].
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * const u = sn.tensor([1, -1]);
 * const third = sn.tensor([[[1, 0, 1], [0, 1, 0]]]);
 * sn.bilinear(u, v, third);
 */
export function bilinear(x: Tensor, y: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  takesBilinear('bilinear', x, y, weight, bias);
  const op = 'bilinear';
  const lead = x.shape.slice(0, -1);
  const [outputs, left, right] = weight.shape as readonly [number, number, number];
  const fits =
    x.rank >= 1 &&
    weight.rank === 3 &&
    x.shape.at(-1) === left &&
    y.shape.at(-1) === right &&
    y.rank === x.rank &&
    lead.every((dim, i) => dim === y.shape[i]) &&
    (bias === undefined || (bias.rank === 1 && bias.size === outputs));
  if (!fits) {
    const given = bias === undefined ? show(x, y, weight) : show(x, y, weight, bias);
    throw new TensorError('E_SHAPE', op, `expects [..,I], [..,J], [O,I,J] and [O]: ${given}`);
  }
  const dtype = productType(op, x, y, weight);
  const wide = formula.wideType(dtype);
  const rows = sizeOf(lead);
  return apply([x, y, weight, bias], (b, p, q, w, c) => {
    const flat = (node: Node, size: number): Node => reshape(b, cast(b, node, dtype), [rows, size]);
    // [rows, O, J], then the sum over J with y's rows.
    const half = contract(b, flat(p, left), cast(b, w, dtype), [], [[1, 1]], wide);
    const spread = broadcast(b, reshape(b, cast(b, flat(q, right), wide), [rows, 1, right]), [
      rows,
      outputs,
      right,
    ]);
    const sums = reduce(b, 'sum', mul(b, half, spread), [2]);
    const biased = c === undefined ? sums : add(b, sums, broadcast(b, cast(b, c, wide), [rows, outputs]));
    return reshape(b, cast(b, biased, dtype), [...lead, outputs]);
  });
}

export interface RotaryOptions {
  /** Pair i of d/2 turns by position·base^(−2i/d); 10000 by default. */
  readonly base?: number;
  /** Position of each element of the axis before the last, [S] or [.., S]; 0, 1, 2… by default. */
  readonly positions?: Tensor;
  /** Added to all positions, as a cache has its length; 0 by default. */
  readonly offset?: number;
  /** Pairs are neighbours (0, 1), (2, 3) … instead of (0, d/2), (1, d/2+1) …; false by default. */
  readonly interleaved?: boolean;
  /** How many leading elements of the last axis turn; all by default. */
  readonly dims?: number;
}

const takesRotary = arg.takes<typeof rotaryEmbedding>(
  ['x', aTensor],
  [
    'options',
    arg.options<RotaryOptions>({
      base: arg.positive,
      positions: aTensor,
      offset: arg.finite,
      interleaved: arg.flag,
      dims: arg.count(2),
    }),
  ],
);

/**
 * Queries or keys [.., S, d] whose pairs of elements are turned by angles that grow with their
 * position (Su et al., 2021), so that products of two depend on their distance.
 *
 * @family Attention, recurrent cells and bags
 * @example
 * const q = sn.tensor([[1, 0], [0.5, 2]]);
 * sn.rotaryEmbedding(q);
 */
export function rotaryEmbedding(x: Tensor, options: RotaryOptions = {}): Tensor {
  takesRotary('rotaryEmbedding', x, options);
  const op = 'rotaryEmbedding';
  const { base = 10000, positions, offset = 0, interleaved = false } = options;
  checkFloat(op, x);
  if (x.rank < 2) throw new TensorError('E_SHAPE', op, `expects [..,S,d]: ${show(x)}`);
  const [length, width] = x.shape.slice(-2) as [number, number];
  const turned = options.dims ?? width;
  if (turned % 2 !== 0 || turned > width)
    throw new TensorError('E_SHAPE', op, `cannot turn pairs of ${turned} elements of ${show(x)}`);
  const lead = x.shape.slice(0, -1);
  const room = positions === undefined ? 0 : lead.length - positions.rank;
  if (positions !== undefined) {
    const fits =
      positions.rank >= 1 &&
      room >= 0 &&
      positions.shape.at(-1) === length &&
      positions.shape.every((dim, i) => dim === 1 || dim === lead[i + room]);
    if (!fits)
      throw new TensorError(
        'E_SHAPE',
        op,
        `positions must broadcast to [${lead.join(',')}]: ${show(x, positions)}`,
      );
  }
  const half = turned / 2;
  return apply([x, positions], (b, node, given) =>
    formula.widened(b, node, (wide) => {
      const place =
        given === undefined ? formula.iota(b, [length], 0, wide.dtype) : cast(b, given, wide.dtype);
      const moved = offset === 0 ? place : add(b, place, offset);
      const exponent = mul(b, formula.iota(b, [half], 0, wide.dtype), (-2 * Math.log2(base)) / turned);
      const shape = [...lead, half];
      const angle = mul(
        b,
        broadcast(b, reshape(b, moved, [...dims(moved), 1]), shape),
        broadcast(b, unary(b, 'exp2', exponent), shape),
      );
      const [cosine, sine] = [unary(b, 'cos', angle), unary(b, 'sin', angle)];
      const last = x.rank - 1;
      const active = sliceAxis(b, wide, last, 0, turned);
      // The two halves of each pair, each [.., S, half].
      const pairs = interleaved
        ? reshape(b, active, [...lead, half, 2])
        : permute(b, reshape(b, active, [...lead, 2, half]), [...lead.keys(), last + 1, last]);
      const part = (i: number): Node => reshape(b, sliceAxis(b, pairs, last + 1, i, 1), shape);
      const [p, q] = [part(0), part(1)];
      const first = add(b, mul(b, p, cosine), neg(b, mul(b, q, sine)));
      const second = add(b, mul(b, q, cosine), mul(b, p, sine));
      const both = interleaved
        ? reshape(
            b,
            concat(
              b,
              [first, second].map((at) => reshape(b, at, [...shape, 1])),
              last + 1,
            ),
            [...lead, turned],
          )
        : concat(b, [first, second], last);
      if (turned === width) return both;
      return concat(b, [both, sliceAxis(b, wide, last, turned, width - turned)], last);
    }),
  );
}
