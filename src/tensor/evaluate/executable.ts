// Executable: a graph with its run-time scalars and donations, compiled for a device when it first
// runs there.

import { areLoaded, chunksOf, isWhole, load, loadedCompiler, type Chunk } from '../../compile/chunks.ts';
import type { CompileOptions, PinnedTilings } from '../../compile/compile.ts';
import { SinterError } from '../../errors.ts';
import type { DType } from '../../ir/dtype.ts';
import { rewrite, topological, type Graph, type Node } from '../../ir/graph.ts';
import type { Device, LoadedProgram } from '../../runtime/device.ts';
import type { Program, TargetId } from '../../runtime/program.ts';
import { leastTargetOf, targetOf, withPrecision, type Target } from '../../schedule/target.ts';
import { adjusted, adjustments } from '../workarounds/adjusting.ts';
import { matmulPrecision, type MatmulPrecision } from '../precision.ts';
import { noteCompile, type About } from '../report/compiles.ts';
import { counts } from '../report/stats.ts';
import { currentSession, withSession, type Session } from '../session.ts';

/**
 * Where the memory of an output comes from at each run: an input or an earlier output that it
 * repeats, or a fresh buffer.
 */
export interface Place {
  readonly from: 'input' | 'output' | 'device';
  readonly index: number;
}

/** A program on a device, with what every run of it asks. */
export interface Ready {
  readonly loaded: LoadedProgram;
  /** By input: whether the program may write over it. */
  readonly donated: readonly boolean[];
  /** By input: what the host casts it to before the device sees it. */
  readonly casts: readonly (DType | undefined)[];
  /** By output. */
  readonly places: readonly Place[];
  /** What a run adds to the counts. */
  readonly dispatches: number;
  readonly moved: number;
}

/** What a compiler is asked. */
export interface CompileQuestion extends Pick<Ready, 'casts'> {
  readonly graph: Graph;
  readonly target: Target;
  readonly options: CompileOptions;
}

/** How many programs have been compiled in this process. */
export function compileCount(): number {
  return counts.programs;
}

/** Finds schedules for the kernels of a graph, which may take measurements. */
export type FindSchedules = (graph: Graph, device: Device, options: CompileOptions) => Promise<PinnedTilings>;

/**
 * Some outputs of a program, computed by one of their own from what they read; it donates nothing.
 */
export interface Part {
  readonly executable: Executable;
  /** Places among the inputs, scalars and outputs of the whole. */
  readonly inputs: readonly number[];
  readonly scalars: readonly number[];
  readonly outputs: readonly number[];
}

/** What programs of one device are told apart by. */
function variantOn({ communicator }: Device, precision: MatmulPrecision): string {
  const changes = adjustments();
  if (communicator === undefined && changes === 0) return precision;
  return `${precision} ${communicator?.rank ?? ''} ${changes}`;
}

/**
 * Destroys the programs of a garbage-collected executable, which its device would keep otherwise.
 */
const collected = new FinalizationRegistry<ReadonlyMap<Device, ReadonlyMap<string, Ready>>>(destroyAll);

function destroyAll(ready: ReadonlyMap<Device, ReadonlyMap<string, Ready>>): void {
  for (const [device, known] of ready)
    if (!device.lost) for (const { loaded } of known.values()) loaded.destroy();
}

export class Executable {
  readonly graph: Graph;
  readonly options: CompileOptions;
  readonly #find: FindSchedules | undefined;
  readonly #about: About;
  readonly #found = new Map<Device, PinnedTilings>();
  readonly #ready = new Map<Device, Map<string, Ready>>();
  /** Errors of the compiler or a device: they are the same at each run, and thrown again. */
  readonly #refusals = new Map<Device, unknown>();
  #halves: readonly Part[] | undefined = undefined;

  /** `about` says what the graph is of and why it is compiled. */
  constructor(graph: Graph, options: CompileOptions, find?: FindSchedules, about: About = unknown) {
    this.graph = graph;
    this.options = options;
    this.#find = find;
    collected.register(this, this.#ready);
    this.#about = about;
  }

  /** What it computes, in a few words. */
  get title(): string {
    return this.#about().what;
  }

  /** Whether `on` may be called on this device; otherwise call `prepare` first. */
  isPrepared(device: Device): boolean {
    if (this.#find !== undefined && !this.#found.has(device)) return false;
    return isWhole() || this.#ready.has(device) || areLoaded(this.#chunksOn(device));
  }

  /** Loads the chunks of the compiler that this program needs, and finds its schedules. */
  async prepare(device: Device): Promise<void> {
    await load(this.#chunksOn(device));
    if (this.#find === undefined || this.#found.has(device)) return;
    // Schedules are found by running programs of the device's own target.
    await device.whole?.().catch(() => undefined);
    this.#found.set(device, await this.#find(this.graph, device, this.#optionsOn(device)));
  }

  /**
   * Begins to load the chunks that this program needs on any device, or on any whose programs are written in this language. That
   * one does not come is what `prepare` says.
   */
  fetch(id: TargetId | undefined): void {
    if (!isWhole()) load(this.#chunksFor(id && leastTargetOf(id))).catch(() => undefined);
  }

  #chunksOn({ facts: given }: Device): Iterable<Chunk> {
    const { facts } = adjusted(given);
    const target = targetOf(facts);
    return this.#chunksFor(target).add(facts.first ?? target.id);
  }

  #chunksFor(target: Target | undefined): Set<Chunk> {
    if (target?.id === 'interpreter') return new Set(['compiler', 'interpreter']);
    const chunks = chunksOf(this.graph, target, this.options);
    return target === undefined ? chunks : chunks.add(target.id);
  }

  /**
   * The program, ready on `device`. Throws the error of the compiler or the device where there is
   * one.
   */
  on(device: Device): Ready {
    const precision = matmulPrecision();
    const known = this.#ready.get(device)?.get(variantOn(device, precision));
    if (known !== undefined) return known;
    if (this.#refusals.has(device)) throw this.#refusals.get(device);
    try {
      return this.#compile(device, precision);
    } catch (error) {
      // A device may join other processes later.
      const isPassing =
        device.lost || (error instanceof SinterError && (error.code === 'E_OOM' || error.code === 'E_STATE'));
      if (!isPassing) this.#refusals.set(device, error);
      throw error;
    }
  }

  #compile(device: Device, precision: MatmulPrecision): Ready {
    for (const [other] of this.#ready) if (other.lost) this.#ready.delete(other);
    const start = performance.now();
    for (const [other] of this.#found) if (other.lost) this.#found.delete(other);
    const { facts } = device;
    const { first, target } = facts;
    const { graph, options, casts, ...asked } = this.#questionFor(first ?? target, device, precision);
    const { program, host } = loadedCompiler().compileGraph(graph, asked.target, options);
    const session = currentSession();
    const later = first && (() => this.#compileMeanwhile(target, device, precision, session));
    const donated = program.inputs.map((_, i) => program.donated.some(({ input }) => input === i));
    const loaded = device.load(program, host, later);
    const ready = { loaded, donated, casts, places: placesOf(program), ...workOf(program) };
    const timed = { kernels: program.kernels.length, start, milliseconds: performance.now() - start };
    noteCompile({ device: facts.name, ...timed }, () => this.#reason(device, precision));
    const known = this.#ready.get(device) ?? new Map<string, Ready>();
    this.#ready.set(device, known.set(variantOn(device, precision), ready));
    return ready;
  }

  /** The options, with the process that the device is one of. */
  #optionsOn({ communicator }: Device): CompileOptions {
    return communicator === undefined ? this.options : { ...this.options, rank: communicator.rank };
  }

  /** What the compiler is asked for this device in the language of `id`. */
  #questionFor(id: TargetId, device: Device, precision: MatmulPrecision): CompileQuestion {
    const { facts, schedules: first } = adjusted(device.facts);
    // Schedules that were found are of the device's own target.
    const found = id === facts.target ? this.#found.get(device) : undefined;
    const schedules: PinnedTilings | undefined =
      first === undefined ? found : (problem) => first(problem) ?? found?.(problem);
    const own = this.#optionsOn(device);
    const given = schedules === undefined ? own : { ...own, schedules };
    const target = withPrecision(targetOf({ ...facts, target: id }), precision);
    const cast = loadedCompiler().castDoubleInputs(this.graph, target);
    const casts = this.graph.parameters.flatMap((_, i) =>
      given.scalars?.has(i) === true ? [] : [cast?.casts.get(i)],
    );
    const { communicator } = device;
    const options = {
      ...given,
      ...(communicator !== undefined && { rank: communicator.rank }),
      title: (): string => this.#about().what,
    };
    return { graph: cast?.graph ?? this.graph, target, options, casts };
  }

  /** What is asked for the device's own target, which has to be prepared. */
  questionOn(device: Device): CompileQuestion {
    return this.#questionFor(device.facts.target, device, matmulPrecision());
  }

  async #compileMeanwhile(
    id: TargetId,
    device: Device,
    precision: MatmulPrecision,
    session: Session,
  ): Promise<Program> {
    const { compileOnThread } = await import('../../compile/thread/thread.ts');
    const { graph, target, options } = withSession(session, () => this.#questionFor(id, device, precision));
    return compileOnThread(graph, target, options);
  }

  #reason(device: Device, precision: MatmulPrecision): ReturnType<About> {
    const { what, why } = this.#about();
    if (this.#ready.size === 0) return { what, why };
    const here = this.#ready.get(device);
    return { what, why: here === undefined ? `another device than before` : `matmul precision ${precision}` };
  }

  /** Frees the programs; they are compiled again if it is run again. */
  destroy(): void {
    destroyAll(this.#ready);
    this.#ready.clear();
    this.#refusals.clear();
    for (const { executable } of this.#halves ?? []) executable.destroy();
    this.#halves = undefined;
  }

  /** Its outputs in two parts, for when it cannot be run whole. */
  halves(): readonly Part[] {
    const middle = this.graph.outputs.length >>> 1;
    const all = this.graph.outputs.map((_, i) => i);
    return (this.#halves ??= [this.#part(all.slice(0, middle)), this.#part(all.slice(middle))]);
  }

  #part(outputs: readonly number[]): Part {
    const { graph, options } = this;
    const results = outputs.map((i) => graph.outputs[i]!);
    const read = new Set(topological(results));
    const places = graph.parameters.flatMap((parameter, i) => (read.has(parameter as Node) ? [i] : []));
    const parameters = places.map((i) => graph.parameters[i]!);
    const numbers = new Map(parameters.map((parameter, i) => [parameter as Node, i]));
    const own = rewrite({ parameters, outputs: results }, (node, _, b) => {
      if (node.op !== 'parameter') return undefined;
      return b.add('parameter', [], { ...node.attrs, index: numbers.get(node)! }) as Node;
    });
    const isScalar = (i: number): boolean => options.scalars?.has(i) === true;
    const scalars = new Set(places.flatMap((place, i) => (isScalar(place) ? [i] : [])));
    /** The number of a parameter among those of its kind. */
    const rank = (place: number): number =>
      graph.parameters.slice(0, place).filter((_, i) => isScalar(i) === isScalar(place)).length;
    const about: About = () => ({ ...this.#about(), why: 'the whole could not be run' });
    return {
      executable: new Executable(own, { ...options, scalars, donate: new Map() }, undefined, about),
      inputs: places.filter((place) => !isScalar(place)).map(rank),
      scalars: places.filter(isScalar).map(rank),
      outputs,
    };
  }
}

const unknown: About = () => ({ what: 'a graph', why: 'first run' });

function workOf({ steps, kernels }: Program): Pick<Ready, 'dispatches' | 'moved'> {
  let [dispatches, moved] = [0, 0];
  for (const step of steps) {
    if (step.kind !== 'dispatch') continue;
    dispatches += 1;
    moved += kernels[step.kernel]!.bytes;
  }
  return { dispatches, moved };
}

function placesOf({ inputs, outputs }: Program): Place[] {
  let fresh = 0;
  return outputs.map((buffer, i): Place => {
    const input = inputs.indexOf(buffer);
    if (input >= 0) return { from: 'input', index: input };
    const first = outputs.indexOf(buffer);
    if (first < i) return { from: 'output', index: first };
    return { from: 'device', index: fresh++ };
  });
}
