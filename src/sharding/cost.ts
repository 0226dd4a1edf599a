// Modelled time of collectives: so much for each message that a process waits for, and so much for each byte that it
// sends (Hockney's model, as in Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in
// MPICH, 2005). Bytes and steps are those of the best known algorithms:
// - rings, of n processes that each hand on a part of n (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for
//   clusters of workstations, 2009): a sum goes round twice, a gather or a scatter once;
// - two binary trees at once, each with half of the bytes (Sanders, Speck and Träff, Two-tree algorithms for full
//   bandwidth broadcast, reduction and scan, 2009): two bytes sent for each byte of a sum, in 2·log₂ n steps.
// NCCL chooses between the same two in the same way (tuning.cc there).
// The model of a machine puts beside its link what a process computes with. It is the only model of time of programs over
// several processes: layouts are compared by it (time.ts), plans and explanations quote it.

import { axesNamed, groupOf, type Mesh } from '../ir/mesh/mesh.ts';
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

/** What a process computes with, and what joins it to the others. */
export interface MachineModel {
  /** Operations a second. */
  readonly arithmetic: number;
  /** Bytes a second from and to memory. */
  readonly memory: number;
  readonly link: Link;
}

/**
 * The machine by which layouts are compared. All processes use it, so that they come to the same program, and it is the same
 * whatever the processes run on. So its figures stand for none: what counts is how they stand to each other. Ten operations
 * in the time of a byte to another process are what a processor's cores do. A GPU does more, but values that all of them
 * compute take memory on all of them. Messages cost by collective, not by step: which algorithm takes fewer steps for small
 * values depends on where the program runs.
 */
export const planningMachine: MachineModel = {
  arithmetic: 1e12,
  memory: 2e12,
  link: { bandwidth: 1e11, hop: 0, start: 5e-6 },
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
export function timeOfCollective(kind: CollectiveOp, ranks: number, bytes: number, link: Link): number {
  if (ranks === 1) return 0;
  const times = phasesOf(kind, ranks, bytes, link).map(({ wait, transfer }) => wait + transfer);
  return link.start + Math.min(...times);
}

/** What a collective takes on one kind of link: seconds for messages to be there, and seconds for bytes to pass. */
interface Phase {
  readonly wait: number;
  readonly transfer: number;
}

/** The ways to run a collective on links of one kind. */
function phasesOf(
  kind: CollectiveOp,
  ranks: number,
  bytes: number,
  { bandwidth, hop }: Link,
): readonly Phase[] {
  if (ranks === 1) return [{ wait: 0, transfer: 0 }];
  const phase = (steps: number, sent: number): Phase => ({ wait: steps * hop, transfer: sent / bandwidth });
  const sent = bytesSent(kind, ranks, bytes);
  const depth = Math.ceil(Math.log2(ranks));
  switch (kind) {
    case 'allReduce':
      return [phase(2 * (ranks - 1), sent), phase(2 * depth, 2 * bytes)];
    case 'allGather':
    case 'reduceScatter':
    case 'allToAll':
      return [phase(ranks - 1, sent)];
    case 'permuteRanks':
      return [phase(1, sent)];
    case 'broadcastRank':
      return [phase(depth, sent)];
    default:
      return kind satisfies never;
  }
}

/** Nodes of several processes each: what joins those of a node, and what joins each process to those of other nodes. */
export interface ClusterModel {
  /** Processes of a node, which are ranks that follow each other. */
  readonly node: number;
  readonly inside: Link;
  /** Each process has a link of its own. */
  readonly between: Link;
}

/** Clusters by name. */
export const clusters: Readonly<Record<'h100', ClusterModel>> = {
  /** DGX H100: eight GPUs on NVLink 4, each with a port of InfiniBand NDR. */
  h100: { node: 8, inside: links.nvlink4, between: links.infiniband400 },
};

/** How the processes along mesh axes stand in a cluster: so many of them in each of so many nodes. */
export function spreadOver(
  mesh: Mesh,
  over: readonly string[],
  node: number,
): { readonly local: number; readonly nodes: number } {
  const ranks = groupOf(mesh, axesNamed(mesh, over.join())!, 0);
  const local = ranks.filter((rank) => rank < node).length;
  return { local, nodes: Math.ceil(ranks.length / local) };
}

/**
 * Seconds that a collective over mesh axes takes in a cluster; `bytes` as in `bytesSent`. Over several nodes it runs by levels: a sum
 * is scattered inside of the nodes, each process adds up its part with those of other nodes, and the parts are gathered. A process
 * sends as many bytes as in one ring. Levels work on pieces at the same time, so the slower one counts, and the messages of both.
 */
export function timeOverAxes(
  kind: CollectiveOp,
  mesh: Mesh,
  over: readonly string[],
  bytes: number,
  { node, inside, between }: ClusterModel,
): number {
  const { local, nodes } = spreadOver(mesh, over, node);
  if (nodes === 1) return timeOfCollective(kind, local, bytes, inside);
  if (local === 1 || kind === 'permuteRanks') return timeOfCollective(kind, nodes, bytes, between);
  const isExchange = kind === 'allToAll';
  const within = phasesOf(kind, local, isExchange ? bytes / nodes : bytes, inside);
  const across = phasesOf(kind, nodes, isExchange ? bytes : bytes / local, between);
  const times = within.flatMap((a) => across.map((b) => a.wait + b.wait + Math.max(a.transfer, b.transfer)));
  return Math.max(inside.start, between.start) + Math.min(...times);
}
