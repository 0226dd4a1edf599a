// Modelled time of collectives: so much for each message that a process waits for, and so much for each byte that it
// sends (Hockney's model, as in Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in
// MPICH, 2005). Bytes and steps are those of the best known algorithms:
// - rings, of n processes that each hand on a part of n (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for
//   clusters of workstations, 2009): a sum goes round twice, a gather or a scatter once;
// - two binary trees at once, each with half of the bytes (Sanders, Speck and Träff, Two-tree algorithms for full
//   bandwidth broadcast, reduction and scan, 2009): two bytes sent for each byte of a sum, in 2·log₂ n steps.
// NCCL chooses between the same two in the same way (tuning.cc there).

import type { CollectiveOp } from '../ir/ops.ts';

/** What processes are joined by. */
export interface Link {
  /** Bytes a second from one process, while as many come in. */
  readonly bandwidth: number;
  /** Seconds until a message is there. */
  readonly hop: number;
  /** Seconds that a collective takes besides. */
  readonly start: number;
}

/** Links by name. */
export const links: Readonly<Record<'nvlink4' | 'infiniband400' | 'memory', Link>> = {
  /**
   * NVLink 4 (H100): 18 links of 25 GB/s in each direction. Times of NCCL's tuning.cc for rings with the protocol LL, as for the
   * network below.
   */
  nvlink4: { bandwidth: 450e9, hop: 0.47e-6, start: 3.6e-6 },
  /** InfiniBand NDR: 400 Gb/s in each direction. */
  infiniband400: { bandwidth: 50e9, hop: 2.7e-6, start: 3.6e-6 },
  /**
   * Threads of one process: two channels of DDR4-3200 move 51.2 GB/s, and a copy reads and writes each byte. 5.8 µs is the
   * least that a thread of Node took to wake another by Atomics.notify, in 10,000 rounds.
   */
  memory: { bandwidth: 25.6e9, hop: 5.8e-6, start: 0 },
};

/**
 * Bytes that each of n processes sends, by a ring. `bytes` are those of the whole: of what every process has before
 * and after a sum, an exchange, a step to another process and a broadcast, after a gather, before a scatter.
 */
export function bytesSent(kind: CollectiveOp, ranks: number, bytes: number): number {
  const share = (ranks - 1) / ranks;
  switch (kind) {
    case 'allReduce':
      return 2 * share * bytes;
    case 'allGather':
    case 'reduceScatter':
    case 'allToAll':
      return share * bytes;
    case 'permuteRanks':
    case 'broadcastRank':
      return ranks === 1 ? 0 : bytes;
    default:
      return kind satisfies never;
  }
}

/** Seconds that a collective of n processes takes; `bytes` as in `bytesSent`. */
export function timeOfCollective(
  kind: CollectiveOp,
  ranks: number,
  bytes: number,
  { bandwidth, hop, start }: Link,
): number {
  if (ranks === 1) return 0;
  const time = (steps: number, sent: number): number => start + steps * hop + sent / bandwidth;
  const sent = bytesSent(kind, ranks, bytes);
  const depth = Math.ceil(Math.log2(ranks));
  switch (kind) {
    case 'allReduce':
      return Math.min(time(2 * (ranks - 1), sent), time(2 * depth, 2 * bytes));
    case 'allGather':
    case 'reduceScatter':
    case 'allToAll':
      return time(ranks - 1, sent);
    case 'permuteRanks':
      return time(1, sent);
    case 'broadcastRank':
      return time(depth, sent);
    default:
      return kind satisfies never;
  }
}
