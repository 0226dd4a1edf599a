// An imported model: what goes in and out, its parameters, and runs of it. A run is compiled once
// per set of input shapes, and of the elements of those inputs that decide shapes; models whose
// shapes depend on computed values are walked anew in every run.

import { showValue, SinterError, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { isFloat, type DType } from '../ir/dtype.ts';
import { packBytes, unpackBytes, type HostArray } from '../ir/value.ts';
import { deviceTypes } from '../tensor/device.ts';
import { compile } from '../tensor/compile/compile.ts';
import { dim, type DimOptions, type DimPattern } from '../tensor/sizes/dim.ts';
import { fromBytes } from '../tensor/record.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { isNarrow, withDoubles, type ElementType } from './element.ts';
import { foreignValue, outputsNamed, plainOf, tensorsNamed } from './ports/foreign.ts';
import { isPlain, type ModelInputs, type ModelOutputs, type ModelValue, type Port } from './ports/port.ts';
import {
  bind,
  holds,
  hostOf,
  inputValue,
  read,
  shapesOf,
  tensorsOf,
  type TypedInput,
  type GivenInputs,
} from './ports/inputs.ts';
import { holdToDeclared } from './ports/outputs.ts';
import { Budget, usualLimits, withBudget, type Limits } from './budget.ts';
import { Chain, liveOf, Unchained } from './chain.ts';
import type { GraphPlan } from './plan.ts';
import { GraphScope, type WantedValue } from './scope.ts';
import { Value } from './value.ts';
import type { StoredInitializer } from './weights.ts';
import { runPlan } from './walk.ts';

export interface FunctionOptions {
  /**
   * Inputs that are the same in every call: what shapes depend on must be given here; none by
   * default.
   */
  readonly fixed?: ModelInputs;
  /**
   * The outputs that are wanted, where not all are, or not all are tensors of numbers; all by
   * default.
   */
  readonly outputs?: readonly string[];
}

const takesFunctionOptions = arg.takes<(options?: FunctionOptions) => void>([
  'the options',
  arg.options<FunctionOptions>({ fixed: arg.anything(), outputs: arg.anything() }),
]);

/** A run of known shapes as one compiled program. */
interface Specialisation {
  readonly shapes: string;
  /** The device has f64. */
  readonly hasDoubles: boolean;
  /** The elements of inputs that the program depends on. */
  readonly baked: ReadonlyMap<string, HostArray>;
  /** The results as they were recorded, whose tensors those of a call take the place of. */
  readonly results: readonly Value[];
  readonly call: (inputs: Record<string, Tensor>) => Tensor[];
}

/** Programs that a model keeps. */
const mostKept = 32;

/** A row wants elements that a traced run cannot have. */
export class NeedsData extends SinterError {
  readonly wanted: WantedValue;
  /** Inputs of the model that would suffice if they were the same in every call. */
  readonly inputs: readonly string[];
  constructor(wanted: WantedValue, inputs: readonly string[] = []) {
    const { step, name } = wanted;
    const source = inputs.length === 0 ? 'tensors' : `the ${listed(inputs)}`;
    const problem = `needs the elements of '${name}' while it is recorded, and they depend on ${source}`;
    const fixed = inputs.length === 0 ? '…' : inputs.map((input) => `${JSON.stringify(input)}: …`).join(', ');
    super(
      'E_UNSUPPORTED',
      `onnx: ${step.label}: ${problem}\n  try: model.run(…), or toFunction({ fixed: { ${fixed} } })`,
    );
    this.wanted = wanted;
    this.inputs = inputs;
  }
}

function listed(inputs: readonly string[]): string {
  return `${inputs.length === 1 ? 'input' : 'inputs'} ${inputs.map((input) => `'${input}'`).join(', ')}`;
}

/** A model of a file: run it, make a function of it, or train its parameters. */
export class OnnxModel {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** The weights by their names: tensors that an optimizer can take, and that `assign` replaces. */
  readonly parameters: Readonly<Record<string, Tensor>>;
  readonly #plan: GraphPlan;
  readonly #limits: Limits;
  readonly #weights: ReadonlyMap<string, Tensor>;
  readonly #kept: Specialisation[] = [];
  /** Inputs that must be known before anything is recorded, collected by earlier runs. */
  readonly #decisive = new Set<string>();
  #isEager = false;
  /** Outputs whose shape was told to be another than declared. */
  readonly #warned = new Set<string>();
  /** Compiled stretches between reads, where a run has some; null where it has to be walked. */
  #chain: Chain | null | undefined = undefined;

  /** Not for users: `loadOnnx` makes models. */
  constructor(
    plan: GraphPlan,
    inputs: readonly Port[],
    outputs: readonly Port[],
    limits: Limits = usualLimits,
  ) {
    this.#limits = limits;
    this.inputs = inputs;
    this.outputs = outputs;
    const parameters = new Map<string, Tensor>();
    const stored = new Map(plan.stored);
    for (const [name, { type, array }] of plan.stored) {
      const { dtype, shape } = array;
      if (!isFloat(dtype) || isNarrow(type) || shape.length === 0) continue;
      const bytes = packedOf(array);
      parameters.set(name, fromBytes(bytes, shape, dtype));
      stored.set(name, unpackedLate(type, dtype, shape, bytes));
    }
    // An object made of entries may hold any name, `__proto__` too.
    this.parameters = Object.fromEntries(parameters);
    this.#weights = parameters;
    this.#plan = { ...plan, stored };
  }

  /**
   * Computes the outputs by name. Throws E_UNSUPPORTED where one is no tensor of numbers: `runValues`
   * gives those.
   */
  async run(inputs: ModelInputs = {}): Promise<ModelOutputs> {
    const values = await this.evaluate(inputs);
    return tensorsNamed(this.outputs, values, 'await model.runValues(…)');
  }

  /**
   * Computes the outputs by name, of whatever kind: tensors, text, sequences, maps, and null for an
   * optional value without an element.
   */
  async runValues(inputs: ModelInputs = {}): Promise<Record<string, ModelValue>> {
    const values = await this.evaluate(inputs);
    const plain = await Promise.all(values.map(plainOf));
    return Object.fromEntries(this.outputs.map(({ name }, i) => [name, plain[i]!]));
  }

  /** As `run`, with the element types that tensors alone do not tell. */
  async evaluate(inputs: ModelInputs = {}): Promise<readonly Value[]> {
    return this.#held(await this.#evaluated(inputs));
  }

  async #evaluated(inputs: ModelInputs): Promise<readonly Value[]> {
    const { given, others } = this.#bind(inputs);
    const hasDoubles = (await deviceTypes()).includes('f64');
    // Text, lists and maps are the host's: what depends on them is walked.
    if (!this.#isEager && others.size === 0) {
      const found = this.#find(given, hasDoubles) ?? this.#specialise(given, hasDoubles);
      if (found !== undefined) {
        const tensors = found.call(tensorsOf(given));
        return found.results.map((value) => value.withLeaves(tensors));
      }
    }
    if (this.#isEager && others.size === 0 && this.#chain !== null) {
      this.#chain ??= new Chain(this.#plan, this.#limits, (values) => this.#scope(values));
      try {
        return await this.#chain.run(liveOf(given, this.#decisive), hasDoubles);
      } catch (error) {
        if (!(error instanceof Unchained)) throw error;
        this.#chain = null;
      }
    }
    const budget = new Budget(this.#limits);
    const step = <T>(run: () => T): T => withBudget(budget, () => withDoubles(hasDoubles, run));
    const walk = step(() =>
      runPlan(
        this.#plan,
        this.#scope(new Map([...[...given].map(([name, x]) => [name, inputValue(x)] as const), ...others])),
      ),
    );
    let next = step(() => walk.next());
    while (next.done !== true) {
      const array = await read(next.value.value);
      next = step(() => walk.next(array));
    }
    const { value } = next;
    for (const item of value) step(() => item.leaves);
    return value;
  }

  /**
   * The model as a function of tensors by name, for `compile`, `grad` and `explain`. Throws
   * E_UNSUPPORTED where a shape depends on elements of its inputs.
   */
  toFunction(options: FunctionOptions = {}): (inputs: Readonly<Record<string, Tensor>>) => ModelOutputs {
    takesFunctionOptions('onnx.toFunction', options);
    const { given: fixed, others } = this.#bind(options.fixed ?? {}, true);
    const chosen = outputsNamed(this.outputs, options.outputs);
    return (inputs) => {
      const bound = this.#bind(inputs, true);
      const given = new Map([...bound.given, ...fixed]);
      const foreign = new Map([...bound.others, ...others]);
      const missing = this.inputs.find(
        ({ name }) => !given.has(name) && !foreign.has(name) && !this.#plan.stored.has(name),
      );
      if (missing !== undefined)
        throw new TensorError('E_VALUE', 'onnx', `input '${missing.name}' is missing`);
      const values = new Map<string, Value>(foreign);
      for (const [name, x] of given) {
        const known = fixed.has(name) ? hostOf(x.tensor) : undefined;
        values.set(name, known === undefined ? inputValue(x) : Value.known(x.type, known));
      }
      const own = this.#paid(() => {
        const all = this.#held(this.#recorded(values));
        const results = all.filter((_, i) => chosen.has(this.outputs[i]!.name));
        // What is known is recorded now.
        for (const value of results) if (value.isTensor) void value.tensor;
        return results;
      });
      const ports = this.outputs.filter(({ name }) => chosen.has(name));
      return tensorsNamed(ports, own, 'toFunction({ outputs: […] }) with those that are tensors');
    };
  }

  /**
   * The sizes of the inputs as the file has them, so that one program serves those that it names:
   * `compile(model.toFunction(), { dims: [model.dims({ batch: { max: 64 } })] })`. Names that no range
   * is given for go from 1 to 4096. Throws E_VALUE at a name that the file does not have.
   */
  dims(ranges: Readonly<Record<string, DimOptions>> = {}): Readonly<Record<string, DimPattern>> {
    const needed = this.inputs.filter(
      ({ name, shape }) => shape !== undefined && !this.#plan.stored.has(name),
    );
    // '?' is a size without a name.
    const isName = (size: number | string): size is string => typeof size === 'string' && size !== '?';
    const names = new Set(needed.flatMap(({ shape }) => shape!.filter(isName)));
    const unknown = Object.keys(ranges).find((name) => !names.has(name));
    if (unknown !== undefined) {
      const known = [...names].join(', ') || 'none';
      throw new TensorError('E_VALUE', 'onnx', `the model has no size '${unknown}': it has ${known}`);
    }
    const named = new Map([...names].map((name) => [name, dim(name, ranges[name])]));
    return Object.fromEntries(
      needed.map(({ name, shape }) => [
        name,
        shape!.map((size) => (typeof size === 'string' ? (named.get(size) ?? null) : size)),
      ]),
    );
  }

  /** Results as the file declares them. Throws E_DTYPE where one has other elements. */
  #held<T extends readonly Value[]>(results: T): T {
    this.outputs.forEach((port, i) => holdToDeclared(port, results[i]!, this.#warned));
    return results;
  }

  /** Records a run with a budget of its own. */
  #paid<T>(record: () => T): T {
    return withBudget(new Budget(this.#limits), record);
  }

  /** A walk that may not wait: throws with the inputs that it would have to wait for. */
  #recorded(values: ReadonlyMap<string, Value>): Value[] {
    try {
      return atOnce(this.#plan, this.#scope(values));
    } catch (error) {
      if (!(error instanceof NeedsData)) throw error;
      const sources = this.#sourcesOf(error.wanted.name).filter(
        (name) => values.get(name)?.known === undefined,
      );
      const types = new Map(this.inputs.map(({ name, dtype }) => [name, dtype]));
      const areIndices = sources.every((name) => {
        const dtype = types.get(name);
        return dtype !== undefined && !isFloat(dtype);
      });
      throw new NeedsData(error.wanted, areIndices ? sources : []);
    }
  }

  #find(given: GivenInputs, hasDoubles: boolean): Specialisation | undefined {
    const shapes = shapesOf(given);
    const at = this.#kept.findIndex(
      (kept) =>
        kept.hasDoubles === hasDoubles &&
        kept.shapes === shapes &&
        [...kept.baked].every(([name, array]) => holds(given.get(name)!, array)),
    );
    if (at < 0) return undefined;
    const [found] = this.#kept.splice(at, 1);
    this.#kept.unshift(found!);
    return found;
  }

  /**
   * Records and compiles a run like this one; undefined when it cannot be, and runs are walked from
   * then on.
   */
  #specialise(given: GivenInputs, hasDoubles: boolean): Specialisation | undefined {
    for (;;) {
      const baked = new Map<string, HostArray>();
      let values: readonly Value[] = [];
      const record = (inputs: Record<string, Tensor>): Tensor[] => {
        const bound = new Map<string, Value>();
        for (const [name, { type, tensor }] of given) {
          const array = hostOf(tensor);
          const take = (): HostArray => {
            baked.set(name, array!);
            return array!;
          };
          if (array !== undefined && this.#decisive.has(name)) bound.set(name, Value.known(type, take()));
          else bound.set(name, Value.of(inputs[name]!, type, array === undefined ? undefined : take));
        }
        return this.#paid(() =>
          withDoubles(hasDoubles, () => {
            values = atOnce(this.#plan, this.#scope(bound));
            return values.flatMap(({ leaves }) => leaves);
          }),
        );
      };
      const call = compile(record);
      try {
        // Recorded here, so that errors are thrown now.
        const first = call(tensorsOf(given));
        const made: Specialisation = {
          shapes: shapesOf(given),
          hasDoubles,
          baked,
          results: values,
          call,
        };
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
  #learn(name: string, given: GivenInputs): boolean {
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

  #scope(values: ReadonlyMap<string, Value>): GraphScope {
    const scope = new GraphScope();
    // Values anew for every walk: the tensors of known ones belong to the recording that made them.
    for (const [name, stored] of this.#plan.stored) {
      const weight = this.#weights.get(name);
      const peek = (): HostArray => stored.array;
      scope.set(
        name,
        weight === undefined
          ? Value.known(stored.type, stored.array, stored.words)
          : Value.of(weight, stored.type, peek),
      );
    }
    for (const [name, value] of values) scope.set(name, value);
    return scope;
  }

  #bind(inputs: ModelInputs, isPartial = false): { given: GivenInputs; others: ReadonlyMap<string, Value> } {
    if (!arg.isPlainObject(inputs)) {
      const hint = (inputs as unknown) instanceof Map ? 'Object.fromEntries(inputs)' : '{ name: tensor, … }';
      throw new TensorError('E_VALUE', 'onnx', `inputs must be an object, got ${showValue(inputs)}`, hint);
    }
    const known = new Set(this.inputs.map(({ name }) => name));
    const unknown = Object.keys(inputs).find((name) => !known.has(name));
    if (unknown !== undefined) {
      throw new TensorError('E_VALUE', 'onnx', `there is no input '${unknown}'`, [...known].join(', '));
    }
    const given = new Map<string, TypedInput>();
    const others = new Map<string, Value>();
    for (const port of this.inputs) {
      const value = Object.hasOwn(inputs, port.name) ? inputs[port.name] : undefined;
      if (value !== undefined && isPlain(port) && value !== null) given.set(port.name, bind(port, value));
      else if (value !== undefined) others.set(port.name, foreignValue(port, value));
      else if (!isPartial && !this.#plan.stored.has(port.name)) {
        throw new TensorError('E_VALUE', 'onnx', `input '${port.name}' is missing`);
      }
    }
    return { given, others };
  }
}

/** The elements as tensors hold them: the same memory where they lie so already. */
function packedOf(array: HostArray): Uint8Array {
  const { dtype, data } = array;
  if (dtype === 'f16' || dtype === 'bf16') return packBytes(array);
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** A weight whose elements are unpacked when first read, so that the host holds them once. */
function unpackedLate(
  type: ElementType,
  dtype: DType,
  shape: readonly number[],
  bytes: Uint8Array,
): StoredInitializer {
  return {
    type,
    get array(): HostArray {
      return unpackBytes(bytes, dtype, shape);
    },
  };
}

/** A walk that may not wait. */
function atOnce(plan: GraphPlan, scope: GraphScope): Value[] {
  const walk = runPlan(plan, scope);
  const next = walk.next();
  if (next.done !== true) throw new NeedsData(next.value);
  return next.value;
}
