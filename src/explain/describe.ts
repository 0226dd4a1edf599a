// A compiled graph as the plain data of an explanation: nodes under their recorded names, kernels
// with what they compute, read and write, reasons in words. Everything is taken from the compiler's
// own results; nothing is decided here.

import type { CompiledGraph, Inside, KernelSummary } from '../compile/compile.ts';
import { nodeBytes, topological, type Graph, type Node } from '../ir/graph.ts';
import { showType } from '../ir/infer.ts';
import { hasLoops } from '../ir/ops.ts';
import { print } from '../ir/text/print.ts';
import type { Program } from '../runtime/program.ts';
import { modelledTime } from '../schedule/cost.ts';
import type { Fitting } from '../schedule/recompute/report.ts';
import type { Kernel } from '../schedule/kernel.ts';
import { unpacked } from '../schedule/memory/pack.ts';
import { fusionDiagnostics, type FusionDiagnostic } from '../schedule/fusion-diagnostic.ts';
import type { Target } from '../schedule/target.ts';
import type { NodeOrigin, Origins } from './origins.ts';
import { describeParallel, shardingsOf, type SharedSubject } from './parallel.ts';
import { keptText, fusionDiagnosticText } from './reasons.ts';
import type {
  Explained,
  ExplainedAccess,
  ExplainedKernel,
  ExplainedNode,
  ExplainedFusionDiagnostic,
  ExplainedSource,
  MemoryUse,
  Recomputation,
  Totals,
  TrainStage,
} from './types.ts';

/** What was compiled, and how. */
export interface Subject {
  /** As recorded, before any pass; where processes share the program, the graph of one of them. */
  readonly graph: Graph;
  readonly shared?: SharedSubject;
  /** Places of the parameters that are run-time scalars. */
  readonly scalars: ReadonlySet<number>;
  /** Parameters that may be overwritten, by the outputs that do so. */
  readonly donate?: ReadonlyMap<number, number>;
  readonly compiled: CompiledGraph;
  readonly origins: Origins;
  readonly target: Target;
  /** The programs of a compiled function with varying sizes. */
  readonly sizes?: Explained['sizes'];
}

/** The explanation of a compiled graph, as plain data. */
export function describe(subject: Subject): Explained {
  const { graph, scalars, compiled, target, shared } = subject;
  const { inside, program } = compiled;
  const list = new NodeList(subject, inside);
  const bounds = lowerBound(graph, scalars, subject.donate);
  const raw = compiled.kernels.map((summary) => {
    const { time, bound } = modelledTime(summary, target);
    return { time: summary.times * time, bound };
  });
  const time = raw.reduce((sum, kernel) => sum + kernel.time, 0);
  const scheduled = inside?.schedule.kernels.map((kernel) => unpacked(kernel, inside.schedule.packs));
  const kernels = compiled.kernels.map((summary, i): ExplainedKernel => {
    const kernel = summary.place === undefined ? undefined : scheduled?.[summary.place];
    const { time: own, bound } = raw[i]!;
    const { name, kind, times, schedule, pipeline, source } = summary;
    const [flops, bytes] = [times * summary.flops, times * summary.bytes];
    const roles = rolesOf(kernel, list);
    const stage = stageOf(roles, (place) => list.nodes[place]?.stage);
    return {
      name,
      kind,
      ...(stage && { stage }),
      schedule,
      times,
      pipeline,
      ...roles,
      reads: (kernel?.reads ?? []).map((node) => list.access(node)),
      writes: (kernel?.writes ?? []).map(({ node }) => list.access(node)),
      flops,
      bytes,
      intensity: bytes === 0 ? 0 : flops / bytes,
      time: own,
      limitedBy: bound,
      timeShare: own / time,
      boundShare: bounds === 0 ? 0 : bytes / bounds,
      source,
    };
  });
  const { launch, bandwidth, arithmetic } = target;
  return {
    version: 1,
    target: target.name,
    model: { launch, bandwidth, arithmetic },
    graph: print(recordedGraph(subject)),
    nodes: list.nodes,
    outputs: list.outputs,
    kernels,
    fusionDiagnostics:
      inside === undefined ? [] : toldFusionDiagnostics(inside, compiled.kernels, target, list),
    totals: totalsOf(compiled.kernels, program, bounds, time, target),
    memory: memoryUse(program, compiled.live),
    sizes: subject.sizes ?? [],
    ...(compiled.fitting && { recomputed: recomputation(compiled.fitting) }),
    ...(shared && {
      parallel: describeParallel(shared, compiled, inside, subject.origins, (node) => list.access(node)),
    }),
  };
}

/** The graph that the user's calls have recorded, over whole tensors. */
function recordedGraph({ graph, shared }: Pick<Subject, 'graph' | 'shared'>): Graph {
  return shared?.call.whole ?? graph;
}

/** The nodes of the scheduled graph under the names that people read. */
class NodeList {
  readonly nodes: readonly ExplainedNode[];
  readonly outputs: readonly number[];
  readonly #placeOf: ReadonlyMap<Node, number>;
  readonly #results: ReadonlySet<Node>;

  constructor(subject: Subject, inside: Inside | undefined) {
    const { origins, shared } = subject;
    const recorded = namesOf(recordedGraph(subject));
    const scheduled = inside?.graph ?? { parameters: [], outputs: [] };
    const order = [
      ...new Set([...(scheduled.parameters as readonly Node[]), ...topological(scheduled.outputs)]),
    ];
    this.#placeOf = new Map(order.map((node, i) => [node, i]));
    this.#results = new Set(scheduled.outputs);
    const originOf = new Map(order.map((node) => [node, origins.of(node, (at) => recorded.has(at))]));
    const stages = stagesOf(scheduled.outputs, (node) => originOf.get(node)?.gradient === true);
    const shardings = shared && shardingsOf(shared, order, origins);
    this.nodes = order.map((node, i): ExplainedNode => {
      const origin = originOf.get(node)!;
      const source = sourceOf(origin);
      const sharding = shardings?.get(node);
      const stage = node.op === 'parameter' || node.op === 'constant' ? undefined : stages.get(node);
      return {
        name: (origin.recorded === undefined ? undefined : recorded.get(origin.recorded)) ?? `#${i}`,
        op: node.op,
        label: labelOf(node),
        inputs: node.inputs.map((input) => this.place(input)),
        type: showType(node),
        bytes: nodeBytes(node),
        ...(stage && { stage }),
        ...(source === undefined ? {} : { source }),
        ...(sharding && { sharding }),
      };
    });
    this.outputs = scheduled.outputs.map((node) => this.place(node));
  }

  place(node: Node): number {
    return this.#placeOf.get(node) ?? -1;
  }

  /** `%12 (reduce max)`. */
  readonly nameOf = (node: Node): string => {
    const found = this.nodes[this.place(node)];
    return found === undefined ? node.op : `${found.name} (${found.label})`;
  };

  access(node: Node): ExplainedAccess {
    const role =
      node.op === 'parameter' ? 'input' : this.#results.has(node) ? 'output' : ('intermediate' as const);
    return { node: this.place(node), type: showType(node), bytes: nodeBytes(node), role };
  }
}

/** The names that `print` gives. */
function namesOf(graph: Graph): ReadonlyMap<Node, string> {
  const names = new Map<Node, string>();
  for (const node of [...(graph.parameters as readonly Node[]), ...topological(graph.outputs)])
    if (!names.has(node)) names.set(node, `%${names.size}`);
  return names;
}

function sourceOf({ call, gradient }: NodeOrigin): ExplainedSource | undefined {
  if (call === undefined || (call.op ?? call.module ?? call.at) === undefined) return undefined;
  return {
    ...(call.op === undefined ? {} : { op: call.op }),
    ...(call.module === undefined ? {} : { module: call.module }),
    ...(call.at === undefined ? {} : { at: call.at }),
    gradient,
  };
}

/** The op with what tells it from others of its kind. */
function labelOf(node: Node): string {
  switch (node.op) {
    case 'parameter':
      return node.attrs.name;
    case 'constant':
      return String(node.attrs.value);
    case 'reduce':
      return `reduce ${node.attrs.monoid} [${node.attrs.axes.join(',')}]`;
    case 'argReduce':
      return `arg${node.attrs.monoid} [${node.attrs.axis}]`;
    case 'scan':
      return `scan ${node.attrs.monoid} [${node.attrs.axis}]`;
    case 'scatter':
      return `scatter ${node.attrs.mode} [${node.attrs.axis}]`;
    case 'dequantize':
      return `dequantize ${node.attrs.format}`;
    case 'gather':
    case 'concat':
      return `${node.op} [${node.attrs.axis}]`;
    case 'permute':
      return `permute [${node.attrs.order.join(',')}]`;
    case 'cast':
      return `cast ${node.attrs.dtype}`;
    default:
      return node.op;
  }
}

type Roles = Pick<ExplainedKernel, 'prologue' | 'body' | 'epilogue'>;

/**
 * What feeds the loops, what runs in them (all of it where there are none), and what only needs
 * their results.
 */
function rolesOf(kernel: Kernel | undefined, list: NodeList): Roles {
  if (kernel === undefined) return { prologue: [], body: [], epilogue: [] };
  const nodes = kernel.nodes.filter(({ op }) => op !== 'parameter').sort((a, b) => a.id - b.id);
  const inside = new Set(nodes);
  const fusionRoots = nodes.filter((node) => hasLoops(node.op));
  const after = new Set<Node>(fusionRoots);
  for (const node of nodes) if (node.inputs.some((input) => after.has(input))) after.add(node);
  const before = new Set<Node>(fusionRoots);
  for (const node of nodes.toReversed()) {
    if (before.has(node)) for (const input of node.inputs) if (inside.has(input)) before.add(input);
  }
  const roles = { prologue: [] as number[], body: [] as number[], epilogue: [] as number[] };
  for (const node of nodes) {
    const [needed, needing] = [before.has(node), after.has(node)];
    const role = fusionRoots.length === 0 || (needed && needing) ? 'body' : needed ? 'prologue' : 'epilogue';
    roles[role].push(list.place(node));
  }
  return roles;
}

/** Collectives and loops of kernels are kernels of the schedule, and none of an explanation: pairs with them are left out. */
function toldFusionDiagnostics(
  { graph, schedule }: Inside,
  kernels: readonly KernelSummary[],
  target: Target,
  list: NodeList,
): ExplainedFusionDiagnostic[] {
  const placeOf = new Map(kernels.flatMap(({ place }, i) => (place === undefined ? [] : [[place, i]])));
  const called = (place: number): string => {
    const own = placeOf.get(place);
    const { body } = schedule.kernels[place]!;
    return own === undefined ? `the ${'node' in body ? body.node.op : body.kind}` : `kernel ${own}`;
  };
  return fusionDiagnostics(graph, schedule, target).flatMap(
    (pair: FusionDiagnostic): readonly ExplainedFusionDiagnostic[] => {
      const { relation, value, kept } = pair;
      const [first, second] = [placeOf.get(pair.first), placeOf.get(pair.second)];
      if (first === undefined || second === undefined) return [];
      const told = { relation, first, second, value: list.place(value) };
      const apart = pair.reasons.map((reason) => ({
        rule: reason.rule,
        text: fusionDiagnosticText(reason, pair.second, list.nameOf, called),
      }));
      if (kept === undefined) return [{ ...told, apart }];
      return [{ ...told, apart, kept: { rule: kept.rule, text: keptText(kept, value, list.nameOf) } }];
    },
  );
}

/** Bytes that a run moves at least: each input read once, each output written once. */
function lowerBound(
  graph: Graph,
  scalars: ReadonlySet<number>,
  donate: ReadonlyMap<number, number> = new Map(),
): number {
  const { parameters, outputs } = graph;
  const overwritten = overwrites(graph, donate);
  // Rank-0 inputs are passed with the call, as numbers are.
  const read = parameters.filter(
    (node, i) => !scalars.has(i) && node.shape.length > 0 && overwritten.get(node as Node) !== 0,
  ) as readonly Node[];
  const written = [...new Set(outputs)].filter((node) => node.op !== 'parameter');
  return [...read, ...written].reduce((sum, node) => sum + (overwritten.get(node) ?? nodeBytes(node)), 0);
}

/**
 * Bytes to write of outputs that change a part of the parameter donated for them; of such a parameter that nothing
 * else reads none.
 */
function overwrites(graph: Graph, donate: ReadonlyMap<number, number>): ReadonlyMap<Node, number> {
  const found = new Map<Node, number>();
  for (const [parameter, output] of donate) {
    const from = graph.parameters[parameter]! as Node;
    const to = graph.outputs[output]!;
    if (to.op !== 'scatter' || to.inputs[0] !== from) continue;
    found.set(to, nodeBytes(to.inputs[2]!));
    const readers = topological(graph.outputs).flatMap((node) =>
      node.inputs.filter((input) => input === from || input === to),
    );
    if (readers.length === 1) found.set(from, 0);
  }
  return found;
}

function totalsOf(
  kernels: readonly KernelSummary[],
  program: Program,
  lowerBoundBytes: number,
  time: number,
  target: Target,
): Totals {
  const flops = kernels.reduce((sum, kernel) => sum + kernel.times * kernel.flops, 0);
  return {
    kernels: kernels.length,
    pipelines: program.kernels.length,
    dispatches: kernels.reduce((sum, kernel) => sum + kernel.times, 0),
    flops,
    bytes: kernels.reduce((sum, kernel) => sum + kernel.times * kernel.bytes, 0),
    lowerBoundBytes,
    time,
    lowerBoundTime: kernels.length === 0 ? 0 : modelledTime({ flops, bytes: lowerBoundBytes }, target).time,
  };
}

function recomputation({ budget, plain, bytes, flops, values }: Fitting): Recomputation {
  return { budget, plainPeak: plain, savedBytes: plain - bytes, addedFlops: flops, values };
}

function memoryUse({ buffers, arenas, inputs, outputs }: Program, live: number): MemoryUse {
  const bytesOf = (list: Iterable<number>): number =>
    [...list].reduce((sum, buffer) => sum + buffers[buffer]!.bytes, 0);
  const read = new Set(inputs);
  const use = {
    inputs: bytesOf(read),
    outputs: bytesOf(new Set(outputs.filter((buffer) => !read.has(buffer)))),
    scratch: arenas.reduce((sum, arena) => sum + arena, 0),
  };
  const ends = use.inputs + use.outputs;
  return { ...use, peak: ends + use.scratch, lowerBound: ends + live };
}

// Which part of a train step a node belongs to. The derivative says of every node it makes what it
// carries a gradient through (ir/origin.ts), and rewrites hand that on; the rest follows from the
// graph: what is computed from gradients is the update, and so is what only the update needs, e.g.
// the decay of an optimizer's state.

/** The stages of these nodes' graph; `isGradient` says which nodes carry a gradient. */
function stagesOf(
  outputs: readonly Node[],
  isGradient: (node: Node) => boolean,
): ReadonlyMap<Node, TrainStage> {
  const order = topological(outputs);
  const stages = new Map<Node, TrainStage>();
  for (const node of order) {
    const follows = node.inputs.some((input) => stages.get(input) !== 'forward');
    // A constant has no place of its own: it goes with what needs it.
    const carries = node.op !== 'constant' && node.op !== 'parameter' && isGradient(node);
    stages.set(node, carries ? 'backward' : follows ? 'update' : 'forward');
  }
  const users = new Map<Node, Node[]>();
  for (const node of order) {
    for (const input of node.inputs) {
      const known = users.get(input);
      if (known === undefined) users.set(input, [node]);
      else known.push(node);
    }
  }
  for (const node of order.toReversed()) {
    const readers = users.get(node) ?? [];
    const stage = stages.get(node);
    // Gradients of several uses are added up on the way.
    if (stage === 'update' && readers.some((reader) => stages.get(reader) === 'backward'))
      stages.set(node, 'backward');
    if (stage !== 'forward' || readers.length === 0) continue;
    if (readers.every((reader) => stages.get(reader) === 'update')) stages.set(node, 'update');
  }
  return stages;
}

/**
 * The stage of a kernel: that of the work in its loops, the latest of several; what is computed
 * from their results only (an update after a reduction, say) does not make it another's. Undefined
 * for a kernel of which no nodes are known.
 */
function stageOf(
  { prologue, body, epilogue }: Pick<ExplainedKernel, 'prologue' | 'body' | 'epilogue'>,
  stageAt: (place: number) => TrainStage | undefined,
): TrainStage | undefined {
  for (const places of [body, prologue, epilogue]) {
    const found = new Set(places.map(stageAt));
    const latest = (['update', 'backward', 'forward'] as const).find((stage) => found.has(stage));
    if (latest !== undefined) return latest;
  }
  return undefined;
}
