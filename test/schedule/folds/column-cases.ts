// Products whose rows are only folded, as the loss of a language model wants them: of random sizes, with what stands
// beside them, and the tilings that fold them.

import * as fc from 'fast-check';

import { legalTilings } from '../../../src/codegen/template/contract/choose.ts';
import { contractProblem, type ContractProblem } from '../../../src/codegen/template/contract/problem.ts';
import type { ContractTiling } from '../../../src/codegen/template/contract/strategies.ts';
import { optimise } from '../../../src/compile.ts';
import { add, binary, broadcast, cast, neg, reduce, reshape } from '../../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../../src/ir/graph.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import type { Kernel } from '../../../src/schedule/kernel.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import type { Target } from '../../../src/schedule/target.ts';
import { logSoftmax, logSumExp, pick } from '../../../src/tensor/formula/elementwise.ts';
import { Sketch } from '../../codegen/cases.ts';
import { randomArray } from '../../support/random/values.ts';

export const foldings = [
  'loss',
  'smoothed loss',
  'weighted loss',
  'log of sums',
  'maximum and sum',
  'smallest square',
] as const;

export interface Sizes {
  readonly dtype: 'f32' | 'f16' | 'bf16';
  /** Rows: one axis or two, and batches of products. */
  readonly batch: number;
  readonly lines: number;
  readonly m: number;
  /** Columns: whole parts of 64, and those of a last one. */
  readonly parts: number;
  readonly more: number;
  readonly k: number;
  readonly turnRhs: boolean;
  readonly bias: boolean;
  /** Something of every element is added, whose values are special. */
  readonly isSpecial: boolean;
  readonly folding: (typeof foldings)[number];
  readonly flat: boolean;
  readonly pick: number;
}

export const sizes: fc.Arbitrary<Sizes> = fc.record({
  dtype: fc.constantFrom('f32', 'f32', 'f16', 'bf16'),
  batch: fc.constantFrom(1, 1, 2),
  lines: fc.constantFrom(1, 1, 2),
  m: fc.integer({ min: 32, max: 70 }),
  parts: fc.integer({ min: 4, max: 5 }),
  more: fc.oneof(fc.constantFrom(0, 0, 1, 63, 8), fc.integer({ min: 0, max: 63 })),
  k: fc.integer({ min: 1, max: 20 }),
  turnRhs: fc.boolean(),
  bias: fc.boolean(),
  isSpecial: fc.boolean(),
  folding: fc.constantFrom(...foldings),
  flat: fc.boolean(),
  pick: fc.nat(),
});

/** The product's rows, and folds of them. */
export function graphOf({
  dtype,
  batch,
  lines,
  m,
  parts,
  more,
  k,
  turnRhs,
  bias,
  isSpecial,
  folding,
  flat,
}: Sizes): Graph {
  const s = new Sketch();
  const v = 64 * parts + more;
  const x = s.input([batch, lines, m, k], dtype);
  const w = s.input([batch, ...(turnRhs ? [v, k] : [k, v])], dtype);
  const places = s.input([batch * lines * m], 'i32');
  const beside = [s.input([v]), s.input([batch, lines, m, v])] as const;
  const product = s.dot(x, w, [0], [0], [3], [turnRhs ? 2 : 1]);
  let z = cast(s.b, product, 'f32');
  if (bias) z = add(s.b, z, broadcast(s.b, beside[0], dims(z)));
  if (isSpecial) z = add(s.b, z, beside[1]);
  if (flat) z = reshape(s.b, z, [batch * lines * m, v]);
  return s.graph(foldsOf(s, z, reshape(s.b, places, dims(z).slice(0, -1)), folding));
}

function foldsOf(s: Sketch, z: Node, places: Node, folding: Sizes['folding']): Node[] {
  const { b } = s;
  const last = dims(z).length - 1;
  switch (folding) {
    case 'loss': {
      const loss = neg(b, pick(b, logSoftmax(b, z, [last]), places, last));
      return [
        loss,
        reduce(
          b,
          'sum',
          loss,
          dims(loss).map((_, axis) => axis),
        ),
      ];
    }
    case 'smoothed loss':
      return [reduce(b, 'sum', logSoftmax(b, z, [last]), [last])];
    case 'weighted loss': {
      const weight = broadcast(b, s.input([dims(z).at(-1)!]), dims(z));
      return [neg(b, pick(b, binary(b, 'mul', logSoftmax(b, z, [last]), weight), places, last))];
    }
    case 'log of sums':
      return [logSumExp(b, z, [last]), pick(b, z, places, last)];
    case 'maximum and sum':
      return [reduce(b, 'max', z, [last]), reduce(b, 'sum', binary(b, 'mul', z, 0.25), [last])];
    case 'smallest square':
      return [reduce(b, 'min', binary(b, 'mul', z, z), [last])];
    default:
      return folding satisfies never;
  }
}

export function kernelsOf(graph: Graph, target: Target): readonly Kernel[] {
  return scheduleGraph(optimise(graph, target, true), target, new Map()).kernels;
}

export function foldsIn(kernels: readonly Kernel[]): readonly Kernel[] {
  return kernels.filter(({ body }) => body.kind === 'contract' && body.folds !== undefined);
}

/** Places of which some are none. */
export function inputsOf(graph: Graph, { parts, more, isSpecial }: Sizes): HostArray[] {
  return graph.parameters.map(({ dtype, shape }, i) => {
    const fixed = shape as readonly number[];
    if (dtype !== 'i32') return randomArray(dtype, fixed, i + 1, i === 4 && isSpecial ? 'special' : 'tame');
    const places = Int32Array.from(
      { length: fixed[0]! },
      (_, row) => ((row * 37) % (64 * parts + more + 9)) - 4,
    );
    return { dtype, shape: fixed, data: places };
  });
}

/** The tilings of these kinds that the product may have. */
export function foldingTilings(
  graph: Graph,
  target: Target,
  kinds: readonly ContractTiling['kind'][],
): readonly ContractTiling[] {
  const [kernel] = foldsIn(kernelsOf(graph, target));
  if (kernel?.body.kind !== 'contract') throw new Error('the product is not folded');
  return legalTilings(contractProblem(kernel, kernel.body), target).filter(({ kind }) =>
    kinds.includes(kind),
  );
}

/** Has the product that is folded take a tiling. */
export function pinnedTo(tiling: ContractTiling): (problem: ContractProblem) => ContractTiling | undefined {
  return ({ folds }) => (folds === undefined ? undefined : tiling);
}
