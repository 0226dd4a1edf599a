// Executable: a graph with its run-time scalars and donations, compiled for a device when it first runs there.

import {
  compileGraph,
  narrowWideInputs,
  type CompileOptions,
  type Narrowing,
  type PinnedSchedules,
} from '../compile.ts';
import type { Graph } from '../ir/graph.ts';
import type { Device, LoadedProgram } from '../runtime/device.ts';
import type { Program } from '../runtime/program.ts';
import { targetOf, withPrecision } from '../schedule/target.ts';
import { matmulPrecision, type MatmulPrecision } from './precision.ts';
import { noteCompile, type About } from './report/compiles.ts';
import { counts } from './report/stats.ts';

/** Where the memory of an output comes from at each run: an input or an earlier output that it repeats, or a fresh buffer. */
export interface Place {
  readonly from: 'input' | 'output' | 'device';
  readonly index: number;
}

/** A program on a device, with what every run of it asks. */
export interface Ready {
  readonly loaded: LoadedProgram;
  /** By input: whether the program may write over it. */
  readonly donated: readonly boolean[];
  /** By input: what its 64 bits are narrowed to before the device sees them. */
  readonly narrowings: readonly (Narrowing | undefined)[];
  /** By output. */
  readonly places: readonly Place[];
  /** What a run adds to the counts. */
  readonly dispatches: number;
  readonly moved: number;
}

/** How many programs have been compiled in this process. */
export function compileCount(): number {
  return counts.programs;
}

/** Finds schedules for the kernels of a graph, which may take measurements. */
export type FindSchedules = (
  graph: Graph,
  device: Device,
  options: CompileOptions,
) => Promise<PinnedSchedules>;

export class Executable {
  readonly graph: Graph;
  readonly options: CompileOptions;
  readonly #find: FindSchedules | undefined;
  readonly #about: About;
  readonly #found = new Map<Device, PinnedSchedules>();
  readonly #ready = new Map<Device, Map<MatmulPrecision, Ready>>();

  /** `about` says what the graph is of and why it is compiled. */
  constructor(graph: Graph, options: CompileOptions, find?: FindSchedules, about: About = unknown) {
    this.graph = graph;
    this.options = options;
    this.#find = find;
    this.#about = about;
  }

  /** Whether `on` may be called; else `settle` comes first. */
  isSettled(device: Device): boolean {
    return this.#find === undefined || this.#found.has(device);
  }

  async settle(device: Device): Promise<void> {
    if (this.#find === undefined || this.#found.has(device)) return;
    this.#found.set(device, await this.#find(this.graph, device, this.options));
  }

  /** The program, ready on `device`. Throws what the compiler or the device has against it. */
  on(device: Device): Ready {
    const precision = matmulPrecision();
    let ready = this.#ready.get(device)?.get(precision);
    if (ready === undefined) {
      for (const [other] of this.#ready) if (other.lost) this.#ready.delete(other);
      const start = performance.now();
      for (const [other] of this.#found) if (other.lost) this.#found.delete(other);
      const schedules = this.#found.get(device);
      const options = schedules === undefined ? this.options : { ...this.options, schedules };
      const target = withPrecision(targetOf(device.facts), precision);
      const narrowed = narrowWideInputs(this.graph, target);
      const { program, host } = compileGraph(narrowed?.graph ?? this.graph, target, options);
      const narrowings = this.graph.parameters.flatMap((_, i) =>
        options.scalars?.has(i) === true ? [] : [narrowed?.narrowings.get(i)],
      );
      const donated = program.inputs.map((_, i) => program.donated.some(({ input }) => input === i));
      const loaded = device.load(program, host);
      ready = { loaded, donated, narrowings, places: placesOf(program), ...workOf(program) };
      const timed = { kernels: program.kernels.length, start, milliseconds: performance.now() - start };
      noteCompile({ device: device.facts.name, ...timed }, () => this.#reason(device, precision));
      const known = this.#ready.get(device) ?? new Map<MatmulPrecision, Ready>();
      this.#ready.set(device, known.set(precision, ready));
    }
    return ready;
  }

  #reason(device: Device, precision: MatmulPrecision): ReturnType<About> {
    const { what, why } = this.#about();
    if (this.#ready.size === 0) return { what, why };
    const here = this.#ready.get(device);
    return { what, why: here === undefined ? `another device than before` : `matmul precision ${precision}` };
  }

  /** Frees the programs; they are compiled again if it is run again. */
  destroy(): void {
    for (const [device, known] of this.#ready)
      if (!device.lost) for (const { loaded } of known.values()) loaded.destroy();
    this.#ready.clear();
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
