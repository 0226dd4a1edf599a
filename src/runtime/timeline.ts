// The order of a device. Work that must keep its place (runs, writes, reads, destroys) goes through
// here: at once when nothing waits, else behind whatever still compiles. First in, first out, over
// everything the device does.

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

interface Task {
  readonly work: () => void;
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

  /** Runs `work` after all earlier work and once `gate` is open; `work` must not throw. */
  push(work: () => void, gate?: Gate): void {
    if (!this.#draining && (gate === undefined || gate.open)) {
      work();
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

  async #drain(): Promise<void> {
    this.#draining = true;
    // Work may push more while it runs, so the list can grow under the loop.
    for (let next = 0; next < this.#waiting.length; next++) {
      const { work, gate } = this.#waiting[next]!;
      if (gate !== undefined && !gate.open) await gate.opened;
      work();
    }
    this.#waiting = [];
    this.#draining = false;
  }
}
