// The primitive operations: names, attributes and facts that need no graph. One row per op in `ops`; `satisfies` makes a
// missing row a type error. Type rules are in infer.ts, scalar meaning in interpret/scalar.ts, derivatives in autograd/rules.ts,
// spellings in codegen/<target>/spelling.ts.

import type { DType } from './dtype.ts';
import type { Shape } from './shape.ts';

export type UnaryOp =
  | 'neg'
  | 'abs'
  | 'sign'
  | 'floor'
  | 'ceil'
  | 'round'
  | 'trunc'
  | 'exp'
  | 'exp2'
  | 'expm1'
  | 'log'
  | 'log2'
  | 'log1p'
  | 'sin'
  | 'cos'
  | 'tan'
  | 'asin'
  | 'acos'
  | 'atan'
  | 'sinh'
  | 'cosh'
  | 'tanh'
  | 'erf'
  | 'sqrt'
  | 'rsqrt'
  | 'recip'
  | 'not'
  | 'isNan'
  | 'cast'
  | 'bitcast';

export type BinaryOp =
  | 'add'
  | 'sub'
  | 'mul'
  | 'div'
  | 'mod'
  | 'pow'
  | 'min'
  | 'max'
  | 'atan2'
  | 'and'
  | 'or'
  | 'xor'
  | 'shl'
  | 'shr'
  | 'mulhi'
  | 'lt'
  | 'le'
  | 'eq'
  | 'ne';

export type TernaryOp = 'where' | 'fma';
export type ElementwiseOp = UnaryOp | BinaryOp | TernaryOp;
/** Pure index maps: no arithmetic on values, never a kernel of their own unless an output asks for one. */
export type ViewOp = 'reshape' | 'permute' | 'broadcast' | 'slice' | 'pad' | 'concat' | 'window';
export type SourceOp = 'parameter' | 'constant' | 'iota' | 'randomBits';
export type AnchorOp =
  | 'reduce'
  | 'argReduce'
  | 'argSort'
  | 'radixRank'
  | 'scan'
  | 'dot'
  | 'conv'
  | 'gather'
  | 'scatter'
  | 'permuteScatter'
  | 'searchSorted'
  | 'segmentReduce'
  | 'scatterAddAtomic';
/** Markers that are the identity on values and mean something to autograd only. */
export type MarkerOp = 'stopGradient' | 'customVjp';
/** Every primitive. */
export type Op = ElementwiseOp | ViewOp | SourceOp | AnchorOp | MarkerOp;

/** An associative operation with an identity. `and`/`or` are for bool. */
export type Monoid = 'sum' | 'prod' | 'min' | 'max' | 'and' | 'or';
export const monoids: readonly Monoid[] = ['sum', 'prod', 'min', 'max', 'and', 'or'];

/** `set`: the last update in C-order wins; the others fold updates into the operand in C-order. */
export type ScatterMode = 'set' | 'add' | 'mul' | 'min' | 'max';

type NoAttrs = Readonly<Record<never, never>>;
type Ints = readonly number[];

/** Attributes of the ops that have any. Plain data: numbers, bigints, strings and arrays of them. */
interface OwnAttrs {
  /** Saturating and truncating float→int, wrapping int→int, round to nearest even into floats, NaN→0 for ints. */
  readonly cast: { readonly dtype: DType };
  /** Same width, bits kept. */
  readonly bitcast: { readonly dtype: DType };
  readonly reshape: { readonly shape: Shape };
  /** Output axis `i` is input axis `order[i]`. */
  readonly permute: { readonly order: Ints };
  /** NumPy broadcast: input sizes aligned from the right; size 1 or a missing axis stretches. */
  readonly broadcast: { readonly shape: Shape };
  /** Output element `i` on an axis reads input `start + i·step`; `step` may be negative, never 0; `size` elements. */
  readonly slice: { readonly start: Ints; readonly size: Ints; readonly step: Ints };
  /** `low` and `high` (≥ 0) elements of `value` at the ends of each axis and `interior` between neighbours. */
  readonly pad: { readonly low: Ints; readonly high: Ints; readonly interior: Ints; readonly value: number };
  readonly concat: { readonly axis: number };
  /** Overlapping windows of one axis: output [.., count, .., size] with the window axis appended last; output element
   *  (.., i, .., k) reads input `i·stride + k·dilation`. */
  readonly window: {
    readonly axis: number;
    readonly size: number;
    readonly stride: number;
    readonly dilation: number;
  };
  readonly parameter: {
    readonly index: number;
    readonly name: string;
    readonly dtype: DType;
    readonly shape: Shape;
  };
  /** Rank 0. bool as 0/1; 64-bit integers as bigint. */
  readonly constant: { readonly value: number | bigint; readonly dtype: DType };
  /** Counts 0, 1, 2… along `axis`. */
  readonly iota: { readonly shape: Shape; readonly axis: number; readonly dtype: DType };
  /** u32 words of Philox 4x32-10; inputs are four rank-0 u32: key lo, key hi, counter lo, counter hi. Element `i` (flat) is
   *  word `i mod 4` of counter + ⌊i/4⌋. */
  readonly randomBits: { readonly shape: Shape };
  /** Axes are ascending and removed from the result. */
  readonly reduce: { readonly monoid: Monoid; readonly axes: Ints };
  /** i32 index of the first extremum; a NaN counts as the extremum. The axis is removed. */
  readonly argReduce: { readonly monoid: 'min' | 'max'; readonly axis: number };
  /** i32 indices that put an axis in ascending (or descending) order: stable in both directions, −0 equals 0, NaN counts as
   *  the greatest. */
  readonly argSort: { readonly axis: number; readonly descending: boolean };
  /** One step of a radix sort, u32 [lines, n] → i32 [lines, blocks, digits + block]: each line is cut into blocks of `block`
   *  keys; a block's row holds how often it has each digit `(key >> shift) mod digits`, then for each of its keys how many
   *  before it in the block have its digit (0 past the end of the line). `digits` is a power of two. */
  readonly radixRank: { readonly shift: number; readonly digits: number; readonly block: number };
  readonly scan: {
    readonly monoid: Monoid;
    readonly axis: number;
    readonly reverse: boolean;
    readonly exclusive: boolean;
  };
  /** Result axes: batch, then the left operand's free axes, then the right one's, each in ascending order. Sums in f32 for
   *  16-bit floats; the result has the operands' dtype unless `dtype` says otherwise. */
  readonly dot: {
    readonly lhsBatch: Ints;
    readonly rhsBatch: Ints;
    readonly lhsContract: Ints;
    readonly rhsContract: Ints;
    readonly dtype: DType;
  };
  /** Cross-correlation, [N,C,S…] with [O,C/groups,K…] → [N,O,S'…]; the operand is dilated by `lhsDilation` (zeros between
   *  elements), padded with zeros (entries may be negative: cropping), the kernel spread by `rhsDilation`. */
  readonly conv: {
    readonly strides: Ints;
    readonly padLow: Ints;
    readonly padHigh: Ints;
    readonly lhsDilation: Ints;
    readonly rhsDilation: Ints;
    readonly groups: number;
  };
  /** Inputs operand, indices (i32 or u32, operand's rank): out[i,j,k] = operand[i, indices[i,j,k], k] for axis 1. An index
   *  outside the axis reads 0. Other axes of `indices` may be smaller than the operand's. */
  readonly gather: { readonly axis: number };
  /** Inputs operand, indices, updates (same shape as indices): a copy of operand with updates folded in at
   *  [i, indices[i,j,k], k]. Updates outside the axis are dropped. */
  readonly scatter: { readonly axis: number; readonly mode: ScatterMode };
  /** Inputs values and places (i32 or u32, one shape): out[i, places[i,j,k], k] = values[i,j,k] for axis 1, where the places of
   *  each line are a permutation of the axis: gather the other way round. */
  readonly permuteScatter: { readonly axis: number };
  /** Inputs boundaries [.., n], ascending along the last axis, and values [.., m]: how many boundaries of its line lie below each
   *  value (or, `right`, not above it), as i32, by a binary search; NaN lies above everything. */
  readonly searchSorted: { readonly right: boolean };
  /** Inputs indices (i32 or u32) and updates (one shape): the sum of the updates of each of `size` places along the axis, as if
   *  scattered onto zeros, but added in no fixed order: on a device f32 sums may differ from run to run in their last bits. */
  readonly scatterAddAtomic: { readonly axis: number; readonly size: number };
  /** A scatter whose updates lie sorted by their place. Inputs operand, starts (i32, one more than the operand's along the
   *  axis), order (i32) and updates of one shape: operand[i,j,k] with updates[i, order[i,e,k], k] folded in for every e from
   *  starts[i,j,k] up to starts[i,j+1,k], in that order. */
  readonly segmentReduce: { readonly axis: number; readonly mode: ScatterMode };
  /** Inputs: value, then the arguments that the rule returns cotangents for. `rule` names an entry of autograd's registry. */
  readonly customVjp: { readonly rule: number };
}

/** The attributes of an op. */
export type Attrs<K extends Op = Op> = K extends keyof OwnAttrs ? OwnAttrs[K] : NoAttrs;

export type OpClass = 'unary' | 'binary' | 'ternary' | 'view' | 'source' | 'anchor' | 'marker';

/** What is known of an op without its graph. */
export interface OpFacts<A extends string = string> {
  readonly class: OpClass;
  /** Number of inputs, or `variadic` (at least one). */
  readonly arity: number | 'variadic';
  /** Attribute names, in printing order. */
  readonly attrs: readonly A[];
  /** Arithmetic per output element (elementwise ops only; anchors are counted from their shapes). */
  readonly flops: number;
  readonly commutative?: true;
}

const unary = (flops: number): OpFacts<never> => ({ class: 'unary', arity: 1, attrs: [], flops });
const binary = (flops: number): OpFacts<never> => ({ class: 'binary', arity: 2, attrs: [], flops });
const commuting = (flops: number): OpFacts<never> => ({ ...binary(flops), commutative: true });
const view = <A extends string>(attrs: readonly A[], arity: OpFacts['arity'] = 1): OpFacts<A> => ({
  class: 'view',
  arity,
  attrs,
  flops: 0,
});

/** Facts of every op. */
export const ops: { readonly [K in Op]: OpFacts<keyof Attrs<K> & string> } = {
  neg: unary(1),
  abs: unary(1),
  sign: unary(1),
  floor: unary(1),
  ceil: unary(1),
  round: unary(1),
  trunc: unary(1),
  exp: unary(8),
  exp2: unary(8),
  expm1: unary(12),
  log: unary(8),
  log2: unary(8),
  log1p: unary(12),
  sin: unary(12),
  cos: unary(12),
  tan: unary(16),
  asin: unary(16),
  acos: unary(16),
  atan: unary(16),
  sinh: unary(16),
  cosh: unary(16),
  tanh: unary(12),
  erf: unary(16),
  sqrt: unary(4),
  rsqrt: unary(4),
  recip: unary(4),
  not: unary(1),
  isNan: unary(1),
  cast: { class: 'unary', arity: 1, attrs: ['dtype'], flops: 1 },
  bitcast: { class: 'unary', arity: 1, attrs: ['dtype'], flops: 0 },
  add: commuting(1),
  sub: binary(1),
  mul: commuting(1),
  div: binary(4),
  mod: binary(6),
  pow: binary(24),
  min: commuting(1),
  max: commuting(1),
  atan2: binary(24),
  and: commuting(1),
  or: commuting(1),
  xor: commuting(1),
  shl: binary(1),
  shr: binary(1),
  mulhi: commuting(4),
  lt: binary(1),
  le: binary(1),
  eq: commuting(1),
  ne: commuting(1),
  where: { class: 'ternary', arity: 3, attrs: [], flops: 1 },
  fma: { class: 'ternary', arity: 3, attrs: [], flops: 2 },
  reshape: view(['shape']),
  permute: view(['order']),
  broadcast: view(['shape']),
  slice: view(['start', 'size', 'step']),
  pad: view(['low', 'high', 'interior', 'value']),
  concat: view(['axis'], 'variadic'),
  window: view(['axis', 'size', 'stride', 'dilation']),
  parameter: { class: 'source', arity: 0, attrs: ['index', 'name', 'dtype', 'shape'], flops: 0 },
  constant: { class: 'source', arity: 0, attrs: ['value', 'dtype'], flops: 0 },
  iota: { class: 'source', arity: 0, attrs: ['shape', 'axis', 'dtype'], flops: 0 },
  randomBits: { class: 'source', arity: 4, attrs: ['shape'], flops: 40 },
  reduce: { class: 'anchor', arity: 1, attrs: ['monoid', 'axes'], flops: 1 },
  argReduce: { class: 'anchor', arity: 1, attrs: ['monoid', 'axis'], flops: 2 },
  argSort: { class: 'anchor', arity: 1, attrs: ['axis', 'descending'], flops: 64 },
  radixRank: { class: 'anchor', arity: 1, attrs: ['shift', 'digits', 'block'], flops: 4 },
  scan: { class: 'anchor', arity: 1, attrs: ['monoid', 'axis', 'reverse', 'exclusive'], flops: 1 },
  dot: {
    class: 'anchor',
    arity: 2,
    attrs: ['lhsBatch', 'rhsBatch', 'lhsContract', 'rhsContract', 'dtype'],
    flops: 2,
  },
  conv: {
    class: 'anchor',
    arity: 2,
    attrs: ['strides', 'padLow', 'padHigh', 'lhsDilation', 'rhsDilation', 'groups'],
    flops: 2,
  },
  gather: { class: 'anchor', arity: 2, attrs: ['axis'], flops: 0 },
  scatter: { class: 'anchor', arity: 3, attrs: ['axis', 'mode'], flops: 1 },
  permuteScatter: { class: 'anchor', arity: 2, attrs: ['axis'], flops: 0 },
  searchSorted: { class: 'anchor', arity: 2, attrs: ['right'], flops: 20 },
  segmentReduce: { class: 'anchor', arity: 4, attrs: ['axis', 'mode'], flops: 1 },
  scatterAddAtomic: { class: 'anchor', arity: 2, attrs: ['axis', 'size'], flops: 1 },
  stopGradient: { class: 'marker', arity: 1, attrs: [], flops: 0 },
  customVjp: { class: 'marker', arity: 'variadic', attrs: ['rule'], flops: 0 },
};

/** Every op, in the order of the table. */
export const opNames: readonly Op[] = Object.keys(ops) as Op[];

/** Whether the text names an op. */
export function isOp(text: string): text is Op {
  return Object.hasOwn(ops, text);
}

/** The row of an op. */
export function facts(op: Op): OpFacts {
  return ops[op];
}

export function isElementwise(op: Op): op is ElementwiseOp {
  const kind = facts(op).class;
  return kind === 'unary' || kind === 'binary' || kind === 'ternary';
}

export function isView(op: Op): op is ViewOp {
  return facts(op).class === 'view';
}

/** Comparisons, and the tests that give bool. */
export function givesBool(op: ElementwiseOp): boolean {
  return op === 'lt' || op === 'le' || op === 'eq' || op === 'ne' || op === 'isNan';
}
