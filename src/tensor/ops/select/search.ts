// Whether elements are among others, and positions in C-order taken apart.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { binary, broadcast, cast, reduce, reshape, unary } from '../../../ir/build.ts';
import { isComplex, partType } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { sizeOf, toShape } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import { anOperand, aTensor } from '../../expect.ts';
import { asTensor, record, recordMany } from '../../record.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { narrowIndex, orderOf } from '../../formula/elementwise.ts';
import { checkInteger, resultType } from '../operand.ts';
import { flattened, unraveled } from './count.ts';

export interface IsinOptions {
  /** True for the elements that are not there; false by default. */
  readonly invert?: boolean;
  /** Promises that neither side has equal elements: nothing is gained by it here; false by default. */
  readonly assumeUnique?: boolean;
}

const takesIsin = arg.takes<typeof isin>(
  ['the elements', anOperand],
  ['the test elements', anOperand],
  ['options', arg.options<IsinOptions>({ invert: arg.flag, assumeUnique: arg.flag })],
);

/** Up to so many others each element is compared with all of them; complex numbers, which have no order, always. */
const fewOthers = 64;

/**
 * true for each element that is among the test elements; NaN is among none.
 *
 * @example
 * const a = sn.tensor([1, 2, 3]);
 * const b = sn.tensor([1, 2, 4]);
 * sn.isin(a, b);
 */
export function isin(
  elements: TensorLike,
  testElements: TensorLike,
  options: IsinOptions = {},
): Tensor<'bool'> {
  takesIsin('isin', elements, testElements, options);
  const common = resultType([elements, testElements]);
  const dtype = common === 'bool' ? 'u8' : common;
  const [x, others] = [elements, testElements].map((side) => asTensor(side, partType(dtype), 'isin'));
  return record([x!, others!], (b, [node, among]) => {
    const line = flattened(b, cast(b, node!, dtype));
    const rest = flattened(b, cast(b, among!, dtype));
    const found =
      others!.size <= fewOthers || isComplex(dtype) ? compared(b, line, rest) : searched(b, line, rest);
    return reshape(b, options.invert === true ? unary(b, 'not', found) : found, x!.shape);
  });
}

function compared(b: GraphBuilder, x: Node, others: Node): Node {
  const [size, count] = [sizeOf(x.shape as number[]), sizeOf(others.shape as number[])];
  const shape = [size, count];
  const left = broadcast(b, reshape(b, x, [size, 1]), shape);
  return reduce(b, 'or', binary(b, 'eq', left, broadcast(b, others, shape)), [1]);
}

/** Some of the sorted others is not above x that is not below it either. */
function searched(b: GraphBuilder, x: Node, others: Node): Node {
  const sorted = b.add('gather', [others, orderOf(b, others, 0, false)], { axis: 0 }) as Node;
  const [low, high] = [false, true].map((right) => b.add('searchSorted', [sorted, x], { right }) as Node) as [
    Node,
    Node,
  ];
  return binary(b, 'and', binary(b, 'lt', low, high), binary(b, 'eq', x, x));
}

const takesUnravelIndex = arg.takes<typeof unravelIndex>(
  ['the positions', aTensor],
  ['the shape', arg.inside()],
);

/**
 * Positions in C-order as positions on each axis of a shape: an i32 tensor an axis.
 *
 * @family Indexing, selection and scatters
 * @example
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.unravelIndex(i, [2, 3]);
 */
export function unravelIndex(index: Tensor, shape: readonly number[]): Tensor[] {
  takesUnravelIndex('unravelIndex', index, shape);
  const sizes = toShape('unravelIndex', shape);
  checkInteger('unravelIndex', 'the positions', index);
  const size = sizeOf(sizes);
  const told = `[${sizes.join(',')}]`;
  if (size === 0 && index.size > 0)
    throw new TensorError('E_INDEX', 'unravelIndex', `nothing lies in ${told}`);
  watchRange('unravelIndex', 'position', index, 0, size, `the ${size} elements of ${told}`);
  return recordMany([index], (b, [node]) => unraveled(b, cast(b, narrowIndex(b, node!), 'i32'), sizes));
}
