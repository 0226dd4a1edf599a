// Expressions and indices become register values. One kernel axis may be spread over vector lanes:
// then indices carry a `lane` atom, contiguous reads become vector loads, and whatever does not
// depend on the lane stays scalar and is shared.

import { CompilerBug } from '../../errors.ts';
import { dtypeBytes, isFloat, type DType } from '../../ir/dtype.ts';
import { dims, type Node } from '../../ir/graph.ts';
import {
  atomsOf,
  axisIndex,
  coefficientOf,
  divIndex,
  constantIndex,
  interval,
  modIndex,
  offsetIndex,
  printIndex,
  substitute,
  substituteGuard,
  type Guard,
  type IndexExpr,
  type SumExpr,
} from '../../ir/index-algebra/expr.ts';
import { sizeOf } from '../../ir/shape.ts';
import type { Expr, ExprPool } from '../../schedule/expression/expr.ts';
import {
  addInts,
  arithmetic,
  both,
  constant,
  mulInts,
  operation,
  type LoopBuilder,
} from '../loop/builder.ts';
import type { RegisterType, Value, Width } from '../loop/loop.ts';
import type { AxisBinding, LoweringOptions } from './binding.ts';
import { clamped, convert, converted, isNarrow, rounded, wide } from './convert.ts';
import { decoding } from './decoding.ts';
import { eachLane, firstLane, laneAtom, laneOf } from './lanes.ts';
import { widened } from '../loop/register.ts';

export { laneAtom } from './lanes.ts';

/** The register type that holds a dtype. Which dtypes a target has, passes/legalise.ts sees to. */
export const registerOf: (dtype: DType) => RegisterType = widened;

/**
 * Elements a kernel may address in a stored node. Four more than the last group of four: a vector
 * that starts inside the tensor, aligned or not, never leaves its buffer.
 */
export function paddedSize(node: Node): number {
  return Math.ceil(sizeOf(dims(node)) / 4) * 4 + 4;
}

/**
 * Whether an expression's value is used at every point, or only where guards hold: for all lanes
 * alike, or lane by lane.
 */
type Guarded = 'none' | 'whole' | 'by lane';

/** The index of a group of four along an axis of `extent` elements; 0 where there is one group only. */
export function quadIndex(name: string, extent: number): IndexExpr {
  return axisIndex(name, Math.max(1, Math.ceil(extent / 4)));
}

export class Lowering {
  readonly #b: LoopBuilder;
  readonly #shareGroups: boolean;
  readonly #strides: boolean;
  readonly #instead: LoweringOptions['instead'];
  readonly #certain: LoweringOptions['certain'];
  readonly #pool: ExprPool;
  readonly #binding: AxisBinding;
  readonly #bufferOf: (node: Node) => string;
  /** What the body has computed so far, per fusion root node. */
  readonly results: Map<Node, Value> = new Map();
  /** Values of this point that an earlier evaluation left somewhere. */
  readonly held: Map<Expr, Value> = new Map();
  readonly #memo = new Map<string, Value>();
  readonly #dynamics = new Map<IndexExpr, Value>();

  constructor(
    b: LoopBuilder,
    pool: ExprPool,
    binding: AxisBinding,
    bufferOf: (node: Node) => string,
    options: LoweringOptions = {},
  ) {
    this.#shareGroups = options.shareGroups === true;
    this.#strides = options.strides === true;
    this.#instead = options.instead;
    this.#certain = options.certain;
    this.#b = b;
    this.#pool = pool;
    this.#binding = binding;
    this.#bufferOf = bufferOf;
  }

  /** A kernel index in template atoms. */
  place(index: IndexExpr): IndexExpr {
    return substitute(index, this.#binding.substitution);
  }

  /** The value of an expression at the current point; a vector when it depends on the lane. */
  value(expr: Expr): Value {
    return this.#value(expr, 'none');
  }

  #value(expr: Expr, guarded: Guarded): Value {
    const key = `${expr.id}/${guarded}`;
    const known = this.held.get(expr) ?? this.#memo.get(key);
    if (known !== undefined) return known;
    const made = this.#lower(expr, guarded);
    this.#memo.set(key, made);
    return made;
  }

  #lower(expr: Expr, guarded: Guarded): Value {
    const b = this.#b;
    switch (expr.kind) {
      case 'constant':
        return constant(expr.value, registerOf(expr.dtype));
      case 'scalar':
        return { kind: 'scalar', slot: expr.slot, type: registerOf(expr.dtype), width: 1 };
      case 'result': {
        const result = this.results.get(expr.node);
        if (result === undefined) throw new CompilerBug('lower', `no result yet for ${expr.node.op}`);
        return result;
      }
      case 'index': {
        const place = this.place(expr.index);
        // Beyond 32 bits only where it is known: a number then, and no place.
        if (place.kind === 'const' && !place.fits)
          return constant(wide(place.value, expr.dtype), registerOf(expr.dtype));
        const index = this.index(place);
        return b.let(convert(index, registerOf(expr.dtype), expr.dtype), 'iota');
      }
      case 'read':
        return this.#read(expr.node, this.place(expr.index), guarded);
      case 'select': {
        const guard = substituteGuard(expr.guard, this.#binding.substitution);
        if (guard === 'never') return this.#value(expr.no, guarded);
        if (guard.length === 0) return this.#value(expr.yes, guarded);
        const condition = this.guard(guard);
        const inner = condition.width === 4 || guarded === 'by lane' ? 'by lane' : 'whole';
        const yes = this.#value(expr.yes, inner);
        const no = this.#value(expr.no, guarded);
        return b.let(operation('where', [condition, yes, no], yes.type), 'sel');
      }
      case 'decode':
        return decoding.value(expr.format, {
          b,
          words: expr.args.map((arg) => this.#value(arg, guarded)),
          place: this.place(expr.index),
          varies: (index) => this.#varies(index),
          isRun: (index) => this.isRun(index),
          index: (index, lane) => this.index(index, lane),
        });
      case 'random':
        return this.#random(
          expr.args.map((arg) => this.#value(arg, guarded)),
          this.place(expr.index),
        );
      case 'op': {
        const value = (arg: Expr): Value => this.#value(arg, guarded);
        if (this.#certain?.has(expr)) return constant(1, 'bool');
        if (expr.op === 'where' && this.#certain?.has(expr.args[0]!)) return value(expr.args[1]!);
        return this.#instead?.(expr, value) ?? this.#op(expr, expr.args.map(value));
      }
      default:
        return expr satisfies never;
    }
  }

  #op(expr: Extract<Expr, { kind: 'op' }>, args: readonly Value[]): Value {
    const type = registerOf(expr.dtype);
    const b = this.#b;
    if (expr.op === 'cast') {
      const from = expr.args[0]!.dtype;
      const value = args[0]!;
      // Widening and equal register types need no instruction; narrowing rounds or wraps.
      const plain = converted(value, type);
      if (!isNarrow(expr.dtype) || from === expr.dtype || from === 'bool') return b.let(plain, 'cast');
      const saturates = isFloat(from) && !isFloat(expr.dtype);
      return b.let(saturates ? clamped(plain, expr.dtype) : rounded(plain, expr.dtype), 'cast');
    }
    // The upper half of a narrow product lies in its register.
    if (expr.op === 'mulhi' && isNarrow(expr.dtype)) {
      const product = arithmetic('mul', args, type);
      const bits = constant(8 * dtypeBytes(expr.dtype), type);
      return b.let(operation('shr', [product, bits], type), 'mulhi');
    }
    return b.let(rounded(arithmetic(expr.op, args, type), expr.dtype), expr.op.toLowerCase());
  }

  #random(args: readonly Value[], index: IndexExpr): Value {
    const b = this.#b;
    const at = (place: IndexExpr, width: Width, lane?: number): Value =>
      b.let(
        { kind: 'op', op: 'philox', args: [...args, this.index(place, lane)], type: 'u32', width },
        'bits',
      );
    if (!this.#varies(index)) return at(index, 1);
    const base = substitute(index, firstLane);
    if (this.isRun(index) && modIndex(base, 4) === constantIndex(0)) return at(base, 4);
    // A block of Philox has four words: lanes may find theirs in the same one.
    const args4 = eachLane.map((lane, i) => {
      const one = substitute(index, lane);
      const word = placeInGroup(one);
      return word === undefined ? at(one, 1, i) : laneOf(at(offsetIndex(one, -word), 4, i), word);
    });
    return b.let({ kind: 'vector', args: args4, type: 'u32', width: 4 }, 'bits');
  }

  #read(node: Node, index: IndexExpr, guarded: Guarded): Value {
    const buffer = this.#bufferOf(node);
    // in0 holds x0, out0 holds y0.
    const name = buffer.replace('in', 'x').replace('out', 'y');
    const type = registerOf(node.dtype);
    const b = this.#b;
    const load = (at: Value, width: Width, aligned: boolean): Value =>
      b.let({ kind: 'load', buffer, index: at, aligned, type, width }, name);
    if (!this.#varies(index)) return load(this.#inside(index, node, 1), 1, true);
    const base = substitute(index, firstLane);
    const { lo, hi } = interval(index);
    // A run of four may stick out behind the tensor (there is padding), never before it: then the
    // first lane would be wrong.
    const fromFirst = guarded === 'whole' || lo >= 0;
    const vector = this.isRun(index);
    if (vector && (hi < paddedSize(node) || guarded !== 'by lane') && fromFirst) {
      if (modIndex(base, 4) === constantIndex(0)) return load(this.#insideQuad(base, node), 4, true);
      return load(this.#inside(base, node, 4), 4, false);
    }
    const inside = guarded === 'whole' || (lo >= 0 && hi < paddedSize(node));
    if (this.#strides && inside && coefficientOf(index, laneAtom) === 2 && !this.#gathered(index)) {
      // 0, 2 and, one element further on, 4, 6: the second load ends with the last element that is
      // wanted.
      const [low, high] = [0, 3].map((n) => load(this.#inside(offsetIndex(base, n), node, 4), 4, false));
      const pairs = [laneOf(low!, 0), laneOf(low!, 2), laneOf(high!, 1), laneOf(high!, 3)];
      return b.let({ kind: 'vector', args: pairs, type, width: 4 }, name);
    }
    const lanes = eachLane.map((lane, i) => {
      const one = substitute(index, lane);
      const at = this.#shareGroups ? placeInGroup(one) : undefined;
      if (at === undefined) return load(this.#inside(one, node, 1, i), 1, true);
      return laneOf(load(this.#insideQuad(offsetIndex(one, -at), node, i), 4, true), at);
    });
    return b.let({ kind: 'vector', args: lanes, type, width: 4 }, name);
  }

  /**
   * Where `width` elements are loaded from, kept inside the buffer: points outside a guard, and
   * lanes past the end of an axis, load something that is not used. Both bounds are multiples of
   * four, so that alignment is kept.
   */
  #inside(index: IndexExpr, node: Node, width: Width, lane?: number): Value {
    const { lo, hi } = interval(index);
    const last = paddedSize(node) - width;
    const value = this.index(index, lane);
    const high = hi <= last ? value : operation('min', [value, constant(last)], 'i32');
    const inside = lo >= 0 ? high : operation('max', [high, constant(0)], 'i32');
    return inside === value ? value : this.#b.let(inside, 'at');
  }

  /** As `#inside`, of a multiple of four. */
  #insideQuad(index: IndexExpr, node: Node, lane?: number): Value {
    const { lo, hi } = interval(index);
    const last = paddedSize(node) / 4 - 1;
    const value = this.index(divIndex(index, 4), lane);
    const high = hi <= 4 * last ? value : operation('min', [value, constant(last)], 'i32');
    const inside = lo >= 0 ? high : operation('max', [high, constant(0)], 'i32');
    return mulInts(inside === value ? value : this.#b.let(inside, 'at'), constant(4));
  }

  /**
   * A multiple of four as a value: four times the number of its group, which is what a vector
   * access needs.
   */
  quad(index: IndexExpr): Value {
    return mulInts(this.index(divIndex(index, 4)), constant(4));
  }

  /** A conjunction of index ranges as a bool, per lane where it depends on the lane. */
  guard(guard: Guard | 'never'): Value {
    if (guard === 'never') return constant(0, 'bool');
    let all: Value = constant(1, 'bool');
    for (const { expr, lo, hi } of guard) {
      const known = interval(expr);
      if (known.lo > hi || known.hi < lo) return constant(0, 'bool');
      if (lo === hi) {
        all = both(all, this.#b.let(operation('eq', [this.index(expr), constant(lo)], 'bool'), 'in'));
        continue;
      }
      if (known.lo < lo)
        all = both(all, this.#b.let(operation('le', [constant(lo), this.index(expr)], 'bool'), 'in'));
      if (known.hi > hi)
        all = both(all, this.#b.let(operation('le', [this.index(expr), constant(hi)], 'bool'), 'in'));
    }
    return this.#b.let(all, 'in');
  }

  /**
   * An index (in template atoms) as an i32 value; invariant parts are added first, so that they
   * leave the loops. With `lane`, gathered indices that vary by lane are taken from that lane (the
   * lane atom itself is substituted before).
   */
  index(index: IndexExpr, lane?: number): Value {
    if (!index.fits) throw new CompilerBug('lower', 'an index leaves 32 bits', printIndex(index));
    const b = this.#b;
    if (lane === undefined && this.#varies(index)) return this.#laneIndex(index);
    switch (index.kind) {
      case 'const':
        return constant(index.value);
      case 'axis':
      case 'dynamic': {
        const value = this.#atom(index);
        return value.width === 1 || lane === undefined ? value : b.let(laneOf(value, lane), 'at');
      }
      case 'div':
      case 'mod': {
        const of = this.index(index.of, lane);
        const floor = interval(index.of).lo < 0;
        const op = index.kind === 'div' ? (floor ? 'floorDiv' : 'div') : floor ? 'floorMod' : 'mod';
        return b.let(operation(op, [of, constant(index.by)], 'i32'), 'idx');
      }
      case 'sum':
        return this.#sum(index, lane);
      default:
        return index satisfies never;
    }
  }

  /** Terms known outside a loop are added there; those of one loop are named together, to be shared. */
  #sum({ terms, offset }: SumExpr, lane: number | undefined): Value {
    const b = this.#b;
    const byDepth = new Map<number, Value[]>();
    for (const { factor, atom } of terms) {
      const term = mulInts(this.index(atom, lane), constant(factor));
      const depth = b.depthOf(term);
      byDepth.set(depth, [...(byDepth.get(depth) ?? []), term]);
    }
    let sum: Value = constant(offset);
    for (const [depth, group] of [...byDepth].sort(([x], [y]) => x - y)) {
      const shared = depth > 0 && !(sum.kind === 'constant' && sum.value === 0);
      const part = group.reduce(addInts);
      sum = b.let(shared ? addInts(sum, b.let(part, 'idx')) : group.reduce(addInts, sum), 'idx');
    }
    return sum;
  }

  /** An index that varies by lane, as a vector. */
  #laneIndex(index: IndexExpr): Value {
    const factor = this.#gathered(index) ? undefined : coefficientOf(index, laneAtom);
    if (factor === undefined) {
      const args = eachLane.map((lane, i) => this.index(substitute(index, lane), i));
      return this.#b.let({ kind: 'vector', args, type: 'i32', width: 4 }, 'idx');
    }
    const base = this.index(substitute(index, firstLane));
    const args = [0, 1, 2, 3].map((lane) => constant(lane * factor));
    return this.#b.let(addInts(base, { kind: 'vector', args, type: 'i32', width: 4 }), 'idx');
  }

  #atom(atom: IndexExpr): Value {
    const bound = this.#binding.atoms.get(atom) ?? this.#dynamics.get(atom);
    if (bound !== undefined) return bound;
    const expr = this.#pool.dynamics.get(atom);
    if (expr === undefined) throw new CompilerBug('lower', `the axis ${printIndex(atom)} has no value here`);
    const value = this.value(expr);
    this.#dynamics.set(atom, value);
    return value;
  }

  /** Whether the index differs between lanes. */
  #varies(index: IndexExpr): boolean {
    return atomsOf(index).some((atom) => atom === laneAtom) || this.#gathered(index);
  }

  /** Whether the index (in template atoms) grows by one from lane to lane. */
  isRun(index: IndexExpr): boolean {
    return this.strideOf(index) === 1;
  }

  /** By how much the index (in template atoms) grows from lane to lane, where that is always the same. */
  strideOf(index: IndexExpr): number | undefined {
    return this.#gathered(index) ? undefined : coefficientOf(index, laneAtom);
  }

  /** Whether the index involves a gathered index that differs between lanes. */
  #gathered(index: IndexExpr): boolean {
    return atomsOf(index).some((atom) => atom.kind === 'dynamic' && this.#atom(atom).width === 4);
  }
}

/** Which of an aligned group of four an index is, where that is the same at every point. */
function placeInGroup(index: IndexExpr): number | undefined {
  const place = modIndex(index, 4);
  return place.kind === 'const' ? place.value : undefined;
}
