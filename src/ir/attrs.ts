// The attributes of the primitive operations that have any: their types, and their forms as a table
// that is total by type. The verifier checks nodes against the forms and the parser text. Relations
// between attributes and the shapes of inputs are checked by infer.ts.

import type { BlockFormat } from './blocks/format.ts';
import { Region } from './region.ts';
import { isDType, type DType } from './dtype.ts';
import { factorNames, type FactorKind } from './factor.ts';
import type { Shape } from './shape.ts';

/** An associative operation with an identity. `and`/`or` are for bool. */
export type Monoid = 'sum' | 'prod' | 'min' | 'max' | 'and' | 'or';
export const monoids: readonly Monoid[] = ['sum', 'prod', 'min', 'max', 'and', 'or'];

/** `set`: the last update in C-order wins; the others fold updates into the operand in C-order. */
export type ScatterMode = 'set' | 'add' | 'mul' | 'min' | 'max';

type NoAttrs = Readonly<Record<never, never>>;
type Ints = readonly number[];

/** A mesh (mesh.ts), and which axes of it a group of processes goes along: `data=2,model=4`, `model`. */
type Group = Readonly<Record<'mesh' | 'over', string>>;
/** A mesh, and how it splits a value (mesh/split.ts). */
type Sharding = Readonly<Record<'mesh' | 'split', string>>;

/**
 * Attributes of the ops that have any. Plain data: numbers, bigints, strings and arrays of them;
 * and regions, which are compared by their texts.
 */
interface OwnAttrs {
  /**
   * Saturating and truncating float→int, wrapping int→int, round to nearest even into floats, NaN→0
   * for ints.
   */
  readonly cast: { readonly dtype: DType };
  /** Same width, bits kept. */
  readonly bitcast: { readonly dtype: DType };
  readonly reshape: { readonly shape: Shape };
  /** Output axis `i` is input axis `order[i]`. */
  readonly permute: { readonly order: Ints };
  /** NumPy broadcast: input sizes aligned from the right; size 1 or a missing axis stretches. */
  readonly broadcast: { readonly shape: Shape };
  /**
   * Output element `i` on an axis reads input `start + i·step`; `step` may be negative, never 0;
   * `size` elements.
   */
  readonly slice: { readonly start: Ints; readonly size: Ints; readonly step: Ints };
  /**
   * `low` and `high` (≥ 0) elements of `value` at the ends of each axis and `interior` between
   * neighbours.
   */
  readonly pad: { readonly low: Ints; readonly high: Ints; readonly interior: Ints; readonly value: number };
  readonly concat: { readonly axis: number };
  /**
   * Overlapping windows of one axis: output [.., count, .., size] with the window axis appended
   * last; output element (.., i, .., k) reads input `i·stride + k·dilation`.
   */
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
  /**
   * u32 words of Philox 4x32-10; inputs are four rank-0 u32: key lo, key hi, counter lo, counter
   * hi. Element `i` (flat) is word `i mod 4` of counter + ⌊i/4⌋.
   */
  readonly randomBits: { readonly shape: Shape };
  /** The place, i32, that this process has in its group. */
  readonly rankIndex: Group;
  /** Axes are ascending and removed from the result. */
  readonly reduce: { readonly monoid: Monoid; readonly axes: Ints };
  /** i32 index of the first extremum; a NaN counts as the extremum. The axis is removed. */
  readonly argReduce: { readonly monoid: 'min' | 'max'; readonly axis: number };
  /**
   * i32 indices that put an axis in ascending (or descending) order: stable in both directions, −0
   * equals 0, NaN counts as the greatest.
   */
  readonly argSort: { readonly axis: number; readonly descending: boolean };
  /**
   * One step of a radix sort, u32 [lines, n] → i32 [lines, blocks, digits + block]: each line is
   * cut into blocks of `block` keys; a block's row holds how often it has each digit
   * `(key >> shift) mod digits`, then for each of its keys how many before it in the block have its
   * digit (0 past the end of the line). `digits` is a power of two.
   */
  readonly radixRank: { readonly shift: number; readonly digits: number; readonly block: number };
  readonly scan: {
    readonly monoid: Monoid;
    readonly axis: number;
    readonly reverse: boolean;
    readonly exclusive: boolean;
  };
  /**
   * Discrete Fourier transform along an axis of pairs [real, imaginary], which the last axis holds:
   * Σⱼ xⱼ·e^(−2πi·jk/n), with the other sign where `inverse`; not scaled. Inputs x [.., 2] and the
   * table of constants that kernels use (`fftTable(n)`), of the same dtype.
   */
  readonly fft: { readonly axis: number; readonly inverse: boolean };
  /**
   * One part of the results, 0 the real, 1 the imaginary one, of the transform along the last axis.
   * Inputs: real parts, imaginary parts, and the table; n has a plan of one kernel.
   */
  readonly fftPart: { readonly part: number };
  /**
   * Result axes: batch, then the left operand's free axes, then the right one's, each in ascending
   * order. Sums in f32 for 16-bit floats; the result has the operands' dtype unless `dtype` says
   * otherwise.
   */
  readonly dot: {
    readonly lhsBatch: Ints;
    readonly rhsBatch: Ints;
    readonly lhsContract: Ints;
    readonly rhsContract: Ints;
    readonly dtype: DType;
  };
  /**
   * Cross-correlation, [N,C,S…] with [O,C/groups,K…] → [N,O,S'…]; the operand is dilated by
   * `lhsDilation` (zeros between elements), padded with zeros (entries may be negative: cropping),
   * the kernel spread by `rhsDilation`.
   */
  readonly conv: {
    readonly strides: Ints;
    readonly padLow: Ints;
    readonly padHigh: Ints;
    readonly lhsDilation: Ints;
    readonly rhsDilation: Ints;
    readonly groups: number;
  };
  /**
   * Inputs operand, indices (i32 or u32, operand's rank): out[i,j,k] = operand[i, indices[i,j,k],
   * k] for axis 1. An index outside the axis reads 0. Other axes of `indices` may be smaller than
   * the operand's.
   */
  readonly gather: { readonly axis: number };
  /**
   * Words (u32 [.., words a row]) that hold rows of blocks as they lie on devices (blocks/layout.ts):
   * the f32 [.., columns] that they stand for.
   */
  readonly dequantize: { readonly format: BlockFormat; readonly columns: number };
  /**
   * Inputs operand, indices, updates (same shape as indices): a copy of operand with updates folded
   * in at [i, indices[i,j,k], k]. Updates outside the axis are dropped.
   */
  readonly scatter: { readonly axis: number; readonly mode: ScatterMode };
  /**
   * Inputs values and places (i32 or u32, one shape): out[i, places[i,j,k], k] = values[i,j,k] for
   * axis 1, where the places of each line are a permutation of the axis: gather the other way
   * round.
   */
  readonly permuteScatter: { readonly axis: number };
  /**
   * Inputs boundaries [.., n], ascending along the last axis, and values [.., m]: how many
   * boundaries of its line lie below each value (or, `right`, not above it), as i32, by a binary
   * search; NaN lies above everything.
   */
  readonly searchSorted: { readonly right: boolean };
  /**
   * Inputs indices (i32 or u32) and updates (one shape): the sum of the updates of each of `size`
   * places along the axis, as if scattered onto zeros, but added in no fixed order: on a device f32
   * sums may differ from run to run in their last bits.
   */
  readonly scatterAddAtomic: { readonly axis: number; readonly size: number };
  /**
   * A scatter whose updates lie sorted by their place. Inputs operand, starts (i32, one more than
   * the operand's along the axis), order (i32) and updates of one shape: operand[i,j,k] with
   * updates[i, order[i,e,k], k] folded in for every e from starts[i,j,k] up to starts[i,j+1,k], in
   * that order.
   */
  readonly segmentReduce: { readonly axis: number; readonly mode: ScatterMode };
  /**
   * Rows of matrices [batch, n, columns], rotated in pairs (Hestenes, 1958) until the first `width`
   * columns of any two are orthogonal: an orthogonal matrix times the operand, which turns the
   * columns behind `width` along. With 2 `parts` a row is complex, real parts before imaginary ones,
   * and `width` counts columns of each. Rows come out roughly in the order of their lengths, the
   * longest first; signs and ties are anybody's.
   */
  readonly jacobiRows: { readonly width: number; readonly parts: number };
  /**
   * A matrix algorithm that works step by step, on stacks of matrices [lines, rows, columns]:
   * factor.ts says of each kind what it takes and gives.
   */
  readonly factor: { readonly kind: FactorKind };
  /**
   * Inputs rows [batch, n, columns], orthonormal but for some, which are zeros, and which these are
   * (bool [batch, n]): in their places stand rows that make all of them orthonormal. Complex rows
   * have 2 `parts`, as above; no more rows than columns.
   */
  readonly completeRows: { readonly parts: number };
  /**
   * A loop of `trips` iterations over `body` (control/iterate.ts): inputs are `carries` first values,
   * `stacked` stacks of slices and invariants; the result is the last value of a carry, or, behind
   * these, the stack of a slice that each iteration gives. `reverse` counts from the last slice down;
   * with `recompute` a derivative keeps of each iteration its carries alone. `guard` is the place of a
   * carry, i32[], or -1: where that carry is 0 before an iteration, neither that turn nor any behind it is
   * made, and slices of stacks that no iteration gave are zeros.
   */
  readonly iterate: {
    readonly body: Region;
    readonly carries: number;
    readonly stacked: number;
    readonly trips: number;
    readonly reverse: boolean;
    readonly recompute: boolean;
    readonly guard: number;
    readonly result: number;
  };
  /**
   * Inputs: value, then the arguments that the rule returns cotangents for, then, of a function
   * with several results, the values of all of them. `rule` names an entry of autograd's registry.
   */
  readonly customVjp: { readonly rule: number };
  /** Inputs: value, and n (i32, rank 0). Beyond the first n elements of the axis nothing is specified. */
  readonly bounded: { readonly axis: number };
  /**
   * The mesh as `data=2,model=4`, and for each axis the mesh axes that split it, the coarsest first: `data,model|` for two axes, of
   * which the second is whole.
   */
  readonly shard: Sharding;
  /** [..] → the shape of a part. */
  readonly toPart: Sharding;
  /** The shape of a part → [..]. Processes that have the same part have equal values. */
  readonly toWhole: Sharding;
  // Collectives of a group of n processes, along the leading axis of their values.
  /** The values of all, combined element by element. */
  readonly allReduce: Group & { readonly monoid: Monoid };
  /** [d, ..] → [n·d, ..]: the values of all, one behind the other. */
  readonly allGather: Group;
  /** [n·d, ..] → [d, ..]: part i of all, combined element by element, at place i. */
  readonly reduceScatter: Group & { readonly monoid: Monoid };
  /** [n·d, ..] in n parts: part j at place i becomes part i at place j. */
  readonly allToAll: Group;
  /** The value at place from[k] is taken at place to[k]; no place is twice in either. Others take zeros. */
  readonly permuteRanks: Group & { readonly from: Ints; readonly to: Ints };
  /** The value at the place `root`. */
  readonly broadcastRank: Group & { readonly root: number };
}

/** The attributes of an op, by its name. */
export type AttrsOf<K extends string> = K extends keyof OwnAttrs ? OwnAttrs[K] : NoAttrs;

const scatterModes: readonly ScatterMode[] = ['set', 'add', 'mul', 'min', 'max'];

interface Form {
  /** Completes `attribute axis must be …`. */
  readonly is: string;
  accepts(value: unknown): boolean;
}

const isInt = (value: unknown): boolean => Number.isSafeInteger(value) && !Object.is(value, -0);

const int: Form = { is: 'an integer', accepts: isInt };
const ints: Form = { is: 'a list of integers', accepts: (value) => isListOf(value, isInt) };
const number: Form = { is: 'a number', accepts: (value) => typeof value === 'number' };
const scalar: Form = {
  is: 'a number',
  accepts: (value) => typeof value === 'number' || typeof value === 'bigint',
};
const text: Form = { is: 'a string', accepts: (value) => typeof value === 'string' };
const flag: Form = { is: 'true or false', accepts: (value) => typeof value === 'boolean' };
const dtype: Form = { is: 'a dtype', accepts: (value) => typeof value === 'string' && isDType(value) };
const shape: Form = { is: 'a list of sizes', accepts: (value) => isListOf(value, isDim) };
const oneOf = (words: readonly string[]): Form => ({
  is: `one of ${words.join(', ')}`,
  accepts: (value) => typeof value === 'string' && words.includes(value),
});
const monoid: Form = oneOf(monoids);
const group = { mesh: text, over: text };
const sharding = { mesh: text, split: text };
const region: Form = { is: 'a body', accepts: (value) => value instanceof Region };

function isListOf(value: unknown, accepts: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(accepts);
}

function isDim(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isInt(value) && (value as number) >= 0;
  const { name, min, max } = value as Record<string, unknown>;
  return typeof name === 'string' && isInt(min) && isInt(max) && (min as number) <= (max as number);
}

/** In printing order. */
const forms: { readonly [K in keyof OwnAttrs]: { readonly [A in keyof OwnAttrs[K]]: Form } } = {
  cast: { dtype },
  bitcast: { dtype },
  reshape: { shape },
  permute: { order: ints },
  broadcast: { shape },
  slice: { start: ints, size: ints, step: ints },
  pad: { low: ints, high: ints, interior: ints, value: number },
  concat: { axis: int },
  window: { axis: int, size: int, stride: int, dilation: int },
  parameter: { index: int, name: text, dtype, shape },
  constant: { value: scalar, dtype },
  iota: { shape, axis: int, dtype },
  randomBits: { shape },
  rankIndex: group,
  reduce: { monoid, axes: ints },
  argReduce: { monoid: oneOf(['min', 'max']), axis: int },
  argSort: { axis: int, descending: flag },
  radixRank: { shift: int, digits: int, block: int },
  scan: { monoid, axis: int, reverse: flag, exclusive: flag },
  fft: { axis: int, inverse: flag },
  fftPart: { part: int },
  dot: { lhsBatch: ints, rhsBatch: ints, lhsContract: ints, rhsContract: ints, dtype },
  conv: { strides: ints, padLow: ints, padHigh: ints, lhsDilation: ints, rhsDilation: ints, groups: int },
  gather: { axis: int },
  dequantize: { format: text, columns: int },
  scatter: { axis: int, mode: oneOf(scatterModes) },
  permuteScatter: { axis: int },
  searchSorted: { right: flag },
  segmentReduce: { axis: int, mode: oneOf(scatterModes) },
  scatterAddAtomic: { axis: int, size: int },
  jacobiRows: { width: int, parts: int },
  factor: { kind: oneOf(factorNames) },
  completeRows: { parts: int },
  iterate: {
    body: region,
    carries: int,
    stacked: int,
    trips: int,
    reverse: flag,
    recompute: flag,
    guard: int,
    result: int,
  },
  customVjp: { rule: int },
  bounded: { axis: int },
  shard: sharding,
  toPart: sharding,
  toWhole: sharding,
  allReduce: { ...group, monoid },
  allGather: group,
  reduceScatter: { ...group, monoid },
  allToAll: group,
  permuteRanks: { ...group, from: ints, to: ints },
  broadcastRank: { ...group, root: int },
};

const none: Readonly<Record<string, Form>> = {};

function formsOf(op: string): Readonly<Record<string, Form>> {
  return Object.hasOwn(forms, op) ? forms[op as keyof OwnAttrs] : none;
}

/** Names of an op's attributes, in printing order. */
export function attrNames(op: string): readonly string[] {
  return Object.keys(formsOf(op));
}

/**
 * What is wrong with a node's attributes as `attribute axis must be an integer`, and which;
 * undefined when nothing is.
 */
export function attrProblem(
  op: string,
  attrs: Readonly<Record<string, unknown>>,
): { readonly name: string; readonly problem: string } | undefined {
  const expected = formsOf(op);
  for (const name in attrs) {
    if (!Object.hasOwn(expected, name)) {
      const known = attrNames(op).join(', ') || 'none';
      return { name, problem: `${op} has no attribute ${name} (it has ${known})` };
    }
  }
  for (const name in expected) {
    if (!Object.hasOwn(attrs, name)) return { name, problem: `${op} needs the attribute ${name}` };
    const form = expected[name]!;
    if (!form.accepts(attrs[name])) return { name, problem: `attribute ${name} must be ${form.is}` };
  }
  return undefined;
}
