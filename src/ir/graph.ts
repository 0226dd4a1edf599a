// Graph IR: immutable nodes in SSA form, hash-consed by a builder, so that equal expressions are
// one node. Every walk here is iterative: a graph of 100,000 nodes must not overflow the stack.

import { Region } from './region.ts';
import { infer, type TensorType } from './infer.ts';
import { isCollective, type Attrs, type Op } from './ops.ts';
import { dtypeBytes, isFloat, isWide, type DType } from './dtype.ts';
import { holdRule } from './named/rule.ts';
import type { CollectiveNode, Node, NodeFields, NodeOf } from './node.ts';
import { announce, onBehalf } from './origin/origin.ts';
import { enterRewrite, leaveRewrite } from './origin/trace.ts';
import { fixedShape, sameShape, sizeOf, type FixedShape } from './shape.ts';
import { fromReal } from './value.ts';

export type { CollectiveNode, Node, NodeOf };

/** The node, where it is a collective. */
export function collectiveOf(node: Node): CollectiveNode | undefined {
  return isCollective(node.op) ? (node as CollectiveNode) : undefined;
}

/** A pure program: parameters in, outputs out. */
export interface Graph {
  /** In calling order; `attrs.index` counts 0, 1, 2…. */
  readonly parameters: readonly NodeOf<'parameter'>[];
  readonly outputs: readonly Node[];
  /** What of outputs is asked for, where that is not all; only the last pass says so. */
  readonly needed?: ReadonlyMap<Node, readonly Need[]>;
}

/**
 * Of a value only elements along an axis whose index is below `n + more` of one of these numbers
 * (i32, rank 0) are asked for.
 */
export interface Need {
  readonly axis: number;
  readonly ends: readonly { readonly n: Node; readonly more: number }[];
}

/** The node's shape as numbers; throws E_UNSUPPORTED when a dimension is symbolic. */
export function dims(node: TensorType): FixedShape {
  return fixedShape(node.shape, 'op' in node ? String(node.op) : 'tensor');
}

/** Bytes of a node's value in packed storage. */
export function nodeBytes(node: TensorType): number {
  return sizeOf(dims(node)) * dtypeBytes(node.dtype);
}

let lastId = 0;

/** Makes nodes, giving back an existing one where op, inputs and attributes are equal. */
export class GraphBuilder {
  readonly #table = new Map<number, Node | Node[]>();
  #size = 0;

  /** Number of distinct nodes made. */
  get size(): number {
    return this.#size;
  }

  /** The node of this op, checked by its type rule. Throws TensorError on a misfit. */
  add<K extends Op>(op: K, inputs: readonly Node[], attrs: Attrs<K>): NodeOf<K> {
    const held = heldAttrs(op, inputs, attrs);
    return this.#intern(op, inputs, held, hashValue(hashValue(inputs.length, op), held), undefined);
  }

  /**
   * The same op and attributes over other inputs; over inputs of the same types its type is known.
   */
  copy(node: Node, inputs: readonly Node[]): Node {
    const type = sameTypes(node.inputs, inputs) ? node : undefined;
    return this.#intern(node.op, inputs, node.attrs, node.salt, type) as NodeFields<Op> as Node;
  }

  #intern<K extends Op>(
    op: K,
    inputs: readonly Node[],
    attrs: Attrs<K>,
    salt: number,
    type: TensorType | undefined,
  ): NodeOf<K> {
    let hash = salt;
    for (const input of inputs) hash = mix(hash, input.id);
    const found = this.#table.get(hash);
    if (found !== undefined) {
      for (const node of Array.isArray(found) ? found : [found]) {
        if (node.op === op && sameInputs(node.inputs, inputs) && sameAttrs(node.attrs, attrs))
          return node as NodeOf<K>;
      }
    }
    const { dtype, shape } = type ?? infer(op, inputs, attrs);
    lastId += 1;
    const node = Object.freeze({ op, inputs, attrs, dtype, shape, id: lastId, salt }) as unknown as Node;
    if (found === undefined) this.#table.set(hash, node);
    else if (Array.isArray(found)) found.push(node);
    else this.#table.set(hash, [found, node]);
    this.#size += 1;
    if (node.op === 'customVjp') holdRule(node, node.attrs.rule);
    announce(node);
    return node as unknown as NodeOf<K>;
  }
}

/** The attributes with the number among them, if there is one, as the node's dtype holds it. */
function heldAttrs<K extends Op>(op: K, inputs: readonly Node[], attrs: Attrs<K>): Attrs<K> {
  if (op === 'constant') {
    const { value, dtype } = attrs as Attrs<'constant'>;
    if (typeof value === 'bigint') return attrs;
    // Constants are made at every operation with a number: nothing is copied where nothing changes.
    const held = heldNumber(value, dtype);
    return Object.is(held, value) ? attrs : { ...attrs, value: held };
  }
  if (op === 'pad' && inputs[0] !== undefined)
    return { ...attrs, value: heldPadding((attrs as Attrs<'pad'>).value, inputs[0].dtype) };
  return attrs;
}

/**
 * A number as 16-bit floats and narrow integers hold it: kernels compute with these in registers of
 * 32 bits, in which 0.1 as it is written would be another number than the 0.1 that lies in memory
 * or comes as a run-time scalar. Every target rounds literals of f32 and f64 itself, and texts with
 * 0.1 read better. Numbers that are no integer of the dtype are refused by the verifier.
 */
function heldNumber(value: number, dtype: DType): number {
  return dtype === 'f16' || dtype === 'bf16' ? Number(fromReal(dtype)(value)) : value;
}

/** Integers saturate, as in the interpreter. */
function heldPadding(value: number, dtype: DType): number {
  if (isFloat(dtype)) return heldNumber(value, dtype);
  return isWide(dtype) ? Math.trunc(value) : Number(fromReal(dtype)(value));
}

/**
 * Nodes reachable from `roots`, inputs before users, in ascending id (recording) order. `inputsOf`
 * says by which inputs of a node, where that is not by all.
 */
export function topological(
  roots: readonly Node[],
  stop?: (node: Node) => boolean,
  inputsOf: (node: Node) => readonly Node[] = ({ inputs }) => inputs,
): Node[] {
  const seen = new Set<Node>(roots);
  const stack = [...seen];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (stop?.(node) === true) continue;
    for (const input of inputsOf(node)) {
      if (!seen.has(input)) {
        seen.add(input);
        stack.push(input);
      }
    }
  }
  return [...seen].sort((a, b) => a.id - b.id);
}

/** How many times each node is read by another node or is an output. */
export function countUses(graph: Graph): Map<Node, number> {
  const uses = new Map<Node, number>();
  const use = (node: Node): void => void uses.set(node, (uses.get(node) ?? 0) + 1);
  for (const node of topological(graph.outputs)) node.inputs.forEach(use);
  graph.outputs.forEach(use);
  return uses;
}

/**
 * Rebuilds a graph bottom-up. `change` sees each node with its already rewritten inputs and gives
 * its replacement, or undefined to keep it. Parameters survive unless `change` replaces them.
 */
export function rewrite(
  graph: Graph,
  change: (node: Node, inputs: readonly Node[], builder: GraphBuilder) => Node | undefined,
  builder: GraphBuilder = new GraphBuilder(),
): Graph {
  const made = new Map<Node, Node>();
  const build = (node: Node): Node => {
    const inputs = node.inputs.map((input) => made.get(input)!);
    enterRewrite(node);
    const next = onBehalf(
      'rewrite',
      node,
      () => change(node, inputs, builder) ?? rebuild(node, inputs, builder),
    );
    leaveRewrite(next);
    return next;
  };
  for (const parameter of graph.parameters) made.set(parameter, build(parameter));
  for (const node of topological(graph.outputs)) if (!made.has(node)) made.set(node, build(node));
  return {
    parameters: graph.parameters.map((parameter) => made.get(parameter) as NodeOf<'parameter'>),
    outputs: graph.outputs.map((output) => made.get(output)!),
  };
}

/** The same op and attributes over other inputs. */
export function rebuild(node: Node, inputs: readonly Node[], builder: GraphBuilder): Node {
  return builder.copy(node, inputs);
}

/** The inputs whose values a node reads: a barrier and a collective only wait for their second. */
export function readInputs({ op, inputs }: Node): readonly Node[] {
  return op === 'barrier' || isCollective(op) ? inputs.slice(0, 1) : inputs;
}

/** The nodes that read each node of a list. */
export function usersOf(order: readonly Node[]): Map<Node, Node[]> {
  const users = new Map<Node, Node[]>();
  for (const node of order) {
    for (const input of new Set(readInputs(node))) {
      const list = users.get(input);
      if (list === undefined) users.set(input, [node]);
      else list.push(node);
    }
  }
  return users;
}

/** Folds one 32-bit word into a hash. */
export function mix(hash: number, word: number): number {
  return Math.imul(hash ^ word, 0x9e3779b1) ^ (hash >>> 15);
}

const scratch = new DataView(new ArrayBuffer(8));

/** Folds an attribute value (plain data) into a hash. */
export function hashValue(hash: number, value: unknown): number {
  if (typeof value === 'number') {
    if (Number.isInteger(value) && Math.abs(value) < 2 ** 31 && !Object.is(value, -0))
      return mix(hash, value);
    scratch.setFloat64(0, value);
    return mix(mix(hash, scratch.getInt32(0)), scratch.getInt32(4));
  }
  if (typeof value === 'bigint')
    return mix(mix(hash, Number(BigInt.asIntN(32, value))), Number(BigInt.asIntN(32, value >> 32n)));
  if (typeof value === 'boolean') return mix(hash, value ? 1 : 2);
  if (typeof value === 'string') {
    let out = mix(hash, value.length);
    for (let i = 0; i < value.length; i++) out = mix(out, value.charCodeAt(i));
    return out;
  }
  if (Array.isArray(value)) {
    let out = mix(hash, value.length);
    for (const item of value) out = hashValue(out, item);
    return out;
  }
  if (value instanceof Region) return mix(hash, value.hash);
  let out = hash;
  for (const field of Object.values(value as object)) out = hashValue(out, field);
  return out;
}

function sameInputs(a: readonly Node[], b: readonly Node[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function sameTypes(a: readonly Node[], b: readonly Node[]): boolean {
  return (
    a.length === b.length &&
    a.every((node, i) => node.dtype === b[i]!.dtype && sameShape(node.shape, b[i]!.shape))
  );
}

/** Deep equality of attribute values; −0 and 0 differ, NaN equals NaN. */
export function sameAttrs(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (a instanceof Region) return b instanceof Region && a.key === b.key;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) =>
    sameAttrs((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}
