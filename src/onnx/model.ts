// An imported model: what goes in and out, its parameters, and runs of it. A run is compiled once per set of input shapes, and of
// the elements of those inputs that decide shapes; models whose shapes depend on computed values are walked anew in every run.

import { showValue, SinterError, TensorError } from '../errors.ts';
import { isFloat, type DType } from '../ir/dtype.ts';
import { unpackBytes, type HostArray, type HostData } from '../ir/value.ts';
import { compile } from '../tensor/compile-fn.ts';
import { tensor as makeTensor } from '../tensor/ops/creation.ts';
import { fromHost } from '../tensor/record.ts';
import { handleOf, Tensor } from '../tensor/tensor.ts';
import { carrier, isNarrow, type ElementType } from './element.ts';
import type { Plan } from './plan.ts';
import { Scope, type Wanted } from './scope.ts';
import { Value } from './value.ts';
import { runPlan } from './walk.ts';

/** An input or output: symbolic sizes are names, sizes that the file does not tell are '?'. */
export interface Port {
  readonly name: string;
  /** The element type in the file, `float`, `int64`, …; undefined where the file does not tell. */
  readonly type: ElementType | undefined;
  /** The dtype of the tensor that goes in or comes out. */
  readonly dtype: DType | undefined;
  /** Undefined where the file tells not even the rank. */
  readonly shape: readonly (number | string)[] | undefined;
}

/** What an input may be given as: a tensor, or elements in the declared shape (of which one size may be open). */
export type ModelInput = Tensor | HostData | number | bigint | boolean;
/** What goes in, by name. */
export type ModelInputs = Readonly<Record<string, ModelInput>>;
/** What comes out, by name. */
export type ModelOutputs = Record<string, Tensor>;

export interface FunctionOptions {
  /** Inputs that are the same in every call: what shapes depend on must be given here. */
  readonly fixed?: ModelInputs;
}

/** A run of known shapes as one compiled program. */
interface Specialisation {
  readonly shapes: string;
  /** The elements of inputs that the program depends on. */
  readonly baked: ReadonlyMap<string, HostArray>;
  readonly types: readonly ElementType[];
  readonly call: (inputs: Record<string, Tensor>) => Tensor[];
}

/** Programs that a model keeps. */
const mostKept = 32;

/** A row wants elements that a traced run cannot have. */
class NeedsData extends SinterError {
  readonly wanted: Wanted;
  constructor(wanted: Wanted) {
    const { step, name } = wanted;
    const problem = `needs the elements of '${name}' while it is recorded, and they depend on tensors`;
    super(
      'E_UNSUPPORTED',
      `onnx: ${step.label}: ${problem}\n  try: model.run(…), or toFunction({ fixed: { … } })`,
    );
    this.wanted = wanted;
  }
}

/** A model of a file: run it, make a function of it, or train its parameters. */
export class OnnxModel {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** The weights by their names: tensors that an optimizer can take, and that `assign` replaces. */
  readonly parameters: Readonly<Record<string, Tensor>>;
  readonly #plan: Plan;
  readonly #kept: Specialisation[] = [];
  /** Inputs that must be known before anything is recorded, as runs found out. */
  readonly #decisive = new Set<string>();
  #isEager = false;

  /** Not for users: `loadOnnx` makes models. */
  constructor(plan: Plan, inputs: readonly Port[], outputs: readonly Port[]) {
    this.#plan = plan;
    this.inputs = inputs;
    this.outputs = outputs;
    const parameters: Record<string, Tensor> = {};
    for (const [name, { type, array }] of plan.stored) {
      const isWeight = isFloat(array.dtype) && !isNarrow(type) && array.shape.length > 0;
      if (isWeight) parameters[name] = fromHost(array.data, array.shape, array.dtype);
    }
    this.parameters = parameters;
  }

  /** Computes the outputs by name. */
  async run(inputs: ModelInputs): Promise<ModelOutputs> {
    const values = await this.evaluate(inputs);
    return Object.fromEntries(this.outputs.map(({ name }, i) => [name, values[i]!.tensor]));
  }

  /** As `run`, with the element types that tensors alone do not tell. */
  async evaluate(inputs: ModelInputs): Promise<readonly Value[]> {
    const given = this.#bind(inputs);
    if (!this.#isEager) {
      const found = this.#find(given) ?? this.#specialise(given);
      if (found !== undefined)
        return found.call(tensorsOf(given)).map((out, i) => Value.of(out, found.types[i]));
    }
    const walk = runPlan(
      this.#plan,
      this.#scope(new Map([...given].map(([name, x]) => [name, inputValue(x)]))),
    );
    let next = walk.next();
    while (next.done !== true) next = walk.next(await read(next.value.value));
    return next.value;
  }

  /**
   * The model as a function of tensors by name, for `compile`, `grad` and `explain`. Throws E_UNSUPPORTED where a shape depends
   * on elements of its inputs.
   */
  toFunction(options: FunctionOptions = {}): (inputs: Readonly<Record<string, Tensor>>) => ModelOutputs {
    const fixed = this.#bind(options.fixed ?? {}, true);
    return (inputs) => {
      const given = this.#bind({ ...inputs, ...Object.fromEntries(tensorEntries(fixed)) });
      const values = new Map<string, Value>();
      for (const [name, x] of given) {
        const known = fixed.has(name) ? hostOf(x.tensor) : undefined;
        values.set(name, known === undefined ? inputValue(x) : Value.known(x.type, known));
      }
      const results = atOnce(this.#plan, this.#scope(values));
      return Object.fromEntries(this.outputs.map(({ name }, i) => [name, results[i]!.tensor]));
    };
  }

  #find(given: Given): Specialisation | undefined {
    const shapes = shapesOf(given);
    const at = this.#kept.findIndex(
      (kept) =>
        kept.shapes === shapes && [...kept.baked].every(([name, array]) => holds(given.get(name)!, array)),
    );
    if (at < 0) return undefined;
    const [found] = this.#kept.splice(at, 1);
    this.#kept.unshift(found!);
    return found;
  }

  /** Records and compiles a run like this one; undefined when it cannot be, and runs are walked from then on. */
  #specialise(given: Given): Specialisation | undefined {
    for (;;) {
      const baked = new Map<string, HostArray>();
      let types: readonly ElementType[] = [];
      const record = (inputs: Record<string, Tensor>): Tensor[] => {
        const values = new Map<string, Value>();
        for (const [name, { type, tensor }] of given) {
          const array = hostOf(tensor);
          const take = (): HostArray => {
            baked.set(name, array!);
            return array!;
          };
          if (array !== undefined && this.#decisive.has(name)) values.set(name, Value.known(type, take()));
          else values.set(name, Value.of(inputs[name]!, type, array === undefined ? undefined : take));
        }
        const results = atOnce(this.#plan, this.#scope(values));
        types = results.map(({ type }) => type);
        return results.map(({ tensor }) => tensor);
      };
      const call = compile(record);
      try {
        // Recorded here, so that what stands in its way shows now.
        const first = call(tensorsOf(given));
        const made: Specialisation = { shapes: shapesOf(given), baked, types, call };
        this.#kept.unshift(made);
        this.#kept.length = Math.min(this.#kept.length, mostKept);
        return { ...made, call: () => first };
      } catch (error) {
        if (!(error instanceof NeedsData)) throw error;
        if (this.#learn(error.wanted.name, given)) continue;
        this.#isEager = true;
        return undefined;
      }
    }
  }

  /** Marks the inputs that a value is computed from as decisive; false when that does not help. */
  #learn(name: string, given: Given): boolean {
    const sources = this.#sourcesOf(name);
    const isUseful = sources.some((source) => !this.#decisive.has(source));
    const isPossible = sources.every((source) => {
      const x = given.get(source);
      return x !== undefined && !isFloat(x.tensor.dtype) && hostOf(x.tensor) !== undefined;
    });
    if (sources.length === 0 || !isUseful || !isPossible) return false;
    for (const source of sources) this.#decisive.add(source);
    return true;
  }

  /** The graph inputs that a value is computed from. */
  #sourcesOf(name: string): string[] {
    const producers = new Map(
      this.#plan.steps.flatMap((step) => step.outputs.map((output) => [output, step])),
    );
    const inputs = new Set(this.inputs.map((port) => port.name));
    const seen = new Set([name]);
    for (const item of seen) for (const source of producers.get(item)?.inputs ?? []) seen.add(source);
    return [...seen].filter((item) => inputs.has(item));
  }

  #scope(values: ReadonlyMap<string, Value>): Scope {
    const scope = new Scope();
    // Values anew for every walk: the tensors of known ones belong to the recording that made them.
    for (const [name, { type, array }] of this.#plan.stored) {
      const weight = this.parameters[name];
      const peek = (): HostArray => array;
      scope.set(name, weight === undefined ? Value.known(type, array) : Value.of(weight, type, peek));
    }
    for (const [name, value] of values) scope.set(name, value);
    return scope;
  }

  #bind(inputs: ModelInputs, isPartial = false): Given {
    const known = new Set(this.inputs.map(({ name }) => name));
    const unknown = Object.keys(inputs).find((name) => !known.has(name));
    if (unknown !== undefined) {
      throw new TensorError('E_VALUE', 'onnx', `there is no input '${unknown}'`, [...known].join(', '));
    }
    const given = new Map<string, Bound>();
    for (const port of this.inputs) {
      const value = inputs[port.name];
      if (value !== undefined) given.set(port.name, bind(port, value));
      else if (!isPartial && !this.#plan.stored.has(port.name)) {
        throw new TensorError('E_VALUE', 'onnx', `input '${port.name}' is missing`);
      }
    }
    return given;
  }
}

interface Bound {
  readonly type: ElementType;
  readonly tensor: Tensor;
}

type Given = ReadonlyMap<string, Bound>;

function tensorEntries(given: Given): [string, Tensor][] {
  return [...given].map(([name, { tensor }]) => [name, tensor]);
}

function tensorsOf(given: Given): Record<string, Tensor> {
  return Object.fromEntries(tensorEntries(given));
}

function inputValue({ type, tensor }: Bound): Value {
  const array = hostOf(tensor);
  return Value.of(tensor, type, array === undefined ? undefined : () => array);
}

/** The elements of a tensor that lies on the host already. */
function hostOf(tensor: Tensor): HostArray | undefined {
  const { storage } = handleOf(tensor);
  const bytes = storage?.hostBytes;
  return bytes === undefined ? undefined : unpackBytes(bytes, tensor.dtype, tensor.shape);
}

async function read({ tensor }: Value): Promise<HostArray> {
  return { dtype: tensor.dtype, shape: tensor.shape, data: await tensor.data() };
}

/** A walk that may not wait. */
function atOnce(plan: Plan, scope: Scope): Value[] {
  const walk = runPlan(plan, scope);
  const next = walk.next();
  if (next.done !== true) throw new NeedsData(next.value);
  return next.value;
}

function shapesOf(given: Given): string {
  return [...given].map(([name, { type, tensor }]) => `${name}:${type}[${tensor.shape.join(',')}]`).join(' ');
}

function holds({ tensor }: Bound, array: HostArray): boolean {
  const now = hostOf(tensor);
  return (
    now !== undefined && now.data.every((item: number | bigint, i: number) => Object.is(item, array.data[i]))
  );
}

/** Checks what was given for an input against what the file says, and makes a tensor of it. */
function bind(port: Port, value: ModelInput): Bound {
  const { name, type, dtype, shape } = port;
  if (type === undefined || dtype === undefined) {
    throw new TensorError(
      'E_UNSUPPORTED',
      'onnx',
      `input '${name}' is no tensor of a type that is supported`,
    );
  }
  if (value instanceof Tensor) {
    const fits =
      shape === undefined ||
      (shape.length === value.rank &&
        shape.every((dim, i) => typeof dim === 'string' || dim === value.shape[i]));
    if (value.dtype !== carrier(type) || !fits) {
      const wanted = `${dtype}[${shape?.join(',') ?? '…'}]`;
      const problem = `input '${name}' is ${wanted}, got ${value.dtype}[${value.shape.join(',')}]`;
      throw new TensorError(fits ? 'E_DTYPE' : 'E_SHAPE', 'onnx', problem);
    }
    return { type, tensor: value };
  }
  if (typeof value !== 'object') return bind(port, makeTensor(value, { dtype }));
  if (!ArrayBuffer.isView(value)) {
    throw new TensorError(
      'E_VALUE',
      'onnx',
      `input '${name}' is a tensor or a typed array, got ${showValue(value)}`,
    );
  }
  return bind(port, makeTensor(value, { dtype, shape: openShape(port, value.length) }));
}

/** The declared shape with its one open size computed from the number of elements. */
function openShape({ name, shape }: Port, count: number): number[] {
  const open = shape?.filter((dim) => typeof dim === 'string').length ?? 2;
  const rest = shape?.reduce<number>((size, dim) => size * (typeof dim === 'string' ? 1 : dim), 1) ?? 0;
  if (open > 1 || rest === 0) {
    if (open === 0) return shape as number[];
    const problem = `the shape of input '${name}' is not told by ${count} elements`;
    throw new TensorError('E_SHAPE', 'onnx', problem, 'tensor(data, { shape: […] })');
  }
  return shape!.map((dim) => (typeof dim === 'string' ? count / rest : dim));
}
