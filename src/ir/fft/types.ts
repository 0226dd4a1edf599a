// Type rules of discrete Fourier transforms.

import { fixedShape, type FixedShape } from '../shape.ts';
import { checkAxis, fail, type TypeRulesOf, type TensorType } from '../typing/check.ts';
import { fftPlan, fftTableSize } from './plan.ts';

export const transforms: TypeRulesOf<'fft' | 'fftPart'> = {
  fft: (inputs, { axis }, op) => {
    const [x, table] = inputs as readonly [TensorType, TensorType];
    const shape = fixedShape(x.shape, op);
    if (shape.at(-1) !== 2) fail(op, 'E_SHAPE', 'expects pairs [.., 2]', inputs);
    checkAxis(op, axis, shape.length - 1, inputs);
    checkTable(op, shape[axis]!, table, inputs);
    return x;
  },
  fftPart: (inputs, { part }, op) => {
    const [re, im, table] = inputs as readonly [TensorType, TensorType, TensorType];
    const shapes = [re, im].map((each) => fixedShape(each.shape, op)) as [FixedShape, FixedShape];
    const n = shapes[0].at(-1);
    if (n === undefined || shapes[0].join() !== shapes[1].join() || re.dtype !== im.dtype)
      fail(op, 'E_SHAPE', 'expects real and imaginary parts of one shape and dtype', inputs);
    if (part !== 0 && part !== 1) fail(op, 'E_VALUE', `there is no part ${part}`, inputs);
    checkTable(op, n, table, inputs);
    if (fftPlan(n).kind !== 'one') fail(op, 'E_SHAPE', `no kernel transforms ${n} points`, inputs);
    return re;
  },
};

/** Whether there is a transform of the axis, and the table is its. */
function checkTable(
  op: 'fft' | 'fftPart',
  n: number,
  table: TensorType,
  inputs: readonly TensorType[],
): void {
  if (n === 0) fail(op, 'E_SHAPE', 'no transform of an empty axis', inputs);
  const { dtype } = inputs[0]!;
  if ((dtype !== 'f32' && dtype !== 'f64') || table.dtype !== dtype)
    fail(op, 'E_DTYPE', 'expects f32 or f64, and a table of that dtype', inputs);
  const size = fftTableSize(n);
  if (table.shape.length !== 1 || table.shape[0] !== size)
    fail(op, 'E_SHAPE', `expects a table of ${size} for ${n} points`, inputs);
}
