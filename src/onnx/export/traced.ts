// What a traced function becomes as a model: which tensors from outside its parameters are, and its
// results by name. What a model cannot do, like assigning to tensors, is refused here.

import { storedType } from '../../ir/stored.ts';
import { outputName, placesOf } from '../../aot/names.ts';
import { SinterError } from '../../errors.ts';
import type { Graph, Node } from '../../ir/graph.ts';
import type { Handle } from '../../tensor/recording/handle.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { withAllParameters, type Input, type Traced } from '../../tensor/compile/trace-function.ts';
import type { Val } from './emitter.ts';

/** What a parameter of the graph stands for. */
export type ParameterSource =
  | { readonly kind: 'argument'; readonly leaf: number }
  | { readonly kind: 'captured'; readonly handle: Handle }
  | { readonly kind: 'random' };

/** A graph whose outputs are the function's results, with what its parameters stand for. */
export interface TracedProgram {
  readonly graph: Graph;
  readonly sources: readonly ParameterSource[];
  /** Names of the outputs, as the function gives them. */
  readonly results: readonly string[];
}

/**
 * The type of an argument as an input of a model; undefined for what is no tensor and no number.
 */
export function portType(leaf: unknown): Pick<Val, 'dtype' | 'shape'> | undefined {
  if (leaf instanceof Tensor) return storedType(leaf);
  return typeof leaf === 'number' ? { dtype: 'f32', shape: [] } : undefined;
}

/**
 * The program of a function traced on these arguments. Throws E_UNSUPPORTED where it does more than
 * compute what it returns.
 */
export function programOf(partial: Traced, leaves: readonly unknown[]): TracedProgram {
  const traced = withAllParameters(partial, leaves);
  if (traced.effects.some(({ part, source }) => part === 'value' && source !== undefined))
    throw refused('assigns to a tensor: return the new value instead');
  const tensors = traced.inputs.map(sourceOfInput);
  const { parameters } = traced.graph;
  const sources: ParameterSource[] = [];
  const nodes: Node[] = [];
  let [next, nextScalar] = [0, 0];
  parameters.forEach((parameter, i) => {
    if (traced.scalarIndices.has(i)) {
      const origin = traced.scalars[nextScalar++]!;
      sources.push(origin.kind === 'number' ? { kind: 'argument', leaf: origin.leaf } : { kind: 'random' });
      return;
    }
    nodes.push(parameter as Node);
    sources.push(tensors[next++]!);
  });
  const outputs: Node[] = [];
  const results = placesOf(traced.structure).map((place, i) => {
    const leaf = traced.results[i]!;
    if (leaf.kind === 'static') throw refused(`returns ${String(leaf.value)}, which is no tensor`);
    outputs.push(leaf.kind === 'output' ? traced.graph.outputs[leaf.index]! : nodes[leaf.index]!);
    return outputName(place);
  });
  if (results.length === 0) throw refused('returns no tensor');
  return { graph: { parameters, outputs }, sources, results };
}

function sourceOfInput({ origin, part }: Input): ParameterSource {
  if (part === 'grad') throw refused('reads gradients that were there before the call');
  return origin.kind === 'captured'
    ? { kind: 'captured', handle: origin.handle }
    : { kind: 'argument', leaf: origin.leaf };
}

function refused(problem: string): SinterError {
  return new SinterError('E_UNSUPPORTED', `exportOnnx: the function ${problem}`);
}
