// Matrices with two elements in each group of four along an axis (2:4 sparsity: Mishra et al., 2021):
// half the values, and for each group where its two stand. A product unpacks them while it reads
// its operand; what is stored and read is the packed form.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  full,
  fullLike,
  mul,
  reshape,
  unary,
  where,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { TreeNode } from '../../tree.ts';
import { iota } from '../../formula/elementwise.ts';
import { apply, checkRank, show } from '../operand.ts';
import { matmul as product } from '../product/matmul.ts';
import { concat, sliceAxis } from '../../formula/layout.ts';

/**
 * A matrix [k, n] with two elements in each group of four along k.
 *
 * @names sparse24.Packed24
 */
export class Packed24 extends TreeNode {
  /** The two of each group, [k / 2, n]. */
  readonly values: Tensor;
  /** Where they stand in their group, two bits each in a byte: u8 [k / 4, n]. */
  readonly places: Tensor;

  constructor(values: Tensor, places: Tensor) {
    super();
    this.values = values;
    this.places = places;
  }
}

const aPacked: arg.Kind<Packed24> = arg.kind(
  'a packed matrix',
  (value) => value instanceof Packed24,
  () => 'sparse24.compress(x)',
);
const takesCompress = arg.takes<typeof compress>(['the operand', aTensor]);

/** The places of the two largest of four magnitudes, in order; of equal ones the first. */
function twoOfFour(b: GraphBuilder, groups: Node): [first: Node, second: Node] {
  const parts = [0, 1, 2, 3].map((r) => unary(b, 'abs', sliceAxis(b, groups, 1, r, 1)));
  const kept = parts.map((own, r) => {
    const ahead = parts.flatMap((other, s) => {
      if (s === r) return [];
      const wins = s < r ? unary(b, 'not', binary(b, 'lt', other, own)) : binary(b, 'lt', own, other);
      return [cast(b, wins, 'i32')];
    });
    return binary(
      b,
      'lt',
      ahead.reduce((sum, one) => add(b, sum, one)),
      2,
    );
  });
  const place = (r: number): Node => full(b, dims(parts[0]!), r, 'i32');
  const [a, c, d] = kept as [Node, Node, Node, Node];
  const first = where(b, a, place(0), where(b, c, place(1), place(2)));
  const both = binary(b, 'and', a, c);
  const third = binary(b, 'and', d, binary(b, 'or', a, c));
  const second = where(b, both, place(1), where(b, third, place(2), place(3)));
  return [first, second];
}

/**
 * The two elements of largest magnitude in each group of four along the first axis; a matrix that
 * has no more than two loses nothing.
 *
 * @names sparse24.compress
 * @torch torch.sparse.to_sparse_semi_structured
 * @example
 * const w = sn.tensor([[1, 0], [0, 2], [3, 0], [0, 4]]);
 * sn.sparse24.compress(w);
 */
export function compress(x: Tensor): Packed24 {
  takesCompress('sparse24.compress', x);
  checkRank('sparse24.compress', 'the operand', x, 2);
  if (x.dtype === 'bool' || x.dtype.startsWith('u'))
    throw new TensorError('E_DTYPE', 'sparse24.compress', `expects signed numbers: ${show(x)}`);
  const [rows, columns] = x.shape as [number, number];
  if (rows % 4 !== 0)
    throw new TensorError('E_SHAPE', 'sparse24.compress', `rows must come in fours: ${show(x)}`);
  const [values, places] = recordMany([x], (b, [node]) => {
    const groups = reshape(b, node!, [rows / 4, 4, columns]);
    const [first, second] = twoOfFour(b, groups);
    const chosen = b.add('gather', [groups, concat(b, [first, second], 1)], { axis: 1 }) as Node;
    const packed = add(b, first, mul(b, second, 4));
    return [reshape(b, chosen, [rows / 2, columns]), cast(b, reshape(b, packed, [rows / 4, columns]), 'u8')];
  });
  return new Packed24(values!, places!);
}

function unpacked(b: GraphBuilder, values: Node, places: Node): Node {
  const [groups, columns] = dims(places) as [number, number];
  const shape = [groups, 4, columns];
  const spread = (node: Node): Node => broadcast(b, reshape(b, node, [groups, 1, columns]), shape);
  const pairs = reshape(b, values, [groups, 2, columns]);
  const [low, high] = [0, 1].map((i) => spread(sliceAxis(b, pairs, 1, i, 1))) as [Node, Node];
  const bits = cast(b, places, 'i32');
  const here = iota(b, shape, 1);
  const [first, second] = [binary(b, 'and', bits, 3), binary(b, 'shr', bits, 2)];
  const rest = where(b, binary(b, 'eq', here, spread(second)), high, fullLike(b, high, 0));
  const dense = where(b, binary(b, 'eq', here, spread(first)), low, rest);
  return reshape(b, dense, [4 * groups, columns]);
}

const takesDecompress = arg.takes<typeof decompress>(['the packed matrix', aPacked]);

/**
 * The dense matrix [k, n], with zeros between.
 *
 * @names sparse24.decompress
 * @example
 * const w = sn.tensor([[1, 0], [0, 2], [3, 0], [0, 4]]);
 * sn.sparse24.decompress(sn.sparse24.compress(w));
 */
export function decompress(packed: Packed24): Tensor {
  takesDecompress('sparse24.decompress', packed);
  return apply([packed.values, packed.places], unpacked);
}

const takesMatmul = arg.takes<typeof matmul>(['the operand', aTensor], ['the packed matrix', aPacked]);

/**
 * x [.., k] times a packed matrix [k, n], as the product with the dense one.
 *
 * @names sparse24.matmul
 * @example
 * const w = sn.tensor([[1, 0], [0, 2], [3, 0], [0, 4]]);
 * const y = sn.tensor([[1, 2, 3, 4]]);
 * sn.sparse24.matmul(y, sn.sparse24.compress(w));
 */
export function matmul(x: Tensor, packed: Packed24): Tensor {
  takesMatmul('sparse24.matmul', x, packed);
  const [groups] = packed.places.shape as [number, number];
  if (x.rank === 0 || x.shape.at(-1) !== 4 * groups) {
    const problem = `expects [.., ${4 * groups}] for values ${show(packed.values)}: ${show(x)}`;
    throw new TensorError('E_SHAPE', 'sparse24.matmul', problem);
  }
  return product(x, decompress(packed));
}
