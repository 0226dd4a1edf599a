// Known values that follow from sizes, where a recording has to hold at other sizes as well (tensor/sizes/trial.ts):
// masks, positions and tables that a model makes of the shapes of its inputs. The host has their elements at the
// sizes of the recording, for rows that need numbers, and the operations of their nodes are recorded where a tensor
// of them is wanted. A row that computes on the host alone has no operations: its elements are counted, or
// are numbers one by one.

import { SinterError } from '../errors.ts';
import { isFloat } from '../ir/dtype.ts';
import type { HostArray } from '../ir/value.ts';
import * as sn from '../operations/index.ts';
import { isTrial } from '../tensor/sizes/trial.ts';
import type { Tensor } from '../tensor/tensor.ts';
import type { Row } from './call.ts';
import { explained, type GraphStep } from './plan.ts';
import { numbersOf, Value } from './value.ts';

/** Records a row on values; gives its results. */
type Recorded = (
  step: GraphStep,
  row: Row,
  inputs: readonly (Value | undefined)[],
) => readonly (Value | undefined)[];

/**
 * Operators whose results that are one number are given as this number: bundles compute numbers that follow
 * from sizes by formulas (aot/formula.ts), and a constant of a recording may be another at another size.
 */
const arithmetic: ReadonlySet<string> = new Set(
  'Add Cast Concat Div Floor Gather Identity Max Min Mul Neg Reciprocal ReduceProd Reshape Shape Size Slice Sqrt Squeeze Sub Unsqueeze'.split(
    ' ',
  ),
);

/** Lists of so many elements at most are numbers one by one. */
const mostNumbers = 64;

/** The results of a row on values, of which some follow from sizes: those that are known say how they are recorded. */
export function followingSizes(
  step: GraphStep,
  row: Row,
  inputs: readonly (Value | undefined)[],
  results: readonly (Value | undefined)[],
  recorded: Recorded,
): readonly (Value | undefined)[] {
  if (!isTrial()) return results;
  const follows = inputs.some(
    (input) =>
      input !== undefined &&
      (input.recipe !== undefined || (row.sizes === true && input.known === undefined)),
  );
  return results.map((value, place) => {
    if (value?.known === undefined || value.words !== undefined || !value.isTensor) return value;
    const { type, known } = value;
    if (!follows) return value.recipe === undefined ? value : Value.known(type, known);
    if (value.recipe !== undefined) return value;
    if (known.shape.length === 0 && known.dtype !== 'bool' && arithmetic.has(step.op))
      return Value.following(type, known, { of: [], record: () => numbersOf(known) });
    const record = (of: readonly (Value | undefined)[]): Tensor =>
      explained(step, () => {
        const again = recorded(step, row, of)[place]!;
        const isHosts = again.known !== undefined && again.recipe === undefined && !of.includes(again);
        return isHosts ? counted(again.known) : again.tensor;
      });
    return Value.following(type, known, { of: inputs, record });
  });
}

/** Elements of the host as operations. Throws E_UNSUPPORTED where they follow no rule. */
function counted(array: HostArray): Tensor {
  const { dtype, shape, data } = array;
  const elements = Array.from(data as ArrayLike<number | bigint>, Number);
  const [first = 0, second = first] = elements;
  const step = second - first;
  const isLine = !isFloat(dtype) && dtype !== 'bool' && shape.filter((size) => size > 1).length === 1;
  if (isLine && elements.length > 1 && elements.every((element, i) => element === first + i * step)) {
    const line = sn.add(sn.mul(sn.arange(0, elements.length, 1, { dtype }), step), first);
    return sn.reshape(line, shape);
  }
  if (elements.length === 1) return sn.reshape(numbersOf({ dtype, shape: [1], data }), shape);
  if (shape.length < 2 && elements.length > 0 && elements.length <= mostNumbers) return numbersOf(array);
  throw new SinterError(
    'E_UNSUPPORTED',
    'its elements follow from open sizes, are computed on the host, and are no line of whole numbers' +
      '\n  try: a size instead of a range, or Range, Trilu, Less and Where in the model, which are operations of the graph',
  );
}
