// What a rank has sent so far, counted where collectives are run.

import type {
  CollectiveAction,
  CollectiveCall,
  Communicator,
  StreamCollectives,
} from '../runtime/communicator.ts';
import type { CollectiveOp } from '../ir/ops.ts';
import { bytesSent } from '../sharding/cost.ts';

/** Collectives of one kind. */
export interface Traffic {
  readonly calls: number;
  /** Bytes that this rank sends for them by the best known algorithm, whatever the engine does. */
  readonly bytes: number;
}

/** A communicator that counts what another one runs. */
export class CountingCommunicator implements Communicator {
  readonly #inner: Communicator;
  #onStream: StreamCollectives | undefined;
  readonly #counted = new Map<CollectiveAction['kind'], Traffic>();

  constructor(inner: Communicator) {
    this.#inner = inner;
  }

  get description(): string {
    return this.#inner.description;
  }

  get rank(): number {
    return this.#inner.rank;
  }

  get size(): number {
    return this.#inner.size;
  }

  /** By kind, what was run since the beginning. */
  get traffic(): Readonly<Record<string, Traffic>> {
    return Object.fromEntries(this.#counted);
  }

  run(call: CollectiveCall, from: Uint8Array, to: Uint8Array): void {
    this.#inner.run(call, from, to);
    this.#count(call, Math.max(from.length, to.length));
  }

  get onStream(): StreamCollectives | undefined {
    const inner = this.#inner.onStream;
    if (inner === undefined) return undefined;
    return (this.#onStream ??= {
      queue: (call, from, to, stream) => {
        inner.queue(call, from, to, stream);
        this.#count(call, Math.max(from.bytes, to.bytes));
      },
      look: () => inner.look(),
    });
  }

  #count(call: CollectiveCall, whole: number): void {
    const { kind } = call.action;
    const { calls, bytes } = this.#counted.get(kind) ?? { calls: 0, bytes: 0 };
    const sent = bytesSent(opOf[kind], call.group.length, whole);
    this.#counted.set(kind, { calls: calls + 1, bytes: bytes + sent });
  }
}

const opOf: Readonly<Record<CollectiveAction['kind'], CollectiveOp>> = {
  allReduce: 'allReduce',
  allGather: 'allGather',
  reduceScatter: 'reduceScatter',
  allToAll: 'allToAll',
  permute: 'permuteRanks',
  broadcast: 'broadcastRank',
};
