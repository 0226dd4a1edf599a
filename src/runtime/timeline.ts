// The order of a device. Work that must keep its position (runs, writes, reads, destroys) goes through here.
// It starts at once if nothing waits, and otherwise after whatever still compiles. The order is first in,
// first out, over everything the device does.

/**
 * A condition that work may have to wait for. `opened` never rejects; the work itself handles
 * failures.
 */
export interface Gate {
  readonly open: boolean;
  readonly opened: Promise<void>;
}

/** Open when all of them are. */
export function gateOf(gates: readonly Gate[]): Gate {
  const gate = { open: gates.every(({ open }) => open), opened: Promise.resolve() };
  if (!gate.open) {
    gate.opened = Promise.all(gates.map(({ opened }) => opened)).then(() => {
      gate.open = true;
    });
  }
  return gate;
}

/** What is done at once; later work waits for a promise that it gives. It must not throw, nor reject. */
export type Work = () => unknown;

interface Task {
  readonly work: Work;
  readonly gate: Gate | undefined;
}

/**
 * A first-in, first-out queue that runs work synchronously whenever it is empty and the gate is
 * open.
 */
export class Timeline {
  #waiting: Task[] = [];
  #draining = false;

  /** Whether work pushed now, without a gate, would run at once. */
  get idle(): boolean {
    return !this.#draining;
  }

  /** Runs `work` after all earlier work and once `gate` is open. */
  push(work: Work, gate?: Gate): void {
    if (!this.#draining && (gate === undefined || gate.open)) {
      const rest = work();
      if (rest instanceof Promise) void this.#drain(rest);
      return;
    }
    this.#waiting.push({ work, gate });
    if (!this.#draining) void this.#drain();
  }

  /** Resolves when everything pushed so far has run. */
  async drained(): Promise<void> {
    if (!this.#draining) return;
    await new Promise<void>((resolve) => this.push(resolve));
  }

  async #drain(first?: Promise<unknown>): Promise<void> {
    this.#draining = true;
    await first;
    // Work may push more while it runs, so the list can grow under the loop.
    for (let next = 0; next < this.#waiting.length; next++) {
      const { work, gate } = this.#waiting[next]!;
      if (gate !== undefined && !gate.open) await gate.opened;
      const rest = work();
      if (rest instanceof Promise) await rest;
    }
    this.#waiting = [];
    this.#draining = false;
  }
}
