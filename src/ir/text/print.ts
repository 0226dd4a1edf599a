// A graph as text, one node a line: `%3 = mul(%0, %2) : f32[2,3]`. Nodes are numbered in printing
// order: the parameters, then everything an output needs, inputs first. `parse` reads the text back
// to an equal graph. The attributes `dtype` and `shape` are the node's type, so they are printed as
// the type only. Regions, which nodes hold, stand before the nodes, each once: `@0 = body {`, their
// own lines, `}`.

import type { TensorType } from '../infer.ts';
import { topological, type Graph, type Node } from '../graph.ts';
import { facts, isOp } from '../ops.ts';
import { Region } from '../region.ts';
import type { Dim } from '../shape.ts';

/** The text of a graph; `parse` gives an equal graph back. */
export function print(graph: Graph): string {
  const names = nodeNames(graph);
  const name = (node: Node): string => names.get(node) ?? '%?';
  const regions = new Map<string, { readonly name: string; readonly region: Region }>();
  for (const node of names.keys())
    for (const value of Object.values(node.attrs as Readonly<Record<string, unknown>>))
      if (value instanceof Region && !regions.has(value.key))
        regions.set(value.key, { name: `@${regions.size}`, region: value });
  const lines = ['graph {'];
  for (const { name: called, region } of regions.values()) {
    const [, ...inside] = print(region.graph as Graph)
      .trimEnd()
      .split('\n');
    lines.push(`  ${called} = body {`, ...inside.map((line) => `  ${line}`));
  }
  const regionName = ({ key }: Region): string => regions.get(key)?.name ?? '@?';
  for (const node of names.keys()) lines.push(`  ${printNode(node, name, regionName)}`);
  lines.push(`  ${['return', graph.outputs.map(name).join(', ')].join(' ').trimEnd()}`, '}', '');
  return lines.join('\n');
}

/** What the graph's text calls each of its nodes, in the order of the lines. */
export function nodeNames(graph: Graph): Map<Node, string> {
  const names = new Map<Node, string>();
  for (const node of graph.parameters) names.set(node, `%${names.size}`);
  for (const node of topological(graph.outputs)) if (!names.has(node)) names.set(node, `%${names.size}`);
  return names;
}

/** One node on one line, for messages; without `name`, nodes are called by their id. */
export function printNode(
  node: Node,
  name: (node: Node) => string = (node) => `%${node.id}`,
  regionName: (region: Region) => string = ({ graph }) => `@(${graph.outputs.length} results)`,
): string {
  const inputs = node.inputs.length === 0 ? '' : `(${node.inputs.map(name).join(', ')})`;
  return `${name(node)} = ${node.op}${inputs}${printAttrs(node, regionName)} : ${printType(node)}`;
}

/** A type as it stands in IR text: `f32[seq:1..2048,64]`. */
export function printType({ dtype, shape }: TensorType): string {
  return `${dtype}[${shape.map(printDim).join(',')}]`;
}

/** Attributes that the type after the colon already tells. */
export function inType(attr: string): boolean {
  return attr === 'dtype' || attr === 'shape';
}

function printAttrs(node: Node, regionName: (region: Region) => string): string {
  let text = '';
  const attrs = node.attrs as Readonly<Record<string, unknown>>;
  // The text of a broken graph is what its bug report shows, so even an unknown op must print.
  for (const attr of isOp(node.op) ? facts(node.op).attrs : Object.keys(attrs)) {
    if (!inType(attr)) text += `${text === '' ? ' {' : ', '}${attr}: ${printValue(attrs[attr], regionName)}`;
  }
  return text === '' ? '' : `${text}}`;
}

function printValue(value: unknown, regionName: (region: Region) => string): string {
  if (value instanceof Region) return regionName(value);
  if (typeof value === 'number') return printNumber(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => printValue(item, regionName)).join(',')}]`;
  return String(value);
}

/** Shortest digits that read back to the same double. */
function printNumber(value: number): string {
  if (Object.is(value, -0)) return '-0';
  if (Number.isNaN(value)) return 'nan';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? 'inf' : '-inf';
}

function printDim(dim: Dim): string {
  if (typeof dim === 'number') return String(dim);
  const name = /^[A-Za-z_]\w*$/.test(dim.name) ? dim.name : JSON.stringify(dim.name);
  return `${name}:${dim.min}..${dim.max}`;
}
