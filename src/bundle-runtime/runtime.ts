// A bundle at work: loads `program.json`, kernels and weights beside it, binds every entry's
// program to memory that stays where it is, and calls them. What `index.js` of a bundle exports
// comes from here.

import { SinterError } from '../errors.ts';
import type * as Cuda from './cuda.ts';
import { readPieces, readWhole } from './files.ts';
import type { Machine, ByteLocation, RunProgram } from './machine.ts';
import type {
  BundledProgram,
  BundleTarget,
  BundleEntry,
  EntryInput,
  Manifest,
  ScalarSource,
  TensorInput,
} from './manifest.ts';
import { moved, placesOf } from './places.ts';
import type { ProgramStep } from '../runtime/program.ts';
import type * as Ranged from './sizes.ts';
import type * as Wasm from './wasm.ts';
import { bytesOf, fits, fromBytes, isWhole, misfit, toBytes, type Data, type Given } from './values.ts';
import { WeightWriter } from './weights.ts';

export interface LoadOptions {
  /** Which of the bundle's targets; the first that works here by default. */
  readonly target?: BundleTarget;
  /**
   * A device of the page's own, which disposing of the model leaves alone; or which of CUDA's
   * devices, counted from 0; by default the best one that there is.
   */
  readonly device?: GPUDevice | number;
  /** Threads, on wasm; as many as there are cores by default, where memory can be shared. */
  readonly threads?: number;
  /** Where the bundle's files lie; beside `index.js` by default. */
  readonly base?: string | URL;
  /** Told of the bytes that have come; none by default. */
  readonly onProgress?: (progress: Progress) => void;
  /** Ends the loading, with the signal's reason; none by default. */
  readonly signal?: AbortSignal;
  /** What the model uses in place of its machine, for `check.js`; the machine itself by default. */
  readonly instead?: <M>(machine: Machine<M>) => Machine<M>;
}

/** Progress of loading: bytes of weights loaded and in total, kernels ready and in total. */
export interface Progress {
  readonly loadedBytes: number;
  readonly totalBytes: number;
  readonly compiledKernels: number;
  readonly totalKernels: number;
}

export type Inputs = Readonly<Record<string, Given>>;
export type Outputs = Record<string, Data>;

/**
 * A loaded model; each entry is a method: it rejects with E_VALUE where inputs do not fit, E_SHAPE
 * at sizes that were not built.
 */
export interface Model {
  readonly target: BundleTarget;
  /** What it runs on, in words. */
  readonly description: string;
  /** A weight as it is now: calls of train steps change it. */
  weight(name: string): Promise<Data>;
  /** The seed of random draws from now on. */
  seed(seed: number | bigint): void;
  /** Frees all memory and threads. */
  dispose(): void;
}

/** Where a file of the bundle lies, by its name. */
type Find = (file: string) => URL;

interface LoadingModel extends Model {
  load(find: Find, tell: (progress: Progress) => void, options: LoadOptions): Promise<void>;
}

/** Opens a machine for what `program.json` says; rejects where there is none. */
export type Opener = (manifest: Manifest, options: LoadOptions, modules: Modules) => Promise<LoadingModel>;

/** Where a bundle's files lie, by name: `files.js` of the bundle, which bundlers of pages read and rewrite. */
export type Files = Readonly<Record<string, URL>>;

/** What loads the modules that some bundles need and some places take. */
export interface Modules {
  readonly 'wasm.js'?: () => Promise<typeof Wasm>;
  readonly 'cuda.js'?: () => Promise<typeof Cuda>;
  readonly 'sizes.js'?: () => Promise<typeof Ranged>;
}

/** A model on a machine. */
export function modelOn<M>(target: BundleTarget, machine: Machine<M>, manifest: Manifest): LoadingModel {
  return new LoadedModel(manifest, target, machine);
}

/** Targets in the order in which they are tried. */
type Openers = Readonly<Partial<Record<BundleTarget, Opener>>>;

/** Loads the bundle of these files on the first of its targets that this place has. */
export async function loadBundle(
  openers: Openers,
  files: Files,
  modules: Modules,
  options: LoadOptions = {},
): Promise<Model> {
  // What a bundle consists of is known since it was built; `program.json` may say something else.
  const find: Find = (name) => {
    if (!Object.hasOwn(files, name)) throw damaged(`there is no ${name}`);
    return options.base ? new URL(name, options.base) : files[name]!;
  };
  const described = find('program.json');
  const text = new TextDecoder().decode(await readWhole(described, options.signal));
  // Servers may answer requests for missing files with a page.
  if (!text.startsWith('{"version":1,'))
    throw new SinterError('E_IO', `${described.href}: not a bundle of this version`);
  const { onProgress, signal, target: wanted } = options;
  let thrown: unknown;
  const told = (progress: Progress): void => {
    try {
      onProgress?.(progress);
    } catch (error) {
      throw (thrown = error);
    }
  };
  try {
    const manifest = JSON.parse(text) as Manifest;
    if (manifest.ranged) ranged = await modules['sizes.js']!();
    const targets = Object.keys(openers) as BundleTarget[];
    const reasons: string[] = [];
    for (const target of targets) {
      if ((wanted ?? target) !== target) continue;
      let model: LoadingModel | undefined;
      try {
        model = await openers[target]!(manifest, options, modules);
        await model.load(find, told, options);
        return model;
      } catch (error) {
        model?.dispose();
        // Some machines fail only when the programs are prepared.
        if (model && (error as SinterError).code !== 'E_DEVICE') throw error;
        reasons.push((error as Error).message);
      }
    }
    throw new SinterError(
      'E_DEVICE',
      reasons.join('\n') || `the bundle is for ${targets.join(', ')}, not for ${wanted}`,
    );
  } catch (error) {
    // What the caller throws is the caller's.
    if (error === thrown || signal?.aborted) throw error;
    throw typed(error);
  }
}

/** The error of what program.json says and the bundle's code could not do. */
function typed(error: unknown): unknown {
  // Modules of a bundle have classes of their own: the code tells.
  const { code, message } = error as SinterError;
  return /^E_./.test(code) ? error : damaged(message, error);
}

function damaged(what: string, cause?: unknown): SinterError {
  return new SinterError('E_FORMAT', `the bundle is damaged: ${what}`, { cause });
}

/** Turns of all loops, but for those that data end. Throws E_FORMAT at more than loops count. */
function turnsOf(steps: readonly ProgramStep[]): number {
  let turns = 0;
  for (const step of steps)
    if ('steps' in step) turns += (step.kind === 'while' ? 1 : step.times) * (1 + turnsOf(step.steps));
  if (turns < 2 ** 40) return turns;
  throw damaged('endless loops');
}

/** What entries of ranges need. */
let ranged: typeof Ranged | undefined;

/** A program bound to a machine. */
interface Ready<M> {
  /** The entry that it is of. */
  readonly name: string;
  readonly program: BundledProgram;
  readonly placeOf: (buffer: number) => ByteLocation<M>;
  readonly run: RunProgram<M>;
}

/** Milliseconds of rehearsals after which programs of open sizes are not rehearsed any more. */
const mostRehearsal = 500;

class LoadedModel<M> implements LoadingModel {
  readonly target: BundleTarget;
  readonly description: string;
  readonly #manifest: Manifest;
  #machine: Machine<M>;
  #ready: readonly Ready<M>[] = [];
  #weights: readonly (ByteLocation<M> | undefined)[] = [];
  /** A seed that differs from page to page. */
  #seed = crypto.getRandomValues(new BigUint64Array(1))[0]!;
  #counter = 0n;
  #rehearsed = 0;
  #disposed = false;

  constructor(manifest: Manifest, target: BundleTarget, machine: Machine<M>) {
    this.#manifest = manifest;
    this.#machine = machine;
    this.target = target;
    this.description = machine.description;
  }

  /** Compiles kernels while weights come in. */
  async load(
    find: Find,
    told: (progress: Progress) => void,
    { signal, instead }: LoadOptions,
  ): Promise<void> {
    if (instead) this.#machine = instead(this.#machine);
    const { entries, files, weights } = this.#manifest;
    const programs = Object.entries(entries).flatMap(([name, entry]) =>
      (entry.programs[this.target] ?? []).map((program) => ({ name, program })),
    );
    const plan = placesOf(
      weights,
      programs.map(({ program }) => program),
      this.#machine,
    );
    this.#weights = plan.weights;
    const progress = {
      loadedBytes: 0,
      totalBytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
      compiledKernels: 0,
      totalKernels: programs.reduce((sum, { program }) => sum + program.kernels.length, 0),
    };
    const tell = (change: Partial<Progress>): void => told(Object.assign(progress, change));
    const read = (file: string): ReturnType<typeof readWhole> => readWhole(find(file), signal);
    // Weights are asked for first: browsers keep few connections to a server open, and kernels are
    // small.
    const loading = files.map(async (file) => {
      const writer = new WeightWriter(file, (weight, offset, bytes) => {
        const place = this.#weights[weight];
        if (place !== undefined) this.#machine.write(moved(place, offset), bytes);
      });
      for await (const piece of readPieces(find(file.name), file.bytes, signal)) {
        // If another part of loading failed, everything is disposed of.
        this.#assertAlive();
        writer.take(piece);
        tell({ loadedBytes: progress.loadedBytes + piece.length });
      }
    });
    const compiling = programs.map(async ({ name, program }, i): Promise<Ready<M>> => {
      const places = plan.programs[i]!;
      const run = await this.#machine.prepare({ program, read, ...places });
      const ready = { ...places, name, program, run };
      if (!program.ports.updates.length) await this.#rehearse([ready]);
      tell({ compiledKernels: progress.compiledKernels + program.kernels.length });
      return ready;
    });
    [this.#ready] = await Promise.all([Promise.all(compiling), ...loading]);
    await this.#rehearse(this.#ready.filter(({ program }) => program.ports.updates.length));
    for (const name of Object.keys(entries)) {
      if (name === 'then' || name in this) throw damaged(`an entry called ${name}`);
      (this as Record<string, unknown>)[name] = (inputs?: Inputs | null) =>
        this.#call(name, inputs ?? {}).catch((error: unknown) => {
          throw typed(error);
        });
    }
  }

  /**
   * Runs programs once, so that the engine has compiled their code before the first call; what they
   * change is restored. Programs of open sizes are skipped when the time is used up,
   * and those of ranges, which may not be run without sizes.
   */
  async #rehearse(programs: readonly Ready<M>[]): Promise<void> {
    const changed = new Map(
      programs.flatMap(({ program: { ports, buffers } }) =>
        ports.updates.map(({ weight, buffer }) => [weight, buffers[buffer]!.bytes]),
      ),
    );
    const kept = await Promise.all(
      [...changed].map(async ([weight, bytes]) => {
        const place = this.#weights[weight]!;
        return { place, bytes: await this.#machine.read(place, bytes) };
      }),
    );
    for (const { program, run } of programs) {
      if (
        program.least ||
        turnsOf(program.steps) > 1e5 ||
        (this.#rehearsed > mostRehearsal && Object.keys(program.sizes)[0])
      )
        continue;
      const start = performance.now();
      await run(new Int32Array(program.ports.scalars.length), []);
      this.#rehearsed += performance.now() - start;
    }
    for (const { place, bytes } of kept) this.#machine.write(place, bytes);
  }

  async #call(name: string, inputs: Inputs): Promise<Outputs> {
    this.#assertAlive();
    const entry = this.#manifest.entries[name]!;
    const known = entry.inputs.map((input) => input.name);
    const unknown = Object.keys(inputs).find((key) => !known.includes(key));
    if (unknown !== undefined)
      throw new SinterError('E_VALUE', `${name}: there is no input ${unknown}: expected ${known.join(', ')}`);
    if (entry.ranges) return this.#run(entry, ranged!.chosen(name, entry, this.#ready, inputs), inputs);
    const isGiven = (input: EntryInput, { program }: Ready<M>): boolean =>
      fits(input, inputs[input.name], program.sizes);
    const all = this.#ready.filter((ready) => ready.name === name);
    const fitting = all.filter((ready) => entry.inputs.every((input) => isGiven(input, ready)));
    if (fitting.length === 1) return this.#run(entry, fitting[0]!, inputs);
    const strange =
      entry.inputs.find((input) => !all.some((ready) => isGiven(input, ready))) ??
      entry.inputs.find((input) => 'shape' in input && input.shape.some((size) => typeof size === 'string'));
    throw misfit(name, strange as TensorInput, inputs[strange!.name], entry.built);
  }

  async #run(
    { inputs, outputs }: BundleEntry,
    { name, program, placeOf, run }: Ready<M>,
    values: Inputs,
  ): Promise<Outputs> {
    const { buffers, ports, sizes } = program;
    const given = inputs.map((input) => {
      const value = values[input.name];
      if (input.kind === 'tensor') return toBytes(name, input, value);
      if (typeof value === 'number') return value;
      throw new SinterError('E_VALUE', `${name}: ${input.name} is a number, got ${typeof value}`);
    });
    ports.args.forEach((buffer, i) => {
      if (buffer >= 0) this.#machine.write(placeOf(buffer), given[i] as Uint8Array);
    });
    const words = this.#scalars(program, given);
    this.#counter = BigInt.asUintN(64, this.#counter + BigInt(ports.draws as number));
    const checks = ports.checks ?? [];
    const wanted = [...ports.results, ...checks.map(({ buffer }) => buffer)].map((buffer) => ({
      place: placeOf(buffer),
      bytes: bytesOf(buffers[buffer]!),
    }));
    const found = await run(words, wanted);
    checks.forEach(({ buffer, what, where, first, end, signed }, i) => {
      const far = BigInt(fromBytes(buffers[buffer]!, {}, found[outputs.length + i]!)[0]!);
      const start = BigInt(first as number);
      if (far < BigInt(end as number) - start) return;
      const index = BigInt[signed ? 'asIntN' : 'asUintN'](8 * bytesOf(buffers[buffer]!), far + start);
      throw new SinterError(
        'E_INDEX',
        `${name}: ${what} ${index} is outside ${where}: ${first} to ${(end as number) - 1} are inside`,
      );
    });
    return Object.fromEntries(outputs.map((output, i) => [output.name, fromBytes(output, sizes, found[i]!)]));
  }

  async weight(name: string): Promise<Data> {
    this.#assertAlive();
    const { weights } = this.#manifest;
    const index = weights.findIndex((weight) => weight.name === name);
    const weight = weights[index];
    const place = this.#weights[index];
    if (!weight || !place) throw new SinterError('E_VALUE', `there is no weight ${name}`);
    return fromBytes(weight, {}, await this.#machine.read(place, bytesOf(weight)));
  }

  seed(seed: number | bigint): void {
    if (!isWhole(seed)) throw new SinterError('E_VALUE', `seed ${seed} is no integer`);
    this.#seed = BigInt.asUintN(64, BigInt(seed));
    this.#counter = 0n;
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#ready = [];
    this.#machine.dispose();
  }

  #assertAlive(): void {
    if (this.#disposed) throw new SinterError('E_STATE', 'the model was disposed of');
  }

  #scalars(
    { ports: { scalars } }: BundledProgram,
    given: readonly (Uint8Array | number)[],
  ): Int32Array<ArrayBuffer> {
    const words = new Int32Array(scalars.length);
    const floats = new Float32Array(words.buffer);
    scalars.forEach((source, i) => {
      if ('argument' in source) floats[i] = given[source.argument] as number;
      else if ('word' in source) words[i] = source.word;
      else if ('seed' in source) words[i] = word(this.#seed, source.seed);
      else {
        const { counter, offset } = source as Extract<ScalarSource, { counter: number }>;
        words[i] = word(this.#counter + BigInt(offset as number), counter);
      }
    });
    return words;
  }
}

function word(value: bigint, part: 0 | 1): number {
  return Number(BigInt.asIntN(32, part === 0 ? value : value >> 32n));
}
