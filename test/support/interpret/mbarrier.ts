// mbarriers in the Loop interpreter (PTX ISA, "mbarrier"): a phase ends when the expected
// invocations have arrived and all announced bytes have been copied. What an invocation knows to
// have happened once it has waited for a phase is kept as vector clocks of warps.

import type { Worker } from './matrix.ts';

/** One mbarrier of a workgroup. */
export interface MBarrier {
  readonly name: string;
  /** Invocations that arrive in a phase; 0 before it is made. */
  count: number;
  /** The invocation that made it; others may use it after a barrier of the workgroup. */
  maker: number;
  /** Phases that are over. */
  phase: number;
  /** Arrivals that the phase still waits for, and bytes. */
  pending: number;
  bytes: number;
  /** Copies under way that report here. */
  flying: number;
  /**
   * The joined clocks of the invocations that have arrived: in this phase, and in those that are
   * over.
   */
  readonly arriving: Float64Array;
  readonly over: Float64Array;
  /** By invocation: the phases it knows to be over. */
  readonly seen: Int32Array;
}

const noInvocation = -1;
const allInvocations = -2;

export class MBarriers {
  readonly #worker: Worker;
  readonly #invocations: number;
  readonly #warp: number;
  readonly #warps: number;
  readonly #arrays = new Map<string, MBarrier[]>();
  /** By invocation: the latest moments of every warp that it knows of. */
  readonly #clocks: Float64Array[];

  constructor(invocations: number, warp: number, worker: Worker) {
    this.#worker = worker;
    this.#invocations = invocations;
    this.#warp = warp;
    this.#warps = Math.ceil(invocations / warp);
    this.#clocks = Array.from({ length: invocations }, () => new Float64Array(this.#warps));
  }

  clear(): void {
    this.#arrays.clear();
    for (const clock of this.#clocks) clock.fill(0);
  }

  at(name: string, size: number, index: number): MBarrier {
    if (!(index >= 0 && index < size))
      this.#worker.fail(`mbarrier ${index} is outside ${name}, which has ${size}`);
    let array = this.#arrays.get(name);
    if (array === undefined) {
      array = Array.from({ length: size }, (_, i) => this.#empty(`${name}[${i}]`));
      this.#arrays.set(name, array);
    }
    return array[index]!;
  }

  #empty(name: string): MBarrier {
    return {
      name,
      count: 0,
      maker: noInvocation,
      phase: 0,
      pending: 0,
      bytes: 0,
      flying: 0,
      arriving: new Float64Array(this.#warps),
      over: new Float64Array(this.#warps),
      seen: new Int32Array(this.#invocations),
    };
  }

  init(item: number, barrier: MBarrier, count: number): void {
    if (barrier.count !== 0) this.#worker.fail(`${barrier.name} is made twice`);
    barrier.count = barrier.pending = count;
    barrier.maker = item;
  }

  /** Whether an invocation may use it. */
  check(item: number, { name, count, maker }: MBarrier): void {
    if (count === 0) this.#worker.fail(`${name} is used but noInvocation made it`);
    if (maker !== item && maker !== allInvocations)
      this.#worker.fail(`${name} is used, and no barrier lies between that and its making`);
  }

  arrive(item: number, barrier: MBarrier, bytes: number): void {
    this.check(item, barrier);
    const clock = this.#clocks[item]!;
    join(barrier.arriving, clock);
    clock[this.#warpOf(item)]! += 1;
    barrier.pending -= 1;
    barrier.bytes += bytes;
    this.#endPhaseIfComplete(barrier);
  }

  /** Counts bytes that have been copied. */
  bring(barrier: MBarrier, bytes: number): void {
    barrier.bytes -= bytes;
    barrier.flying -= 1;
    this.#endPhaseIfComplete(barrier);
  }

  /**
   * Whether the phase of this parity is over; if so, the invocation's clock is joined with those of
   * all that arrived.
   */
  isOver(item: number, barrier: MBarrier, parity: number): boolean {
    this.check(item, barrier);
    if (parity !== 0 && parity !== 1) this.#worker.fail(`a phase of ${barrier.name} has no parity ${parity}`);
    if (barrier.phase % 2 === parity) return false;
    barrier.seen[item] = barrier.phase;
    join(this.#clocks[item]!, barrier.over);
    return true;
  }

  seen(item: number, barrier: MBarrier): number {
    return barrier.seen[item]!;
  }

  clockOf(item: number): Float64Array {
    return this.#clocks[item]!;
  }

  /** The present of a warp: the latest of its invocations. */
  timeOf(warp: number): number {
    const first = warp * this.#warp;
    const own = this.#clocks.slice(first, first + this.#warp).map((clock) => clock[warp]!);
    return Math.max(...own);
  }

  /** A barrier of the workgroup: the clocks of all invocations are joined. */
  meet(): void {
    if (this.#arrays.size === 0) return;
    for (const array of this.#arrays.values())
      for (const barrier of array) if (barrier.maker !== noInvocation) barrier.maker = allInvocations;
    const all = new Float64Array(this.#warps);
    for (const clock of this.#clocks) join(all, clock);
    this.#clocks.forEach((clock, item) => {
      clock.set(all);
      clock[this.#warpOf(item)]! += 1;
    });
  }

  #warpOf(item: number): number {
    return Math.floor(item / this.#warp);
  }

  #endPhaseIfComplete(barrier: MBarrier): void {
    if (barrier.pending < 0) this.#worker.fail(`${barrier.count} arrive at ${barrier.name}, and one more`);
    if (barrier.pending > 0 || barrier.bytes !== 0) return;
    if (barrier.flying > 0)
      this.#worker.fail(`a phase of ${barrier.name} ends before all that is copied for it has come`);
    barrier.phase += 1;
    barrier.pending = barrier.count;
    join(barrier.over, barrier.arriving);
  }
}

function join(into: Float64Array, from: Float64Array): void {
  for (let i = 0; i < into.length; i++) if (from[i]! > into[i]!) into[i] = from[i]!;
}
