// Where everything stands in the drawing. Two drawings of one program: kernels as cards, and
// kernels as boxes around the nodes they compute. Nodes are laid out kernel by kernel, then the
// boxes as nodes of a graph of their own; both by dagre (layers, Sugiyama et al.), when the page is
// made, so that the page needs no library.

import type { EdgeLabel, Graph, GraphLabel, NodeLabel } from '@dagrejs/dagre';
import { dagre } from '../packages/dagre.ts';
import { showBytes } from '../table.ts';
import {
  drawRows,
  type Box,
  type Drawing,
  type PlacedEdge,
  type PlacedKernel,
  type PlacedNode,
  type Point,
} from './rows.ts';
import type { Explained, ExplainedKernel, ExplainedNode } from './types.ts';

/** Most kernels that are laid out along their values; more stand in rows, under their stages. */
const mostLayered = 20;

/**
 * Height of a box's heading, of a card, and of a node; widths of a character in the two sizes of
 * text.
 */
export const headHeight = 30;
const card = { width: 236, height: 74 };
const nodeHeight = 34;
const characters = { node: 6.7, head: 7.6 };
const padding = 12;
/**
 * Height of the line that says what was left out, and nodes of a kernel from which on no further
 * result is drawn.
 */
const noteHeight = 22;
const manyNodes = 160;

/** Kernels as cards. */
export function drawKernels({ kernels }: Explained): Drawing {
  if (kernels.length > mostLayered) return drawRows(kernels, passings(kernels), card);
  const sizes = kernels.map(() => card);
  return arrange(kernels, sizes, (place, edge) => edge(place.from, place.to, place.values));
}

/** Kernels as boxes around their nodes. */
export function drawNodes({ kernels, nodes }: Explained): Drawing {
  const insides = kernels.map((kernel) => inside(kernel, nodes));
  const sizes = insides.map(({ width, height }, i) => ({
    width: Math.max(width + 2 * padding, headWidth(kernels[i]!, i)),
    height: headHeight + height + padding + (insides[i]!.omitted > 0 ? noteHeight : 0),
  }));
  const drawing = arrange(kernels, sizes, ({ from, to, values }, edge) => {
    for (const value of values) edge(from, to, [value]);
  });
  const placed = drawing.kernels.map((box, i): PlacedKernel => {
    const { nodes: own, edges, width, omitted } = insides[i]!;
    const left = box.x + (box.width - width) / 2;
    const move = <T extends Point>(at: T): T => ({ ...at, x: at.x + left, y: at.y + box.y + headHeight });
    return { ...box, nodes: own.map(move), edges: edges.map((points) => points.map(move)), omitted };
  });
  // From the node that is written to the one that is read; in between the way that was laid out
  // around the boxes.
  const edges = drawing.edges.map((edge): PlacedEdge => {
    const value = edge.values[0]!;
    const start = placed[edge.from]!.nodes.find(({ node, role }) => node === value && role !== 'read');
    const end = placed[edge.to]!.nodes.find(({ node, role }) => node === value && role === 'read');
    const points = [...edge.points];
    if (start !== undefined) {
      const x = start.x + start.width / 2;
      const box = placed[edge.from]!;
      points.splice(0, 1, { x, y: start.y + start.height }, { x, y: box.y + box.height + 8 });
    }
    // It ends above the node at the frame, so as not to run through the heading.
    if (end !== undefined) {
      const x = end.x + end.width / 2;
      const { y } = placed[edge.to]!;
      points.splice(-1, 1, { x, y: y - 8 }, { x, y });
    }
    return { ...edge, points };
  });
  return { ...drawing, kernels: placed, edges };
}

interface Passing {
  readonly from: number;
  readonly to: number;
  readonly values: readonly number[];
}

/** Lays out boxes of these sizes along the values that pass between kernels. */
function arrange(
  kernels: readonly ExplainedKernel[],
  sizes: readonly { readonly width: number; readonly height: number }[],
  draw: (passing: Passing, edge: (from: number, to: number, values: readonly number[]) => void) => void,
): Drawing {
  const graph = newGraph({ nodesep: 36, ranksep: 46, edgesep: 14, marginx: 16, marginy: 16 });
  sizes.forEach(({ width, height }, i) => graph.setNode(String(i), { width, height }));
  const edges: { readonly edge: Passing; readonly name: string }[] = [];
  for (const passing of passings(kernels)) {
    draw(passing, (from, to, values) => {
      const name = `${from}/${to}/${values.join('/')}`;
      graph.setEdge(String(from), String(to), { weight: values.length, minlen: 1 }, name);
      edges.push({ edge: { from, to, values }, name });
    });
  }
  dagre().layout(graph);
  const boxes = sizes.map((_, i) => boxOf(graph, String(i)));
  const laid = edges.map(({ edge, name }) => ({
    ...edge,
    points: pointsOf(graph, String(edge.from), String(edge.to), name),
  }));
  return {
    ...extent(graph),
    kernels: boxes.map((box, i) => ({ ...box, kernel: i, nodes: [], edges: [], omitted: 0 })),
    edges: fanned(laid, boxes),
  };
}

/**
 * Ways leave boxes below and enter them above, side by side in the order they come from and go to.
 */
function fanned(edges: readonly PlacedEdge[], boxes: readonly Box[]): PlacedEdge[] {
  const ends = (key: 'from' | 'to', inner: number): ReadonlyMap<PlacedEdge, number> => {
    const places = new Map<PlacedEdge, number>();
    for (const [i, box] of boxes.entries()) {
      const own = edges
        .filter((edge) => edge[key] === i)
        .sort((a, b) => a.points.at(inner)!.x - b.points.at(inner)!.x);
      own.forEach((edge, k) => places.set(edge, box.x + (box.width * (k + 1)) / (own.length + 1)));
    }
    return places;
  };
  const [leaving, entering] = [ends('from', 1), ends('to', -2)];
  const rows = rowsOf(boxes);
  return edges.map((edge) => {
    const [above, below] = [boxes[edge.from]!, boxes[edge.to]!];
    const [x0, x1] = [leaving.get(edge)!, entering.get(edge)!];
    const [y0, y1] = [above.y + above.height, below.y];
    const [leave, enter] = [rowAt(rows, y0 - 1)?.bottom ?? y0, rowAt(rows, y1 + 1)?.top ?? y1];
    // Past a row of boxes a way goes straight down, where it has room of its own; only between rows
    // does it go aside.
    const way = edge.points.slice(1, -1).flatMap(({ x, y }): Point[] => {
      const row = rowAt(rows, y);
      if (row === undefined) return y <= leave || y >= enter ? [] : [{ x, y }];
      if (row.top < leave || row.bottom > enter) return [];
      return [
        { x, y: row.top - 4 },
        { x, y: row.bottom + 4 },
      ];
    });
    const first = { x: x0, y: leave + 8 };
    const last = { x: x1, y: enter - 8 };
    return { ...edge, points: [{ x: x0, y: y0 }, first, ...way, last, { x: x1, y: y1 }] };
  });
}

interface Row {
  readonly top: number;
  readonly bottom: number;
}

/** The rows that boxes stand in, each around its middle. */
function rowsOf(boxes: readonly Box[]): readonly Row[] {
  const rows = new Map<number, Row>();
  for (const { y, height } of boxes) {
    const middle = Math.round(y + height / 2);
    const { top, bottom } = rows.get(middle) ?? { top: y, bottom: y + height };
    rows.set(middle, { top: Math.min(top, y), bottom: Math.max(bottom, y + height) });
  }
  return [...rows.values()];
}

function rowAt(rows: readonly Row[], y: number): Row | undefined {
  return rows.find(({ top, bottom }) => y >= top && y <= bottom);
}

/** The values that pass between each pair of kernels. */
function passings(kernels: readonly ExplainedKernel[]): Passing[] {
  const writer = new Map<number, number>();
  kernels.forEach(({ writes }, i) => writes.forEach(({ node }) => writer.set(node, i)));
  return kernels.flatMap(({ reads }, to) => {
    const values = new Map<number, number[]>();
    for (const { node } of reads) {
      const from = writer.get(node);
      if (from !== undefined && from !== to) values.set(from, [...(values.get(from) ?? []), node]);
    }
    return [...values].map(([from, list]) => ({ from, to, values: list }));
  });
}

interface Inside {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly (readonly Point[])[];
  readonly omitted: number;
}

/** What is drawn of a kernel: all of it, or what its first results need. */
function drawnOf(kernel: ExplainedKernel, nodes: readonly ExplainedNode[]): ReadonlySet<number> {
  const { reads, writes, prologue, body, epilogue } = kernel;
  const read = new Set(reads.map(({ node }) => node));
  const all = new Set([...read, ...prologue, ...body, ...epilogue, ...writes.map(({ node }) => node)]);
  if (all.size <= manyNodes) return all;
  const drawn = new Set<number>();
  for (const { node } of writes) {
    const needed = new Set(drawn).add(node);
    for (const at of needed) {
      if (read.has(at)) continue;
      for (const input of nodes[at]!.inputs) if (all.has(input)) needed.add(input);
    }
    if (drawn.size > 0 && needed.size > manyNodes) break;
    for (const at of needed) drawn.add(at);
  }
  return drawn;
}

/** The nodes of one kernel, from 0, 0. Constants are written into what uses them. */
function inside(kernel: ExplainedKernel, nodes: readonly ExplainedNode[]): Inside {
  const drawn = drawnOf(kernel, nodes);
  const graph = newGraph({ nodesep: 12, ranksep: 20, edgesep: 8, marginx: 0, marginy: 4 });
  const roles = new Map<number, PlacedNode['role']>();
  for (const { node } of kernel.reads) if (drawn.has(node)) roles.set(node, 'read');
  let omitted = kernel.reads.length - roles.size;
  for (const role of ['prologue', 'body', 'epilogue'] as const) {
    for (const node of kernel[role]) {
      if (constantOf(nodes, node) !== undefined) continue;
      if (drawn.has(node)) roles.set(node, role);
      else omitted++;
    }
  }
  const written = new Set(kernel.writes.map(({ node }) => node).filter((node) => drawn.has(node)));
  // A constant that is written is drawn nevertheless.
  for (const node of written) if (!roles.has(node)) roles.set(node, 'body');
  for (const [node, role] of roles) {
    if (role === 'read') continue;
    for (const input of nodes[node]!.inputs)
      if (!roles.has(input) && nodes[input]!.op === 'parameter') roles.set(input, 'scalar');
  }
  const texts = new Map([...roles].map(([node]) => [node, nodeText(nodes, node)]));
  for (const node of roles.keys()) {
    const characterCount = Math.max(
      texts.get(node)!.length,
      typeText(nodes[node]!, written.has(node) || roles.get(node) === 'read').length,
    );
    graph.setNode(String(node), { width: characterCount * characters.node + 18, height: nodeHeight });
  }
  // Values from outside stay in the first row, where edges from other boxes end: an invisible root
  // keeps them there.
  graph.setNode(root, { width: 0, height: 0 });
  for (const [node, role] of roles)
    if (role === 'read' || role === 'scalar') graph.setEdge(root, String(node), { weight: 50 });
  const lines: (readonly [string, string])[] = [];
  for (const [node, role] of roles) {
    if (role === 'read' || role === 'scalar') continue;
    for (const input of new Set(nodes[node]!.inputs)) {
      if (!roles.has(input)) continue;
      graph.setEdge(String(input), String(node), {});
      lines.push([String(input), String(node)]);
    }
  }
  dagre().layout(graph);
  const { width, height } = extent(graph);
  const top = Math.min(...[...roles.keys()].map((node) => boxOf(graph, String(node)).y));
  const lift = <T extends Point>(at: T): T => ({ ...at, y: at.y - top + 4 });
  return {
    width,
    height: height - top + 4,
    omitted,
    nodes: [...roles].map(([node, role]) => ({
      ...lift(boxOf(graph, String(node))),
      node,
      role,
      text: texts.get(node)!,
      written: written.has(node),
    })),
    edges: lines.map(([from, to]) => pointsOf(graph, from, to).map(lift)),
  };
}

const root = 'root';

/** The number that a node is everywhere, as text; undefined when it is none. */
function constantOf(nodes: readonly ExplainedNode[], place: number): string | undefined {
  let node = nodes[place]!;
  while (node.op === 'broadcast' || node.op === 'reshape') node = nodes[node.inputs[0]!]!;
  return node.op === 'constant' ? shortNumber(node.label) : undefined;
}

function shortNumber(text: string): string {
  return text.length <= 8 ? text : String(Number(Number(text).toPrecision(4)));
}

/** The label, with what is constant among the operands: `mul 0.125`. */
function nodeText(nodes: readonly ExplainedNode[], place: number): string {
  const { label, inputs, op } = nodes[place]!;
  if (op === 'broadcast' || op === 'reshape') return label;
  const constants = inputs.flatMap((input) => constantOf(nodes, input) ?? []);
  return [label, ...constants].join(' ');
}

/** The second line of a node: its type, and of what is in memory its bytes. */
export function typeText({ type, bytes }: ExplainedNode, inMemory: boolean): string {
  return inMemory ? `${type}  ${showBytes(bytes)}` : type;
}

function headWidth({ name }: ExplainedKernel, place: number): number {
  return `${place}  ${name}  100 %`.length * characters.head + 2 * padding;
}

type Laid = Graph<GraphLabel, NodeLabel, EdgeLabel>;

function newGraph(options: GraphLabel): Laid {
  const graph: Laid = new (dagre().Graph)<GraphLabel, NodeLabel, EdgeLabel>({
    directed: true,
    multigraph: true,
  });
  graph.setGraph({ rankdir: 'TB', ...options });
  return graph;
}

function extent(graph: Laid): { readonly width: number; readonly height: number } {
  const { width, height } = graph.graph();
  const size = (value: number | undefined): number =>
    value === undefined || !Number.isFinite(value) ? 0 : value;
  return { width: size(width), height: size(height) };
}

/** dagre names centres. */
function boxOf(graph: Laid, name: string): Box {
  const { x = 0, y = 0, width, height } = graph.node(name);
  return { x: x - width / 2, y: y - height / 2, width, height };
}

function pointsOf(graph: Laid, from: string, to: string, name?: string): readonly Point[] {
  return (graph.edge(from, to, name)?.points ?? []).map(({ x, y }: Point) => ({ x, y }));
}
