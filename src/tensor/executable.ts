// Executable: a graph with its run-time scalars and donations, compiled for a device when it first runs there.

import { compileGraph, type CompileOptions } from '../compile.ts';
import type { Graph } from '../ir/graph.ts';
import type { Device, LoadedProgram } from '../runtime/device.ts';
import { targetOf } from '../schedule/target.ts';

let compiled = 0;

/** How many programs have been compiled in this process. */
export function compileCount(): number {
  return compiled;
}

export class Executable {
  readonly graph: Graph;
  readonly options: CompileOptions;
  readonly #loaded = new Map<Device, LoadedProgram>();

  constructor(graph: Graph, options: CompileOptions) {
    this.graph = graph;
    this.options = options;
  }

  /** The program, ready on `device`. Throws what the compiler or the device has against it. */
  on(device: Device): LoadedProgram {
    let loaded = this.#loaded.get(device);
    if (loaded === undefined) {
      for (const [other] of this.#loaded) if (other.lost) this.#loaded.delete(other);
      compiled += 1;
      const { program, host } = compileGraph(this.graph, targetOf(device.facts), this.options);
      loaded = device.load(program, host);
      this.#loaded.set(device, loaded);
    }
    return loaded;
  }

  /** Frees the programs; they are compiled again if it is run again. */
  destroy(): void {
    for (const [device, loaded] of this.#loaded) if (!device.lost) loaded.destroy();
    this.#loaded.clear();
  }
}
