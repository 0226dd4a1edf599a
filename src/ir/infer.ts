// Type rules: the dtype and shape of a node from its inputs and attributes. A violation is the user's mistake (the node is
// being recorded) and throws a TensorError that shows every operand as `f32[8,3]`.

import { TensorError, type ErrorCode } from '../errors.ts';
import { dtypeBytes, integerRange, isFloat, isInteger, type DType } from './dtype.ts';
import {
  elementwiseRows,
  facts,
  givesBool,
  type Attrs,
  type ElementwiseOp,
  type Family,
  type Op,
  type ScatterMode,
} from './ops.ts';
import {
  checkShape,
  fixedShape,
  sameDim,
  sameShape,
  showShape,
  sizeOf,
  type FixedShape,
  type Shape,
} from './shape.ts';

/** Element type and shape of a value. */
export interface TensorType {
  readonly dtype: DType;
  readonly shape: Shape;
}

/** `f32[8,3]`. */
export function showType(type: TensorType): string {
  return showShape(type.shape, type.dtype);
}

type Rule<K extends Op> = (inputs: readonly TensorType[], attrs: Attrs<K>, op: K) => TensorType;

function fail(op: string, code: ErrorCode, problem: string, inputs: readonly TensorType[]): never {
  const seen = inputs.length === 0 ? '' : `: ${inputs.map(showType).join(', ')}`;
  throw new TensorError(code, op, problem + seen);
}

/** Which element types an op takes, and what is said of others. */
const families: { readonly [F in Family]: (dtype: DType) => string | undefined } = {
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
  const problem = families[elementwiseRows[op].takes](dtype);
  if (problem !== undefined) fail(op, 'E_DTYPE', problem, inputs);
  if (op === 'cast') return { dtype: (attrs as Attrs<'cast'>).dtype, shape };
  if (op === 'bitcast') {
    const to = (attrs as Attrs<'bitcast'>).dtype;
    if (dtypeBytes(to) !== dtypeBytes(dtype) || to === 'bool' || dtype === 'bool') {
      fail(op, 'E_DTYPE', `cannot reinterpret as ${to}: widths differ or bool`, inputs);
    }
    return { dtype: to, shape };
  }
  return { dtype: givesBool(op) ? 'bool' : dtype, shape };
}

function checkAxis(op: Op, axis: number, rank: number, inputs: readonly TensorType[]): void {
  if (!Number.isInteger(axis) || axis < 0 || axis >= rank)
    fail(op, 'E_AXIS', `axis ${axis} is out of range`, inputs);
}

function checkLengths(
  op: Op,
  rank: number,
  lists: readonly (readonly number[])[],
  inputs: readonly TensorType[],
): void {
  if (!lists.every((list) => list.length === rank && list.every(Number.isSafeInteger))) {
    fail(op, 'E_SHAPE', `expects one integer per axis (${rank})`, inputs);
  }
}

/** Output size of a convolution or window along one axis. */
export function windowCount(padded: number, size: number, stride: number, dilation: number): number {
  const reach = dilation * (size - 1) + 1;
  return padded < reach ? 0 : Math.floor((padded - reach) / stride) + 1;
}

const rules: { readonly [K in Exclude<Op, ElementwiseOp>]: Rule<K> } = {
  parameter: (_, { dtype, shape }) => ({ dtype, shape }),
  constant: (_, { dtype }) => ({ dtype, shape: [] }),
  iota: (_, { shape, axis, dtype }, op) => {
    checkShape(op, fixedShape(shape, op));
    checkAxis(op, axis, shape.length, []);
    if (dtype === 'bool') fail(op, 'E_DTYPE', 'bool cannot count', []);
    const last = fixedShape(shape, op)[axis]! - 1;
    if ((dtype === 'i32' || dtype === 'u32') && last > integerRange(dtype)[1])
      fail(op, 'E_VALUE', `${dtype} does not count to ${last}`, []);
    return { dtype, shape };
  },
  randomBits: (inputs, { shape }, op) => {
    checkShape(op, fixedShape(shape, op));
    if (!inputs.every((input) => input.dtype === 'u32' && input.shape.length === 0)) {
      fail(op, 'E_DTYPE', 'key and counter words must be rank-0 u32', inputs);
    }
    return { dtype: 'u32', shape };
  },
  reshape: (inputs, { shape }, op) => {
    const { dtype, shape: from } = inputs[0]!;
    checkShape(op, fixedShape(shape, op));
    if (sizeOf(fixedShape(from, op)) !== sizeOf(fixedShape(shape, op))) {
      fail(op, 'E_SHAPE', `cannot reshape to ${showShape(shape)}: element counts differ`, inputs);
    }
    return { dtype, shape };
  },
  permute: (inputs, { order }, op) => {
    const { dtype, shape } = inputs[0]!;
    if (
      order.length !== shape.length ||
      new Set(order).size !== order.length ||
      !order.every((axis) => shape[axis] !== undefined)
    ) {
      fail(op, 'E_AXIS', `[${order.join(',')}] is no permutation of the axes`, inputs);
    }
    return { dtype, shape: order.map((axis) => shape[axis]!) };
  },
  broadcast: (inputs, { shape }, op) => {
    const { dtype, shape: from } = inputs[0]!;
    const offset = shape.length - from.length;
    if (offset < 0 || !from.every((dim, axis) => dim === 1 || sameDim(dim, shape[axis + offset]!))) {
      fail(op, 'E_SHAPE', `cannot broadcast to ${showShape(shape)}`, inputs);
    }
    return { dtype, shape };
  },
  slice: (inputs, { start, size, step }, op) => {
    const { dtype } = inputs[0]!;
    const from = fixedShape(inputs[0]!.shape, op);
    checkLengths(op, from.length, [start, size, step], inputs);
    checkShape(op, size);
    from.forEach((dim, axis) => {
      const first = start[axis]!;
      const last = first + (size[axis]! - 1) * step[axis]!;
      const inside = first >= 0 && first < dim && last >= 0 && last < dim;
      if (step[axis] === 0 || (size[axis]! > 0 && !inside)) {
        fail(
          op,
          'E_INDEX',
          `axis ${axis}: start ${first}, size ${size[axis]}, step ${step[axis]} leaves [0,${dim})`,
          inputs,
        );
      }
    });
    return { dtype, shape: size };
  },
  pad: (inputs, { low, high, interior }, op) => {
    const { dtype } = inputs[0]!;
    const from = fixedShape(inputs[0]!.shape, op);
    checkLengths(op, from.length, [low, high, interior], inputs);
    if (![...low, ...high, ...interior].every((n) => n >= 0))
      fail(op, 'E_SHAPE', 'paddings must not be negative', inputs);
    const shape = from.map(
      (dim, axis) => low[axis]! + high[axis]! + dim + Math.max(0, dim - 1) * interior[axis]!,
    );
    checkShape(op, shape);
    return { dtype, shape };
  },
  concat: (inputs, { axis }, op) => {
    const { dtype, shape } = inputs[0]!;
    checkAxis(op, axis, shape.length, inputs);
    const shapes = inputs.map((input) => fixedShape(input.shape, op));
    const fits = shapes.every(
      (s) => s.length === shape.length && s.every((dim, i) => i === axis || dim === shape[i]),
    );
    if (!fits) fail(op, 'E_SHAPE', `shapes must agree but for axis ${axis}`, inputs);
    if (!inputs.every((input) => input.dtype === dtype))
      fail(op, 'E_DTYPE', 'parts must have one dtype', inputs);
    return {
      dtype,
      shape: shape.map((dim, i) => (i === axis ? shapes.reduce((sum, s) => sum + s[axis]!, 0) : dim)),
    };
  },
  window: (inputs, { axis, size, stride, dilation }, op) => {
    const { dtype } = inputs[0]!;
    const from = fixedShape(inputs[0]!.shape, op);
    checkAxis(op, axis, from.length, inputs);
    if (![size, stride, dilation].every((n) => Number.isSafeInteger(n) && n >= 1)) {
      fail(
        op,
        'E_VALUE',
        `size ${size}, stride ${stride} and dilation ${dilation} must be positive integers`,
        inputs,
      );
    }
    const count = windowCount(from[axis]!, size, stride, dilation);
    return { dtype, shape: [...from.map((dim, i) => (i === axis ? count : dim)), size] };
  },
  reduce: (inputs, { monoid, axes }, op) => {
    const { dtype, shape } = inputs[0]!;
    axes.forEach((axis, i) => {
      checkAxis(op, axis, shape.length, inputs);
      if (i > 0 && axes[i - 1]! >= axis) fail(op, 'E_AXIS', 'axes must ascend', inputs);
    });
    const logical = monoid === 'and' || monoid === 'or';
    if (logical !== (dtype === 'bool')) fail(op, 'E_DTYPE', `${monoid} does not reduce this dtype`, inputs);
    return { dtype, shape: shape.filter((_, axis) => !axes.includes(axis)) };
  },
  argReduce: (inputs, { axis }, op) => {
    const { shape } = inputs[0]!;
    checkAxis(op, axis, shape.length, inputs);
    if (shape[axis] === 0) fail(op, 'E_SHAPE', 'no extremum of an empty axis', inputs);
    checkPositions(op, shape, axis, inputs);
    return { dtype: 'i32', shape: shape.filter((_, i) => i !== axis) };
  },
  argSort: (inputs, { axis }, op) => {
    const { shape } = inputs[0]!;
    checkAxis(op, axis, shape.length, inputs);
    checkPositions(op, shape, axis, inputs);
    return { dtype: 'i32', shape };
  },
  radixRank: (inputs, { shift, digits, block }, op) => {
    const keys = inputs[0]!;
    const shape = fixedShape(keys.shape, op);
    if (keys.dtype !== 'u32' || shape.length !== 2) fail(op, 'E_DTYPE', 'expects u32 keys [lines,n]', inputs);
    const width = Math.log2(digits);
    if (!Number.isInteger(width) || shift < 0 || shift + width > 32 || !(block >= 1))
      fail(op, 'E_VALUE', `no ${digits} digits at bit ${shift} in blocks of ${block}`, inputs);
    return { dtype: 'i32', shape: [shape[0]!, Math.ceil(shape[1]! / block), digits + block] };
  },
  scan: (inputs, { axis, monoid }, op) => {
    const { dtype, shape } = inputs[0]!;
    checkAxis(op, axis, shape.length, inputs);
    const logical = monoid === 'and' || monoid === 'or';
    if (logical !== (dtype === 'bool')) fail(op, 'E_DTYPE', `${monoid} does not scan this dtype`, inputs);
    return { dtype, shape };
  },
  dot: (inputs, { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype }, op) => {
    const [lhs, rhs] = [inputs[0]!, inputs[1]!];
    if (lhs.dtype !== rhs.dtype) fail(op, 'E_DTYPE', 'operands must have one dtype', inputs);
    if (lhs.dtype === 'bool') fail(op, 'E_DTYPE', 'bool has no dot product', inputs);
    if (lhsBatch.length !== rhsBatch.length || lhsContract.length !== rhsContract.length) {
      fail(op, 'E_AXIS', 'batch and contracting axes must come in pairs', inputs);
    }
    const usedL = [...lhsBatch, ...lhsContract];
    const usedR = [...rhsBatch, ...rhsContract];
    usedL.forEach((axis) => checkAxis(op, axis, lhs.shape.length, inputs));
    usedR.forEach((axis) => checkAxis(op, axis, rhs.shape.length, inputs));
    if (new Set(usedL).size !== usedL.length || new Set(usedR).size !== usedR.length) {
      fail(op, 'E_AXIS', 'an axis is used twice', inputs);
    }
    if (!usedL.every((axis, i) => sameDim(lhs.shape[axis]!, rhs.shape[usedR[i]!]!))) {
      fail(
        op,
        'E_SHAPE',
        `paired axes differ in size (lhs ${usedL.join(',')}, rhs ${usedR.join(',')})`,
        inputs,
      );
    }
    const freeL = lhs.shape.filter((_, axis) => !usedL.includes(axis));
    const freeR = rhs.shape.filter((_, axis) => !usedR.includes(axis));
    return { dtype, shape: [...lhsBatch.map((axis) => lhs.shape[axis]!), ...freeL, ...freeR] };
  },
  conv: (inputs, attrs, op) => {
    const [lhs, rhs] = [inputs[0]!, inputs[1]!];
    const [x, w] = [fixedShape(lhs.shape, op), fixedShape(rhs.shape, op)];
    const spatial = x.length - 2;
    if (lhs.dtype !== rhs.dtype || lhs.dtype === 'bool')
      fail(op, 'E_DTYPE', 'operands must have one number dtype', inputs);
    if (spatial < 0 || w.length !== x.length)
      fail(op, 'E_SHAPE', 'expects [N,C,S…] and [O,C/groups,K…]', inputs);
    const { strides, padLow, padHigh, lhsDilation, rhsDilation, groups } = attrs;
    checkLengths(op, spatial, [strides, padLow, padHigh, lhsDilation, rhsDilation], inputs);
    if (![...strides, ...lhsDilation, ...rhsDilation, groups].every((n) => n >= 1)) {
      fail(op, 'E_VALUE', 'strides, dilations and groups must be at least 1', inputs);
    }
    if (x[1] !== w[1]! * groups || w[0]! % groups !== 0) {
      fail(op, 'E_SHAPE', `channels do not fit ${groups} group(s)`, inputs);
    }
    const out = strides.map((stride, i) => {
      const size = x[i + 2]!;
      const dilated = size === 0 ? 0 : (size - 1) * lhsDilation[i]! + 1;
      return windowCount(dilated + padLow[i]! + padHigh[i]!, w[i + 2]!, stride, rhsDilation[i]!);
    });
    return { dtype: lhs.dtype, shape: [x[0]!, w[0]!, ...out] };
  },
  gather: (inputs, { axis }, op) => {
    const [operand, indices] = [inputs[0]!, inputs[1]!];
    checkIndexed(op, axis, operand, indices, inputs);
    return { dtype: operand.dtype, shape: indices.shape };
  },
  scatter: (inputs, { axis, mode }, op) => {
    const [operand, indices, updates] = [inputs[0]!, inputs[1]!, inputs[2]!];
    checkIndexed(op, axis, operand, indices, inputs);
    if (!sameShape(indices.shape, updates.shape))
      fail(op, 'E_SHAPE', 'indices and updates must have one shape', inputs);
    return scattered(op, mode, operand, updates, inputs);
  },
  permuteScatter: (inputs, { axis }, op) => {
    const [values, places] = [inputs[0]!, inputs[1]!];
    checkIndexed(op, axis, values, places, inputs);
    if (!sameShape(values.shape, places.shape))
      fail(op, 'E_SHAPE', 'values and places must have one shape', inputs);
    return values;
  },
  searchSorted: (inputs, _, op) => {
    const [boundaries, values] = [inputs[0]!, inputs[1]!];
    const lead = (type: TensorType): Shape => type.shape.slice(0, -1);
    if (boundaries.dtype !== values.dtype) fail(op, 'E_DTYPE', 'operands must have one dtype', inputs);
    if (boundaries.shape.length === 0 || !sameShape(lead(boundaries), lead(values)))
      fail(op, 'E_SHAPE', 'expects [..,n] and [..,m]', inputs);
    return { dtype: 'i32', shape: values.shape };
  },
  scatterAddAtomic: (inputs, { axis, size }, op) => {
    const [indices, updates] = [inputs[0]!, inputs[1]!];
    const shape = fixedShape(indices.shape, op).map((dim, i) => (i === axis ? size : dim));
    checkShape(op, shape);
    checkIndexed(op, axis, { dtype: updates.dtype, shape }, indices, inputs);
    if (!sameShape(indices.shape, updates.shape))
      fail(op, 'E_SHAPE', 'indices and updates must have one shape', inputs);
    if (updates.dtype === 'bool') fail(op, 'E_DTYPE', 'expects numbers, not bool', inputs);
    return { dtype: updates.dtype, shape };
  },
  segmentReduce: (inputs, { axis, mode }, op) => {
    const [operand, starts, order, updates] = inputs as readonly TensorType[] as [
      TensorType,
      TensorType,
      TensorType,
      TensorType,
    ];
    checkIndexed(op, axis, operand, order, inputs);
    const more = fixedShape(operand.shape, op).map((dim, i) => (i === axis ? dim + 1 : dim));
    if (starts.dtype !== 'i32' || !sameShape(starts.shape, more) || !sameShape(order.shape, updates.shape))
      fail(op, 'E_SHAPE', `expects starts of one more along axis ${axis}, and one order an update`, inputs);
    return scattered(op, mode, operand, updates, inputs);
  },
  stopGradient: (inputs) => inputs[0]!,
  customVjp: (inputs) => inputs[0]!,
};

/** The last position that an i32 names. */
const largestPosition = 2147483647;

/** Results that are positions along an axis are i32. */
function checkPositions(op: Op, shape: Shape, axis: number, inputs: readonly TensorType[]): void {
  const size = fixedShape(shape, op)[axis]!;
  if (size - 1 > largestPosition)
    fail(op, 'E_SHAPE', `positions among ${size} elements do not fit i32`, inputs);
}

/** What updates folded into an operand give. */
function scattered(
  op: Op,
  mode: ScatterMode,
  operand: TensorType,
  updates: TensorType,
  inputs: readonly TensorType[],
): TensorType {
  if (updates.dtype !== operand.dtype) fail(op, 'E_DTYPE', 'operand and updates must have one dtype', inputs);
  if (operand.dtype === 'bool' && mode !== 'set') fail(op, 'E_DTYPE', `${mode} expects numbers`, inputs);
  return { dtype: operand.dtype, shape: operand.shape };
}

function checkIndexed(
  op: Op,
  axis: number,
  operand: TensorType,
  indices: TensorType,
  inputs: readonly TensorType[],
): void {
  checkAxis(op, axis, operand.shape.length, inputs);
  if (indices.dtype !== 'i32' && indices.dtype !== 'u32')
    fail(op, 'E_DTYPE', 'indices must be i32 or u32', inputs);
  const from = fixedShape(operand.shape, op);
  if (indices.dtype === 'u32' && from[axis]! - 1 > largestPosition)
    fail(op, 'E_SHAPE', `u32 indices do not reach along ${from[axis]} elements`, inputs);
  const at: FixedShape = fixedShape(indices.shape, op);
  if (from.length !== at.length || !at.every((dim, i) => i === axis || dim <= from[i]!)) {
    fail(op, 'E_SHAPE', `indices must have the operand's rank and fit it outside axis ${axis}`, inputs);
  }
}

/** The type of a node. Throws TensorError when the inputs or attributes do not fit the op. */
export function infer<K extends Op>(op: K, inputs: readonly TensorType[], attrs: Attrs<K>): TensorType {
  const { arity, class: kind } = facts(op);
  if (arity === 'variadic' ? inputs.length === 0 : inputs.length !== arity) {
    fail(op, 'E_VALUE', `expects ${arity} input(s), got ${inputs.length}`, inputs);
  }
  if (kind === 'unary' || kind === 'binary' || kind === 'ternary')
    return elementwise(inputs, attrs, op as ElementwiseOp);
  return (rules as unknown as Record<string, Rule<K>>)[op]!(inputs, attrs, op);
}
