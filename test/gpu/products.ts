// Products on matrix units, for GPUs: every schedule that the device has for a product of 16-bit
// operands, whichever way they lie. What is only modelled elsewhere (how fragments and tiles lie,
// who waits for whom) must be so here.

import type { ContractTiling } from '../../src/codegen/template/contract/strategies.ts';
import { legalTilings } from '../../src/codegen/template/contract/choose.ts';
import type { Graph } from '../../src/ir/graph.ts';
import type { Target } from '../../src/schedule/target.ts';
import { graphOf, problemOf } from '../codegen/template/product-graph.ts';

export interface ProductCheck {
  /**
   * Which operand lies turned, the kind of schedule and its tile: `bf16 nt warpgroup 128x256x64`.
   */
  readonly name: string;
  readonly graph: Graph;
  readonly schedule: ContractTiling;
}

const ways = [
  { dtype: 'bf16', turnLhs: false, turnRhs: false },
  { dtype: 'f16', turnLhs: false, turnRhs: true },
  { dtype: 'bf16', turnLhs: true, turnRhs: false },
  { dtype: 'bf16', turnLhs: true, turnRhs: true },
] as const;

/**
 * The target with so few multiprocessors that a workgroup which stays has several tiles of these
 * products.
 */
export function withFewWorkgroups(target: Target): Target {
  return target.warpgroups === undefined
    ? target
    : { ...target, warpgroups: true, cores: { count: 5, invocations: 2048 } };
}

/** Sizes that no tile divides, in two batches. */
const sizes = { batch: 2, m: 392, n: 520, k: 328, sharedRhs: true, epilogue: true } as const;

export function productChecks(target: Target): readonly ProductCheck[] {
  return ways.flatMap((way) => {
    const graph = graphOf({ ...way, ...sizes });
    const lies = `${way.turnLhs ? 't' : 'n'}${way.turnRhs ? 't' : 'n'}`;
    return legalTilings(problemOf(graph, target), target).flatMap((schedule): ProductCheck[] => {
      if (schedule.kind !== 'mma' && schedule.kind !== 'wgmma') return [];
      const { kind, tileM, tileN, tileK, stages } = schedule;
      const name = `${way.dtype} ${lies} ${kind} ${tileM}x${tileN}x${tileK} in ${stages}`;
      return [{ name, graph, schedule }];
    });
  });
}
