// A product of 16-bit operands as a graph, whichever way they lie. Without a test framework, for machines that have none.

import { contractProblem, type ContractProblem } from '../../../src/codegen/template/contract/problem.ts';
import { add, binary, broadcast, cast, slice } from '../../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../../src/ir/graph.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import type { Target } from '../../../src/schedule/target.ts';
import { Sketch } from '../cases.ts';

export interface Product {
  readonly dtype: 'f16' | 'bf16';
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly turnLhs: boolean;
  readonly turnRhs: boolean;
  readonly sharedRhs: boolean;
  /** The left side as it is given, the batches between its lines (as heads lie), or one line of three repeated. */
  readonly lhs?: 'whole' | 'heads' | 'repeated';
  readonly epilogue: boolean;
}

export function graphOf(product: Product): Graph {
  const { dtype, batch, m, n, k, turnLhs, turnRhs, sharedRhs, lhs = 'whole', epilogue } = product;
  const s = new Sketch();
  const x = leftOf(s, lhs, dtype, batch, turnLhs ? [k, m] : [m, k]);
  const right = turnRhs ? [n, k] : [k, n];
  const y = sharedRhs
    ? broadcast(s.b, s.input(right, dtype), [batch, ...right])
    : s.input([batch, ...right], dtype);
  const z = s.dot(x, y, [0], [0], [turnLhs ? 1 : 2], [turnRhs ? 2 : 1]);
  if (!epilogue) return s.graph([z]);
  const biased = add(s.b, cast(s.b, z, 'f32'), broadcast(s.b, s.input([n]), dims(z)));
  return s.graph([binary(s.b, 'max', biased, 0)]);
}

function leftOf(
  s: Sketch,
  lies: Product['lhs'],
  dtype: Product['dtype'],
  batch: number,
  [lines, line]: readonly [number, number],
): Node {
  if (lies === 'heads')
    return s.b.add('permute', [s.input([lines, batch, line], dtype)], { order: [1, 0, 2] }) as Node;
  if (lies !== 'repeated') return s.input([batch, lines, line], dtype);
  const one = slice(s.b, s.input([batch, 3, line], dtype), [0, 1, 0], [batch, 1, line]);
  return broadcast(s.b, one, [batch, lines, line]);
}

export function problemOf(graph: Graph, target: Target): ContractProblem {
  const { kernels } = scheduleGraph(graph, target, new Map());
  const kernel = kernels.find(({ body }) => body.kind === 'contract')!;
  if (kernel.body.kind !== 'contract') throw new Error('no contraction');
  return contractProblem(kernel, kernel.body);
}
