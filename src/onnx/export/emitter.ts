// A graph of ONNX nodes under construction: values with their types, constants that are one
// initializer wherever they are used, and element types that an operator has no kernel for carried
// through wider ones.

import type { DType } from '../../ir/dtype.ts';
import { broadcastShapes, sameShape, sizeOf, type FixedShape } from '../../ir/shape.ts';
import { hostArray, packBytes, type Scalar } from '../../ir/value.ts';
import { codeOf, hostType, tensorDraft, typeOf, type ElementType } from '../element.ts';
import type { MessageDraft } from '../schema.ts';

// Element types that operators are written in. Where the standard leaves a type out, or ONNX
// Runtime's CPU has no kernel for it, a wider type carries it there and back: exactly, as integers
// wrap on the way back and 16-bit floats are computed in f32 anyway.

type Carriers = Readonly<Partial<Record<DType, DType>>>;

const floats: Carriers = { bf16: 'f32' };
/** Sums of 32 bits in 64, since runtimes may saturate what they sum. */
const folds: Carriers = { i8: 'i64', u8: 'i64', i16: 'i64', u16: 'i64', i32: 'i64', u32: 'i64', bf16: 'f32' };
const extrema: Carriers = { i16: 'i32', u16: 'i32', u32: 'i64', bf16: 'f32' };
const updates: Carriers = { f16: 'f32', bf16: 'f32' };

/**
 * By operator; a dtype that is not listed is written as it is. u64 is never ordered as i64: see
 * `ordered` in folds.ts.
 */
const table: Readonly<Record<string, Carriers>> = {
  ArgMax: { ...extrema, bool: 'u8' },
  ArgMin: { ...extrema, bool: 'u8' },
  BitShift: { i8: 'u8', i16: 'u32', u16: 'u32', i32: 'u32', i64: 'u64' },
  Clip: { i16: 'i32', u16: 'i32', bf16: 'f32' },
  CumSum: { ...folds, u64: 'i64' },
  Expand: floats,
  Less: { ...floats, bool: 'u8' },
  LessOrEqual: { ...floats, bool: 'u8' },
  MatMul: { i8: 'i32', u8: 'i32', i16: 'i32', u16: 'i32', bf16: 'f32' },
  Max: { i16: 'i32', u16: 'i32', bf16: 'f32' },
  Min: { i16: 'i32', u16: 'i32', bf16: 'f32' },
  Pad: { i16: 'i32', u16: 'i32', bf16: 'f32' },
  ReduceMax: extrema,
  ReduceMin: extrema,
  ReduceSum: folds,
  ScatterElements: updates,
  TopK: { u16: 'i32', bool: 'u8', u32: 'i64', bf16: 'f32' },
  Where: { i8: 'i32', i16: 'i32', u16: 'i32', bool: 'u8', u32: 'i64', u64: 'i64', bf16: 'f32' },
};

/** Operators that only move elements have them all. */
const movers: ReadonlySet<string> = new Set([
  'Concat',
  'Gather',
  'GatherElements',
  'Reshape',
  'Slice',
  'Transpose',
]);

/** The dtype in which an operator is written for elements of a dtype. */
function carrierOf(op: string, dtype: DType): DType {
  if (movers.has(op)) return dtype;
  return (table[op] ?? floats)[dtype] ?? dtype;
}

/** A value of the file. */
export interface Val {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: FixedShape;
}

/** Elements that lie in the file. */
export interface Initializer {
  readonly name: string;
  readonly type: ElementType;
  readonly shape: FixedShape;
  readonly data: Uint8Array;
}

/** Attributes of a node: integers, floats, strings, lists of integers. */
export type AttributeValue =
  | number
  | { readonly float: number }
  | { readonly graph: MessageDraft<'Graph'> }
  | string
  | readonly number[];
export type AttributeValues = Readonly<Record<string, AttributeValue>>;

/** An operation has no spelling in the format; the reason reads on from "…: ". */
export class Unspelled extends Error {}

/** A mark that only temporary names contain. */
export const mark: string = '\0';

export class ModelEmitter {
  readonly opset: number;
  /**
   * Sizes are left open: nothing may depend on which numbers are equal. So constants are not shared, and all of them lie in the
   * outermost graph.
   */
  readonly open: boolean;
  readonly nodes: MessageDraft<'Node'>[] = [];
  readonly initializers: Initializer[] = [];
  readonly #constants = new Map<string, Val>();
  readonly #casts = new Map<string, Val>();
  readonly #around: ModelEmitter | undefined;
  #count = 0;

  constructor(opset: number, open: boolean = false, around?: ModelEmitter) {
    this.opset = opset;
    this.open = open;
    this.#around = around;
  }

  /** What a graph inside of this one is made with: it may read values of this one. */
  inside(): ModelEmitter {
    return new ModelEmitter(this.opset, this.open, this);
  }

  /** An input of a graph inside. */
  port(dtype: DType, shape: FixedShape): Val {
    return { name: this.#name('input'), dtype, shape };
  }

  /** A graph inside, with its outputs. */
  graph(inputs: readonly Val[], outputs: readonly Val[]): MessageDraft<'Graph'> {
    return {
      name: 'body',
      node: this.nodes,
      initializer: this.initializers.map(({ name, type, shape, data }) =>
        tensorDraft(name, type, shape, data),
      ),
      input: inputs.map(portDraft),
      output: outputs.map(portDraft),
    };
  }

  /** A unique temporary name; values that stay in the file are renamed at the end. */
  #name(wished: string): string {
    // One count for all graphs of a file: names inside must not hide those around.
    if (this.#around !== undefined) return this.#around.#name(wished);
    return `${wished}${mark}${(this.#count += 1)}`;
  }

  /** A node with one result of this type. */
  node(
    op: string,
    inputs: readonly (Val | undefined)[],
    type: Pick<Val, 'dtype' | 'shape'>,
    attributes: AttributeValues = {},
  ): Val {
    return this.many(op, inputs, [type], attributes)[0]!;
  }

  /** A node with several results. */
  many(
    op: string,
    inputs: readonly (Val | undefined)[],
    types: readonly Pick<Val, 'dtype' | 'shape'>[],
    attributes: AttributeValues = {},
  ): Val[] {
    const outputs = types.map(({ dtype, shape }) => ({ name: this.#name(op), dtype, shape }));
    this.nodes.push({
      opType: op,
      input: inputs.map((input) => input?.name ?? ''),
      output: outputs.map((output) => output.name),
      attribute: Object.entries(attributes).map(([key, value]) => attributeDraft(key, value)),
    });
    return outputs;
  }

  /**
   * An elementwise node over operands of one dtype, which broadcast, in a dtype that has a kernel
   * for it.
   */
  map(op: string, operands: readonly Val[], attributes: AttributeValues = {}): Val {
    const { dtype } = operands[0]!;
    const via = carrierOf(op, dtype);
    const shape = commonShape(operands);
    const wide = operands.map((x) => this.cast(x, via));
    return this.cast(this.node(op, wide, { dtype: via, shape }, attributes), dtype);
  }

  /** As `map`, of a comparison. */
  test(op: string, operands: readonly Val[]): Val {
    const via = carrierOf(op, operands[0]!.dtype);
    const wide = operands.map((x) => this.cast(x, via));
    return this.node(op, wide, { dtype: 'bool', shape: commonShape(operands) });
  }

  /** One of two values, by a condition. */
  where(condition: Val, x: Val, y: Val): Val {
    const via = carrierOf('Where', x.dtype);
    const shape = commonShape([condition, x, y]);
    const chosen = [condition, this.cast(x, via), this.cast(y, via)];
    return this.cast(this.node('Where', chosen, { dtype: via, shape }), x.dtype);
  }

  /**
   * The format's own conversion: integers wrap, floats round; what floats beyond an integer's range
   * give is undefined.
   */
  cast(x: Val, dtype: DType): Val {
    if (x.dtype === dtype) return x;
    const key = `${x.name} ${dtype}`;
    const known = this.#casts.get(key);
    if (known !== undefined) return known;
    const result = this.node('Cast', [x], { dtype, shape: x.shape }, { to: codeOf(typeOf(dtype)) });
    this.#casts.set(key, result);
    return result;
  }

  /** The dtype that an operator takes for elements of a dtype. */
  carrier(op: string, dtype: DType): DType {
    return carrierOf(op, dtype);
  }

  /** Elements in the file; equal ones are one initializer. */
  constant(dtype: DType, shape: FixedShape, values: ArrayLike<Scalar>, name = 'constant'): Val {
    const data = packBytes(hostArray(dtype, shape, values));
    const isShared = data.length <= 64 && !this.open;
    const key = isShared ? `${dtype}[${shape.join()}] ${data.join()}` : undefined;
    const known = key === undefined ? undefined : this.#constants.get(key);
    if (known !== undefined) return known;
    const constant = this.initializer(name, typeOf(dtype), shape, data);
    if (key !== undefined) this.#constants.set(key, constant);
    return constant;
  }

  /** Elements as they lie in the file. */
  initializer(wished: string, type: ElementType, shape: FixedShape, data: Uint8Array): Val {
    if (this.open && this.#around !== undefined) return this.#around.initializer(wished, type, shape, data);
    const name = this.#name(wished);
    this.initializers.push({ name, type, shape, data });
    return { name, dtype: hostType(type), shape };
  }

  /** One number. */
  scalar(value: Scalar, dtype: DType): Val {
    return this.constant(dtype, [], [value]);
  }

  /** A list of whole numbers, as shapes and axes are given. */
  ints(values: readonly number[]): Val {
    return this.constant('i64', [values.length], values, 'ints');
  }

  /** The value spread over a shape. */
  expand(x: Val, shape: FixedShape): Val {
    if (sameShape(x.shape, shape)) return x;
    if (sizeOf(x.shape) === sizeOf(shape)) return this.reshape(x, shape);
    return this.move('Expand', [x, this.ints(shape)], shape);
  }

  reshape(x: Val, shape: FixedShape): Val {
    if (sameShape(x.shape, shape)) return x;
    return this.node('Reshape', [x, this.ints(shape)], { dtype: x.dtype, shape });
  }

  transpose(x: Val, order: readonly number[]): Val {
    if (order.every((axis, i) => axis === i)) return x;
    const shape = order.map((axis) => x.shape[axis]!);
    return this.node('Transpose', [x], { dtype: x.dtype, shape }, { perm: order });
  }

  /** Elements `start … start + size·step` along some axes. */
  slice(x: Val, start: FixedShape, size: FixedShape, step: FixedShape = start.map(() => 1)): Val {
    const axes = x.shape.flatMap((dim, axis) =>
      start[axis] === 0 && size[axis] === dim && step[axis] === 1 ? [] : [axis],
    );
    if (axes.length === 0) return x;
    const of = (list: FixedShape): Val => this.ints(axes.map((axis) => list[axis]!));
    // An end before the first element: −1 would mean the last one.
    const ends = start.map((first, axis) => {
      const end = first + size[axis]! * step[axis]!;
      return end < 0 ? -(2 ** 31) : end;
    });
    const inputs = [x, of(start), of(ends), this.ints(axes), of(step)];
    return this.node('Slice', inputs, { dtype: x.dtype, shape: size });
  }

  /** A node that only moves elements of its first input. */
  move(
    op: string,
    [x, ...rest]: readonly [Val, ...(Val | undefined)[]],
    shape: FixedShape,
    attributes: AttributeValues = {},
  ): Val {
    const via = carrierOf(op, x.dtype);
    const moved = this.node(op, [this.cast(x, via), ...rest], { dtype: via, shape }, attributes);
    return this.cast(moved, x.dtype);
  }
}

/** The shape that operands broadcast to. */
export function commonShape(operands: readonly Val[]): FixedShape {
  return operands
    .map(({ shape }) => shape)
    .reduce((a, b) => (sameShape(a, b) ? a : broadcastShapes('exportOnnx', a, b)));
}

/** A value in whose shape sizes may be open: they have names, or texts of formulas. */
export type OpenVal = Omit<Val, 'shape'> & { readonly shape: readonly (number | string)[] };

/** A value as the input or output of a graph. */
export function portDraft({ name, dtype, shape }: OpenVal): MessageDraft<'ValueInfo'> {
  const dim = shape.map((size) => (typeof size === 'number' ? { value: BigInt(size) } : { param: size }));
  return { name, type: { tensor: { elemType: codeOf(typeOf(dtype)), shape: { dim } } } };
}

export function attributeDraft(name: string, value: AttributeValue): MessageDraft<'Attribute'> {
  if (typeof value === 'number') return { name, type: 2, i: BigInt(value) };
  if (typeof value === 'string') return { name, type: 3, s: new TextEncoder().encode(value) };
  if ('graph' in value) return { name, type: 5, g: value.graph };
  if ('float' in value) return { name, type: 1, f: value.float };
  return { name, type: 7, ints: value.map(BigInt) };
}
