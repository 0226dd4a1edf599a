// What the tests of Winograd's templates share: the contraction of a graph, its inputs, and how far a result is from another.

import { contractProblem, type ContractProblem } from '../../../../src/codegen/template/contract/problem.ts';
import type { Graph } from '../../../../src/ir/graph.ts';
import type { HostArray } from '../../../../src/ir/value.ts';
import { scheduleGraph } from '../../../../src/schedule/schedule.ts';
import type { Target } from '../../../../src/schedule/target.ts';
import { randomArray } from '../../../support/random/values.ts';

/** The contraction that a graph becomes as it stands. */
export function problemIn(graph: Graph, target: Target): ContractProblem {
  const { kernels } = scheduleGraph(graph, target, new Map());
  const kernel = kernels.find(({ body }) => body.kind === 'contract');
  if (kernel?.body.kind !== 'contract') throw new Error('no contraction');
  return contractProblem(kernel, kernel.body);
}

/** ‖a − b‖ / ‖b‖ */
export function distance(a: HostArray, b: HostArray): number {
  let [difference, norm] = [0, 0];
  for (let i = 0; i < b.data.length; i++) {
    difference += (Number(a.data[i]) - Number(b.data[i])) ** 2;
    norm += Number(b.data[i]) ** 2;
  }
  return Math.sqrt(difference / (norm || 1));
}

export function inputsOf(graph: Graph): HostArray[] {
  return graph.parameters.map(({ dtype, shape }, i) => randomArray(dtype, shape as number[], i + 1, 'tame'));
}
