// Kernels that merging makes: one map over the instances that were merged, and the rest of a kernel
// of which only some writes were merged.

import { nodeBytes, type Node } from '../../ir/graph.ts';
import { ExprPool } from '../expression/expr.ts';
import type { Axis, Kernel, Write } from '../kernel.ts';
import { copyValues, type Instance, instanceFlops, sharedReads } from './instance.ts';

/** A merged kernel before it is built. */
export interface MergedKernel {
  readonly members: readonly Instance[];
  readonly axis: Axis;
  readonly pool: ExprPool;
  readonly reads: Set<Node>;
  readonly writes: Write[];
  readonly scalars: Instance[];
  /** Packs that are written where they are read. */
  readonly overwritten: number;
}
export function mergedKernel({ members, axis, pool, reads, writes, scalars }: MergedKernel): Kernel {
  const parts = [...members, ...scalars];
  const scalarWrites = scalars.flatMap((instance) => {
    const values = copyValues(
      instance.writes.map((write) => write.value),
      pool,
      (read) => pool.make(read),
    );
    return instance.writes.map((write, i) => ({ ...write, value: values[i]! }));
  });
  const moved = new Set(
    parts.flatMap((part) => [...part.reads, ...sharedReads(part), ...part.writes.map((write) => write.node)]),
  );
  return {
    name: '',
    kind: 'map',
    body: { kind: 'map', axis },
    reads: [...reads],
    writes: [...writes, ...scalarWrites],
    pool,
    nodes: [...new Set(parts.flatMap((part) => part.kernel.nodes))],
    flops: parts.reduce((sum, part) => sum + instanceFlops(part), 0),
    bytes: [...moved].reduce((sum, node) => sum + nodeBytes(node), 0),
  };
}

/** A map kernel with some of its writes. */
export function withWrites(kernel: Kernel, left: readonly Write[]): Kernel {
  const pool = new ExprPool();
  const reads = new Set<Node>();
  const values = copyValues(
    left.map((write) => write.value),
    pool,
    (read) => {
      reads.add(read.node);
      return pool.make(read);
    },
  );
  const writes = left.map((write, i) => ({ ...write, value: values[i]! }));
  const nodes = [...reads, ...left.map((write) => write.node)];
  const share = left.length / kernel.writes.length;
  return {
    ...kernel,
    reads: [...reads],
    writes,
    pool,
    flops: Math.round(kernel.flops * share),
    bytes: nodes.reduce((sum, node) => sum + nodeBytes(node), 0),
  };
}
