// What each pass changed, and by which rule: `sinter explain --passes`. In: what an observer of the
// compilation saw of a pass. Out: the changes as data and as text. Nodes have the names of the graph before
// the pass. `%7.1` is the first additional node that a pass made for %7.

import { sameAttrs, topological, type Graph, type Node } from '../ir/graph.ts';
import { sameShape } from '../ir/shape.ts';
import { madeOf, rulesOf, type AppliedRule } from '../ir/origin/trace.ts';
import { nodeNames, printNode } from '../ir/text/print.ts';
import type { CompileStage } from '../dump/stage.ts';

/** A node that a pass replaced. */
export interface PassChange {
  /** The rules that were applied, in order; none where a pass is no list of rules. */
  readonly rules: readonly AppliedRule[];
  readonly before: string;
  /**
   * The name of a node that there was, or the nodes made for it, the one that stands for it last.
   */
  readonly after: readonly string[];
}

/** What one pass did. */
export interface PassReport {
  readonly name: string;
  /** What holds after the pass. */
  readonly guarantees: string;
  /** How many nodes the graph has before and after. */
  readonly nodes: readonly [before: number, after: number];
  readonly changes: readonly PassChange[];
  /** Names of the nodes that nothing needs any more. */
  readonly dropped: readonly string[];
}

type PassStage = Extract<CompileStage, { readonly kind: 'pass' }>;

/** How a report calls it that two nodes have become one. */
const sharing: AppliedRule = { name: 'share', law: 'equal nodes are one node' };

/** What a pass did. */
export function passReport({ name, guarantees, before, graph, trace }: PassStage): PassReport {
  const names = nodeNames(before);
  const kept = new Set(nodesOf(graph));
  /** What nodes are called after the pass. */
  const after = new Map<Node, string>();
  const nameAfter = (node: Node): string => after.get(node) ?? '%?';
  /** What a node is made of that has no name yet, itself last. */
  const freshNodes = (node: Node): Node[] =>
    topological([node], (each) => after.has(each)).filter((each) => !after.has(each));
  const parameters = new Map<Node, Node>(
    before.parameters.map((node, i) => [node as Node, graph.parameters[i]! as Node]),
  );
  const changes: PassChange[] = [];
  const dropped: string[] = [];
  for (const [node, own] of names) {
    const made = madeOf(node, trace);
    const rules = rulesOf(node, trace);
    const text = printNode(node, (each) => names.get(each) ?? '%?');
    // A parameter may come in another form, and what is made of that stands for it.
    const parameter = parameters.get(node);
    if (parameter !== undefined && parameter !== made) {
      after.set(parameter, own);
      const fresh = kept.has(made) ? freshNodes(made) : [];
      fresh.forEach((each, i) => after.set(each, `${own}.${i + 1}`));
      const lines = [parameter, ...fresh].map((each) => printNode(each, nameAfter));
      changes.push({ rules, before: text, after: lines });
      continue;
    }
    if (!kept.has(made)) {
      dropped.push(own);
      continue;
    }
    const known = after.get(made);
    if (known !== undefined) {
      changes.push({ rules: rules.length > 0 ? rules : [sharing], before: text, after: [known] });
      continue;
    }
    const isSame =
      made.op === node.op &&
      made.dtype === node.dtype &&
      sameShape(made.shape, node.shape) &&
      sameAttrs(made.attrs, node.attrs) &&
      made.inputs.length === node.inputs.length &&
      made.inputs.every((input, i) => input === madeOf(node.inputs[i]!, trace));
    const fresh = freshNodes(made);
    fresh.forEach((each, i) => after.set(each, each === made ? own : `${own}.${i + 1}`));
    if (!isSame)
      changes.push({ rules, before: text, after: fresh.map((each) => printNode(each, nameAfter)) });
  }
  // Some passes put nodes behind the results when the walk is over.
  graph.outputs.forEach((output, i) => {
    const own = names.get(before.outputs[i]!) ?? '%?';
    const fresh = freshNodes(output);
    fresh.forEach((each, number) => after.set(each, `${own}.out${number + 1}`));
    if (fresh.length === 0) return;
    const lines = fresh.map((each) => printNode(each, nameAfter));
    changes.push({ rules: [], before: `return ${own}`, after: lines });
  });
  return { name, guarantees, nodes: [names.size, nodesOf(graph).length], changes, dropped };
}

function nodesOf(graph: Graph): readonly Node[] {
  return [...nodeNames(graph).keys()];
}

/** Lines of one change that are shown. */
const mostLines = 12;

/** The reports as text: passes that changed something, each change as lines that go and come. */
export function passesText(reports: readonly PassReport[]): string {
  const isBusy = ({ changes, dropped }: PassReport): boolean => changes.length + dropped.length > 0;
  const idle = reports.filter((report) => !isBusy(report)).map(({ name }) => name);
  const blocks = reports.filter(isBusy).map((report) => {
    const { name, guarantees, nodes, changes, dropped } = report;
    return [
      `${name}: ${guarantees} (${nodes[0]} nodes, then ${nodes[1]})`,
      ...changes.flatMap(changeLines),
      ...(dropped.length > 0 ? [`  no longer needed: ${dropped.join(', ')}`] : []),
    ].join('\n');
  });
  if (idle.length > 0) blocks.push(`nothing to change: ${idle.join(', ')}`);
  return blocks.join('\n\n');
}

function changeLines({ rules, before, after }: PassChange): string[] {
  const shown = after.slice(-mostLines);
  const left = after.length - shown.length;
  return [
    ...rules.map(({ name, law }) => `  ${name}: ${law}`),
    `    - ${before}`,
    ...(left > 0 ? [`    + (${left} nodes before these)`] : []),
    ...shown.map((line) => `    + ${line}`),
  ];
}
