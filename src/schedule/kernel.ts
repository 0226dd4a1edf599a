// A kernel: what is computed together, before it has loops. The scheduler makes these from a graph;
// templates turn each into a Loop. Kernels are named and ordered; buffers are stored graph nodes.

import type { DType } from '../ir/dtype.ts';
import type { CollectiveNode, Node, NodeOf } from '../ir/graph.ts';
import type { Guard, IndexExpr } from '../ir/index-algebra/expr.ts';
import type { Monoid, ScatterMode } from '../ir/ops.ts';
import type { Expr, ExprPool } from './expression/expr.ts';

export type KernelKind =
  | 'batched-dispatch'
  | 'map'
  | 'row-reduction'
  | 'dot'
  | 'conv'
  | 'attention'
  | 'scan'
  | 'fft'
  | 'scatter'
  | 'sort'
  | 'radix-rank'
  | 'permute-scatter'
  | 'search-sorted'
  | 'segment-reduce'
  | 'scatter-add-atomic'
  | 'jacobi-rows'
  | 'factor'
  | 'complete-rows'
  | 'iterate'
  | 'collective';

/** An iteration axis of a kernel: `atom` stands for it in every index expression. */
export interface Axis {
  readonly name: string;
  readonly extent: number;
  /** The axis as an index; the constant 0 when its extent is 1. */
  readonly atom: IndexExpr;
}

/** One element stored per point of the kernel's domain. */
export interface Write {
  readonly node: Node;
  /** Flat element of the stored node; data decides it where values are dispersed. */
  readonly index: IndexExpr;
  readonly value: Expr;
  /** Other kernels write other elements of the node: nothing past an axis's end may be touched. */
  readonly isPart?: boolean;
}

/** A reduction over the row axis; its result is one value a row. */
export interface RowStage {
  readonly node: NodeOf<'reduce'> | NodeOf<'argReduce'>;
  readonly monoid: Monoid;
  /** Gives the position of the extremum instead of its value. */
  readonly arg: boolean;
  readonly value: Expr;
  /** Passes over the row that must be finished before this one: 0 for the first. */
  readonly pass: number;
  readonly dtype: DType;
}

/**
 * Scores at (batch, row, key): Σ_depth of an operand that depends on the row times one that depends
 * on the key.
 */
export interface InnerProduct {
  readonly node: NodeOf<'dot'>;
  readonly depth: Axis;
  readonly ofRow: Expr;
  readonly ofKey: Expr;
}

/** A number of each (batch, row): Σ_depth of two values that depend on the row. */
export interface RowProduct {
  readonly node: NodeOf<'dot'>;
  readonly depth: Axis;
  readonly lhs: Expr;
  readonly rhs: Expr;
}

/** result[batch, row, column] = Σ_key weight · value. */
export interface OuterProduct {
  readonly node: NodeOf<'dot'>;
  readonly column: Axis;
  readonly weight: Expr;
  readonly value: Expr;
  /** Sweeps over the keys that must be finished before this sum can start. */
  readonly pass: number;
}

/** Keys from row + `first` (if given) to row + `last` (if given); all others count for nothing. */
export interface KeyRange {
  readonly first?: number;
  readonly last?: number;
  /**
   * How many keys count, where a run says it: in [0, extent]. What it depends on of the row, it
   * does not decrease with.
   */
  readonly end?: Expr;
}

/** Points of a kernel are needed only where an index of its axes is below a number that a run brings. */
export interface Needed {
  readonly at: IndexExpr;
  /** i32, in [0, the index's own end]. */
  readonly end: Expr;
}

/** A reduction over rows of a contraction's left operand, which refers to its result. */
export interface RepeatedStage extends RowStage {
  readonly column: Axis;
}

/** Reductions over every `width` neighbouring columns of a contraction, by the workgroup that has them. */
export interface ColumnFolds {
  readonly width: number;
  readonly stages: readonly RowStage[];
}

/** Another product of a contraction's left operand, of the same size, computed along with it. */
export interface Sibling {
  readonly node: NodeOf<'dot'>;
  readonly rhs: Expr;
}

/** A factor that does not depend on the key, applied once to the finished sum. */
export interface Scale {
  readonly op: 'mul' | 'div';
  readonly by: Expr;
}

/** A sum's term without the factors that are constant along the keys. */
export interface SumTerm {
  readonly core: Expr;
  readonly scales: readonly Scale[];
  /** The term has the factor e^(x − max): the sum shrinks as the maximum grows. */
  readonly shifts: boolean;
  /**
   * Where the term is made of the maximum and the scales; at all keys by default, elsewhere it is 0
   * whatever those are.
   */
  readonly guard?: Expr;
}

/** A kernel whose sums can all be kept in one sweep, together with the maximum that shifts them. */
export interface Online {
  readonly max: RowStage;
  /** Terms of the other stages, and of the products, in order. */
  readonly stages: readonly (SumTerm & { readonly stage: RowStage })[];
  readonly outers: readonly SumTerm[];
}

/**
 * The padded input of a conv, for one image and group: a value at every channel and place that a
 * window can have an element. Along the last axis there is room for whole groups of four positions,
 * whatever their number is.
 */
export interface Image {
  readonly channel: Axis;
  readonly spatial: readonly Axis[];
  readonly value: Expr;
}

/**
 * The operands of a conv whose taps all look along one flat axis of places (`hasFlatTaps`): its weight
 * at a row, a channel and a tap, and its input at a batch, a channel and a place.
 */
export interface FlatTaps {
  readonly channel: Axis;
  readonly tap: Axis;
  readonly place: Axis;
  readonly weight: Expr;
  readonly input: Expr;
}

/** A stack of matrices that a matrix algorithm takes, at (batch, row, column). */
export interface MatrixOperand {
  readonly row: Axis;
  readonly column: Axis;
  readonly value: Expr;
}

/** A part of a transform's results, 0 the real, 1 the imaginary one. */
export interface FftResult {
  readonly node: NodeOf<'fftPart'>;
  readonly part: number;
}

export type Body =
  /** Independent kernels in one dispatch, each with its own workgroups. */
  | { readonly kind: 'batched-dispatch'; readonly parts: readonly Kernel[] }
  /**
   * Every write at every point of one flat axis, which `shape` says what it runs over, where that
   * is not the shape of the results.
   */
  | {
      readonly kind: 'map';
      readonly axis: Axis;
      readonly shape?: readonly number[];
      readonly needed?: readonly Needed[];
    }
  /**
   * For each row: reductions over `column`, later ones may use earlier results; then per-row and
   * per-element writes.
   */
  | {
      readonly kind: 'row-reduction';
      readonly row: Axis;
      readonly column: Axis;
      readonly stages: readonly RowStage[];
      /** How many elements of a row count in the reductions, where a run says it: in [0, extent]. */
      readonly bound?: Expr;
      readonly needed?: readonly Needed[];
    }
  /** result[b,m,n] = Σ_k lhs(b,m,k)·rhs(b,k,n); dot and conv. */
  | {
      readonly kind: 'contract';
      readonly node: Node;
      readonly batch: Axis;
      readonly m: Axis;
      readonly n: Axis;
      readonly k: Axis;
      readonly lhs: Expr;
      readonly rhs: Expr;
      /** How many steps of k count, where a run says it: in [0, extent]. */
      readonly bound?: Expr;
      /** conv: what `rhs` looks at. */
      readonly image?: Image;
      /** conv: present where its weight is laid out taps first. */
      readonly flatTaps?: FlatTaps;
      /** dot: what every workgroup computes first of its rows, along axes of their own. */
      readonly stages?: readonly RepeatedStage[];
      /** dot: further products of `lhs`, with the same axes. */
      readonly siblings?: readonly Sibling[];
      /** dot: what is folded of its result, which need not be stored. */
      readonly folds?: ColumnFolds;
      readonly needed?: readonly Needed[];
    }
  /**
   * For each row, streaming over keys: scores, reductions over the keys, and sums of values
   * weighted by functions of both.
   */
  | {
      readonly kind: 'attention';
      readonly batch: Axis;
      readonly row: Axis;
      readonly key: Axis;
      readonly inners: readonly InnerProduct[];
      /** Known before any key is looked at. */
      readonly rowProducts: readonly RowProduct[];
      readonly stages: readonly RowStage[];
      readonly outers: readonly OuterProduct[];
      /** Keys that count, relative to the row. */
      readonly range: KeyRange;
      /** Present where one sweep over the keys does for all of it. */
      readonly online?: Online;
      readonly needed?: readonly Needed[];
    }
  /** result[line, position] = running combination of value along `position`. */
  | {
      readonly kind: 'scan';
      readonly node: NodeOf<'scan'>;
      readonly line: Axis;
      readonly position: Axis;
      readonly value: Expr;
      readonly monoid: Monoid;
      readonly reverse: boolean;
      readonly exclusive: boolean;
    }
  /**
   * result[line, position] = one part, or both, of Σ over positions of re + i·im times roots of
   * unity. Elements of the table of constants by `entry`.
   */
  | {
      readonly kind: 'fft';
      readonly node: NodeOf<'fftPart'>;
      readonly line: Axis;
      readonly position: Axis;
      readonly entry: Axis;
      readonly re: Expr;
      readonly im: Expr;
      readonly table: Expr;
      /** The results, real parts first; a part that nothing asks for is left out. */
      readonly parts: readonly FftResult[];
    }
  /**
   * out[line, slot] = operand, then for each update in order: out[line, target] ⊕= value where
   * target is in range.
   */
  | {
      readonly kind: 'scatter';
      readonly node: NodeOf<'scatter'>;
      readonly line: Axis;
      readonly slot: Axis;
      readonly update: Axis;
      readonly operand: Expr;
      /** Flat element of the stored node at (line, slot). */
      readonly index: IndexExpr;
      /** i32; at (line, update). */
      readonly target: Expr;
      readonly value: Expr;
      /** Holds where this line has updates at all (indices may be smaller than the operand). */
      readonly active: Guard;
      readonly mode: ScatterMode;
    }
  /**
   * result[line, position] = the position in the line that stands there once the keys (u32) ascend.
   */
  | {
      readonly kind: 'sort';
      readonly node: NodeOf<'argSort'>;
      readonly line: Axis;
      readonly position: Axis;
      readonly key: Expr;
    }
  /** Every matrix of `value`, with rows where `missing` holds at (matrix, row). */
  | {
      readonly kind: 'complete-rows';
      readonly node: NodeOf<'completeRows'>;
      readonly matrix: Axis;
      readonly row: Axis;
      readonly column: Axis;
      readonly value: Expr;
      readonly missing: Expr;
    }
  /** Every matrix of `value`, its rows rotated in the result itself until they are orthogonal. */
  | {
      readonly kind: 'jacobi-rows';
      readonly node: NodeOf<'jacobiRows'>;
      readonly matrix: Axis;
      readonly row: Axis;
      readonly column: Axis;
      readonly value: Expr;
    }
  /**
   * Of each block of a line: how often each digit of the keys (u32) occurs, then each key's rank
   * among its equals.
   */
  | {
      readonly kind: 'radix-rank';
      readonly node: NodeOf<'radixRank'>;
      readonly line: Axis;
      readonly position: Axis;
      readonly key: Expr;
    }
  /**
   * At each point, by halving: how many boundaries along `element` lie below the value (or not
   * above it).
   */
  | {
      readonly kind: 'search-sorted';
      readonly node: NodeOf<'searchSorted'>;
      readonly axis: Axis;
      readonly element: Axis;
      readonly boundary: Expr;
      readonly value: Expr;
    }
  /**
   * Over all updates: the value is added to its place (`index`, data along one axis) where it has
   * one. The result starts as zeros.
   */
  | {
      readonly kind: 'scatter-add-atomic';
      readonly node: NodeOf<'scatterAddAtomic'>;
      readonly axis: Axis;
      readonly inside: Expr;
      readonly index: IndexExpr;
      readonly value: Expr;
    }
  /**
   * result[outer, column] = operand with `update` folded in for each entry from `first` up to
   * `last`, in order.
   */
  | {
      readonly kind: 'segment-reduce';
      readonly node: NodeOf<'segmentReduce'>;
      readonly outer: Axis;
      readonly column: Axis;
      readonly entry: Axis;
      readonly operand: Expr;
      /** i32, the same in every column. */
      readonly first: Expr;
      readonly last: Expr;
      readonly update: Expr;
    }
  /** A matrix algorithm that works step by step, on each matrix of a stack. */
  | {
      readonly kind: 'factor';
      readonly node: NodeOf<'factor'>;
      readonly batch: Axis;
      readonly operands: readonly MatrixOperand[];
    }
  /** A loop: kernels of its own, which run again and again. `results` are those of its siblings. */
  | {
      readonly kind: 'iterate';
      readonly node: NodeOf<'iterate'>;
      readonly results: readonly Node[];
    }
  /** What processes do together: the device moves whole values. */
  | {
      readonly kind: 'collective';
      readonly node: CollectiveNode;
      /** What lies in memory of its input. */
      readonly operand: Node;
    };

export interface Kernel {
  /** Identifier, unique in the program, e.g. `dot_add_gelu_3`. */
  readonly name: string;
  readonly kind: KernelKind;
  readonly body: Body;
  /** Stored nodes read, each once, in binding order. */
  readonly reads: readonly Node[];
  readonly writes: readonly Write[];
  readonly pool: ExprPool;
  /** Every node computed here rather than read. */
  readonly nodes: readonly Node[];
  readonly flops: number;
  /** Each distinct element read once and written once. */
  readonly bytes: number;
}
