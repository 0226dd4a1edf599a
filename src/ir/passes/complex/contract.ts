// Products and convolutions of complex numbers as one of real ones: the parts of the left operand
// stand along one more contracted axis, and of the right operand both what the parts of the result
// take from it, so that (a + bi)·(c + di) is the row [a b] by the matrix [c d; −d c].

import { neg, permute, reshape } from '../../build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../../graph.ts';
import { partType } from '../../dtype.ts';
import { interleaved, pair, partsOf, type ComplexPair } from './pair.ts';

/** [c d; −d c] along two new last axes: which part of the left operand, which part of the result. */
function rotation(b: GraphBuilder, { re, im }: ComplexPair): Node {
  const shape = [...dims(re), 1, 2];
  const rows = [interleaved(b, pair(re, im)), interleaved(b, pair(neg(b, im), re))];
  const parts = rows.map((row) => reshape(b, row, shape));
  return b.add('concat', parts, { axis: shape.length - 2 }) as Node;
}

export function dotOfPairs(
  b: GraphBuilder,
  { attrs }: NodeOf<'dot'>,
  x: ComplexPair,
  w: ComplexPair,
): ComplexPair {
  const [left, right] = [interleaved(b, x), rotation(b, w)];
  const result = b.add('dot', [left, right], {
    ...attrs,
    lhsContract: [...attrs.lhsContract, left.shape.length - 1],
    rhsContract: [...attrs.rhsContract, right.shape.length - 2],
    dtype: partType(attrs.dtype),
  });
  return partsOf(b, result as Node);
}

/** Parts become channels: those of an image side by side, of a kernel in both directions. */
export function convOfPairs(
  b: GraphBuilder,
  { attrs }: NodeOf<'conv'>,
  x: ComplexPair,
  w: ComplexPair,
): ComplexPair {
  const [batch, channels, ...size] = dims(x.re) as [number, number, ...number[]];
  const [outputs, perGroup, ...kernel] = dims(w.re) as [number, number, ...number[]];
  const spatial = size.map((_, i) => i + 2);
  const behind = (axes: readonly number[], by: number): number[] => axes.map((axis) => axis + by);
  const last = size.length + 2;
  const image = reshape(b, permute(b, interleaved(b, x), [0, 1, last, ...spatial]), [
    batch,
    channels * 2,
    ...size,
  ]);
  // [o, c, k…, part in, part out] → [o, part out, c, part in, k…].
  const turned = permute(b, rotation(b, w), [0, last + 1, 1, last, ...spatial]);
  const filter = reshape(b, turned, [outputs * 2, perGroup * 2, ...kernel]);
  const result = b.add('conv', [image, filter], attrs) as Node;
  const placed = dims(result).slice(2);
  const apart = reshape(b, result, [batch, outputs, 2, ...placed]);
  const stored = permute(b, apart, [0, 1, ...behind(spatial, 1), 2]);
  return partsOf(b, stored);
}
