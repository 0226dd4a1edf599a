// Takes a graph node and the indices of a point, gives the expression of its value there. Views
// disappear here: each only maps the indices at which its input is evaluated, so a chain of views
// costs index arithmetic and nothing else.

import { CompilerBug } from '../../errors.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import {
  addIndex,
  andGuards,
  constantIndex,
  delinearize,
  divIndex,
  dynamicIndex,
  largestIndex,
  linearize,
  modIndex,
  offsetIndex,
  scaleIndex,
  within,
  type Guard,
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
        return this.#pad(node.inputs[0]!, node.attrs, at, node);
      case 'concat':
        return this.#concat(node.inputs, node.attrs.axis, at, node);
      case 'dequantize':
        return this.#decode(node.inputs[0]!, node.attrs, at);
      case 'gather':
        return this.#gather(node, node.attrs.axis, at);
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

  #pad(
    input: Node,
    attrs: { readonly low: readonly number[]; readonly interior: readonly number[]; readonly value: number },
    at: Indices,
    node: Node,
  ): Expr {
    const outside = this.pool.constant(
      node.dtype === 'i64' || node.dtype === 'u64' ? BigInt(attrs.value) : attrs.value,
      node.dtype,
    );
    let guard: Guard | 'never' = [];
    const inner: IndexExpr[] = [];
    for (const [axis, size] of dims(input).entries()) {
      const shifted = offsetIndex(at[axis]!, -attrs.low[axis]!);
      const step = attrs.interior[axis]! + 1;
      if (size === 0) return outside;
      guard = andGuards(guard, within(shifted, 0, (size - 1) * step));
      guard = andGuards(guard, within(modIndex(shifted, step), 0, 0));
      inner.push(divIndex(shifted, step));
    }
    return guard === 'never' ? outside : this.#select(guard, this.value(input, inner), outside);
  }

  #concat(parts: readonly Node[], axis: number, at: Indices, node: Node): Expr {
    let value: Expr = this.pool.constant(node.dtype === 'i64' || node.dtype === 'u64' ? 0n : 0, node.dtype);
    let end = dims(node)[axis]!;
    for (const [i, part] of [...parts].reverse().entries()) {
      const size = dims(part)[axis]!;
      const start = end - size;
      end = start;
      if (size === 0) continue;
      // Parts are tried from the last; each stands for everything at or after its start.
      const guard = within(at[axis]!, start, start + size - 1);
      if (guard === 'never') continue;
      const here = this.value(
        part,
        at.map((index, a) => (a === axis ? offsetIndex(index, -start) : index)),
      );
      value = i === 0 && guard.length === 0 ? here : this.#select(guard, here, value);
    }
    return value;
  }

  #select(guard: Guard, yes: Expr, no: Expr): Expr {
    if (guard.length === 0 || yes === no) return yes;
    return this.pool.make({ kind: 'select', guard, yes, no, dtype: yes.dtype });
  }

  /** An index from data: clamped for the read, and compared so that a miss reads zero. */
  #gather(node: Node, axis: number, at: Indices): Expr {
    const { pool } = this;
    const [operand, indices] = [node.inputs[0]!, node.inputs[1]!];
    const size = dims(operand)[axis]!;
    const zero = pool.constant(node.dtype === 'i64' || node.dtype === 'u64' ? 0n : 0, node.dtype);
    if (size === 0) return zero;
    const asked = this.value(indices, at);
    const { atom, inside } = dynamicAxis(pool, asked, size);
    const value = this.value(
      operand,
      at.map((index, a) => (a === axis ? atom : index)),
    );
    return pool.op('where', [inside, value, zero], node.dtype);
  }
}

/** Divisions in indices. */
export function weightOf(at: Indices): number {
  return at.reduce((sum, index) => sum + index.weight, 0);
}

/**
 * A run-time index within [0, size): the atom (clamped) and the bool that says whether it was in
 * range. An i32 reaches the first 2^31 places of an axis.
 */
export function dynamicAxis(pool: ExprPool, asked: Expr, size: number): { atom: IndexExpr; inside: Expr } {
  const index = asked.dtype === 'i32' ? asked : pool.op('cast', [asked], 'i32');
  const reach = Math.min(size - 1, largestIndex);
  const last = pool.constant(reach, 'i32');
  const zero = pool.constant(0, 'i32');
  const clamped = pool.op('min', [pool.op('max', [index, zero], 'i32'), last], 'i32');
  const inside = pool.op('eq', [clamped, index], 'bool');
  for (const [atom, expr] of pool.dynamics) if (expr === clamped) return { atom, inside };
  const atom = size === 1 ? constantIndex(0) : dynamicIndex(`at${pool.dynamics.size}`, 0, reach);
  if (size > 1) pool.dynamics.set(atom, clamped);
  return { atom, inside };
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
