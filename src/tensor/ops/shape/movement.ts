// Movements: elements at other places, with nothing computed on them: reversal, rotation, padding,
// triangles, diagonals.

import type { DType } from '../../../ir/dtype.ts';
import { showValue, TensorError } from '../../../errors.ts';
import { add, binary, complex, fullLike, imag, real, reshape, where } from '../../../ir/build.ts';
import { isComplex } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import * as arg from '../../../ir/arguments.ts';
import { checkList, normalizeAxes, normalizeAxis } from '../../../ir/shape.ts';
import { isComplexNumber, type ComplexNumber } from '../../../ir/value.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { moveaxis } from './view.ts';
import { iota } from '../../formula/elementwise.ts';
import { checkHeld } from '../number.ts';
import { apply, checkRank, show } from '../operand.ts';
import { diagonalOf, padConstant, concat, sliceAxis } from '../../formula/layout.ts';

function reversed(b: GraphBuilder, x: Node, axis: number): Node {
  const size = dims(x)[axis]!;
  return sliceAxis(b, x, axis, size - 1, size, -1);
}

const takesFlip = arg.takes<typeof flip>(['x', aTensor], ['axes', arg.inside()]);

/**
 * Reversed along the axes; along all by default.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.flip(x, 1);
 */
export function flip<D extends DType>(x: Tensor<D>, axes?: number | readonly number[]): Tensor<D> {
  takesFlip('flip', x, axes);
  const list = normalizeAxes('flip', axes, x.rank);
  return apply([x], (b, node) => list.reduce((out, axis) => reversed(b, out, axis), node));
}

const takesRoll = arg.takes<typeof roll>(['x', aTensor], ['shifts', arg.inside()], ['axes', arg.inside()]);

/**
 * Rotated by `shifts` along `axes`: what leaves the end comes back at the start. Without axes, in
 * C-order.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.roll(x, 1, 1);
 */
export function roll<D extends DType>(
  x: Tensor<D>,
  shifts: number | readonly number[],
  axes?: number | readonly number[],
): Tensor<D> {
  takesRoll('roll', x, shifts, axes);
  if (typeof shifts !== 'number') checkList('roll', 'shifts', shifts);
  if (typeof axes !== 'number' && axes !== undefined) checkList('roll', 'axes', axes);
  const by = typeof shifts === 'number' ? [shifts] : [...shifts];
  const list = Array.from(typeof axes === 'number' ? [axes] : (axes ?? []), (axis) =>
    normalizeAxis('roll', axis, x.rank),
  );
  if (!by.every(Number.isSafeInteger) || by.length !== (axes === undefined ? 1 : list.length)) {
    throw new TensorError(
      'E_VALUE',
      'roll',
      `expects one integer shift for each axis: ${showValue(by)} along [${list.join(',')}]`,
    );
  }
  return apply([x], (b, node) => {
    if (axes === undefined) return reshape(b, rotated(b, reshape(b, node, [x.size]), 0, by[0]!), x.shape);
    return list.reduce((out, axis, i) => rotated(b, out, axis, by[i]!), node);
  });
}

function rotated(b: GraphBuilder, x: Node, axis: number, shift: number): Node {
  const size = dims(x)[axis]!;
  if (size === 0) return x;
  const cut = size - (((shift % size) + size) % size);
  return concat(b, [sliceAxis(b, x, axis, cut, size - cut), sliceAxis(b, x, axis, 0, cut)], axis);
}

export interface PadOptions {
  /**
   * What the new elements are: `value` by default, the mirror image without the edge, the edge, or
   * the other end.
   */
  readonly mode?: 'constant' | 'reflect' | 'replicate' | 'circular';
  /** For `constant`; 0 by default. Complex tensors take `{ re, im }` as well. */
  readonly value?: number | ComplexNumber;
}

const pairs: arg.Kind<readonly (readonly [number, number])[]> = {
  accepts: (value) => Array.isArray(value) && Array.from<unknown>(value).every((pair) => Array.isArray(pair)),
  refuse(op, what, value): never {
    checkList(op, what, value);
    for (const pair of value as readonly unknown[])
      if (!Array.isArray(pair)) checkList(op, 'each pair', pair);
    throw new TensorError('E_VALUE', op, `expects ${what} as an array, got ${showValue(value)}`);
  },
};
const padding: arg.Kind<number | ComplexNumber> = arg.kind(
  'a number, or { re, im }',
  (value) => arg.element.accepts(value) || isComplexNumber(value),
);
const takesPad = arg.takes<typeof pad>(
  ['x', aTensor],
  ['pairs', pairs],
  [
    'options',
    arg.options<PadOptions>({
      mode: arg.oneOf('constant', 'reflect', 'replicate', 'circular'),
      value: padding,
    }),
  ],
);

/**
 * New elements around the last axes: one pair [before, after] per axis, in the order of the axes.
 * Negative numbers cut elements off.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.pad(x, [[1, 0]], { value: 9 });
 */
export function pad<D extends DType>(
  x: Tensor<D>,
  pads: readonly (readonly [number, number])[],
  options: PadOptions = {},
): Tensor<D> {
  takesPad('pad', x, pads, options);
  const { mode = 'constant', value = 0 } = options;
  if (typeof value === 'number') checkHeld('pad', value, x.dtype);
  else if (!isComplex(x.dtype))
    throw new TensorError('E_DTYPE', 'pad', `a complex value does not fit: ${show(x)}`, ".cast('c64') first");
  if (pads.length > x.rank) {
    throw new TensorError(
      'E_SHAPE',
      'pad',
      `${pads.length} pairs for ${show(x)}`,
      'one pair for each axis, in the order of the axes',
    );
  }
  const lead = x.rank - pads.length;
  pads.forEach(([before, after], i) => {
    const size = x.shape[lead + i]!;
    const reach = mode === 'reflect' ? size - 1 : mode === 'circular' ? size : Infinity;
    const legal = Number.isSafeInteger(before) && Number.isSafeInteger(after) && size + before + after >= 0;
    const reachable = before <= reach && after <= reach && -before <= size && -after <= size;
    const source = mode === 'constant' || mode === 'circular' || size > 0 || (before <= 0 && after <= 0);
    if (!legal || !reachable || !source) {
      throw new TensorError(
        'E_SHAPE',
        'pad',
        `cannot pad axis ${lead + i} of ${show(x)} by ${showValue(pads[i])} (${mode})`,
      );
    }
  });
  const all: (readonly [number, number])[] = [...x.shape.slice(0, lead).map(() => [0, 0] as const), ...pads];
  return apply([x], (b, node) => {
    const cut = all.reduce((out, [before, after], axis) => {
      const start = Math.max(0, -before);
      return sliceAxis(b, out, axis, start, dims(out)[axis]! - start - Math.max(0, -after));
    }, node);
    const [low, high] = [0, 1].map((side) => all.map((pair) => Math.max(0, pair[side as 0 | 1])));
    if (mode === 'constant') {
      if (typeof value === 'number') return padConstant(b, cut, low!, high!, value);
      const part = (node: Node, own: number): Node => padConstant(b, node, low!, high!, own);
      return complex(b, part(real(b, cut), value.re), part(imag(b, cut), value.im));
    }
    return x.shape.reduce((out, _, axis) => {
      const [before, after] = [low![axis]!, high![axis]!];
      return before === 0 && after === 0 ? out : extended(b, out, axis, before, after, mode);
    }, cut);
  });
}

function extended(
  b: GraphBuilder,
  x: Node,
  axis: number,
  low: number,
  high: number,
  mode: 'reflect' | 'replicate' | 'circular',
): Node {
  const size = dims(x)[axis]!;
  const part = (start: number, length: number, step = 1): Node =>
    length === 0 ? sliceAxis(b, x, axis, 0, 0) : sliceAxis(b, x, axis, start, length, step);
  switch (mode) {
    case 'reflect':
      return concat(b, [part(low, low, -1), x, part(size - 2, high, -1)], axis);
    case 'circular':
      return concat(b, [part(size - low, low), x, part(0, high)], axis);
    case 'replicate': {
      const edge = (at: number, length: number): Node[] => Array<Node>(length).fill(part(at, 1));
      return concat(b, [...edge(0, low), x, ...edge(size - 1, high)], axis);
    }
  }
}

/**
 * Keeps where column − row compares with the diagonal, else 0: a select, so that NaN outside
 * vanishes too.
 */
function triangle(op: string, x: Tensor, diagonal: number, lower: boolean): Tensor {
  if (x.rank < 2) throw new TensorError('E_SHAPE', op, `expects matrices: ${show(x)}`);
  const offset = Math.max(-(2 ** 30), Math.min(2 ** 30, diagonal));
  return apply([x], (b, node) => {
    const rows = add(b, iota(b, x.shape, x.rank - 2), offset);
    const columns = iota(b, x.shape, x.rank - 1);
    const keep = lower ? binary(b, 'le', columns, rows) : binary(b, 'le', rows, columns);
    return where(b, keep, node, fullLike(b, node, 0));
  });
}

const takesTril = arg.takes<typeof tril>(['x', aTensor], ['diagonal', arg.optional(arg.integer)]);

/**
 * The lower triangle of each matrix, up to the `diagonal`-th one above the main diagonal; 0
 * elsewhere.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.tril(x);
 */
export function tril<D extends DType>(x: Tensor<D>, diagonal = 0): Tensor<D> {
  takesTril('tril', x, diagonal);
  return triangle('tril', x, diagonal, true);
}

/**
 * The upper triangle of each matrix, from the `diagonal`-th one above the main diagonal; 0
 * elsewhere.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.triu(x);
 */
export function triu<D extends DType>(x: Tensor<D>, diagonal = 0): Tensor<D> {
  takesTril('triu', x, diagonal);
  return triangle('triu', x, diagonal, false);
}

export interface DiagonalOptions {
  /** Which diagonal: 0 the main one, 1 the one above it, −1 below; 0 by default. */
  readonly offset?: number;
  /** The axis of its rows; 0 by default. */
  readonly axis1?: number;
  /** The axis of its columns; 1 by default. */
  readonly axis2?: number;
}

const takesDiagonal = arg.takes<typeof diagonal>(
  ['x', aTensor],
  ['options', arg.options<DiagonalOptions>({ offset: arg.integer, axis1: arg.integer, axis2: arg.integer })],
);

/**
 * A diagonal of each matrix spanned by two axes (the first two by default), as a new last axis.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.diagonal(x);
 */
export function diagonal<D extends DType>(x: Tensor<D>, options: DiagonalOptions = {}): Tensor<D> {
  takesDiagonal('diagonal', x, options);
  const { offset = 0, axis1 = 0, axis2 = 1 } = options;
  if (x.rank < 2) throw new TensorError('E_SHAPE', 'diagonal', `expects matrices: ${show(x)}`);
  const [row, column] = [normalizeAxis('diagonal', axis1, x.rank), normalizeAxis('diagonal', axis2, x.rank)];
  if (row === column) throw new TensorError('E_AXIS', 'diagonal', `axis ${axis1} is named twice: ${show(x)}`);
  return apply([x], (b, node) => diagonalOf(b, node, row, column, offset));
}

export interface DiagEmbedOptions {
  /** The axes of the result that span the matrices; the last two by default. */
  readonly axis1?: number;
  /** The axis of its columns in the result; −1 by default. */
  readonly axis2?: number;
}

const takesDiagEmbed = arg.takes<typeof diagEmbed>(
  ['x', aTensor],
  ['offset', arg.optional(arg.integer)],
  ['options', arg.options<DiagEmbedOptions>({ axis1: arg.integer, axis2: arg.integer })],
);

/**
 * The last axis as a diagonal of square matrices, 0 elsewhere.
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.diagEmbed(v, 1);
 */
export function diagEmbed<D extends DType>(
  x: Tensor<D>,
  offset = 0,
  options: DiagEmbedOptions = {},
): Tensor<D> {
  takesDiagEmbed('diagEmbed', x, offset, options);
  const made = embedded(x, offset);
  const { axis1 = -2, axis2 = -1 } = options;
  const places = [axis1, axis2].map((axis) => normalizeAxis('diagEmbed', axis, made.rank));
  if (places[0] === places[1])
    throw new TensorError('E_AXIS', 'diagEmbed', `axis ${axis1} is named twice: ${show(x)}`);
  return moveaxis(made, [-2, -1], places);
}

function embedded(x: Tensor, offset: number): Tensor {
  if (x.rank === 0) throw new TensorError('E_SHAPE', 'diagEmbed', `expects at least one axis: ${show(x)}`);
  const lead = x.shape.slice(0, -1);
  const count = x.shape.at(-1)!;
  const side = count + Math.abs(offset);
  return apply([x], (b, node) => {
    if (count === 0)
      return padConstant(
        b,
        reshape(b, node, [...lead, 0, 0]),
        zeros(x.rank + 1),
        [...zeros(x.rank - 1), side, side],
        0,
      );
    const start = offset >= 0 ? offset : -offset * side;
    // Laid out flat, `side` zeros lie between neighbours on the diagonal.
    const gaps = (count - 1) * side + count;
    const ends = [...zeros(x.rank - 1), side * side - start - gaps];
    const low = [...zeros(x.rank - 1), start];
    const interior = [...zeros(x.rank - 1), side];
    const flat = b.add('pad', [node], { low, high: ends, interior, value: 0 });
    return reshape(b, flat, [...lead, side, side]);
  });
}

function zeros(count: number): number[] {
  return new Array<number>(count).fill(0);
}

const takesDiag = arg.takes<typeof diag>(['x', aTensor], ['offset', arg.optional(arg.integer)]);

/**
 * All elements, in C-order, as a diagonal of one matrix.
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.diagflat(v);
 */
export function diagflat<D extends DType>(x: Tensor<D>, offset = 0): Tensor<D> {
  takesDiag('diagflat', x, offset);
  return diagEmbed(
    apply([x], (b, node) => reshape(b, node, [x.size])),
    offset,
  );
}

/**
 * A vector becomes a matrix with it on the diagonal; of a matrix, the diagonal.
 *
 * @method
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.diag(v);
 * @example <caption>matrix</caption>
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.diag(x);
 */
export function diag<D extends DType>(x: Tensor<D>, offset = 0): Tensor<D> {
  takesDiag('diag', x, offset);
  checkRank('diag', 'the operand', x, 1, 2);
  return x.rank === 1 ? diagEmbed(x, offset) : diagonal(x, { offset });
}
