// The type rule of matrix algorithms: stacks of matrices of one dtype, f32 or f64, or complex.

import { isComplex } from '../dtype.ts';
import { factorRow, type Size } from '../factor.ts';
import { fixedShape } from '../shape.ts';
import { fail, type TypeRulesOf } from './check.ts';

export const factors: TypeRulesOf<'factor'> = {
  factor: (inputs, { kind }, op) => {
    const { takes, takesComplex, needs, fits, result } = factorRow(kind);
    if (inputs.length !== takes.length)
      fail(op, 'E_VALUE', `${kind} takes ${takes.join(' and ')}, got ${inputs.length} operand(s)`, inputs);
    const { dtype } = inputs[0]!;
    const isTaken = dtype === 'f32' || dtype === 'f64' || (takesComplex && isComplex(dtype));
    if (!isTaken || inputs.some((input) => input.dtype !== dtype))
      fail(
        op,
        'E_DTYPE',
        `${kind} expects f32 or f64${takesComplex ? ', or c64 or c128,' : ','} and one dtype`,
        inputs,
      );
    const shapes = inputs.map(({ shape }) => fixedShape(shape, op));
    const lines = shapes[0]![0]!;
    if (shapes.some((shape) => shape.length !== 3 || shape[0] !== lines))
      fail(op, 'E_SHAPE', `${kind} expects as many matrices of each operand, [lines,rows,columns]`, inputs);
    const sizes = shapes.map(([, rows, columns]): Size => [rows!, columns!]);
    if (!fits(...sizes)) fail(op, 'E_SHAPE', `${kind} ${needs}`, inputs);
    return { dtype, shape: [lines, ...result(...sizes)] };
  },
};
