// A model's graph made ready to run: each node with the row or the sub-graphs that give it meaning,
// in an order in which everything is there before it is read. What is not supported, is missing, or
// forms a cycle is an error here, before anything is computed.

import { ParseError, SinterError } from '../errors.ts';
import { Attributes } from './attributes.ts';
import type { Budget } from './budget.ts';
import type { Row, Rows } from './call.ts';
import type { Message } from './schema.ts';
import type { Value } from './value.ts';
import { readSparse, readTensor, type ExternalData, type StoredInitializer } from './weights.ts';

/** A node that cannot be imported. */
export interface UnsupportedNode {
  readonly name: string;
  /** With its domain in front unless that is the standard one. */
  readonly op: string;
  /** The version of the domain's operators that the model asks for. */
  readonly opset: number;
}

/** The model has operators that are not supported; all of them are listed. */
export class UnsupportedNodesError extends SinterError {
  override name: string = 'UnsupportedNodesError';
  readonly nodes: readonly UnsupportedNode[];
  constructor(nodes: readonly UnsupportedNode[]) {
    const list = nodes.map(
      ({ name, op, opset }) => `\n  ${op} (opset ${opset})${name === '' ? '' : ` at '${name}'`}`,
    );
    super('E_UNSUPPORTED', `onnx: ${nodes.length} node(s) are not supported:${list.join('')}`);
    this.nodes = nodes;
  }
}

/** What a node gave for known integers before, by their text: recordings at other sizes compute most numbers again. */
export type Folds = Map<string, readonly (Value | undefined)[]>;

/**
 * How a node gets its results: by a row of the table, by the body of a function, or by sub-graphs.
 */
export type Meaning =
  | { readonly kind: 'row'; readonly row: Row; readonly folds: Folds }
  | { readonly kind: 'function'; readonly body: GraphPlan }
  | { readonly kind: 'control'; readonly bodies: ReadonlyMap<string, GraphPlan> };

export interface GraphStep {
  readonly op: string;
  /** For messages: operator and name. */
  readonly label: string;
  readonly opset: number;
  readonly attributes: Attributes;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly meaning: Meaning;
}

export interface GraphPlan {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly stored: ReadonlyMap<string, StoredInitializer>;
  readonly steps: readonly GraphStep[];
}

/** Everything that nodes are looked up in. */
export interface Context {
  readonly domains: Readonly<Record<string, Rows>>;
  readonly opsets: ReadonlyMap<string, number>;
  /** By `functionKey`. */
  readonly functions: ReadonlyMap<string, Message<'Function'>>;
  readonly external: ExternalData | undefined;
  /** Filled while planning. */
  readonly unsupported: UnsupportedNode[];
  /** Counts nodes, those of functions wherever they are called. */
  readonly budget: Budget;
}

/** The newest operators that rows were written for. */
export const newestOpset = 28;

/** Sub-graphs of an operator by their attributes, and those that may be left out. */
interface Graphs {
  readonly needed: readonly string[];
  readonly optional?: readonly string[];
  /** Its other attributes; nothing where they are not checked. */
  readonly others?: readonly string[];
}

const scanned = ['num_scan_inputs', 'directions'].concat(
  ['input', 'output'].flatMap((side) => [`scan_${side}_axes`, `scan_${side}_directions`]),
);

const control: Readonly<Record<string, ReadonlyMap<string, Graphs>>> = {
  '': new Map([
    ['If', { needed: ['then_branch', 'else_branch'], others: [] }],
    ['Loop', { needed: ['body'], others: [] }],
    ['Scan', { needed: ['body'], others: scanned }],
    ['SequenceMap', { needed: ['body'], others: [] }],
  ]),
  'ai.onnx.preview': new Map([['FlexAttention', { needed: [], optional: ['score_mod', 'prob_mod'] }]]),
};

const deepest = 32;

/** The plan of a graph; `outer` holds the names that graphs around it define. */
export function planGraph(
  graph: Message<'Graph'>,
  context: Context,
  outer: ReadonlySet<string>,
  depth = 0,
): GraphPlan {
  const stored = new Map<string, StoredInitializer>();
  const store = (name: string, value: StoredInitializer): void => {
    if (stored.has(name)) throw new ParseError('E_FORMAT', 'onnx', `there are two initializers '${name}'`);
    stored.set(name, value);
  };
  for (const proto of graph.initializer) store(proto.name ?? '', readTensor(proto, context.external));
  for (const proto of graph.sparseInitializer) {
    const { name, ...value } = readSparse(proto, context.external);
    store(name, value);
  }
  const inputs = graph.input.map(({ name }) => name ?? '');
  const given = new Set<string>();
  for (const name of inputs) {
    if (given.has(name)) throw new ParseError('E_FORMAT', 'onnx', `there are two inputs '${name}'`);
    given.add(name);
  }
  const outputs = graph.output.map(({ name }) => name ?? '');
  const defined = new Set([...outer, ...stored.keys(), ...inputs]);
  const steps = planNodes(graph.node, outputs, context, defined, depth);
  return { inputs, outputs, stored, steps };
}

function planNodes(
  nodes: readonly Message<'Node'>[],
  outputs: readonly string[],
  context: Context,
  defined: ReadonlySet<string>,
  depth: number,
): GraphStep[] {
  if (depth > deepest)
    throw new ParseError('E_FORMAT', 'onnx', `graphs and functions nest deeper than ${deepest}`);
  const all = new Set(defined);
  for (const node of nodes) {
    for (const name of node.output) {
      if (name === '') continue;
      if (all.has(name) && !defined.has(name))
        throw new ParseError('E_FORMAT', 'onnx', `'${name}' is computed twice`);
      all.add(name);
    }
  }
  const missing = outputs.find((name) => !all.has(name));
  if (missing !== undefined)
    throw new ParseError('E_FORMAT', 'onnx', `nothing computes the output '${missing}'`);
  return sorted(nodes, defined, all).map((node) =>
    domainOf(node.domain) === trainingDomain && node.opType === 'Gradient'
      ? planGradient(node, nodes, context, all, depth)
      : planNode(node, context, all, depth),
  );
}

const nothing: ReadonlySet<string> = new Set();

/** In an order in which inputs come before their readers. */
function sorted(
  nodes: readonly Message<'Node'>[],
  defined: ReadonlySet<string>,
  all: ReadonlySet<string>,
): Message<'Node'>[] {
  const producer = new Map<string, number>();
  nodes.forEach((node, i) => node.output.forEach((name) => name !== '' && producer.set(name, i)));
  const reads = nodes.map((node) => readsOf(node, all, defined, 0));
  const waiting = reads.map((names) => new Set(names.flatMap((name) => producer.get(name) ?? [])));
  const readers = new Map<number, number[]>();
  waiting.forEach((set, i) => set.forEach((from) => readers.set(from, [...(readers.get(from) ?? []), i])));
  const ready = waiting.flatMap((set, i) => (set.size === 0 ? [i] : []));
  const order: Message<'Node'>[] = [];
  // A queue that is walked by index: models have many thousand nodes.
  for (let at = 0; at < ready.length; at++) {
    const done = ready[at]!;
    order.push(nodes[done]!);
    for (const reader of readers.get(done) ?? []) {
      waiting[reader]!.delete(done);
      if (waiting[reader]!.size === 0) ready.push(reader);
    }
  }
  if (order.length < nodes.length) {
    const stuck = nodes.find((_, i) => waiting[i]!.size > 0)!;
    throw new ParseError('E_FORMAT', 'onnx', `${label(stuck)} depends on its own result`);
  }
  return order;
}

/**
 * What a node reads from its graph, also inside of its sub-graphs. Throws E_FORMAT at names that
 * nothing defines.
 */
function readsOf(
  node: Message<'Node'>,
  all: ReadonlySet<string>,
  defined: ReadonlySet<string>,
  depth: number,
): string[] {
  const lost = node.input.find((name) => name !== '' && !all.has(name));
  if (lost !== undefined)
    throw new ParseError('E_FORMAT', 'onnx', `${label(node)} reads '${lost}', which nothing defines`);
  if (depth > deepest) throw new ParseError('E_FORMAT', 'onnx', `graphs nest deeper than ${deepest}`);
  const inner = node.attribute.flatMap(({ g }) => {
    if (g === undefined) return [];
    const own = new Set<string>(g.input.map(({ name }) => name ?? ''));
    for (const { name } of g.initializer) own.add(name ?? '');
    for (const { values } of g.sparseInitializer) own.add(values?.name ?? '');
    for (const item of g.node) item.output.forEach((name) => own.add(name));
    const seen = new Set([...all, ...own]);
    const names = g.node.flatMap((item) => readsOf(item, seen, nothing, depth + 1));
    return [...names, ...g.output.map(({ name }) => name ?? '')].filter((name) => !own.has(name));
  });
  return [...node.input, ...inner].filter((name) => name !== '' && !defined.has(name));
}

function label({ opType, name }: Message<'Node'>): string {
  return name === undefined || name === '' ? (opType ?? 'a node') : `${opType} '${name}'`;
}

/** The key by which nodes call a function. */
function functionKey(
  domain: string | undefined,
  name: string | undefined,
  overload: string | undefined,
): string {
  return JSON.stringify([domainOf(domain), name ?? '', overload ?? '']);
}

/** The functions of a file by the key that calls them; the first where there are several. */
export function functionsOf({ functions }: Message<'Model'>): Context['functions'] {
  const found = new Map<string, Message<'Function'>>();
  for (const item of functions) {
    const key = functionKey(item.domain, item.name, item.overload);
    if (!found.has(key)) found.set(key, item);
  }
  return found;
}

/** The standard domain has two names. */
export function domainOf(domain: string | undefined): string {
  return domain === undefined || domain === 'ai.onnx' ? '' : domain;
}

function planNode(
  node: Message<'Node'>,
  context: Context,
  all: ReadonlySet<string>,
  depth: number,
): GraphStep {
  const domain = domainOf(node.domain);
  const op = node.opType ?? '';
  const what = `onnx: ${label(node)}`;
  const opset = context.opsets.get(domain) ?? 1;
  const attributes = new Attributes(what, node.attribute, context.external);
  const step = { op, label: label(node), opset, attributes, inputs: node.input, outputs: node.output };
  context.budget.spend(1, what);
  const called = context.functions.get(functionKey(domain, op, node.overload));
  if (called !== undefined) {
    return { ...step, meaning: { kind: 'function', body: planFunction(called, node, context, depth) } };
  }
  const graphs = Object.hasOwn(control, domain) ? control[domain]?.get(op) : undefined;
  if (graphs !== undefined) {
    const { needed, optional = [], others } = graphs;
    expectAttributes(what, op, node, others && [...needed, ...others]);
    const bodies = [...needed, ...optional].flatMap((name) => {
      const graph = attributes.get(name)?.g;
      if (graph !== undefined) return [[name, planGraph(graph, context, all, depth + 1)] as const];
      if (optional.includes(name)) return [];
      throw new ParseError('E_FORMAT', what, `attribute '${name}' is missing`);
    });
    return { ...step, meaning: { kind: 'control', bodies: new Map(bodies) } };
  }
  const table = Object.hasOwn(context.domains, domain) ? context.domains[domain] : undefined;
  const row = table !== undefined && Object.hasOwn(table, op) ? table[op] : undefined;
  if (row !== undefined && row.since[0]! <= opset) {
    expectAttributes(what, op, node, row.attributes);
    return { ...step, meaning: { kind: 'row', row, folds: new Map() } };
  }
  context.unsupported.push({ name: node.name ?? '', op: domain === '' ? op : `${domain}::${op}`, opset });
  // Never run: loading throws with the list of unsupported nodes.
  return { ...step, meaning: { kind: 'row', row: { since: [1], run: () => undefined }, folds: new Map() } };
}

/** Throws E_FORMAT at an attribute that an operator does not have: it would change the meaning of the node, unseen. */
function expectAttributes(
  what: string,
  op: string,
  { attribute }: Message<'Node'>,
  known: readonly string[] | undefined,
): void {
  if (known === undefined) return;
  // Names that begin with two underscores are the tools' own, and one of the first opsets means nothing now.
  const isFree = (name: string): boolean => name.startsWith('__') || name === 'consumed_inputs';
  const odd = attribute.find(({ name = '' }) => !known.includes(name) && !isFree(name));
  if (odd === undefined) return;
  const problem = `there is no attribute '${odd.name}': ${op} has ${known.join(', ') || 'none'}`;
  throw new ParseError('E_FORMAT', what, problem);
}

const trainingDomain = 'ai.onnx.preview.training';

/** A derivative of a value of the graph: its body are the nodes between its inputs and that value. */
function planGradient(
  node: Message<'Node'>,
  nodes: readonly Message<'Node'>[],
  context: Context,
  all: ReadonlySet<string>,
  depth: number,
): GraphStep {
  const what = `onnx: ${label(node)}`;
  expectAttributes(what, 'Gradient', node, ['xs', 'zs', 'y']);
  const attributes = new Attributes(what, node.attribute, context.external);
  const [xs, zs] = ['xs', 'zs'].map((name) => attributes.strings(name) ?? []) as [string[], string[]];
  const y = attributes.string('y', '');
  const inputs = [...xs, ...zs];
  if (xs.length === 0 || node.input.length !== inputs.length || node.output.length !== xs.length)
    throw new ParseError('E_FORMAT', what, 'its inputs are not those that xs and zs name');
  const producers = new Map(nodes.flatMap((item) => item.output.map((name) => [name, item] as const)));
  const leaves = new Set(inputs);
  const needed = new Set<Message<'Node'>>();
  const seen = new Set([y]);
  for (const name of seen) {
    const producer = leaves.has(name) ? undefined : producers.get(name);
    if (producer === undefined) continue;
    if (producer === node) throw new ParseError('E_FORMAT', what, 'it derives its own result');
    needed.add(producer);
    for (const source of producer.input) seen.add(source);
  }
  const own = new Set([...needed].flatMap(({ output }) => output));
  const defined = new Set([...[...all].filter((name) => !own.has(name)), ...inputs]);
  const steps = planNodes(
    nodes.filter((item) => needed.has(item)),
    [y],
    context,
    defined,
    depth + 1,
  );
  const body = { inputs, outputs: [y], stored: new Map(), steps };
  const opset = context.opsets.get(trainingDomain) ?? 1;
  const meaning: Meaning = { kind: 'control', bodies: new Map([['y', body]]) };
  context.budget.spend(1, what);
  return {
    op: 'Gradient',
    label: label(node),
    opset,
    attributes,
    inputs: node.input,
    outputs: node.output,
    meaning,
  };
}

/** The body of a function with the attributes of one call put in. */
function planFunction(
  called: Message<'Function'>,
  node: Message<'Node'>,
  context: Context,
  depth: number,
): GraphPlan {
  const given = new Map(called.attributeProto.map((attribute) => [attribute.name ?? '', attribute]));
  for (const attribute of node.attribute) given.set(attribute.name ?? '', attribute);
  const nodes = called.node.map((item) => withAttributes(item, given, 0));
  const own = new Map(context.opsets);
  for (const { domain, version } of called.opsetImport) own.set(domainOf(domain), Number(version ?? 1n));
  const steps = planNodes(
    nodes,
    called.output,
    { ...context, opsets: own },
    new Set(called.input),
    depth + 1,
  );
  return { inputs: called.input, outputs: called.output, stored: new Map(), steps };
}

function withAttributes(
  node: Message<'Node'>,
  given: ReadonlyMap<string, Message<'Attribute'>>,
  depth: number,
): Message<'Node'> {
  if (depth > deepest) throw new ParseError('E_FORMAT', 'onnx', `graphs nest deeper than ${deepest}`);
  const attribute = node.attribute.flatMap((item) => {
    if (item.g !== undefined) {
      return [
        {
          ...item,
          g: { ...item.g, node: item.g.node.map((inner) => withAttributes(inner, given, depth + 1)) },
        },
      ];
    }
    if (item.refAttrName === undefined || item.refAttrName === '') return [item];
    const found = given.get(item.refAttrName);
    return found === undefined ? [] : [{ ...found, name: item.name }];
  });
  return { ...node, attribute };
}

/** Gives errors the node's name. */
export function explained<T>(step: GraphStep, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const code = error instanceof SinterError ? error.code : 'E_VALUE';
    const text = `onnx: ${step.label} (opset ${step.opset}): ${error.message}`;
    throw new SinterError(code, text, { cause: error });
  }
}
