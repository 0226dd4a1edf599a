// The table of a transform as nodes of a graph, for graphs whose parameters are random.

import type { DType } from '../../src/ir/dtype.ts';
import { fftTable } from '../../src/ir/fft/table.ts';
import type { Node } from '../../src/ir/graph.ts';
import type { Attrs, Op } from '../../src/ir/ops.ts';

/** A builder of graphs, or what stands before one. */
interface Adds {
  add<K extends Op>(op: K, inputs: readonly Node[], attrs: Attrs<K>): unknown;
}

/** The constants that transforms of n points are given, joined of scalars. */
export function tableNode(b: Adds, n: number, dtype: DType): Node {
  const entries = Array.from(fftTable(n), (value) => {
    const scalar = b.add('constant', [], { value: dtype === 'f64' ? value : Math.fround(value), dtype });
    return b.add('reshape', [scalar as Node], { shape: [1] }) as Node;
  });
  return b.add('concat', entries, { axis: 0 }) as Node;
}
