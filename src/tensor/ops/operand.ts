// Operands of public operations: the one place where dtypes promote, JavaScript numbers take a
// dtype, shapes broadcast and tensors are handed to a formula as graph nodes. Promotion is
// PyTorch's: a tensor with axes decides before a rank-0 tensor, and that before a JavaScript
// number, unless the weaker one is of a higher kind (bool < integer < float <
// complex).

import { ofCaller, showValue, TensorError } from '../../errors.ts';
import {
  complexType,
  dtypeKind,
  isComplex,
  isFloat,
  isInexact,
  promote,
  type DType,
} from '../../ir/dtype.ts';
import { broadcast, cast, constant } from '../../ir/build.ts';
import { checkList, sameShape, showShape, type FixedShape } from '../../ir/shape.ts';
import type { GraphBuilder, Node } from '../../ir/graph.ts';
import { takes, type Signature } from '../../ir/arguments.ts';
import { castedType } from '../autocast.ts';
import { aTensor, expectOperand, expectTensor } from '../expect.ts';
import type { GivenNumber } from '../handle/handle.ts';
import { numberOf, record } from '../record.ts';
import type { BesideNumber, Floated, Promoted } from '../inferred.ts';
import { Tensor, type TensorLike } from '../tensor.ts';
import { checkHeld, inType, typeBeside } from './number.ts';
import { widened } from '../formula/elementwise.ts';

type Nodes<T extends readonly (Tensor | undefined)[]> = {
  [K in keyof T]: undefined extends T[K] ? Node | undefined : Node;
};

/** Records one node from tensors; an absent optional operand reaches `make` as undefined. @internal */
export function apply<const T extends readonly (Tensor | undefined)[]>(
  operands: T,
  make: (b: GraphBuilder, ...nodes: Nodes<T>) => Node,
): Tensor {
  // The first operand is there in every operation.
  expectTensor('operation', 'the operand', operands[0]);
  const given = operands.filter((operand) => operand !== undefined);
  if (given.length === operands.length)
    return record(given, (b, nodes) => make(b, ...(nodes as unknown as Nodes<T>)));
  return record(given, (b, nodes) => make(b, ...spread(operands, nodes)));
}

/** The nodes of the given operands, at the operands' positions. @internal */
export function spread<const T extends readonly (Tensor | undefined)[]>(
  operands: T,
  nodes: readonly Node[],
): Nodes<T> {
  let next = 0;
  return operands.map((operand) =>
    operand === undefined ? undefined : nodes[next++],
  ) as unknown as Nodes<T>;
}

/** `f32[8,3]` for a tensor, the value itself for a JavaScript number. @internal */
export function show(...values: readonly TensorLike[]): string {
  return values.map((x) => (x instanceof Tensor ? showShape(x.shape, x.dtype) : String(x))).join(', ');
}

const rank = { bool: 0, int: 1, uint: 1, float: 2, complex: 3 } as const;

/** The dtype that the operands of an elementwise operation are converted to, as `torch.result_type`. @internal */
export function resultType(values: readonly TensorLike[]): DType {
  const tiers: [withAxes?: DType, rankZero?: DType, plain?: DType] = [];
  let numbers: GivenNumber[] | undefined;
  for (const value of values) {
    const number = numberOf(value);
    if (number !== undefined) {
      (numbers ??= []).push(number);
      continue;
    }
    const tier = value instanceof Tensor && !value.weak ? (value.rank > 0 ? 0 : 1) : 2;
    const dtype = value instanceof Tensor ? value.dtype : plainType(value);
    const seen = tiers[tier];
    tiers[tier] = seen === undefined ? dtype : promote(seen, dtype);
  }
  for (const number of numbers ?? []) {
    const dtype = typeBeside(number, tiers[0], tiers[1]);
    tiers[2] = tiers[2] === undefined ? dtype : promote(tiers[2], dtype);
  }
  // Numbers alone are f32, as `tensor` makes them.
  if (tiers[0] === undefined && tiers[1] === undefined && !isComplex(tiers[2] ?? 'f32'))
    return tiers[2] === 'bool' ? 'bool' : 'f32';
  let result: DType | undefined;
  for (const dtype of tiers) {
    if (dtype === undefined) continue;
    if (result === undefined) result = dtype;
    else if (rank[dtypeKind(dtype)] > rank[dtypeKind(result)])
      // A float that meets a complex number keeps its width.
      result = isComplex(dtype) && isFloat(result) ? complexType(result) : dtype;
  }
  return result!;
}

/**
 * A whole number is an integer as long as nothing else is a float: JavaScript does not tell 2 from
 * 2.0.
 */
function plainType(value: number | boolean): DType {
  if (typeof value === 'boolean') return 'bool';
  return Number.isInteger(value) ? 'i32' : 'f32';
}

/**
 * Which operand dtypes an operation computes in: as they are, no complex numbers, no bool, neither
 * of both, floats (integers and bool become f32, complex numbers stay), or floats alone.
 *
 * @internal
 */
export type Domain = 'any' | 'ordered' | 'number' | 'real' | 'float' | 'realFloat';

/** The common dtype of the operands, brought into the operation's domain. @internal */
export function operandType(op: string, values: readonly TensorLike[], domain: Domain): DType {
  for (const value of values) expectOperand(op, value);
  const common = castedType(op, resultType(values));
  if (domain === 'ordered' || domain === 'real' || domain === 'realFloat') checkNotComplex(op, ...values);
  if ((domain === 'float' || domain === 'realFloat') && !isInexact(common)) return 'f32';
  if ((domain === 'number' || domain === 'real') && common === 'bool') refuseBool(op, ...values);
  return common;
}

function refuseBool(op: string, ...values: readonly TensorLike[]): never {
  throw new TensorError('E_DTYPE', op, `expects numbers, not bool: ${show(...values)}`, ".cast('i32') first");
}

/** Refuses bool and complex numbers. @internal */
export function checkReal(op: string, x: Tensor): void {
  checkNotComplex(op, x);
  if (x.dtype === 'bool') refuseBool(op, x);
}

/** Runs other public operations as parts of `op`: what they refuse is said of `op`. @internal */
export function calledAs<T>(op: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw ofCaller(error, op);
  }
}

/** Refuses what `cast` does: a real dtype for complex numbers. @internal */
export function checkImaginaryKept(op: string, x: Tensor, dtype: DType): void {
  if (!isComplex(x.dtype) || isComplex(dtype)) return;
  const problem = `${dtype} would lose the imaginary part: ${show(x)}`;
  throw new TensorError('E_DTYPE', op, problem, 'real(x), imag(x), or abs(x)');
}

/** Refuses complex numbers, for operations that order or round. @internal */
export function checkNotComplex(op: string, ...values: readonly TensorLike[]): void {
  if (!values.some((value) => value instanceof Tensor && isComplex(value.dtype))) return;
  throw new TensorError(
    'E_DTYPE',
    op,
    `has no meaning on complex numbers: ${show(...values)}`,
    'real(x), imag(x), or abs(x)',
  );
}

/** A JavaScript number or boolean as a constant; an integer dtype must be able to hold it. */
function plain(op: string, b: GraphBuilder, value: number | boolean, dtype: DType): Node {
  checkHeld(op, value, dtype);
  if (dtype === 'bool') return constant(b, Number(value !== 0 && value !== false), dtype);
  return constant(b, Number(value), dtype);
}

const noAxes: FixedShape = [];
const shapeOf = (value: TensorLike): FixedShape => (value instanceof Tensor ? value.shape : noAxes);

/** The shape that all operands broadcast to. Throws E_SHAPE showing every operand. @internal */
export function commonShape(op: string, values: readonly TensorLike[]): FixedShape {
  let common = noAxes;
  for (const value of values) {
    const shape = shapeOf(value);
    if (common.length === 0) common = shape;
    else if (shape.length > 0 && !sameShape(common, shape)) return broadcastShape(op, values);
  }
  return common;
}

/** As `commonShape`, where they are not one shape and numbers. */
function broadcastShape(op: string, values: readonly TensorLike[]): FixedShape {
  const shapes = values.map(shapeOf);
  const length = Math.max(...shapes.map((shape) => shape.length));
  const out = new Array<number>(length).fill(1);
  for (const shape of shapes) {
    for (let i = 1; i <= shape.length; i++) {
      const dim = shape[shape.length - i]!;
      const seen = out[length - i]!;
      if (dim === 1 || dim === seen) continue;
      if (seen !== 1) {
        throw new TensorError(
          'E_SHAPE',
          op,
          `shapes do not broadcast: ${show(...values)}`,
          'sizes align from the right, and must be equal or 1; add axes with .unsqueeze(axis)',
        );
      }
      out[length - i] = dim;
    }
  }
  return out;
}

type Spread<T extends readonly TensorLike[]> = { [K in keyof T]: Node };

/**
 * Records an elementwise formula over operands broadcast to one shape, each in the dtype wanted of
 * it.
 *
 * @internal
 */
export function fit<const T extends readonly TensorLike[]>(
  op: string,
  values: T,
  dtypeOf: (value: TensorLike, position: number) => DType,
  make: (b: GraphBuilder, ...nodes: Spread<T>) => Node,
): Tensor {
  for (const value of values) expectOperand(op, value);
  return fitted(op, values, dtypeOf, make);
}

/** As `fit`, of operands that have been looked at. */
function fitted<const T extends readonly TensorLike[]>(
  op: string,
  values: T,
  dtypeOf: (value: TensorLike, position: number) => DType,
  make: (b: GraphBuilder, ...nodes: Spread<T>) => Node,
): Tensor {
  const shape = commonShape(op, values);
  const types = values.map(dtypeOf);
  const tensors: Tensor[] = [];
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value instanceof Tensor) tensors.push(inType(op, value, types[i]!));
  }
  return record(tensors, (b, nodes) => {
    let next = 0;
    const operands = values.map((value, position) => {
      const dtype = types[position]!;
      const node = value instanceof Tensor ? cast(b, nodes[next++]!, dtype) : plain(op, b, value, dtype);
      return broadcast(b, node, shape);
    });
    return make(b, ...(operands as unknown as Spread<T>));
  });
}

/** Records an elementwise formula over operands brought to one dtype and one shape. @internal */
export function combine<const T extends readonly TensorLike[]>(
  op: string,
  values: T,
  domain: Domain,
  make: (b: GraphBuilder, ...nodes: Spread<T>) => Node,
): Tensor {
  const dtype = operandType(op, values, domain);
  return fitted(op, values, () => dtype, make);
}

/** The tensor, in the dtype that an operation takes it in inside of `autocast`. @internal */
export function casted<D extends DType>(op: string, x: Tensor<D>): Tensor<D> {
  const dtype = castedType(op, x.dtype);
  // In types an operation keeps the dtype that it has outside of scopes.
  return dtype === x.dtype ? x : (apply([x], (b, node) => cast(b, node, dtype)) as unknown as Tensor<D>);
}

/** Records a formula over one float or complex tensor; integers and bool are taken as f32. @internal */
export function applyFloat(x: Tensor, make: (b: GraphBuilder, x: Node) => Node): Tensor {
  return apply([x], (b, node) => make(b, isInexact(node.dtype) ? node : cast(b, node, 'f32')));
}

/** The common dtype of two operands, of which one may be a JavaScript number. @internal */
export type Common<X extends TensorLike, Y extends TensorLike> =
  X extends Tensor<infer A>
    ? Y extends Tensor<infer B>
      ? Promoted<A, B>
      : Y extends number
        ? BesideNumber<A>
        : A
    : Y extends Tensor<infer B>
      ? X extends number
        ? BesideNumber<B>
        : B
      : 'f32' | 'bool';

/** An operation on each element of one tensor, which keeps its dtype. @internal */
export type Unary = <D extends DType>(x: Tensor<D>) => Tensor<D>;
/** A function of real or complex numbers; integers and bool are taken as f32. @internal */
export type FloatUnary = <D extends DType>(x: Tensor<D>) => Tensor<Floated<D>>;
/** A question asked of each element. @internal */
export type Predicate = (x: Tensor) => Tensor<'bool'>;
/** An operation on pairs of elements; operands broadcast and promote. @internal */
export type Binary = <X extends TensorLike, Y extends TensorLike>(x: X, y: Y) => Tensor<Common<X, Y>>;
/** As `Binary`, in floats or complex numbers. @internal */
export type FloatBinary = <X extends TensorLike, Y extends TensorLike>(
  x: X,
  y: Y,
) => Tensor<Floated<Common<X, Y>>>;
/** A question asked of pairs of elements. @internal */
export type Comparison = (x: TensorLike, y: TensorLike) => Tensor<'bool'>;

/** What operations on one tensor take. @internal */
export const takesOne: Signature<[x: Tensor]> = takes<Unary>(['the operand', aTensor]);

/** A formula of floats, in f32 for 16-bit ones. @internal */
/* @__NO_SIDE_EFFECTS__ */
export function floatFormula(op: string, make: (b: GraphBuilder, x: Node) => Node): FloatUnary {
  return (x) => {
    takesOne(op, x);
    return applyFloat(casted(op, x), (b, node) => widened(b, node, (wide) => make(b, wide)));
  };
}

/** As `floatFormula`, of a function that complex numbers have no values of. @internal */
/* @__NO_SIDE_EFFECTS__ */
export function realFormula(op: string, make: (b: GraphBuilder, x: Node) => Node): FloatUnary {
  const real = floatFormula(op, make);
  return (x) => {
    takesOne(op, x);
    checkNotComplex(op, x);
    return real(x);
  };
}

/** Requires a float tensor, for operations whose result would be senseless in integers. @internal */
export function checkFloat(op: string, ...operands: readonly (Tensor | undefined)[]): void {
  for (const x of operands) {
    if (x !== undefined) expectTensor(op, 'an operand', x);
    if (x !== undefined && !isFloat(x.dtype)) {
      checkNotComplex(op, x);
      throw new TensorError('E_DTYPE', op, `expects floats: ${show(x)}`, ".cast('f32')");
    }
  }
}

/** Requires a tensor of floats or complex numbers. @internal */
export function checkInexact(op: string, ...operands: readonly Tensor[]): void {
  for (const x of operands) {
    expectTensor(op, 'an operand', x);
    if (!isInexact(x.dtype))
      throw new TensorError('E_DTYPE', op, `expects floats or complex numbers: ${show(x)}`, ".cast('f32')");
  }
}

/** Requires an integer tensor, as indices are. @internal */
export function checkInteger(op: string, what: string, x: Tensor): void {
  expectTensor(op, what, x);
  if (isInexact(x.dtype) || x.dtype === 'bool') {
    throw new TensorError('E_DTYPE', op, `${what} must be integers: ${show(x)}`, ".cast('i32')");
  }
}

/** Requires a mask of bool. @internal */
export function checkMaskType(op: string, mask: Tensor): void {
  if (mask.dtype !== 'bool')
    throw new TensorError('E_DTYPE', op, `the mask must be bool: ${show(mask)}`, '.ne(0)');
}

/** Requires a rank, or one of several. @internal */
export function checkRank(op: string, what: string, x: Tensor, ...ranks: readonly number[]): void {
  expectTensor(op, what, x);
  if (!ranks.includes(x.rank)) {
    throw new TensorError('E_SHAPE', op, `${what} must have rank ${ranks.join(' or ')}: ${show(x)}`);
  }
}

/** Requires an integer of at least `minimum`. @internal */
export function checkCount(op: string, what: string, value: number, minimum = 0): void {
  if (!Number.isSafeInteger(value) || value < minimum) {
    throw new TensorError(
      'E_VALUE',
      op,
      `${what} must be an integer of at least ${minimum}: ${showValue(value)}`,
    );
  }
}

/** Requires something to choose an extremum from. @internal */
export function checkNotEmpty(op: string, x: Tensor, axes: readonly number[]): void {
  if (axes.some((axis) => x.shape[axis] === 0)) {
    throw new TensorError('E_SHAPE', op, `nothing to choose from along axes [${axes.join(',')}]: ${show(x)}`);
  }
}

/** One value for every spatial axis, or one each. @internal */
export type PerAxis = number | readonly number[];

/** One integer of at least `minimum` per spatial axis. @internal */
export function perAxis(op: string, what: string, value: PerAxis, count: number, minimum: number): number[] {
  if (typeof value !== 'number') checkList(op, what, value);
  const list = typeof value === 'number' ? new Array<number>(count).fill(value) : [...value];
  if (list.length !== count) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `${what} takes ${count} values: [${list.join(',')}]`,
      'one number, or one an axis',
    );
  }
  list.forEach((n) => checkCount(op, what, n, minimum));
  return list;
}
