// Models from bytes, files and addresses. Data outside the model's file is read from the model's
// own folder and nowhere else.

import { beside } from '../beside.ts';
import { fromPackage } from '../packages/missing.ts';
import * as arg from '../ir/arguments.ts';
import { ParseError, showValue, SinterError, TensorError } from '../errors.ts';
import { Budget, limitsOf, usualLimits, withBudget, type Limits } from './budget.ts';
import { portOf } from './ports/port.ts';
import { OnnxModel } from './model.ts';
import { domains } from './ops/index.ts';
import { withLayout, type LayoutBlock } from './ops/microsoft/layout.ts';
import {
  domainOf,
  functionsOf,
  newestOpset,
  planGraph,
  UnsupportedNodesError,
  type Context,
  type GraphPlan,
  type UnsupportedNode,
} from './plan.ts';
import type { Message } from './schema.ts';
import type { FileLocation } from '../platform.ts';

export interface LoadOptions extends Partial<Limits> {
  /**
   * Files that the model's tensors lie in, by the names that the model has for them; by default they
   * are read from beside the model.
   */
  readonly externalData?: Readonly<Record<string, Uint8Array>>;
  /**
   * Channels of a block in files that ONNX Runtime laid out for one kind of CPU, where their sizes do
   * not tell; by default the sizes tell.
   */
  readonly layoutBlock?: LayoutBlock;
}

/** Files by their names. */
const bytesByName: arg.Kind<Readonly<Record<string, Uint8Array>>> = arg.kind(
  'an object of bytes by file name',
  (value) => arg.isPlainObject(value) && Object.values(value).every(arg.isBytes),
);
const takesOnnx = arg.takes<typeof loadOnnx>(
  ['the model', arg.anything()],
  [
    'options',
    arg.options<LoadOptions>({
      externalData: bytesByName,
      layoutBlock: arg.kind('8 or 16', (value): value is LayoutBlock => value === 8 || value === 16),
      // A limit is checked by budget.ts.
      maxBytes: arg.inside(),
      maxNodes: arg.inside(),
    }),
  ],
);

/**
 * Imports a model: bytes, the path of a file (Node), or an address. Throws E_IO where nothing is
 * there, E_FORMAT where the file is malformed, E_LIMIT where it asks for more than the budget, and
 * an UnsupportedNodesError that lists every node of an operator that is not supported.
 */
export async function loadOnnx(
  source: Uint8Array | FileLocation,
  options: LoadOptions = {},
): Promise<OnnxModel> {
  takesOnnx('loadOnnx', source, options);
  if (!(source instanceof Uint8Array || source instanceof URL) && typeof source !== 'string') {
    const problem = `a model is bytes, a path or an address, got ${showValue(source)}`;
    throw new TensorError('E_VALUE', 'loadOnnx', problem, 'new Uint8Array(buffer)');
  }
  const bytes = source instanceof Uint8Array ? source : await readFrom(source);
  const limits = limitsOf('loadOnnx', options);
  const { decode } = await fromPackage('@bufbuild/protobuf', 'loadOnnx', () => import('./wire.ts'));
  const proto = decode('Model', bytes, 'onnx', limits.maxNodes);
  const files = new Map(Object.entries(options.externalData ?? {}));
  for (const location of locations(proto)) {
    if (files.has(location)) continue;
    if (source instanceof Uint8Array) {
      throw new ParseError(
        'E_FORMAT',
        'onnx',
        `tensors lie in '${location}': give that file as externalData`,
      );
    }
    files.set(location, await readBeside(source, location));
  }
  return modelOf(proto, files, limits, options.layoutBlock);
}

/** The model of a decoded file. */
export function modelOf(
  proto: Message<'Model'>,
  files: ReadonlyMap<string, Uint8Array> = new Map(),
  limits: Limits = usualLimits,
  layoutBlock?: LayoutBlock,
): OnnxModel {
  if (proto.graph === undefined) throw new ParseError('E_FORMAT', 'onnx', 'the file has no graph');
  const graph = withLayout(proto.graph, layoutBlock);
  const opsets = new Map<string, number>();
  for (const { domain, version } of proto.opsetImport) {
    opsets.set(domainOf(domain), Number(version ?? 1n));
  }
  const standard = opsets.get('') ?? 1;
  if (standard > newestOpset) {
    throw new SinterError(
      'E_UNSUPPORTED',
      `onnx: the model needs opset ${standard}, supported are 1 to ${newestOpset}`,
    );
  }
  const unsupported: UnsupportedNode[] = [];
  const external = (location: string): Uint8Array => {
    const bytes = files.get(location);
    if (bytes === undefined)
      throw new ParseError('E_FORMAT', 'onnx', `there is no external file '${location}'`);
    return bytes;
  };
  const functions = functionsOf(proto);
  const budget = new Budget(limits);
  const context: Context = { domains, opsets, functions, external, unsupported, budget };
  const plan = planned(graph, context);
  if (unsupported.length > 0) throw new UnsupportedNodesError(unsupported);
  const inputs = graph.input.filter(({ name }) => !plan.stored.has(name ?? '')).map(portOf);
  return new OnnxModel(plan, inputs, graph.output.map(portOf), limits);
}

/**
 * A separate function from the one that makes the context, whose closures live as long as the model
 * and would keep the graph's bytes alive.
 */
function planned(graph: Message<'Graph'>, context: Context): GraphPlan {
  return withBudget(context.budget, () => planGraph(graph, context, new Set()));
}

/** The files that tensors of the model lie in. */
function locations({ graph, functions }: Message<'Model'>): Set<string> {
  const found = new Set<string>();
  const nodes = functions.flatMap(({ node }) => node);
  const tensors = [...(graph?.initializer ?? []), ...tensorsOf([...(graph?.node ?? []), ...nodes])];
  for (const { dataLocation, externalData } of tensors) {
    const location = externalData.find(({ key }) => key === 'location')?.value;
    if (dataLocation === 1 && location !== undefined) found.add(location);
  }
  return found;
}

/** The tensors in attributes of nodes, and those of their sub-graphs. */
function* tensorsOf(nodes: readonly Message<'Node'>[]): Generator<Message<'Tensor'>> {
  for (const { attribute } of nodes) {
    for (const { t, g } of attribute) {
      if (t !== undefined) yield t;
      if (g !== undefined) {
        yield* g.initializer;
        yield* tensorsOf(g.node);
      }
    }
  }
}

function isAddress(source: FileLocation): boolean {
  return source instanceof URL ? source.protocol !== 'file:' : /^https?:/i.test(source);
}

async function readFrom(source: FileLocation): Promise<Uint8Array> {
  if (isAddress(source) || typeof process === 'undefined') return fetched(source);
  const { readFile } = await import('./files.ts');
  return unbroken(source, () => readFile(source));
}

/** The bytes read; throws E_IO where reading fails. */
async function unbroken<T>(source: FileLocation, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    throw new SinterError('E_IO', `onnx: ${String(source)}: ${(cause as Error).message}`, { cause });
  }
}

async function fetched(source: FileLocation): Promise<Uint8Array> {
  return unbroken(source, async () => {
    const response = await fetch(source);
    if (!response.ok) throw new Error(`the server gave ${response.status} ${response.statusText}`);
    return new Uint8Array(await response.arrayBuffer());
  });
}

/** A file in the model's folder or below it. Throws E_FORMAT at a location that leads out of it. */
async function readBeside(source: FileLocation, location: string): Promise<Uint8Array> {
  if (!isAddress(source) && typeof process !== 'undefined') {
    const { readInFolder } = await import('./files.ts');
    return readInFolder(source, location);
  }
  return fetched(beside('onnx: external data', addressOf(source), location));
}

/** An address; in a page one beside the page's own. */
function addressOf(source: FileLocation): FileLocation {
  const base = (globalThis as { document?: { baseURI?: string } }).document?.baseURI;
  return typeof source === 'string' && base !== undefined && URL.canParse(source, base)
    ? new URL(source, base)
    : source;
}
