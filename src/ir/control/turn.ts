// One iteration of a loop as a graph over memory: only carries pass from one iteration to the next. Stacks
// that an iteration reads are invariants, from which it gathers a slice at the counter. Stacks that it
// returns are carries, into which it writes a slice. Carries that no needed result depends on are left out.

import { add, broadcast, constant, full, reshape, sub } from '../build.ts';
import { keptResults } from './results.ts';
import { graphOf } from '../text/region.ts';
import { Parameters } from './parameters.ts';
import { dims, GraphBuilder, rewrite, topological, type Graph, type Node } from '../graph.ts';
import type { Attrs } from '../ops.ts';
import { sizeOf, type FixedShape } from '../shape.ts';

/** A value that one iteration takes from the iteration before it. */
export interface Carried {
  /**
   * Where it begins: as zeros (the number of iterations that were made), as an input of the loop by its
   * place, or as anything, because every element of it is written before it is read.
   */
  readonly start: 'zeros' | 'anything' | number;
  /** The result of the loop that it ends as; the count is none. */
  readonly result: number | undefined;
}

export interface IterationGraph {
  /**
   * Parameters: what is carried, then the loop's inputs behind its carries that are read. Outputs:
   * what is carried on.
   */
  readonly graph: Graph;
  readonly carried: readonly Carried[];
  /** The loop's inputs, by their places, that stand behind what is carried. */
  readonly read: readonly number[];
}

/** One iteration of a loop of which these results are wanted. */
export function turnOf(attrs: Attrs<'iterate'>, wanted: ReadonlySet<number>): IterationGraph {
  const { body, carries, stacked, trips, guard, reverse } = attrs;
  const { parameters, outputs } = graphOf(body);
  const kept = keptResults(graphOf(body), carries, guard < 0 ? wanted : new Set([...wanted, guard]));
  const roots = kept.map((result) => outputs[result]!);
  const needed = new Set(topological(roots));

  const b = new GraphBuilder();
  const made = new Parameters(b);
  const count = made.add('count', 'i32', []);
  const at = reverse ? sub(b, constant(b, trips - 1, 'i32'), count) : count;
  const carried: Carried[] = [{ start: 'zeros', result: undefined }];
  const inside = new Map<Node, Node>([[parameters[0] as Node, at]]);
  const stacks = new Map<number, Node>();
  for (const result of kept) {
    const { dtype } = outputs[result]!;
    const shape = dims(outputs[result]!);
    carried.push({ start: result < carries ? result : guard < 0 ? 'anything' : 'zeros', result });
    if (result < carries)
      inside.set(parameters[result + 1] as Node, made.add(`carry${result}`, dtype, shape));
    else stacks.set(result, made.add(`stack${result}`, dtype, [trips, ...shape]));
  }
  const read: number[] = [];
  parameters.forEach((node, i) => {
    const place = i - 1;
    if (place < carries || !needed.has(node as Node)) return;
    if (sizeOf(dims(node as Node)) === 0) {
      inside.set(node as Node, full(b, dims(node as Node), 0, node.attrs.dtype));
      return;
    }
    read.push(place);
    const { name, dtype } = node.attrs;
    const shape = dims(node as Node);
    const isStack = place < carries + stacked;
    const given = made.add(name, dtype, isStack ? [trips, ...shape] : shape);
    inside.set(node as Node, isStack ? sliceAt(b, given, at) : given);
  });
  const results = rewrite({ parameters: [], outputs: roots }, (node) => inside.get(node), b).outputs;
  const next = kept.map((result, i) => {
    const stack = stacks.get(result);
    return stack === undefined ? results[i]! : withSliceAt(b, stack, at, results[i]!);
  });
  return { graph: { parameters: made.list, outputs: [add(b, count, 1), ...next] }, carried, read };
}

/** Places along the first axis that name one slice: [1, ...shape]. */
function placesOf(b: GraphBuilder, at: Node, shape: FixedShape): Node {
  return broadcast(b, reshape(b, at, [1, ...shape.map(() => 1)]), [1, ...shape]);
}

/** Slice `at` (i32, rank 0, inside) of a stack. */
export function sliceAt(b: GraphBuilder, stack: Node, at: Node): Node {
  const [, ...shape] = dims(stack);
  if (sizeOf(shape) === 0) return reshape(b, b.add('slice', [stack], firstSlice(dims(stack))) as Node, shape);
  const slice = b.add('gather', [stack, placesOf(b, at, shape)], { axis: 0 }) as Node;
  return reshape(b, slice, shape);
}

function firstSlice(shape: FixedShape): { start: number[]; size: number[]; step: number[] } {
  const size = shape.map((dim, axis) => (axis === 0 ? Math.min(1, dim) : dim));
  return { start: shape.map(() => 0), size, step: shape.map(() => 1) };
}

/** A stack with slice `at` (i32, rank 0, inside) replaced. */
export function withSliceAt(b: GraphBuilder, stack: Node, at: Node, slice: Node): Node {
  const shape = dims(slice);
  if (sizeOf(shape) === 0) return stack;
  const inputs = [stack, placesOf(b, at, shape), reshape(b, slice, [1, ...shape])];
  return b.add('scatter', inputs, { axis: 0, mode: 'set' }) as Node;
}
