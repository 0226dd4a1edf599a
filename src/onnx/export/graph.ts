// A Graph as a graph of the format: passes that make expressions canonical, then each node's
// spelling in order, then only what outputs need, under names that can be read.

import { SinterError } from '../../errors.ts';
import { dims, topological, type Graph, type Node } from '../../ir/graph.ts';
import { showType } from '../../ir/infer.ts';
import type { MessageDraft } from '../schema.ts';
import { canonical } from './canonical.ts';
import { ModelEmitter, mark, Unspelled, type Initializer, type Val } from './emitter.ts';
import type { ExportScope } from './row.ts';
import { spell } from './spelling.ts';

/** An operation that the format cannot express. */
export interface UnsupportedOp {
  readonly op: string;
  /** What it gives, e.g. `u32[4]`. */
  readonly type: string;
  readonly reason: string;
}

/** The function has operations that cannot be exported; all of them are listed. */
export class UnsupportedOpsError extends SinterError {
  override name: string = 'UnsupportedOpsError';
  readonly ops: readonly UnsupportedOp[];
  constructor(ops: readonly UnsupportedOp[]) {
    const list = ops.map(({ op, type, reason }) => `\n  ${op} to ${type}: ${reason}`);
    super(
      'E_UNSUPPORTED',
      `exportOnnx: ONNX has no spelling for ${ops.length} operation(s):${list.join('')}`,
    );
    this.ops = ops;
  }
}

/** The nodes and elements of a file, whose inputs are what `bind` made of parameters. */
export interface SpelledGraph {
  readonly nodes: readonly MessageDraft<'Node'>[];
  readonly initializers: readonly Initializer[];
}

/** What a parameter of the graph is in the file. */
export type Bind = (e: ModelEmitter, index: number) => Val;

/**
 * The graph in nodes of an opset, its outputs under the given names; `open` as emitters have it. Throws an
 * UnsupportedOpsError that lists every operation without spelling.
 */
export function spellGraph(
  graph: Graph,
  opset: number,
  bind: Bind,
  outputNames: readonly string[],
  taken: readonly string[],
  open: boolean = false,
): SpelledGraph {
  const e = new ModelEmitter(opset, open);
  const failures = new Map<string, UnsupportedOp>();
  const parameters = graph.parameters.map((_, i) => bind(e, i));
  const results = spelled(e, graph, parameters, new Map(), failures);
  const live = needed(e.nodes, results);
  const missing = [...failures].filter(([name]) => live.read.has(name)).map(([, failure]) => failure);
  if (missing.length > 0) throw new UnsupportedOpsError(missing);
  const own = [...taken, ...outputNames];
  return named(
    live.nodes,
    e.initializers.filter(({ name }) => live.read.has(name)),
    results,
    outputNames,
    own,
  );
}

/** The values of a graph's outputs, whose parameters have these values. */
function spelled(
  e: ModelEmitter,
  graph: Graph,
  given: readonly Val[],
  patterns: ExportScope['patterns'],
  failures: Map<string, UnsupportedOp>,
): Val[] {
  const { parameters, outputs } = canonical(graph);
  const values = new Map<Node, Val>();
  parameters.forEach((parameter, i) => values.set(parameter as Node, given[i]!));
  const compact = (node: Node): Val => values.get(node)!;
  const full = (node: Node): Val => e.expand(compact(node), dims(node));
  const spellInside: ExportScope['spellInside'] = (inner, body, own) =>
    spelled(inner, body, own, patterns, failures);
  const scope: ExportScope = { e, compact, full, patterns, loops: new Map(), spellInside };
  for (const node of topological(outputs)) {
    if (values.has(node)) continue;
    try {
      values.set(node, spell(scope, node));
    } catch (error) {
      if (!(error instanceof Unspelled)) throw error;
      // Reported only where an output needs it.
      const name = `?${mark}${failures.size}`;
      failures.set(name, { op: node.op, type: showType(node), reason: error.message });
      values.set(node, { name, dtype: node.dtype, shape: dims(node) });
    }
  }
  return outputs.map(full);
}

/** Every name that a node reads, those that its graphs inside read among them. */
function readBy({ input = [], attribute = [] }: MessageDraft<'Node'>): string[] {
  const inside = attribute.flatMap(({ g }) => [
    ...(g?.node ?? []).flatMap(readBy),
    ...(g?.output ?? []).map(({ name }) => name ?? ''),
  ]);
  return [...input, ...inside];
}

/** The nodes that results need, and every name that is read. */
function needed(
  nodes: readonly MessageDraft<'Node'>[],
  results: readonly Val[],
): { readonly nodes: readonly MessageDraft<'Node'>[]; readonly read: ReadonlySet<string> } {
  const read = new Set(results.map(({ name }) => name));
  const kept = nodes.toReversed().filter((node) => {
    const isRead = node.output?.some((name) => read.has(name)) === true;
    if (isRead) for (const name of readBy(node)) read.add(name);
    return isRead;
  });
  return { nodes: kept.toReversed(), read };
}

/**
 * Readable names in place of temporary ones: outputs have their own, nodes are numbered by
 * operator.
 */
function named(
  nodes: readonly MessageDraft<'Node'>[],
  initializers: readonly Initializer[],
  results: readonly Val[],
  outputNames: readonly string[],
  taken: readonly string[],
): SpelledGraph {
  const used = new Set(taken);
  const counts = new Map<string, number>();
  const names = new Map<string, string>();
  const made = new Set(nodes.flatMap((node) => node.output ?? []));
  const copies: MessageDraft<'Node'>[] = [];
  results.forEach(({ name }, i) => {
    const output = outputNames[i]!;
    if (made.has(name) && !names.has(name)) names.set(name, output);
    else copies.push({ opType: 'Identity', name: `Identity_${output}`, input: [name], output: [output] });
  });
  const rename = (name: string): string => {
    const at = name.indexOf(mark);
    if (at < 0) return name;
    const known = names.get(name);
    if (known !== undefined) return known;
    const stem = name.slice(0, at);
    let fresh = stem;
    for (let i = counts.get(stem) ?? 0; used.has(fresh);) {
      fresh = `${stem}_${(i += 1)}`;
      counts.set(stem, i);
    }
    used.add(fresh);
    names.set(name, fresh);
    return fresh;
  };
  const elements = initializers.map((one) => ({ ...one, name: rename(one.name) }));
  const renamedNode = (node: MessageDraft<'Node'>): MessageDraft<'Node'> => {
    const output = (node.output ?? []).map(rename);
    const attribute = (node.attribute ?? []).map((one) =>
      one.g === undefined ? one : { ...one, g: renamedGraph(one.g) },
    );
    return { ...node, name: output[0]!, input: (node.input ?? []).map(rename), output, attribute };
  };
  const renamedGraph = (graph: MessageDraft<'Graph'>): MessageDraft<'Graph'> => {
    const all = <T extends { readonly name?: string | undefined }>(list: readonly T[] = []): T[] =>
      list.map((one) => ({ ...one, name: rename(one.name ?? '') }));
    return {
      ...graph,
      node: (graph.node ?? []).map(renamedNode),
      initializer: all(graph.initializer),
      input: all(graph.input),
      output: all(graph.output),
    };
  };
  const renamed = nodes.map(renamedNode);
  const ends = copies.map((copy) => ({ ...copy, input: (copy.input ?? []).map(rename) }));
  return { nodes: [...renamed, ...ends], initializers: elements };
}
