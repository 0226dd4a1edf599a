// Functions that are recorded as a whole, for other folders. This file says whether a function is being
// traced, and what its parameters are called. It traces a function: the result is its graph over parameters
// and run-time scalars, what each parameter stands for, and where each output goes (into the result tree, or
// to a tensor that the function assigned). The recording of a traced function is in `trace/`.

import { counts } from './report/stats.ts';
import { SinterError } from '../errors.ts';
import type { DType } from '../ir/dtype.ts';
import { sameShape, type FixedShape } from '../ir/shape.ts';
import { GraphBuilder, type Graph, type Node, type NodeOf } from '../ir/graph.ts';
import type { IntegerRange } from './handle/number.ts';
import { expectSynchronous } from './expect.ts';
import { Handle } from './handle/handle.ts';
import { freshParameter } from './handle/leaf.ts';
import { handleOf, Tensor } from './tensor.ts';
import { currentHandle, currentTrace, withTrace } from './handle/recording.ts';
import { methodOf } from './layer/watch.ts';
import { graphOf, graphKeyOf, type GraphKey } from './evaluate/graph-key.ts';
import { Trace, type Origin, type ScalarOrigin, type TraceSlot } from './trace/trace.ts';
import { callOnCopies, flatten, unflatten, type Flat, type TreeStructure } from './tree.ts';

export { noteChange } from './handle/recorded.ts';
export type { ScalarOrigin } from './trace/trace.ts';

/** Whether operations are recorded for a function that is being traced, so that no value is known. */
export function isTracing(): boolean {
  return currentTrace() !== undefined;
}

/** What a tensor parameter stands for: the value or the gradient of something from outside. */
export interface Input {
  readonly origin: Origin;
  readonly part: 'value' | 'grad';
}

/**
 * Where a tensor that leaves the function comes from: an output of the graph, or an input handed
 * through.
 */
export type Source =
  | { readonly kind: 'output'; readonly index: number }
  | { readonly kind: 'input'; readonly index: number };

/** What a call does to a tensor from outside; no source: its gradient is forgotten. */
export interface Effect {
  readonly origin: Origin;
  readonly part: 'value' | 'grad';
  readonly source: Source | undefined;
}

/** A leaf of the result: a tensor, or a value that is the same at every call. */
export type ResultLeaf =
  | (Source & {
      /** The function made it a leaf, which gradients end at. */
      readonly leaf: boolean;
      /** `backward` ran from it inside: its history is gone. */
      readonly released: boolean;
    })
  | { readonly kind: 'static'; readonly value: unknown };

/** What the function recorded, markers of autograd included, for derivatives of a call. */
export interface Recorded {
  readonly trace: Trace;
  /** What each output of the graph came from. */
  readonly outputs: readonly Node[];
  /** The parameters, with their places among the inputs. */
  readonly inputs: ReadonlyMap<Node, number>;
  /** The run-time scalars, with their places. */
  readonly scalars: ReadonlyMap<Node, number>;
}

/**
 * A question about gradients that the function asked of something from outside, and the answer it
 * got.
 */
export interface Asked {
  readonly origin: Origin;
  /** Undefined where it was not asked. */
  readonly requiresGrad: boolean | undefined;
  readonly leaf: boolean | undefined;
}

export interface Traced {
  readonly graph: Graph;
  /** Indices of the parameters that are run-time scalars. */
  readonly scalarIndices: ReadonlySet<number>;
  /** In the order of the graph's other parameters, then inputs that are only handed through. */
  readonly inputs: readonly Input[];
  /** In the order of the scalar parameters. */
  readonly scalars: readonly ScalarOrigin[];
  readonly structure: TreeStructure;
  readonly results: readonly ResultLeaf[];
  readonly effects: readonly Effect[];
  /**
   * Gradients that the function read: the trace holds only while they are there, or not there, as
   * they were.
   */
  readonly gradsRead: readonly { readonly origin: Origin; readonly hadBefore: boolean }[];
  /** Groups of random words that each call draws. */
  readonly counts: bigint;
  /** The trace holds only while these answers are the same. */
  readonly asked: readonly Asked[];
  readonly recorded: Recorded;
  /** Checks that are outputs of the graph. */
  readonly checks: readonly Check[];
  /** The structure of the graph. */
  readonly graphKey: GraphKey<Node>;
}

/** How far the outmost of integers lies from the start of the range that they must lie in. */
export interface Check {
  readonly range: IntegerRange;
  readonly dtype: DType;
  readonly source: Source;
}

/**
 * Calls `fn` once on tracers of `args` (trees; tensors and numbers become parameters, everything
 * else is static) and gives its graph. Nothing is computed.
 */
export function traceFunction(fn: (...args: never[]) => unknown, args: readonly unknown[]): Traced {
  return traceFlat(fn, flatten(args, 'compile'));
}

/**
 * As `traceFunction`, of arguments already flattened; `op` is the operation that traces, for
 * messages; `exact` numbers keep all their bits. With `shapes` it is a trial at other sizes than the
 * arguments have: leaves have these shapes. With `isChecked` checks of labels and indices are outputs
 * of the graph.
 */
export function traceFlat(
  fn: (...args: never[]) => unknown,
  flat: Flat,
  op: string = 'compile',
  exact: boolean = false,
  shapes: ReadonlyMap<number, FixedShape> | undefined = undefined,
  isChecked: boolean = false,
): Traced {
  const trace = new Trace(exact, op, isChecked);
  if (shapes === undefined) counts.traces += 1;
  else counts.sizes += 1;
  return withTrace(trace, () => {
    const tracers = flat.leaves.map((leaf, i) => {
      if (leaf instanceof Tensor)
        return new Tensor(trace.argument(i, inShape(handleOf(leaf), shapes?.get(i))));
      return typeof leaf === 'number' ? new Tensor(trace.number(i, leaf)) : leaf;
    });
    const copies = unflatten(flat.structure, tracers) as never[];
    const result = callOnCopies(op, () => fn(...copies));
    expectSynchronous(op, result);
    return finish(trace, flatten(result, op));
  });
}

/** What a value is like in another shape. */
function inShape(handle: Handle, shape: FixedShape | undefined): Handle {
  if (shape === undefined || sameShape(shape, handle.shape)) return handle;
  const { dtype, tracking, weak, grad } = handle;
  const other = new Handle(freshParameter({ dtype, shape }), undefined, tracking);
  if (grad !== undefined) other.replaceGrad(inShape(grad, shape));
  if (weak) other.comesFrom('number');
  return other;
}

/** Gathers what leaves the trace and builds its graph. */
function finish(trace: Trace, result: Flat): Traced {
  // Tensors from outside that the function gives back without having used them are met here.
  for (const leaf of result.leaves) if (leaf instanceof Tensor) currentHandle(handleOf(leaf), 'compile');
  const inputs: Input[] = [];
  const inputOf = new Map<Node, number>();
  for (const slot of trace.slots) {
    inputOf.set(slot.parameter, inputs.push({ origin: slot.origin, part: 'value' }) - 1);
    const grad = slot.grad?.parameter;
    if (grad !== undefined) inputOf.set(grad, inputs.push({ origin: slot.origin, part: 'grad' }) - 1);
  }
  const outputs = new Map<Node, number>();
  const sourceOf = (handle: Handle): Source => {
    const { node } = currentHandle(handle, 'compile');
    const input = inputOf.get(node);
    if (input !== undefined) return { kind: 'input', index: input };
    const index = outputs.get(node) ?? outputs.size;
    outputs.set(node, index);
    return { kind: 'output', index };
  };
  const results = result.leaves.map((leaf): ResultLeaf => {
    if (!(leaf instanceof Tensor)) return { kind: 'static', value: leaf };
    const at = currentHandle(handleOf(leaf), 'compile');
    return { ...sourceOf(at), leaf: at.leaf && !trace.isInput(at.node), released: at.released };
  });
  const effects = trace.slots.flatMap((slot) => effectsOf(slot, sourceOf));
  const checks = (trace.checked ?? []).map(({ range, dtype, distance }): Check => {
    return { range, dtype, source: sourceOf(distance) };
  });

  const graphKey = graphKeyOf([...outputs.keys()], (node) => (node.op === 'parameter' ? node : undefined));
  const graph = graphOf(graphKey, graphKey.outputs, () => undefined);
  const scalarOf = new Map(trace.scalars.map(({ origin, parameter }) => [parameter, origin]));
  const scalarIndices = new Set<number>();
  const scalars: ScalarOrigin[] = [];
  const scalarPlaces = new Map<Node, number>();
  const order: number[] = [];
  graphKey.leaves.forEach((leaf, i) => {
    const scalar = scalarOf.get(leaf);
    const input = inputOf.get(leaf);
    if (scalar !== undefined) {
      scalarIndices.add(i);
      scalarPlaces.set(leaf, scalars.push(scalar) - 1);
    } else if (input !== undefined) order.push(input);
    else throw new SinterError('E_STATE', `compile: ${leaf.attrs.name} belongs to another traced function`);
  });
  // Parameters first, as the graph has them; inputs that are only handed through follow.
  const place = new Map<number, number>(order.map((input, i) => [input, i]));
  const moved = <S extends Source>(source: S): S => {
    if (source.kind === 'output') return source;
    if (!place.has(source.index)) place.set(source.index, order.push(source.index) - 1);
    return { ...source, index: place.get(source.index)! };
  };
  const placed = (node: Node, input: number): readonly [Node, number][] => {
    const at = place.get(input);
    return at === undefined ? [] : [[node, at]];
  };
  return {
    graph,
    scalarIndices,
    scalars,
    structure: result.structure,
    results: results.map((leaf) => (leaf.kind === 'static' ? leaf : moved(leaf))),
    effects: effects.map((effect) => ({
      ...effect,
      source: effect.source === undefined ? undefined : moved(effect.source),
    })),
    inputs: order.map((input) => inputs[input]!),
    gradsRead: trace.slots.flatMap(({ origin, grad }) =>
      grad === undefined ? [] : [{ origin, hadBefore: grad.hadBefore }],
    ),
    counts: trace.counts,
    checks: checks.map((check) => ({ ...check, source: moved(check.source) })),
    graphKey,
    asked: trace.slots.flatMap(({ origin, asked, before }) => {
      if (!asked.requiresGrad && !asked.leaf) return [];
      const requiresGrad = asked.requiresGrad ? before.requiresGrad : undefined;
      return [{ origin, requiresGrad, leaf: asked.leaf ? before.leaf : undefined }];
    }),
    recorded: {
      trace,
      outputs: [...outputs.keys()],
      inputs: new Map([...inputOf].flatMap(([node, input]) => placed(node, input))),
      scalars: scalarPlaces,
    },
  };
}

/**
 * The same with a parameter for every input, those that are only handed through as well. `leaves`
 * are the arguments' own, `shapes` those that they were traced in, if these are others.
 */
export function withAllParameters(
  traced: Traced,
  leaves: readonly unknown[],
  shapes?: ReadonlyMap<number, FixedShape>,
): Traced {
  const parameters = [...traced.graph.parameters];
  const builder = new GraphBuilder();
  for (const { origin } of traced.inputs.slice(parameters.length - traced.scalars.length)) {
    const own = origin.kind === 'captured' ? origin.handle : (leaves[origin.leaf] as Tensor);
    const { dtype } = own;
    const shape = (origin.kind === 'captured' ? undefined : shapes?.get(origin.leaf)) ?? own.shape;
    const index = parameters.length;
    const attrs = { index, name: `through${index}`, dtype, shape };
    parameters.push(builder.add('parameter', [], attrs) as NodeOf<'parameter'>);
  }
  return { ...traced, graph: { ...traced.graph, parameters } };
}

function effectsOf(slot: TraceSlot, sourceOf: (handle: Handle) => Source): Effect[] {
  const { origin, tracer } = slot;
  const effects: Effect[] = [];
  if (tracer.version > 0) effects.push({ origin, part: 'value', source: sourceOf(tracer) });
  if (slot.gradWritten) {
    const source = tracer.grad === undefined ? undefined : sourceOf(tracer.grad);
    effects.push({ origin, part: 'grad', source });
  }
  return effects;
}

/** The parameters of a function by name; undefined for those that have none of their own. */
export function parameterNames(fn: (...args: never[]) => unknown): readonly (string | undefined)[] {
  const text = methodOf(fn).toString();
  const list = /^(?:async\s+)?(?:function\b[^(]*|[A-Za-z_$][\w$]*\s*)?\(([^]*)$/.exec(text)?.[1];
  if (list === undefined) {
    const alone = /^(?:async\s+)?([A-Za-z_$][\w$]*)\s*=>/.exec(text)?.[1];
    return alone === undefined ? [] : [alone];
  }
  return topLevel(list).map((parameter) => /^[A-Za-z_$][\w$]*/.exec(parameter.trim())?.[0]);
}

/** The text between the commas, up to the bracket that ends the list. */
function topLevel(list: string): string[] {
  const parts = [''];
  let depth = 0;
  for (const letter of list) {
    if (')]}'.includes(letter)) depth -= 1;
    if (depth < 0) break;
    if ('([{'.includes(letter)) depth += 1;
    if (letter === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += letter;
  }
  return parts.length === 1 && parts[0]!.trim() === '' ? [] : parts;
}
