// Records loops over trees of tensors as loops of the graph. The body is called once, on tracers, and what
// it records becomes a region. Values of the body that depend only on values from outside are computed
// outside, once.

import { withCutArguments } from '../../autograd/custom.ts';
import { loopCotangents } from '../../autograd/rules-loop.ts';
import { loopDerivative } from '../../autograd/slots.ts';
import { add, constant, mul, reshape } from '../../ir/build.ts';
import { iterate } from '../../ir/control/iterate.ts';
import { regionOf } from '../../ir/text/region.ts';
import { kept, keptType, unkept } from '../../ir/control/kept.ts';
import { Parameters } from '../../ir/control/parameters.ts';
import { dims, GraphBuilder, rewrite, topological, type Node, type NodeOf } from '../../ir/graph.ts';
import { isView } from '../../ir/ops.ts';
import { concat, sliceAxis } from '../formula/layout.ts';

/** What the body of a loop recorded, in a builder of its own. */
export interface LoopBody {
  readonly count: Node;
  readonly carries: readonly Node[];
  readonly slices: readonly Node[];
  /** Parameters for values from outside. */
  readonly captured: readonly Node[];
  /** The next carries, and the slices that are stacked. */
  readonly next: readonly Node[];
  readonly given: readonly Node[];
}

export interface LoopInputs {
  readonly carries: readonly Node[];
  readonly stacks: readonly Node[];
  readonly captured: readonly Node[];
}

export interface LoopForm {
  readonly trips: number;
  readonly reverse: boolean;
  /** Iterations in a segment of which a derivative keeps only the first carries; 0: it keeps every iteration. */
  readonly segment: number;
  /** The carry that says whether another iteration is made, or -1. */
  readonly guard: number;
  /** Whether what does not depend on the iteration is computed outside, made or not. */
  readonly hoists: boolean;
}

/** Nodes for all results of a loop: the last carries, then the stacks. */
export function loopNodes(b: GraphBuilder, body: LoopBody, inputs: LoopInputs, form: LoopForm): Node[] {
  const inner = new GraphBuilder();
  const parameters = new Parameters(inner);
  const keptLike = (node: Node, name: string): Node => {
    const { dtype, shape } = keptType({ dtype: node.dtype, shape: dims(node) });
    return parameters.add(name, dtype, shape);
  };
  const inside = new Map<Node, Node>([[body.count, parameters.add('count', 'i32', [])]]);
  const stand = (list: readonly Node[], name: string): void =>
    list.forEach((node, i) => {
      inside.set(node, unkept(inner, keptLike(node, `${name}${i}`), node.dtype));
    });
  stand(body.carries, 'carry');
  stand(body.slices, 'x');
  const results = [...body.next, ...body.given];
  const outer = hoisted(b, body, results, inputs.captured, form.hoists);
  const read: Node[] = [];
  for (const [node, value] of outer) {
    if (inside.has(node)) continue;
    inside.set(node, unkept(inner, keptLike(node, `w${read.length}`), node.dtype));
    read.push(kept(b, value));
  }
  const cut = rewrite({ parameters: [], outputs: results }, (node) => inside.get(node), inner).outputs;
  const outputs = withCutArguments(inner, cut);
  const region = { parameters: parameters.list, outputs: outputs.map((node) => kept(inner, node)) };
  const carries = inputs.carries.map((node) => kept(b, node));
  const stacks = inputs.stacks.map((node) => kept(b, node));
  const made = segmented(b, region, { carries, stacks, captured: read }, form);
  return made.map((node, i) => unkept(b, node, results[i]!.dtype));
}

/**
 * What the body takes from outside: values that do not depend on the iteration, computed there. Views
 * and constants stay inside, where they cost nothing.
 */
function hoisted(
  b: GraphBuilder,
  body: LoopBody,
  results: readonly Node[],
  captured: readonly Node[],
  hoists: boolean,
): Map<Node, Node> {
  const turning = new Set<Node>([body.count, ...body.carries, ...body.slices]);
  // Ids grow: what was made before the body began is a value from outside as it stands.
  const isOutside = (node: Node): boolean => node.id < body.count.id;
  const order = topological(results, isOutside);
  for (const node of order) if (node.inputs.some((input) => turning.has(input))) turning.add(node);
  const wanted = new Set<Node>();
  const given = new Set(body.captured);
  const visited = new Set<Node>();
  const visit = (node: Node): void => {
    if (turning.has(node) || visited.has(node)) return;
    visited.add(node);
    const isOwn = !isOutside(node) && !given.has(node);
    const isFree = node.op === 'constant' || node.op === 'iota' || (isView(node.op) && isOwn);
    const isInside = isFree || (isOwn && !hoists);
    if (!isInside) wanted.add(node);
    else node.inputs.forEach(visit);
  };
  for (const node of order) if (turning.has(node)) node.inputs.forEach(visit);
  results.forEach(visit);
  const list = [...wanted];
  const outside = new Map(body.captured.map((node, i) => [node, captured[i]!]));
  const values = rewrite(
    { parameters: [], outputs: list },
    (node) => outside.get(node) ?? (isOutside(node) ? node : undefined),
    b,
  ).outputs;
  return new Map(list.map((node, i) => [node, values[i]!]));
}

interface Plain {
  readonly parameters: readonly NodeOf<'parameter'>[];
  readonly outputs: readonly Node[];
}

/** A loop, or segments of it one after the other as iterations of a loop around them. */
function segmented(
  b: GraphBuilder,
  region: Plain,
  { carries, stacks, captured }: LoopInputs,
  { trips, reverse, segment, guard }: LoopForm,
): Node[] {
  // From here on there is a loop to differentiate.
  loopDerivative.fill(loopCotangents);
  const whole = { carries: carries.length, stacked: stacks.length, reverse, recompute: false, guard };
  const inputs = [...carries, ...stacks, ...captured];
  if (segment <= 1 || segment >= trips)
    return iterate(b, inputs, { body: regionOf(region), ...whole, trips });
  const shifted = regionOf(withBase(region));
  const parts = Math.floor(trips / segment);
  const inSegments = parts * segment;
  const part = (held: readonly Node[]): Node[] => {
    const inner = new GraphBuilder();
    const parameters = new Parameters(inner);
    const count = parameters.add('part', 'i32', []);
    const ownCarries = held.map((node, i) => parameters.like(node, `carry${i}`));
    const ownStacks = stacks.map((node, i) =>
      parameters.add(`x${i}`, node.dtype, [segment, ...dims(node).slice(1)]),
    );
    const ownCaptured = captured.map((node, i) => parameters.like(node, `w${i}`));
    const base = mul(inner, count, segment);
    const outputs = iterate(inner, [...ownCarries, ...ownStacks, ...ownCaptured, base], {
      body: shifted,
      ...whole,
      trips: segment,
    });
    const cutStacks = stacks.map((node) => {
      const [, ...shape] = dims(node);
      return reshape(b, sliceAxis(b, node, 0, 0, inSegments), [parts, segment, ...shape]);
    });
    return iterate(b, [...held, ...cutStacks, ...captured], {
      body: regionOf({ parameters: parameters.list, outputs }),
      ...whole,
      recompute: true,
      trips: parts,
    }).map((node, i) => {
      if (i < carries.length) return node;
      const [, , ...shape] = dims(node);
      return reshape(b, node, [inSegments, ...shape]);
    });
  };
  const rest = trips - inSegments;
  const tail = (held: readonly Node[]): Node[] => {
    const ends = stacks.map((node) => sliceAxis(b, node, 0, inSegments, rest));
    const base = constant(b, inSegments, 'i32');
    return iterate(b, [...held, ...ends, ...captured, base], { body: shifted, ...whole, trips: rest });
  };
  if (rest === 0) return part(carries);
  const first = reverse ? tail(carries) : part(carries);
  const second = (reverse ? part : tail)(first.slice(0, carries.length));
  const [low, high] = reverse ? [second, first] : [first, second];
  return second.map((node, i) => (i < carries.length ? node : concat(b, [low[i]!, high[i]!], 0)));
}

/** The region with a last parameter, which is added to the counter. */
function withBase({ parameters, outputs }: Plain): Plain {
  const b = new GraphBuilder();
  const own = parameters.map((node) => b.copy(node as Node, []) as NodeOf<'parameter'>);
  const attrs = { index: own.length, name: 'base', dtype: 'i32', shape: [] } as const;
  const base = b.add('parameter', [], attrs);
  const inside = new Map(parameters.map((node, i) => [node as Node, own[i]! as Node]));
  inside.set(parameters[0]! as Node, add(b, own[0]! as Node, base as Node));
  const made = rewrite({ parameters: [], outputs }, (node) => inside.get(node), b).outputs;
  return { parameters: [...own, base], outputs: made };
}
