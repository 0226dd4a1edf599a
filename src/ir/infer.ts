// Type rules: the dtype and shape of a node from its inputs and attributes. Those of elementwise ops follow from their rows in
// ops.ts; the others' are in typing/.

import { takesComplex } from './typing/complex-ops.ts';
import { dtypeBytes, isComplex, isFloat, isInteger, partType, type DType } from './dtype.ts';
import {
  elementwiseRows,
  facts,
  givesBool,
  type Attrs,
  type CollectiveOp,
  type ElementwiseOp,
  type TypeFamily,
  type Op,
} from './ops.ts';
import { sameShape } from './shape.ts';
import { fail, type TypeRule, type TypeRulesOf, type TensorType } from './typing/check.ts';
import { complexes } from './typing/complex.ts';
import { boundedType, iterateType } from './typing/control.ts';
import { contractions } from './typing/contraction.ts';
import { folds } from './typing/fold.ts';
import { indexed } from './typing/indexed.ts';
import { factorTypes, meshTypes, transformTypes } from './typing/slots.ts';
import { sources } from './typing/source.ts';
import { views } from './typing/view.ts';

export { showType, windowCount, type TensorType } from './typing/check.ts';

/** Which element types an op takes, and what is said of others. */
const families: { readonly [F in TypeFamily]: (dtype: DType) => string | undefined } = {
  float: (dtype) => (isFloat(dtype) ? undefined : 'expects a float dtype'),
  integer: (dtype) => (isInteger(dtype) ? undefined : 'expects an integer dtype'),
  number: (dtype) => (dtype === 'bool' ? 'expects a number dtype, not bool' : undefined),
  bits: (dtype) => (isFloat(dtype) ? 'expects an integer or bool dtype' : undefined),
  any: () => undefined,
};

function elementwise(inputs: readonly TensorType[], attrs: unknown, op: ElementwiseOp): TensorType {
  const operands = op === 'where' ? inputs.slice(1) : inputs;
  const first = operands[0]!;
  if (op === 'where' && inputs[0]!.dtype !== 'bool')
    fail(op, 'E_DTYPE', 'the condition must be bool', inputs);
  if (!inputs.every((input) => sameShape(input.shape, first.shape))) {
    fail(op, 'E_SHAPE', 'operands must have one shape (broadcast them first)', inputs);
  }
  if (!operands.every((input) => input.dtype === first.dtype)) {
    fail(op, 'E_DTYPE', 'operands must have one dtype (cast them first)', inputs);
  }
  const { dtype, shape } = first;
  const { takes } = elementwiseRows[op];
  const accepted = isComplex(dtype) ? takesComplex(op) : families[takes](dtype) === undefined;
  if (!accepted) {
    const problem = isComplex(dtype) ? 'has no meaning on complex numbers' : families[takes](dtype)!;
    fail(op, 'E_DTYPE', problem, inputs);
  }
  if (op === 'cast') {
    const to = (attrs as Attrs<'cast'>).dtype;
    if (isComplex(dtype) && !isComplex(to) && to !== 'bool')
      fail(op, 'E_DTYPE', `would lose the imaginary part, as ${to} (take real or abs)`, inputs);
    return { dtype: to, shape };
  }
  if (op === 'abs') return { dtype: partType(dtype), shape };
  if (op === 'bitcast') {
    const to = (attrs as Attrs<'bitcast'>).dtype;
    if (dtypeBytes(to) !== dtypeBytes(dtype) || to === 'bool' || dtype === 'bool' || isComplex(to)) {
      fail(op, 'E_DTYPE', `cannot reinterpret as ${to}: widths differ, bool or complex`, inputs);
    }
    return { dtype: to, shape };
  }
  return { dtype: givesBool(op) ? 'bool' : dtype, shape };
}

/** What only programs over several processes have. */
type MeshOp = CollectiveOp | 'rankIndex' | 'shard' | 'toPart' | 'toWhole';

const rules: TypeRulesOf<Exclude<Op, ElementwiseOp | MeshOp | 'fft' | 'fftPart' | 'factor'>> = {
  ...sources,
  ...views,
  ...folds,
  ...contractions,
  ...indexed,
  ...complexes,
  iterate: iterateType,
  stopGradient: (inputs) => inputs[0]!,
  customVjp: (inputs) => inputs[0]!,
  barrier: (inputs) => inputs[0]!,
  bounded: boundedType,
};

/** The type of a node. Throws TensorError when the inputs or attributes do not fit the op. */
export function infer<K extends Op>(op: K, inputs: readonly TensorType[], attrs: Attrs<K>): TensorType {
  const { arity, class: kind } = facts(op);
  if (arity === 'variadic' ? inputs.length === 0 && op !== 'iterate' : inputs.length !== arity) {
    fail(op, 'E_VALUE', `expects ${arity} input(s), got ${inputs.length}`, inputs);
  }
  if (kind === 'unary' || kind === 'binary' || kind === 'ternary')
    return elementwise(inputs, attrs, op as ElementwiseOp);
  const rule = (rules as unknown as Partial<Record<Op, TypeRule<K>>>)[op] ?? rareRule(op);
  return rule(inputs, attrs, op);
}

/** The rule of an op of which a slot has it. */
function rareRule<K extends Op>(op: K): TypeRule<K> {
  switch (op) {
    case 'fft':
    case 'fftPart':
      return ofTable(transformTypes.value, op);
    case 'factor':
      return ofTable(factorTypes.value, op);
    default:
      return ofTable(meshTypes.value, op);
  }
}

function ofTable<K extends Op>(table: object, op: K): TypeRule<K> {
  return (table as Record<Op, TypeRule<K>>)[op];
}
