// Executable: a graph with its run-time scalars and donations, compiled for a device when it first runs there; and once more,
// without donations, when it is first given memory that it may not write over.

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
  /** Positions of the inputs whose memory outputs may take. */
  readonly donors: readonly number[];
  readonly #donating = new Map<Device, LoadedProgram>();
  readonly #sparing = new Map<Device, LoadedProgram>();

  constructor(graph: Graph, options: CompileOptions) {
    this.graph = graph;
    this.options = options;
    const inputs = graph.parameters.filter((_, i) => options.scalars?.has(i) !== true);
    this.donors = inputs.flatMap(({ attrs }, position) =>
      options.donate?.has(attrs.index) === true ? [position] : [],
    );
  }

  /** The program, ready on `device`. Throws what the compiler or the device has against it. */
  on(device: Device, donate: boolean = true): LoadedProgram {
    const known = donate || this.donors.length === 0 ? this.#donating : this.#sparing;
    let loaded = known.get(device);
    if (loaded === undefined) {
      for (const [other] of known) if (other.lost) known.delete(other);
      compiled += 1;
      const options = known === this.#donating ? this.options : { ...this.options, donate: new Map() };
      const { program, host } = compileGraph(this.graph, targetOf(device.facts), options);
      loaded = device.load(program, host);
      known.set(device, loaded);
    }
    return loaded;
  }

  /** Frees the programs; they are compiled again if it is run again. */
  destroy(): void {
    for (const known of [this.#donating, this.#sparing]) {
      for (const [device, loaded] of known) if (!device.lost) loaded.destroy();
      known.clear();
    }
  }
}
