// Takes a graph node and the indices of a point, gives the expression of its value there. Views
// disappear here: each only maps the indices at which its input is evaluated, so a chain of views
// costs index arithmetic and nothing else.

import { CompilerBug } from '../../errors.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import {
  addIndex,
  constantIndex,
  delinearize,
  linearize,
  offsetIndex,
  scaleIndex,
  type IndexExpr,
} from '../../ir/index-algebra/expr.ts';
import {
  combining,
  isElementwise,
  type Attrs,
  type CollectiveOp,
  type ComplexOp,
  type FusionRootOp,
} from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { Slot } from '../../slot.ts';
import type { wordsOf } from './blocks.ts';
import type { Expr, ExprPool } from './expr.ts';

/** Which words have a value of blocks. */
export const wordPlaces: Slot<typeof wordsOf> = new Slot('words of blocks');

/** Nodes whose values are selected. */
export type Selection = Extract<Node, { readonly op: 'pad' | 'concat' | 'gather' }>;

/** The expressions of values that are selected. */
export const selecting: Slot<(evaluator: Evaluator, node: Selection, at: Indices) => Expr> = new Slot(
  'expressions of selected values',
);

/** How many bytes kernels read of nodes of which data names a slice. */
export const slicing: Slot<(pool: ExprPool) => ReadonlyMap<Node, number>> = new Slot('bytes of slices');

export type Indices = readonly IndexExpr[];

/**
 * Gives the expression of a node inside one kernel; undefined: compute it inline from its inputs.
 */
export type ResolveNode = (node: Node, at: Indices) => Expr | undefined;

/** Evaluates nodes at indices for one kernel, sharing repeated work. */
export class Evaluator {
  readonly pool: ExprPool;
  readonly #resolve: ResolveNode;
  readonly #inlined = new Set<Node>();
  readonly #memo = new Map<Node, Map<string, Expr>>();
  #heaviest = 0;

  constructor(pool: ExprPool, resolve: ResolveNode) {
    this.pool = pool;
    this.#resolve = resolve;
  }

  /** Every node that was computed here rather than read. */
  get computed(): Iterable<Node> {
    return this.#inlined;
  }

  /** The most divisions in the indices of one point. */
  get heaviest(): number {
    return this.#heaviest;
  }

  /** The expression for `node` at `at` (one index per axis of the node). */
  value(node: Node, at: Indices): Expr {
    const key = at.map((index) => this.pool.indexId(index)).join(',');
    let known = this.#memo.get(node);
    if (known === undefined) this.#memo.set(node, (known = new Map()));
    const found = known.get(key);
    if (found !== undefined) return found;
    this.#heaviest = Math.max(this.#heaviest, weightOf(at));
    const made = this.#resolve(node, at) ?? this.#inline(node, at);
    if (made.kind !== 'read' || made.node !== node) this.#inlined.add(node);
    known.set(key, made);
    return made;
  }

  #inline(node: Node, at: Indices): Expr {
    const { pool } = this;
    switch (node.op) {
      case 'constant':
        return pool.constant(node.attrs.value, node.dtype);
      case 'iota':
        return pool.make({ kind: 'index', index: at[node.attrs.axis]!, dtype: node.dtype });
      case 'randomBits': {
        const args = node.inputs.map((input) => this.value(input, []));
        return pool.make({ kind: 'random', args, index: linearize(at, dims(node)), dtype: 'u32' });
      }
      case 'reshape':
      case 'permute':
      case 'broadcast':
      case 'slice':
      case 'window':
        return this.value(node.inputs[0]!, viewIndices(node, at));
      case 'pad':
      case 'concat':
      case 'gather':
        return selecting.value(this, node, at);
      case 'dequantize':
        return this.#decode(node.inputs[0]!, node.attrs, at);
      case 'reduce':
        return this.#fold(node, at);
      case 'stopGradient':
      case 'customVjp':
      case 'barrier':
      case 'bounded':
      case 'shard':
      case 'toPart':
      case 'toWhole':
        return this.value(node.inputs[0]!, at);
      default: {
        if (isElementwise(node.op)) {
          const args = node.inputs.map((input) => this.value(input, at));
          return pool.op(node.op, args, node.dtype);
        }
        // A view that has no case above is a type error here.
        const other: FusionRootOp | ComplexOp | CollectiveOp | 'rankIndex' | 'parameter' = node.op;
        throw new CompilerBug('evaluate', `${other} cannot be computed inside another kernel`);
      }
    }
  }

  /** A value of blocks: the words of its row that say it. */
  #decode(words: Node, { format, columns }: Attrs<'dequantize'>, at: Indices): Expr {
    const [row, index] = [at.slice(0, -1), at.at(-1)!];
    const args = wordPlaces.value(format, columns, index).map((word) => this.value(words, [...row, word]));
    return this.pool.make({ kind: 'decode', format, args, index, dtype: 'f32' });
  }

  /** A short fold: all of its terms. */
  #fold({ inputs, attrs: { monoid, axes }, dtype }: NodeOf<'reduce'>, at: Indices): Expr {
    const [input] = inputs as readonly [Node];
    const extents = axes.map((axis) => dims(input)[axis]!);
    const terms = Array.from({ length: sizeOf(extents) }, (_, i) => {
      const [outer, inner] = [at.values(), delinearize(constantIndex(i), extents).values()];
      const place = dims(input).map((_, axis) => (axes.includes(axis) ? inner : outer).next().value!);
      return this.value(input, place);
    });
    return terms.reduce((sum, term) => this.pool.op(combining[monoid], [sum, term], dtype));
  }
}

/** Divisions in indices. */
export function weightOf(at: Indices): number {
  return at.reduce((sum, index) => sum + index.weight, 0);
}

/** Where a pure view reads its input. */
export function viewIndices(node: Node, at: Indices): IndexExpr[] {
  switch (node.op) {
    case 'reshape':
      return delinearize(linearize(at, dims(node)), dims(node.inputs[0]!));
    case 'permute': {
      const inner = new Array<IndexExpr>(at.length);
      node.attrs.order.forEach((axis, i) => (inner[axis] = at[i]!));
      return inner;
    }
    case 'broadcast': {
      const from = dims(node.inputs[0]!);
      const offset = at.length - from.length;
      return from.map((dim, axis) => (dim === 1 ? constantIndex(0) : at[axis + offset]!));
    }
    case 'slice': {
      const { start, step } = node.attrs;
      return at.map((index, axis) => offsetIndex(scaleIndex(index, step[axis]!), start[axis]!));
    }
    case 'window': {
      const { axis, stride, dilation } = node.attrs;
      const within = scaleIndex(at[at.length - 1]!, dilation);
      return at
        .slice(0, -1)
        .map((index, a) => (a === axis ? addIndex(scaleIndex(index, stride), within) : index));
    }
    default:
      throw new CompilerBug('evaluate', `${node.op} is no pure view`);
  }
}
