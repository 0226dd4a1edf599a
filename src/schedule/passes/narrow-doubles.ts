// Removes doubles on targets without them, where this does not change results. A value that is computed in
// f64 and then cast is computed in the dtype of the cast, if that gives the same result. Exporters write such
// casts for Python numbers. Casts move through operations that only select or move elements. For two floats
// with 24 bits, sums, products, quotients and roots that are rounded to 53 bits and then to 24 equal those
// that are rounded once (S. Figueroa, When is double rounding innocuous?, 1995), and comparisons do not
// change. Doubles that remain are rejected later.

import { binary, cast, unary, where } from '../../ir/build.ts';
import { isFloat, type DType } from '../../ir/dtype.ts';
import { rebuild, rewrite, type Graph, type GraphBuilder, type Node } from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';
import { constantOf } from '../../ir/passes/pattern.ts';

const moves: ReadonlySet<Op> = new Set<Op>(['reshape', 'permute', 'broadcast', 'slice', 'concat', 'gather']);
const arithmetic: ReadonlySet<Op> = new Set<Op>(['add', 'sub', 'mul', 'div']);
const predicates: ReadonlySet<Op> = new Set<Op>(['lt', 'le', 'eq', 'ne', 'isNan']);

/** Types whose every value is an f32. */
const inF32: ReadonlySet<DType> = new Set<DType>(['f32', 'f16', 'bf16', 'bool', 'i8', 'u8', 'i16', 'u16']);

/** The graph without the doubles that make no difference. For targets that have none. */
export function narrowDoubles(graph: Graph): Graph {
  const narrowings = new Map<DType, Map<Node, Node>>();
  const floats = new Map<Node, Node | undefined>();
  return rewrite(graph, (node, inputs, b) => {
    const [x] = inputs;
    if (x?.dtype !== 'f64') return undefined;
    const doubles = new Doubles(b, narrowings, floats);
    if (node.op === 'cast' && node.dtype !== 'f64') return doubles.narrowed(x, node.dtype);
    const exact = predicates.has(node.op) ? doubles.allExactly(inputs) : undefined;
    return exact && rebuild(node, exact, b);
  });
}

/** Nodes of f64 as nodes of other types; each is made once. */
class Doubles {
  readonly #b: GraphBuilder;
  readonly #narrowings: Map<DType, Map<Node, Node>>;
  readonly #floats: Map<Node, Node | undefined>;

  constructor(b: GraphBuilder, narrowings: Map<DType, Map<Node, Node>>, floats: Map<Node, Node | undefined>) {
    this.#b = b;
    this.#narrowings = narrowings;
    this.#floats = floats;
  }

  /** What casting a node of f64 gives, with as few of its doubles as can be. */
  narrowed(node: Node, dtype: DType): Node {
    let made = this.#narrowings.get(dtype);
    if (made === undefined) this.#narrowings.set(dtype, (made = new Map<Node, Node>()));
    let found = made.get(node);
    if (found === undefined) {
      found = this.#narrow(node, dtype) ?? cast(this.#b, node, dtype);
      made.set(node, found);
    }
    return found;
  }

  #narrow(node: Node, dtype: DType): Node | undefined {
    const { op } = node;
    const [x, y, z] = node.inputs as [Node, Node, Node];
    if (moves.has(op)) {
      const moved = node.inputs.map((part) => (part.dtype === 'f64' ? this.narrowed(part, dtype) : part));
      return rebuild(node, moved, this.#b);
    }
    if (op === 'where') return where(this.#b, x, this.narrowed(y, dtype), this.narrowed(z, dtype));
    // Casts to integers saturate, and the ends are no mirrors of each other.
    if (op === 'neg' || op === 'abs')
      return isFloat(dtype) ? unary(this.#b, op, this.narrowed(x, dtype)) : undefined;
    if (dtype !== 'f32' || (op !== 'sqrt' && !arithmetic.has(op))) return undefined;
    const exact = this.allExactly(node.inputs);
    if (exact === undefined) return undefined;
    const [p, q] = exact as [Node, Node];
    return op === 'sqrt' ? unary(this.#b, op, p) : binary(this.#b, op as 'add', p, q);
  }

  /** As `exactly`, for all of them; what is no double stays. */
  allExactly(nodes: readonly Node[]): readonly Node[] | undefined {
    const exact = nodes.map((node) => (node.dtype === 'f64' ? this.#exactly(node) : node));
    return exact.every((node) => node !== undefined) ? exact : undefined;
  }

  /** The f32 that a double is exactly; undefined where it may have more digits. */
  #exactly(node: Node): Node | undefined {
    if (!this.#floats.has(node)) this.#floats.set(node, this.#exact(node));
    return this.#floats.get(node);
  }

  #exact(node: Node): Node | undefined {
    const value = constantOf(node);
    if (value !== undefined)
      return Object.is(Math.fround(Number(value)), value) ? this.narrowed(node, 'f32') : undefined;
    const { op, inputs } = node;
    if (op === 'cast') return inF32.has(inputs[0]!.dtype) ? cast(this.#b, inputs[0]!, 'f32') : undefined;
    if (op !== 'where' && op !== 'neg' && op !== 'abs' && !moves.has(op)) return undefined;
    const parts = this.allExactly(inputs);
    return parts && rebuild(node, parts, this.#b);
  }
}
