// `exportOnnx`: a function traced once, as a model that other runtimes read. Its arguments become
// inputs, what it returns outputs, and the tensors that it captures initializers.

import * as arg from '../../ir/arguments.ts';
import { isPacked, pack, weightFormats, type WeightFormat } from '../../aot/formats.ts';
import { argumentNames, outputName, placesOf, uniqueName } from '../../aot/names.ts';
import { showValue, SinterError, TensorError } from '../../errors.ts';
import { storedType } from '../../ir/stored.ts';
import { fromPackage } from '../../packages/missing.ts';
import { expectFunction } from '../../tensor/expect.ts';
import { traceFlat, withAllParameters, type Input, type Traced } from '../../tensor/tracing.ts';
import { flatten, type Flat } from '../../tensor/tree.ts';
import { mark, type ModelEmitter, type Val } from './emitter.ts';
import { spellGraph } from './graph.ts';
import type { Sizes } from '../../aot/formula.ts';
import { openModel, sameBytes, type ModelAt, type OpenModel } from './open/open.ts';
import { computesAlike } from './open/rerun.ts';
import type { Graph, Node } from '../../ir/graph.ts';
import { sameShape, type FixedShape } from '../../ir/shape.ts';
import { declaredOf, type Declared, type Dims } from '../../tensor/sizes/dim.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { bytesOf, valueOf, type Value } from '../../tensor/values.ts';
import { membersOf } from '../../nn/module.ts';
import { typeOf } from '../element.ts';

// Weights of an exported model: what they are called, and how they lie in the file. Those that are
// stored in fewer bits stay as they are stored, and nodes of the file expand them: nothing is
// widened before a runtime does so.

/** A captured tensor with its elements. */
interface ExportedWeight {
  readonly name: string;
  readonly dtype: Val['dtype'];
  readonly shape: readonly number[];
  readonly data: Uint8Array;
  /** What is stored instead of the elements, once that is known. */
  packed?: PackedWeight;
}

/** The levels of a weight, and the scales of its blocks where it has any. */
interface PackedWeight {
  readonly levels: Uint8Array;
  readonly scales: Uint8Array | undefined;
}

function packedOf(weight: ExportedWeight, format: WeightFormat): PackedWeight {
  const [first, scales] = pack(format, weight);
  if (scales === undefined) return { levels: first!.data, scales: undefined };
  // Levels are stored above 0; turning their upper bit over makes them signed.
  const upper = format === 'q8_0' ? 0x80 : 0x88;
  return { levels: first!.data.map((byte) => byte ^ upper), scales: scales.data };
}

const block = 32;

/** What tensors are called by where they stand in a model, or in a record. */
function namesIn(model: unknown): Map<Value, string> {
  const names = new Map<Value, string>();
  for (const { name, tensor } of membersOf(model)) {
    const value = valueOf(tensor);
    if (!names.has(value)) names.set(value, name);
  }
  return names;
}

/** Adds a weight as it is stored, and what makes its values of that. */
function bindWeight(e: ModelEmitter, weight: ExportedWeight, format: WeightFormat): Val {
  const { name, dtype, shape, data } = weight;
  if (!isPacked(format, weight)) return e.initializer(name, typeOf(dtype), shape, data);
  const { levels, scales } = (weight.packed ??= packedOf(weight, format));
  if (scales === undefined) return e.cast(e.initializer(name, 'float16', shape, levels), dtype);
  const count = scales.length / 2;
  const levelType = format === 'q8_0' ? 'int8' : 'int4';
  const stored = e.initializer(`${name}.${format}`, levelType, [count, block], levels);
  // f16 scales would give f16 values: products of 8 and 11 bits need f32.
  const scale = e.cast(e.initializer(`${name}.scale`, 'float16', [count, 1], scales), 'f32');
  const type = { dtype, shape: [count, block] };
  return e.reshape(e.node('DequantizeLinear', [stored, scale], type, { axis: 1, block_size: block }), shape);
}

export interface ExportOptions {
  /**
   * A model, or tensors by name: what the tensors that the function captures are called; by default
   * those of a model that is exported.
   */
  readonly parameters?: unknown;
  /**
   * How captured matrices of f32 are stored: f16, or blocks of integers (q8_0, q4_0). As they are
   * by default.
   */
  readonly dtype?: WeightFormat;
  /** The standard's version to write for, 21 to 26; 21 by default. The bits of floats need 26. */
  readonly opset?: number;
  /**
   * The name of a file beside the model for elements; they lie in the model itself by default, if
   * they fit.
   */
  readonly externalData?: string;
  /**
   * Which sizes of the example inputs the model leaves open, as `compile` takes it: `{ x: ['batch', 64] }`. All sizes
   * are those of the example inputs by default.
   */
  readonly dims?: Dims;
  /** What the graph is called; by default as the function, or `main`. */
  readonly name?: string;
}

/** What can be exported: a function, or a layer with its `forward`. */
export type Exportable = ((...args: never[]) => unknown) | { forward(...args: never[]): unknown };

const oldestOpset = 21;
const newestOpset = 26;

/** An exported model: its own bytes, and the files that it reads elements from. */
export class ExportedModel {
  readonly bytes: Uint8Array;
  /** By the names that the model has for them: what `loadOnnx` takes as `externalData`. */
  readonly externalData: Readonly<Record<string, Uint8Array>>;

  /** Not for users: `exportOnnx` makes them. */
  constructor(bytes: Uint8Array, externalData: Readonly<Record<string, Uint8Array>>) {
    this.bytes = bytes;
    this.externalData = externalData;
  }

  /** Node: writes the model to a path, and its other files beside it. */
  async save(path: string | URL): Promise<void> {
    if (typeof process === 'undefined')
      throw new SinterError(
        'E_UNSUPPORTED',
        'save: a page writes no files\n  try: model.bytes, as a Blob to download',
      );
    const { writeBeside } = await import('../files.ts');
    await writeBeside(path, this.bytes, Object.entries(this.externalData));
  }
}

/**
 * A model in the ONNX format of a function at the shapes of example inputs, but for the sizes that
 * `dims` leaves open. Rejects with an UnsupportedOpsError that lists every operation that ONNX has no
 * spelling for, and with E_UNSUPPORTED where the function does more than compute what it returns, or
 * where the file cannot say what it does at all sizes.
 */
export async function exportOnnx(
  fn: Exportable,
  inputs: readonly unknown[],
  options: ExportOptions = {},
): Promise<ExportedModel> {
  const { opset, format } = checked(options);
  if (!Array.isArray(inputs)) {
    const problem = `expects example inputs as an array, got ${showValue(inputs)}`;
    throw new TensorError('E_VALUE', 'exportOnnx', problem);
  }
  const call = callOf(fn);
  const own = typeof fn === 'function' ? fn : fn.forward;
  const flat = flatten(inputs, 'exportOnnx');
  const argumentsByName = argumentNames(own, flat, false);
  const owner = options.parameters ?? (typeof fn === 'function' ? {} : fn);
  const weights = new Weights(namesIn(owner));

  const name = options.name ?? (call.name === '' ? 'main' : call.name);
  const { writeModel } = await fromPackage('@bufbuild/protobuf', 'exportOnnx', () => import('./file.ts'));
  const written = ({ nodes, initializers, inputs, outputs }: OpenModel): ExportedModel => {
    const parts = { nodes, initializers, name, opset, inputs, outputs };
    const { bytes, externalData } = writeModel(parts, options.externalData);
    return new ExportedModel(bytes, externalData);
  };

  /** The model at the shapes of the inputs, or at others. */
  const modelAt = async (open: boolean, shapes?: ReadonlyMap<number, FixedShape>): Promise<ModelAt> => {
    const traced = traceFlat(call, flat, 'exportOnnx', false, shapes);
    const { graph, sources, results } = programOf(traced, flat.leaves, shapes);
    const taken = new Set<string>();
    // In files of the format no name means none, and names are UTF-8.
    const strange = [...argumentsByName, ...results].find(
      (name) => name === '' || name.includes(mark) || /\p{Cs}/u.test(name),
    );
    if (strange !== undefined) {
      const problem = `inputs and outputs have names of Unicode letters other than NUL, got ${JSON.stringify(strange)}`;
      throw new TensorError('E_VALUE', 'exportOnnx', problem, 'another key for that value');
    }
    const ports = new Map<number, Val>();
    flat.leaves.forEach((leaf, i) => {
      const type = portType(leaf, shapes?.get(i));
      if (type !== undefined) ports.set(i, { name: uniqueName(argumentsByName[i]!, taken), ...type });
    });
    const outputs = graph.outputs.map((node, i) => {
      return { name: uniqueName(results[i]!, taken), ...storedType(node) };
    });
    await weights.read(sources);
    const bind = (e: ModelEmitter, index: number): Val => {
      const source = sources[index]!;
      switch (source.kind) {
        case 'argument':
          return ports.get(source.leaf)!;
        case 'captured':
          return bindWeight(e, weights.of(source.value), format);
        case 'random':
          // Read by random draws alone, which are refused.
          return { name: '', dtype: 'u32', shape: [] };
        default:
          return source satisfies never;
      }
    };
    const outputNames = outputs.map(({ name }) => name);
    const spelled = spellGraph(graph, opset, bind, outputNames, [...taken], open);
    const keys = (): string[] => sources.map((source) => weights.keyOf(source));
    return { recording: traced.graphKey, sources: keys, spelled, inputs: [...ports.values()], outputs };
  };

  const { dims } = options;
  /** The open model, where it has to be run. */
  let run: ExportedModel | undefined;
  const declared = dims === undefined ? undefined : declaredOf(own, dims, 'exportOnnx');
  const model =
    declared === undefined || declared.dims.size === 0
      ? await modelAt(false)
      : await leftOpen(declared, flat, argumentsByName, {
          at: (shapes) => modelAt(true, shapes),
          isRight: (model, shapes) => computesAlike(call, flat, (run ??= written(model)), shapes),
        });
  return run ?? written('spelled' in model ? { ...model, ...model.spelled } : model);
}

/** A function as models, by the shapes of its inputs. */
interface Spelling {
  readonly at: (shapes: ReadonlyMap<number, FixedShape>) => Promise<ModelAt>;
  /** Whether a model computes what the function does. */
  readonly isRight: (model: OpenModel, shapes: ReadonlyMap<number, FixedShape>) => Promise<boolean>;
}

/** The model in which declared sizes are open. Throws E_SHAPE where the example inputs do not have such sizes. */
async function leftOpen(
  declared: Declared,
  flat: Flat,
  names: readonly string[],
  { at, isRight }: Spelling,
): Promise<OpenModel> {
  declared.sizesOf(flat, (leaf) => names[leaf]!);
  const varying = declared.varyingAxes(flat);
  const fixed = flat.leaves.flatMap((leaf, i) =>
    leaf instanceof Tensor ? leaf.shape.filter((_, axis) => !varying.has(`${i} ${axis}`)) : [],
  );
  // What the function refuses at the sizes of the example is no matter of sizes.
  await at(new Map());
  const shapesAt = (sizes: Sizes): ReadonlyMap<number, FixedShape> =>
    declared.shapesAt(flat, new Map(Object.entries(sizes)));
  return openModel(
    [...declared.dims.values()],
    new Set(fixed),
    (sizes) => at(shapesAt(sizes)),
    (model, sizes) => isRight(model, shapesAt(sizes)),
  );
}

function callOf(fn: Exportable): (...args: never[]) => unknown {
  if (typeof fn === 'object' && fn !== null && typeof fn.forward === 'function')
    return (...args) => fn.forward(...args);
  expectFunction('exportOnnx', fn);
  return fn as (...args: never[]) => unknown;
}

const takesExport = arg.takes<(options?: ExportOptions) => unknown>([
  'options',
  arg.options<ExportOptions>({
    parameters: arg.inside(),
    dtype: arg.oneOf(...weightFormats),
    opset: arg.integer,
    externalData: arg.text,
    dims: arg.inside(),
    name: arg.text,
  }),
]);

function checked(options: ExportOptions): { readonly opset: number; readonly format: WeightFormat } {
  takesExport('exportOnnx', options);
  const { opset = oldestOpset, dtype = 'f32', externalData = 'weights.bin' } = options;
  const fail = (problem: string): TensorError => new TensorError('E_VALUE', 'exportOnnx', problem);
  if (!(Number.isInteger(opset) && opset >= oldestOpset && opset <= newestOpset))
    throw fail(`opset ${opset} is none that models are written for: ${oldestOpset} to ${newestOpset}`);
  if (!/^[^/\\?#%:]+$/.test(externalData) || externalData === '..')
    throw fail(`'${externalData}' is no name of a file beside the model`);
  return { opset, format: dtype };
}

/** Captured tensors with their elements, computed on the current device. */
class Weights {
  readonly #names: ReadonlyMap<Value, string>;
  readonly #known = new Map<Value, ExportedWeight>();

  constructor(names: ReadonlyMap<Value, string>) {
    this.#names = names;
  }

  /** Computes those of a program that are not known yet. */
  async read(sources: readonly ParameterSource[]): Promise<void> {
    const values = sources.flatMap((source) => (source.kind === 'captured' ? [source.value] : []));
    const all = values.map(async (value, i): Promise<void> => {
      if (this.#known.has(value)) return;
      const { dtype, shape } = value;
      const name = this.#names.get(value) ?? `weight${i}`;
      const data = await bytesOf(value);
      this.#known.set(value, { name, ...storedType({ dtype, shape }), data });
    });
    await Promise.all(all);
  }

  of(value: Value): ExportedWeight {
    return this.#known.get(value)!;
  }

  /** What a parameter stands for, as a text that is the same for equal elements. */
  keyOf(source: ParameterSource): string {
    switch (source.kind) {
      case 'argument':
        return `argument ${source.leaf}`;
      case 'captured': {
        const own = this.of(source.value);
        const all = [...this.#known.values()];
        return `weight ${all.findIndex((other) => other === own || isAlike(other, own))}`;
      }
      case 'random':
        return 'random';
      default:
        return source satisfies never;
    }
  }
}

/** Whether two weights have the same elements. */
function isAlike(a: ExportedWeight, b: ExportedWeight): boolean {
  return a.dtype === b.dtype && sameShape(a.shape, b.shape) && sameBytes(a.data, b.data);
}

// What a traced function becomes as a model: which tensors from outside its parameters are, and its
// results by name. What a model cannot do, like assigning to tensors, is refused here.

/** What a parameter of the graph stands for. */
type ParameterSource =
  | { readonly kind: 'argument'; readonly leaf: number }
  | { readonly kind: 'captured'; readonly value: Value }
  | { readonly kind: 'random' };

/** A graph whose outputs are the function's results, with what its parameters stand for. */
interface TracedProgram {
  readonly graph: Graph;
  readonly sources: readonly ParameterSource[];
  /** Names of the outputs, as the function gives them. */
  readonly results: readonly string[];
}

/**
 * The type of an argument as an input of a model, in its own shape or another; undefined for what is no
 * tensor and no number.
 */
function portType(leaf: unknown, shape?: FixedShape): Pick<Val, 'dtype' | 'shape'> | undefined {
  if (leaf instanceof Tensor) return storedType({ dtype: leaf.dtype, shape: shape ?? leaf.shape });
  return typeof leaf === 'number' ? { dtype: 'f32', shape: [] } : undefined;
}

/**
 * The program of a function traced on these arguments, or in these shapes of theirs. Throws E_UNSUPPORTED where it does more than
 * compute what it returns.
 */
function programOf(
  partial: Traced,
  leaves: readonly unknown[],
  shapes: ReadonlyMap<number, FixedShape> | undefined,
): TracedProgram {
  const traced = withAllParameters(partial, leaves, shapes);
  if (traced.effects.some(({ part, source }) => part === 'value' && source !== undefined))
    throw refused(
      'assigns to a tensor: return the new value instead\n  ' +
        'try: evalMode(model), if a layer such as batch norm is in training',
    );
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
    if (leaf.kind === 'static') throw refused(`returns ${String(leaf.value)}, which is not a tensor`);
    outputs.push(leaf.kind === 'output' ? traced.graph.outputs[leaf.index]! : nodes[leaf.index]!);
    return outputName(place);
  });
  if (results.length === 0) throw refused('returns no tensor');
  return { graph: { parameters, outputs }, sources, results };
}

function sourceOfInput({ origin, part }: Input): ParameterSource {
  if (part === 'grad') throw refused('reads gradients that were there before the call');
  return origin.kind === 'captured'
    ? { kind: 'captured', value: origin.handle }
    : { kind: 'argument', leaf: origin.leaf };
}

function refused(problem: string): SinterError {
  return new SinterError('E_UNSUPPORTED', `exportOnnx: the function ${problem}`);
}
