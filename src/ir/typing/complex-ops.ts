// The elementwise ops that take complex numbers. Their meaning is in interpret/complex-scalar.ts, what becomes of them in
// passes/lower-complex.ts; both tables are total by the type here.

import type { ElementwiseOp } from '../ops.ts';

const names = [
  'neg',
  'abs',
  'sign',
  'exp',
  'exp2',
  'expm1',
  'log',
  'log2',
  'log1p',
  'sin',
  'cos',
  'tan',
  'asin',
  'acos',
  'atan',
  'sinh',
  'cosh',
  'tanh',
  'sqrt',
  'rsqrt',
  'recip',
  'isNan',
  'cast',
  'add',
  'sub',
  'mul',
  'div',
  'pow',
  'eq',
  'ne',
  'where',
  'fma',
] as const;

export type ComplexElementwise = Extract<ElementwiseOp, (typeof names)[number]>;

const taken: ReadonlySet<string> = new Set<ElementwiseOp>(names);

/** Whether the op takes complex numbers. */
export function takesComplex(op: string): op is ComplexElementwise {
  return taken.has(op);
}
