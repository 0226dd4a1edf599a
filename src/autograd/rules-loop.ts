// The derivative of a loop is a loop in the other direction. Its carries are the cotangents of the
// forward carries, and those of the invariants, to which every iteration adds. It reads values that the
// forward loop kept in each iteration: carries, and results of fusion roots, which are expensive to compute
// again. It computes everything else again from them. (Chen et al., Training Deep Nets with Sublinear
// Memory Cost, 2016, keep only the carries; `recompute` asks for that.)

import { TensorError } from '../errors.ts';
import { add, cast, constant, full, fullLike } from '../ir/build.ts';
import { inputsOf, iterate, type Iteration } from '../ir/control/iterate.ts';
import { kept as asKept, keptType, unkept } from '../ir/control/kept.ts';
import { graphOf, regionOf } from '../ir/text/region.ts';
import { Parameters } from '../ir/control/parameters.ts';
import { isInexact, type DType } from '../ir/dtype.ts';
import { dims, GraphBuilder, rewrite, topological, type Graph, type Node, type NodeOf } from '../ir/graph.ts';
import { hasLoops } from '../ir/ops.ts';
import { argumentCount } from './custom.ts';
import { overParameters } from './outside.ts';
import { sumOfTurns, termsOf } from './sinking.ts';

/** Cotangents of nodes, as vjp.ts finds them. */
export type Cotangents = (
  b: GraphBuilder,
  outputs: readonly Node[],
  seeds: readonly Node[],
  wrt: readonly Node[],
) => (Node | undefined)[];

/**
 * Cotangents of a loop's inputs from those of its results, by their places; of inputs that are not
 * wanted there is none.
 */
export function loopCotangents(
  b: GraphBuilder,
  node: NodeOf<'iterate'>,
  given: readonly (Node | undefined)[],
  wanted: readonly boolean[],
  cotangents: Cotangents,
): (Node | undefined)[] {
  const { attrs } = node;
  const { body, carries, stacked, trips, guard, reverse } = attrs;
  if (guard >= 0 && trips > 1) throw new OpenEnd();
  const { parameters, outputs } = graphOf(body);
  const active = activeInputs(graphOf(body), carries, wanted);
  const isActive = (place: number): boolean => active.has(place);
  const places = node.inputs.map((_, place) => place);
  const movedCarries = places.slice(0, carries).filter(isActive);
  const wantedStacks = places.slice(carries, carries + stacked).filter((place) => wanted[place]);
  const wantedInvariants = places.slice(carries + stacked).filter((place) => wanted[place]);
  const slices = outputs.map((_, result) => result).slice(carries);
  const seeded = slices.filter((result) => given[result] !== undefined);

  // The derivative of one iteration, over parameters for all that an iteration knows: the cotangents first.
  const inner = new GraphBuilder();
  const draft = new Parameters(inner);
  const forward = parameters.map((parameter) => draft.like(parameter as Node, parameter.attrs.name));
  const barOf = new Map(movedCarries.map((place) => [place, draft.like(outputs[place]!, `bar${place}`)]));
  const seedOf = new Map(seeded.map((result) => [result, draft.like(outputs[result]!, `seed${result}`)]));
  const inside = new Map(parameters.map((parameter, i) => [parameter as Node, forward[i]!]));
  const results = rewrite({ parameters: [], outputs }, (old) => inside.get(old), inner).outputs;
  const ends = [...barOf.keys(), ...seedOf.keys()].filter((result) => isInexact(outputs[result]!.dtype));
  const wrt = [...movedCarries, ...wantedStacks, ...wantedInvariants];
  const pulled = cotangents(
    inner,
    ends.map((result) => results[result]!),
    ends.map((result) => (barOf.get(result) ?? seedOf.get(result))!),
    wrt.map((place) => forward[place + 1]!),
  );
  const { given: found, invariants: held } = overParameters(b, inner, draft, pulled);
  const turned = new Map(wrt.map((place, i) => [place, found[i] ?? fullLike(inner, forward[place + 1]!, 0)]));
  const flowing = new Set(wrt.filter((_, i) => found[i] !== undefined));

  // What is added to the cotangents of invariants: in part summed behind the loop, in part carried.
  const fixed = [...forward.slice(carries + stacked + 1), ...held.map(({ parameter }) => parameter)];
  const turning = turningNodes([...turned.values()], fixed);
  const terms = new Map(
    wantedInvariants.map((place) => {
      if (!flowing.has(place)) return [place, { sunk: [], rest: [] }] as const;
      const added = turned.get(place)!;
      const isWhole = attrs.recompute || guard >= 0;
      const all = isWhole ? { sunk: [], rest: [added] } : termsOf(added, (at) => turning.has(at));
      return [place, all] as const;
    }),
  );
  const carriedSums = wantedInvariants.filter((place) => terms.get(place)!.rest.length > 0);
  const operands = new Set(
    [...terms.values()].flatMap(({ sunk }) => sunk.flatMap(({ source }) => [...source.inputs])),
  );

  // What it needs of the forward iteration: of the counter, stacks and invariants nothing has to be kept.
  // What rules hold comes to the backward loop alone.
  const late = new Set([...barOf.values(), ...seedOf.values(), ...held.map(({ parameter }) => parameter)]);
  const handed = [...movedCarries, ...wantedStacks].map((place) => turned.get(place)!);
  const rests = carriedSums.map((place) => terms.get(place)!.rest.reduce((x, y) => add(inner, x, y)));
  const roots = [...handed, ...rests, ...operands];
  const kept = keptOf(roots, late, forward.slice(1, carries + 1), attrs.recompute);
  const saved = savedBy(b, node, kept, forward);

  // The iteration again, over its own inputs: carries, stacks, invariants.
  const iteration = new GraphBuilder();
  const own = new Parameters(iteration);
  const made = new Map<Node, Node>();
  made.set(forward[0]!, own.add('count', 'i32', []));
  // An iteration that was not made is not made backwards: its cotangents pass.
  const going = guard < 0 ? [] : [own.add('going', 'i32', [])];
  for (const place of movedCarries) made.set(barOf.get(place)!, own.like(barOf.get(place)!, `bar${place}`));
  const sums = carriedSums.map((place) => {
    const { dtype } = forward[place + 1]!;
    return own.add(`sum${place}`, sumType(dtype), dims(forward[place + 1]!));
  });
  const { stacks, invariants } = inputsOf(node);
  const stackInputs: Node[] = [];
  const stackOf = new Map<Node, Node>();
  // Stacks of values that a loop cannot keep as they are have another type (ir/control/kept.ts).
  const slice = (of: Node, stack: Node, name: string): void => {
    const { dtype, shape } = typeKept(of);
    stackOf.set(of, unkept(b, stack, of.dtype));
    made.set(of, unkept(iteration, own.add(name, dtype, shape), of.dtype));
    stackInputs.push(stack);
  };
  const needed = new Set(topological(roots, (at) => kept.includes(at)));
  kept.forEach((value, i) => slice(value, saved[i]!, `kept${i}`));
  stacks.forEach((stack, i) => {
    const parameter = forward[carries + 1 + i]!;
    if (needed.has(parameter)) slice(parameter, stack, `x${i}`);
  });
  for (const [result, seed] of seedOf) slice(seed, given[result]!, `seed${result}`);
  const read = invariants.flatMap((invariant, i) => {
    const parameter = forward[carries + stacked + 1 + i]!;
    if (!needed.has(parameter)) return [];
    made.set(parameter, own.like(parameter, `w${i}`));
    return [invariant];
  });
  const readByRules = held.flatMap(({ parameter, value }, i) => {
    if (!needed.has(parameter)) return [];
    made.set(parameter, own.like(parameter, `outside${i}`));
    return [value];
  });
  // Operands that are slices of stacks already need not be given again.
  const givenOperands = [...operands].filter((operand) => !stackOf.has(operand));
  const wantedRoots = [...handed, ...rests, ...givenOperands];
  const again = rewrite({ parameters: [], outputs: wantedRoots }, (old) => made.get(old), iteration).outputs;
  const [ofCarries, ofStacks] = [movedCarries.length, handed.length];
  const region = regionOf({
    parameters: own.list,
    outputs: [
      ...going.map(() => constant(iteration, 0, 'i32')),
      ...again.slice(0, ofCarries),
      ...sums.map((sum, i) => add(iteration, sum, cast(iteration, again[ofStacks + i]!, sum.dtype))),
      ...again.slice(ofCarries, ofStacks),
      ...again.slice(ofStacks + sums.length).map((operand) => asKept(iteration, operand)),
    ],
  });
  const starts = [
    ...going.map(() => node.inputs[guard]!),
    ...movedCarries.map((place) => given[place] ?? fullLike(b, node.inputs[place]!, 0)),
    ...carriedSums.map((place) => {
      const input = node.inputs[place]!;
      return full(b, dims(input), 0, sumType(input.dtype));
    }),
  ];
  const backward: Iteration = {
    body: region,
    carries: starts.length,
    stacked: stackInputs.length,
    trips,
    reverse: !reverse,
    recompute: attrs.recompute,
    guard: guard < 0 ? -1 : 0,
  };
  const ended = iterate(b, [...starts, ...stackInputs, ...read, ...readByRules], backward).slice(
    going.length,
  );
  const all = [...movedCarries, ...carriedSums, ...wantedStacks];
  givenOperands.forEach((operand, i) =>
    stackOf.set(operand, unkept(b, ended[all.length + i]!, operand.dtype)),
  );
  return places.map((place) => {
    if (wanted[place] !== true) return undefined;
    const { dtype } = node.inputs[place]!;
    const at = all.indexOf(place);
    const behind = (terms.get(place)?.sunk ?? []).map((term) => {
      const stacked = term.source.inputs.map((operand) => stackOf.get(operand)!);
      return cast(b, sumOfTurns(b, term, stacked), dtype);
    });
    const parts = at < 0 ? behind : [cast(b, ended[at]!, dtype), ...behind];
    return parts.length === 0 ? undefined : parts.reduce((x, y) => add(b, x, y));
  });
}

/** Backwards a loop has to know how many iterations it makes, to keep what each of them needs. */
export class OpenEnd extends TensorError {
  constructor() {
    super(
      'E_GRAD',
      'whileLoop',
      'a loop that ends by its condition has no gradient backwards: how many iterations to keep is not known',
      'scan or foriLoop with the most iterations that there may be, whose function keeps what is finished by where; or jvp',
    );
  }
}

/** What differs from iteration to iteration: all that is not made of invariants alone. */
function turningNodes(roots: readonly Node[], invariants: readonly Node[]): Set<Node> {
  const turning = new Set<Node>();
  for (const node of topological(roots)) {
    const isTurning =
      node.op === 'parameter' ? !invariants.includes(node) : node.inputs.some((input) => turning.has(input));
    if (isTurning) turning.add(node);
  }
  return turning;
}

/** Sums over iterations of 16-bit floats are kept in f32. */
function sumType(dtype: DType): DType {
  return dtype === 'f16' || dtype === 'bf16' ? 'f32' : dtype;
}

/** Places of inputs that cotangents flow to: wanted ones, and carries that depend on them. */
export function activeInputs(
  { parameters, outputs }: Graph,
  carries: number,
  wanted: readonly boolean[],
): Set<number> {
  const active = new Set(wanted.flatMap((isWanted, place) => (isWanted ? [place] : [])));
  for (let before = -1; before !== active.size;) {
    before = active.size;
    const sources = new Set(Array.from(active, (place) => parameters[place + 1] as Node));
    const reached = new Set<Node>();
    for (const node of topological(outputs.slice(0, carries)))
      if (sources.has(node) || node.inputs.some((input) => reached.has(input))) reached.add(node);
    outputs.slice(0, carries).forEach((output, place) => {
      if (isInexact(output.dtype) && reached.has(output)) active.add(place);
    });
  }
  return active;
}

/**
 * Forward values that `roots` are computed from and that each iteration keeps: carries, and, unless they
 * are to be computed again, results of fusion roots. Of a function with a rule that is the result: the rule may
 * read how values come from its arguments, so nothing between them is kept.
 */
function keptOf(
  roots: readonly Node[],
  cotangents: ReadonlySet<Node>,
  carried: readonly Node[],
  recompute: boolean,
): Node[] {
  const late = new Set<Node>();
  const order = topological(roots);
  for (const node of order)
    if (cotangents.has(node) || node.inputs.some((input) => late.has(input))) late.add(node);
  const within = new Set<Node>();
  for (const node of order)
    if (node.op === 'customVjp' && late.has(node)) for (const inner of behindRule(node)) within.add(inner);
  const isDear = (node: Node): boolean =>
    hasLoops(node.op) || (node.op === 'customVjp' && behindRule(node).some(({ op }) => hasLoops(op)));
  const isKept = (node: Node): boolean =>
    !late.has(node) && (carried.includes(node) || (!recompute && !within.has(node) && isDear(node)));
  return topological(roots, isKept).filter(isKept);
}

function typeKept(node: Node): ReturnType<typeof keptType> {
  return keptType({ dtype: node.dtype, shape: dims(node) });
}

/** What the value of a function with a rule is computed by from the arguments. */
function behindRule(node: NodeOf<'customVjp'>): readonly Node[] {
  const args = new Set(node.inputs.slice(1, 1 + argumentCount(node)));
  const isArgument = (at: Node): boolean => args.has(at);
  return topological(node.inputs.slice(0, 1), isArgument).filter((at) => !isArgument(at));
}

/**
 * The stacks of these values of the iterations, as a loop keeps them (nodes of another graph, in which `forward` are
 * the parameters): results of the loop with more to give.
 */
function savedBy(
  b: GraphBuilder,
  node: NodeOf<'iterate'>,
  kept: readonly Node[],
  forward: readonly Node[],
): Node[] {
  if (kept.length === 0) return [];
  const { result: _, ...attrs } = node.attrs;
  const { parameters, outputs } = graphOf(attrs.body);
  const outer = new Map(forward.map((parameter, i) => [parameter, parameters[i] as Node]));
  const inner = new GraphBuilder();
  const again = rewrite({ parameters: [], outputs: kept }, (old) => outer.get(old), inner).outputs;
  const extra = again.map((value) => asKept(inner, value));
  const body = regionOf({ parameters, outputs: [...outputs, ...extra] });
  return iterate(b, node.inputs, { ...attrs, body }).slice(outputs.length);
}
