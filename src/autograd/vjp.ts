// Reverse-mode differentiation as a graph transform: from nodes and their cotangents, nodes for the
// cotangents of whatever they were computed from. One walk down the ids (a reverse topological
// order), one rule per node, sums where a value was used more than once. The result is ordinary IR:
// it fuses with the forward pass and can be differentiated again.

import { CompilerBug, TensorError } from '../errors.ts';
import { full, fullLike } from '../ir/build.ts';
import { siblingKey } from '../ir/control/iterate.ts';
import { isComplex, isFloat, isInexact } from '../ir/dtype.ts';
import { GraphBuilder, rewrite, topological, type Graph, type Node, type NodeOf } from '../ir/graph.ts';
import { showType, type TensorType } from '../ir/infer.ts';
import { onBehalf } from '../ir/origin/origin.ts';
import { fixedShape, sameShape, sizeOf } from '../ir/shape.ts';
import { foldUniform, plus } from './cotangent.ts';
import { argumentCount, customOf, pullCustom } from './custom.ts';
import { loopDerivative } from './slots.ts';
import { ruleFor } from './rules.ts';

/** Checks that `loss` can be differentiated without a seed: one float element. Throws E_GRAD. */
export function checkScalarLoss(op: string, loss: TensorType): void {
  if (isComplex(loss.dtype)) {
    const problem = `the loss must be real without a seed, got ${showType(loss)}`;
    throw new TensorError('E_GRAD', op, problem, 'take abs or real of it, or give a seed of its shape');
  }
  checkFloat(op, 'the loss', loss);
  if (sizeOf(fixedShape(loss.shape, op)) !== 1) {
    throw new TensorError(
      'E_GRAD',
      op,
      `the loss must have one element without a seed, got ${showType(loss)}`,
      'reduce it with sum or mean, or give a seed of its shape',
    );
  }
}

function checkFloat(op: string, what: string, type: TensorType): void {
  if (isInexact(type.dtype)) return;
  throw new TensorError(
    'E_GRAD',
    op,
    `${what} must be of a float dtype, or a complex one, to be differentiated, got ${showType(type)}`,
  );
}

/**
 * For each node of `wrt` the cotangent Σ seeds·∂outputs/∂wrt, of its dtype and shape; undefined
 * when no path leads from it to an output. Seeds have their outputs' dtypes and shapes. Throws
 * E_GRAD when an output or a node of `wrt` is no float.
 */
export function cotangents(
  builder: GraphBuilder,
  outputs: readonly Node[],
  seeds: readonly Node[],
  wrt: readonly Node[],
): (Node | undefined)[] {
  checkSeeds(outputs, seeds);
  wrt.forEach((node) => checkFloat('grad', 'what gradients are taken for', node));
  const requested = new Set(wrt);
  // Ids grow from inputs to users: nothing older than the oldest of `wrt` can depend on it.
  const oldest = wrt.reduce((lowest, node) => Math.min(lowest, node.id), Infinity);
  // And nothing flows past a stopGradient, behind which a training loop keeps its earlier steps.
  const ends = (node: Node): boolean => node.id <= oldest || node.op === 'stopGradient';
  const order = topological(outputs, ends).filter((node) => node.id >= oldest);
  const active = new Set<Node>();
  for (const node of order) if (requested.has(node) || carries(node, active)) active.add(node);

  const sums = new Map<Node, Node>();
  const flow = (to: Node, cotangent: Node): void => {
    const folded = foldUniform(builder, cotangent);
    const sum = sums.get(to);
    sums.set(to, sum === undefined ? folded : plus(builder, sum, folded));
  };
  outputs.forEach((output, i) => {
    if (active.has(output)) flow(output, seeds[i]!);
  });
  const groups = resultGroups(order);
  for (let i = order.length - 1; i >= 0; i--) {
    const node = order[i]!;
    const group = groups.get(node);
    // The results of one function, or of one loop, go back together when the oldest of them comes:
    // by then whatever reads any of them has been.
    if (group !== undefined && group.first !== node) continue;
    const gs = group?.results.map((result) => result && sums.get(result)) ?? [sums.get(node)];
    if (gs.every((each) => each === undefined)) continue;
    const wanted = wantedInputs(node, active);
    const rule = ruleFor(node);
    if (rule === 'flat' || !wanted.includes(true)) continue;
    const pulled = onBehalf('gradient', node, () => {
      if (node.op === 'iterate') return loopDerivative.value(builder, node, gs, wanted, cotangents);
      if (group !== undefined) return pullCustom(builder, node as NodeOf<'customVjp'>, gs, wanted);
      return rule(builder, node as never, gs[0]!, wanted);
    });
    pulled.forEach((cotangent, k) => {
      const input = node.inputs[k]!;
      if (cotangent === undefined || wanted[k] !== true) return;
      if (cotangent.dtype !== input.dtype || !sameShape(cotangent.shape, input.shape)) {
        const problem = `${node.op} gave input ${k}, ${showType(input)}, a cotangent ${showType(cotangent)}`;
        throw new CompilerBug('vjp', problem);
      }
      flow(input, cotangent);
    });
  }
  return wrt.map((node) => sums.get(node));
}

function checkSeeds(outputs: readonly Node[], seeds: readonly Node[]): void {
  if (seeds.length !== outputs.length) {
    throw new TensorError(
      'E_GRAD',
      'grad',
      `${outputs.length} output(s) need as many seeds, got ${seeds.length}`,
    );
  }
  outputs.forEach((output, i) => {
    checkFloat('grad', 'an output', output);
    const seed = seeds[i]!;
    if (seed.dtype !== output.dtype || !sameShape(seed.shape, output.shape)) {
      throw new TensorError(
        'E_GRAD',
        'grad',
        `a seed must be like its output: ${showType(seed)} for ${showType(output)}`,
      );
    }
  });
}

/** Which inputs a cotangent can flow to. Nothing ever flows into the values of a customVjp. */
function wantedInputs(node: Node, active: ReadonlySet<Node>): boolean[] {
  if (node.op !== 'customVjp') return node.inputs.map((input) => active.has(input));
  const count = argumentCount(node);
  return node.inputs.map((input, i) => i >= 1 && i <= count && active.has(input));
}

/** The nodes of one function's results, or of one loop's, that a walk meets. */
interface ResultGroup {
  /** The oldest: what reads any of them is younger than this one. */
  readonly first: Node;
  /** By number of the result. */
  readonly results: (Node | undefined)[];
}

/** Of results that go back together, what they share, which of them a node is, and how many there are. */
function sharedBy(node: Node): readonly [key: string, result: number, count: number] | undefined {
  if (node.op === 'iterate') {
    const { result, body } = node.attrs;
    return [siblingKey(node), result, body.graph.outputs.length];
  }
  if (node.op !== 'customVjp') return undefined;
  const { custom, result, numbers } = customOf(node.attrs.rule);
  if (custom.results === 1) return undefined;
  const inputs = node.inputs.slice(1).map(({ id }) => id);
  return [[numbers[0], ...inputs].join(), result, numbers.length];
}

function resultGroups(order: readonly Node[]): Map<Node, ResultGroup> {
  const byKey = new Map<string, ResultGroup>();
  const groups = new Map<Node, ResultGroup>();
  for (const node of order) {
    const shared = sharedBy(node);
    if (shared === undefined) continue;
    const [key, result, count] = shared;
    const group = byKey.get(key) ?? { first: node, results: Array.from({ length: count }, () => undefined) };
    byKey.set(key, group);
    group.results[result] = node;
    groups.set(node, group);
  }
  return groups;
}

function carries(node: Node, active: ReadonlySet<Node>): boolean {
  return isInexact(node.dtype) && ruleFor(node) !== 'flat' && wantedInputs(node, active).includes(true);
}

export interface VjpOptions {
  /** Indices of the outputs to differentiate; by default every output of a float dtype. */
  readonly of?: readonly number[];
  /** True makes every seed a parameter; by default outputs of rank 0 are seeded with 1. */
  readonly seedAll?: boolean;
}

/**
 * The joint forward and backward graph: the outputs of `graph`, then the gradient of each parameter
 * that `wrt` names by index (zeros when no path leads from it). Seeds of outputs that are no
 * scalars become parameters `seed0`, `seed1`…, named by output, after those of `graph`. Throws
 * E_GRAD when something to differentiate is no float.
 */
export function gradientGraph(graph: Graph, wrt: readonly number[], options: VjpOptions = {}): Graph {
  const builder = new GraphBuilder();
  const forward = rewrite(graph, () => undefined, builder);
  const parameters: NodeOf<'parameter'>[] = [...forward.parameters];
  const chosen = options.of ?? [...forward.outputs.keys()].filter((i) => isFloat(forward.outputs[i]!.dtype));
  const outputs = chosen.map((index) => named(forward.outputs, index, 'output'));
  const inputs = wrt.map((index): Node => named(forward.parameters, index, 'parameter') as Node);
  if (outputs.length === 0) throw new TensorError('E_GRAD', 'grad', 'no output has a float dtype');
  const seeds = outputs.map((output, i): Node => {
    if (output.shape.length === 0 && options.seedAll !== true) return full(builder, [], 1, output.dtype);
    const { dtype, shape } = output;
    const attrs = { index: parameters.length, name: `seed${chosen[i]}`, dtype, shape };
    const seed = builder.add('parameter', [], attrs);
    parameters.push(seed);
    return seed as Node;
  });
  const gradients = cotangents(builder, outputs, seeds, inputs);
  return {
    parameters,
    outputs: [...forward.outputs, ...gradients.map((g, i) => g ?? fullLike(builder, inputs[i]!, 0))],
  };
}

function named<T>(list: readonly T[], index: number, what: string): T {
  const item = list[index];
  if (item !== undefined) return item;
  throw new TensorError('E_GRAD', 'grad', `there is no ${what} ${index}: the graph has ${list.length}`);
}
