// Inputs of 64 bits on targets without 64-bit types. Token ids are read from files as i64 and
// weights as f64, and often they are only cast, compared, or used as indices. If that holds for all
// 64-bit inputs of a graph, the program takes them in 32 bits: the host narrows their bytes when it
// uploads them. Inputs that are only ever cast to one dtype are cast on the host, with the same
// results as the cast; other integers become i32 or u32, and values that do not fit are an error.
// Any other use of 64 bits is left for `legalise` to refuse.

import { cast, constant } from '../../ir/build.ts';
import { dtypeBytes, dtypeKind, integerRange, isComplex, isWide, type DType } from '../../ir/dtype.ts';
import { dims, rewrite, topological, usersOf, type Graph, type Node } from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';
import type { Target } from '../target.ts';

/** How an input of 64 bits is passed to a program. */
export interface Narrowing {
  readonly dtype: DType;
  /** Values that do not fit are an error; else they are converted as `cast` does. */
  readonly isChecked: boolean;
}

export interface NarrowedGraph {
  readonly graph: Graph;
  /** By the index of the graph's parameter. */
  readonly narrowings: ReadonlyMap<number, Narrowing>;
}

/** Ops that only move elements. */
const moves: ReadonlySet<Op> = new Set<Op>(['reshape', 'permute', 'broadcast', 'slice', 'stopGradient']);
/** Ops whose results are among their operands' values. */
const chooses: ReadonlySet<Op> = new Set<Op>([...moves, 'where', 'min', 'max', 'concat', 'gather']);
/** Ops that read numbers of 64 bits, and whose results are the same for equal numbers of 32. */
const reads: ReadonlySet<Op> = new Set<Op>(['cast', 'eq', 'ne', 'lt', 'le']);

/**
 * The graph over narrow inputs; undefined where there are none to narrow, or where something needs
 * their 64 bits.
 */
export function narrowWideInputs(graph: Graph, target: Target): NarrowedGraph | undefined {
  const lacks = (dtype: DType): boolean =>
    dtypeBytes(dtype) === 8 && !isComplex(dtype) && !target.dtypes.includes(dtype);
  if (!graph.parameters.some(({ dtype }) => lacks(dtype))) return undefined;
  const order = topological(graph.outputs);
  const users = usersOf(order);
  if (graph.outputs.some(({ dtype }) => lacks(dtype))) return undefined;
  const narrowings = new Map<number, Narrowing>();
  for (const [i, parameter] of graph.parameters.entries()) {
    if (!lacks(parameter.dtype) || !users.has(parameter as Node)) continue;
    const only = onlyCast(parameter as Node, users);
    if (only !== undefined && target.dtypes.includes(only))
      narrowings.set(i, { dtype: only, isChecked: false });
    else if (isWide(parameter.dtype)) narrowings.set(i, { dtype: shortOf(parameter.dtype), isChecked: true });
    else return undefined;
  }
  if (!order.every((node) => isCarried(node, lacks))) return undefined;
  return { graph: narrowed(graph, lacks, narrowings), narrowings };
}

function shortOf(dtype: DType): 'i32' | 'u32' {
  return dtypeKind(dtype) === 'int' ? 'i32' : 'u32';
}

/** The one dtype that the input is cast to everywhere, if it is only moved before. */
function onlyCast(parameter: Node, users: ReadonlyMap<Node, readonly Node[]>): DType | undefined {
  const found = new Set<DType | undefined>();
  const open = [parameter];
  const seen = new Set(open);
  for (let node = open.pop(); node !== undefined; node = open.pop())
    for (const user of users.get(node) ?? []) {
      if (user.op === 'cast') found.add(user.dtype);
      else if (!moves.has(user.op)) found.add(undefined);
      else if (!seen.has(user)) {
        seen.add(user);
        open.push(user);
      }
    }
  const [only] = found;
  return found.size === 1 ? only : undefined;
}

/** Whether a node gives the same result with 32-bit numbers in place of 64-bit ones. */
function isCarried(node: Node, lacks: (dtype: DType) => boolean): boolean {
  if (!lacks(node.dtype)) return reads.has(node.op) || !node.inputs.some(({ dtype }) => lacks(dtype));
  if (node.op === 'parameter') return true;
  // Floats are cast, without a check, and may only be moved.
  if (node.dtype === 'f64') return moves.has(node.op);
  if (node.op === 'constant' || node.op === 'pad') {
    const [low, high] = integerRange(shortOf(node.dtype));
    return low <= node.attrs.value && node.attrs.value <= high;
  }
  return chooses.has(node.op);
}

function narrowed(
  graph: Graph,
  lacks: (dtype: DType) => boolean,
  narrowings: ReadonlyMap<number, Narrowing>,
): Graph {
  return rewrite(graph, (node, inputs, b) => {
    if (node.op === 'parameter') {
      const dtype = narrowings.get(node.attrs.index)?.dtype;
      return dtype === undefined
        ? undefined
        : (b.add('parameter', [], { ...node.attrs, dtype, shape: dims(node) }) as Node);
    }
    if (node.op === 'constant' && lacks(node.dtype))
      return constant(b, node.attrs.value, shortOf(node.dtype));
    if (node.op === 'cast' && lacks(node.inputs[0]!.dtype)) return cast(b, inputs[0]!, node.dtype);
    return undefined;
  });
}
