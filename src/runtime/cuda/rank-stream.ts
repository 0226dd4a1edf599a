// The stream on which a device meets other ranks, while its kernels go on. A collective begins when everything that was queued before it is
// done. The stream of the kernels waits for its end where they need what comes, or overwrite what is sent (run-steps.ts says where), and at
// the end of a run at the latest: so everything behind a run is behind its collectives.

import type { DeviceStream, Ranks } from '../communicator.ts';
import type { CudaContext } from './api/context.ts';
import type { DriverCall } from './api/driver.ts';
import type { Encounter } from './api/marshal.ts';

const doing = 'meeting other ranks';

export class RankStream implements DeviceStream {
  readonly #context: CudaContext;
  readonly #ranks: Ranks;
  /** Made when the device meets others first. */
  #stream = 0;
  /** Recorded where the kernels' stream has come when a collective begins. */
  #start = 0;
  /** The ends of collectives that the kernels' stream has not waited for, in the order in which they were begun. */
  #open: number[] = [];
  /** Events that can be recorded again: a wait that was queued means the end that it was queued for. */
  readonly #free: number[] = [];

  constructor(context: CudaContext, ranks: Ranks) {
    this.#context = context;
    this.#ranks = ranks;
  }

  get stream(): number {
    return this.#stream;
  }

  isIdle(): boolean {
    return this.#stream === 0 || this.#context.isIdle(this.#stream);
  }

  /** Queues a collective behind everything that is queued now. */
  meet(encounter: Encounter): void {
    const { meeting, from, to } = encounter;
    const { driver, stream } = this.#context;
    const { cu } = driver;
    if (this.#stream === 0) this.#make();
    this.#check(cu.cuEventRecord(this.#start, stream), 'cuEventRecord');
    this.#check(cu.cuStreamWaitEvent(this.#stream, this.#start, 0), 'cuStreamWaitEvent');
    const end = this.#free.pop() ?? this.#context.makeEvent(doing);
    this.#open.push(end);
    let result = 0;
    try {
      if (this.#takesNothing(encounter)) {
        // Buffers are multiples of 4 bytes.
        const words = Math.ceil(to.bytes / 4);
        this.#check(cu.cuMemsetD32Async(to.address, 0, words, this.#stream), 'cuMemsetD32Async');
      }
      this.#ranks.queue(meeting, from, to, this);
    } finally {
      // Also behind what was queued before an error.
      result = cu.cuEventRecord(end, this.#stream);
    }
    this.#check(result, 'cuEventRecord');
  }

  /** The kernels' stream waits for all collectives that were begun, but for so many of the last ones. */
  await(but: number): void {
    const at = this.#open.length - but;
    if (at <= 0) return;
    const { driver, stream } = this.#context;
    this.#check(driver.cu.cuStreamWaitEvent(stream, this.#open[at - 1]!, 0), 'cuStreamWaitEvent');
    this.#free.push(...this.#open.slice(0, at));
    this.#open = this.#open.slice(at);
  }

  /** The context must be current. */
  destroy(): void {
    const { cu } = this.#context.driver;
    for (const event of [this.#start, ...this.#open, ...this.#free]) cu.cuEventDestroy_v2(event);
    cu.cuStreamDestroy_v2(this.#stream);
  }

  /** Whether no rank sends this one anything: then zeros come. */
  #takesNothing({ meeting }: Encounter): boolean {
    const { action } = meeting;
    if (action.kind !== 'permute') return false;
    const place = this.#ranks.place(meeting);
    return !action.pairs.some(([, taker]) => taker === place);
  }

  #make(): void {
    const context = this.#context;
    this.#stream = context.makeStream(doing);
    this.#start = context.makeEvent(doing);
    context.owned.add(this);
  }

  #check(result: number, call: DriverCall): void {
    this.#context.check(result, call, doing);
  }
}
