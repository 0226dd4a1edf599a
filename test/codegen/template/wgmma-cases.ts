// Products for warp groups, at sizes around the edges of lines and tiles, and the schedules that
// there are for them.

import * as fc from 'fast-check';
import { legalTilings } from '../../../src/codegen/template/contract/choose.ts';
import type { ContractTiling } from '../../../src/codegen/template/contract/strategies.ts';
import type { Graph } from '../../../src/ir/graph.ts';
import type { Target } from '../../../src/schedule/target.ts';
import { problemOf, type Product } from './product-graph.ts';

/** And which of its schedules. */
export interface PickedProduct extends Product {
  readonly pick: number;
}

/** Around the edges of lines and tiles; most are such that strides are multiples of 16 bytes. */
const size = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(8, 16, 56, 64, 72, 128, 136, 200) },
  { weight: 1, arbitrary: fc.constantFrom(1, 2, 3, 50) },
);
export const product: fc.Arbitrary<PickedProduct> = fc.record({
  dtype: fc.constantFrom('f16', 'bf16'),
  batch: fc.integer({ min: 1, max: 2 }),
  m: size,
  n: size,
  k: size,
  turnLhs: fc.boolean(),
  turnRhs: fc.boolean(),
  sharedRhs: fc.boolean(),
  lhs: fc.constantFrom('whole', 'whole', 'heads', 'repeated'),
  epilogue: fc.boolean(),
  pick: fc.nat(),
});

export function warpgroupSchedules(graph: Graph, target: Target): readonly ContractTiling[] {
  return legalTilings(problemOf(graph, target), target).filter(({ kind }) => kind === 'wgmma');
}
