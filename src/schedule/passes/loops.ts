// Loops before scheduling. Loops over the same inputs whose iterations pass on the same values become one
// loop with the results of each: for example a forward loop, and the same loop again for the values that its
// derivative keeps. A value that every iteration passes on unchanged is not a result of a loop, and a loop
// without iterations has none. Stacks have elements of at least 4 bytes, so that an iteration writes its
// slice in place.

import { cast, full } from '../../ir/build.ts';
import { graphOf, regionOf } from '../../ir/text/region.ts';
import type { Region } from '../../ir/region.ts';
import { dtypeBytes, type DType } from '../../ir/dtype.ts';
import {
  dims,
  GraphBuilder,
  rewrite,
  topological,
  type Graph,
  type Node,
  type NodeOf,
} from '../../ir/graph.ts';
import { writeOutLoops } from '../../ir/passes/write-out-loops.ts';

/** Equal for loops that may be one, if their iterations hand on the same. */
function sourceKey({ inputs, attrs }: NodeOf<'iterate'>): string {
  const { carries, stacked, trips, guard, reverse } = attrs;
  return `${[carries, stacked, trips, guard, Number(reverse)].join()}:${inputs.map(({ id }) => id).join()}`;
}

/** A region with the results of several, and where theirs are among its own. */
interface Merged {
  readonly body: Region;
  readonly places: ReadonlyMap<string, readonly number[]>;
}

/** One region for as many as hand on the same carries as the first does. */
function merged(regions: readonly Region[], carries: number): Merged {
  const b = new GraphBuilder();
  const [first] = regions as readonly [Region];
  const parameters = graphOf(first).parameters.map((node) => b.copy(node as Node, []));
  const outputs: Node[] = [];
  const results: Node[] = [];
  const places = new Map<string, readonly number[]>();
  for (const region of regions) {
    const graph = graphOf(region);
    const inside = new Map(graph.parameters.map((node, i) => [node as Node, parameters[i]!]));
    const found = rewrite({ parameters: [], outputs: graph.outputs }, (node) => inside.get(node), b).outputs;
    const isFirst = places.size === 0;
    if (!isFirst && found.slice(0, carries).some((node, i) => node !== outputs[i])) continue;
    if (isFirst) {
      outputs.push(...found.slice(0, carries));
      results.push(...outputs);
    }
    const own = found.map((node, i) => {
      if (i < carries) return i;
      const known = results.indexOf(node, carries);
      if (known >= 0) return known;
      results.push(node);
      return outputs.push(cast(b, node, storedAs(node.dtype))) - 1;
    });
    places.set(region.key, own);
  }
  return { body: regionOf({ parameters: parameters as NodeOf<'parameter'>[], outputs }), places };
}

/** What elements of a stack are kept as. */
function storedAs(dtype: DType): DType {
  if (dtypeBytes(dtype) >= 4) return dtype;
  return dtype === 'bool' ? 'i32' : 'f32';
}

/** Loops of one iteration whose guard is known are made without asking, or not made. */
function decided(graph: Graph): Graph {
  return rewrite(graph, (node, inputs, b) => {
    if (node.op !== 'iterate' || node.attrs.guard < 0) return undefined;
    const { guard, trips } = node.attrs;
    const going = inputs[guard]!;
    if (going.op !== 'constant') return undefined;
    if (going.attrs.value === 0)
      return b.add('iterate', inputs, { ...node.attrs, guard: -1, trips: 0 }) as Node;
    return trips === 1 ? (b.add('iterate', inputs, { ...node.attrs, guard: -1 }) as Node) : undefined;
  });
}

/** Puts loops into the form in which they are scheduled. */
export function mergeLoops(recorded: Graph): Graph {
  const graph = writeOutLoops(decided(recorded), ({ attrs }) => attrs.trips === 1 && attrs.guard < 0);
  const groups = new Map<string, Map<string, Region>>();
  for (const node of topological(graph.outputs)) {
    if (node.op !== 'iterate') continue;
    const key = sourceKey(node);
    const regions = groups.get(key) ?? new Map<string, Region>();
    groups.set(key, regions.set(node.attrs.body.key, node.attrs.body));
  }
  const bodies = new Map<string, Merged[]>();
  const bodyOf = (node: NodeOf<'iterate'>): { body: Region; place: number } => {
    const key = sourceKey(node);
    const { attrs } = node;
    let known = bodies.get(key);
    if (known === undefined) {
      known = [];
      let left = [...groups.get(key)!.values()];
      while (left.length > 0) {
        const one = merged(left, attrs.carries);
        known.push(one);
        left = left.filter((region) => !one.places.has(region.key));
      }
      bodies.set(key, known);
    }
    const own = known.find(({ places }) => places.has(attrs.body.key))!;
    return { body: own.body, place: own.places.get(attrs.body.key)![attrs.result]! };
  };
  return rewrite(graph, (node, inputs, b) => {
    if (node.op !== 'iterate') return undefined;
    const { carries, trips, result, body: given } = node.attrs;
    const isCarry = result < carries;
    if (trips === 0) return isCarry ? inputs[result] : full(b, dims(node), 0, node.dtype);
    const { parameters, outputs } = graphOf(given);
    const isUnchanged = outputs[result] === (parameters[result + 1] as Node);
    if (isCarry && isUnchanged) return inputs[result];
    const { body, place } = bodyOf(node);
    const attrs = { ...node.attrs, body, recompute: false, result: place };
    return cast(b, b.add('iterate', inputs, attrs) as Node, node.dtype);
  });
}
