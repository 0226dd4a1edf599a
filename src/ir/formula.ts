// Computes an op by the formula of its row, over any representation of values: text of a language,
// nodes of a Loop, names in a file.

import { CompilerBug } from '../errors.ts';
import { elementwiseRows, type ElementwiseOp, type OpFormula } from './ops.ts';

/** How a representation writes constants and the other ops. */
export interface Writer<T> {
  constant(value: number): T;
  op(op: ElementwiseOp, args: readonly T[]): T;
}

/** The value of an op whose row has a formula. */
export function byFormula<T>(op: ElementwiseOp, args: readonly T[], writer: Writer<T>): T {
  const { formula } = elementwiseRows[op];
  if (formula === undefined) throw new CompilerBug('formula', `the row of ${op} has no formula`);
  const write = (part: OpFormula): T => {
    if (typeof part === 'number') return writer.constant(part);
    if (typeof part === 'string') return args['xyz'.indexOf(part)]!;
    const [name, ...operands] = part;
    return writer.op(name, operands.map(write));
  };
  return write(formula);
}

/**
 * Whether the formula has several operations: intermediate values may need more digits than the
 * result.
 */
export function hasSteps(op: ElementwiseOp): boolean {
  const { formula } = elementwiseRows[op];
  return Array.isArray(formula) && formula.some(Array.isArray);
}
