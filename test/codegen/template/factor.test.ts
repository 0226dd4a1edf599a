import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import type { FactorKind } from '../../../src/ir/factor.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import { dims, GraphBuilder, type Graph, type Node } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { factor, transpose } from '../../../src/ir/matrix.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import {
  cudaTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  type Target,
} from '../../../src/schedule/target.ts';
import { runLoops } from '../../support/execute.ts';

const targets: readonly Target[] = [gpuTarget, softwareTarget, wasmTarget, cudaTarget];

/** A graph of one algorithm on parameters of these shapes; `turned` operands are read as transposes. */
function algorithm(
  kind: FactorKind,
  shapes: readonly (readonly number[])[],
  dtype: DType,
  turned: boolean,
): Graph {
  const b = new GraphBuilder();
  const parameters = shapes.map((shape, index) => {
    const held = turned ? [shape[0]!, shape[2]!, shape[1]!] : shape;
    return b.add('parameter', [], { index, name: `x${index}`, dtype, shape: held });
  });
  const operands = parameters.map((node) => (turned ? transpose(b, node as Node) : (node as Node)));
  return { parameters, outputs: [factor(b, kind, ...operands)] };
}

/** Numbers of a generator that tests can repeat. */
function numbers(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

interface Problem {
  readonly inputs: readonly HostArray[];
  readonly graph: Graph;
}

function problem(
  kind: FactorKind,
  dtype: DType,
  lines: number,
  m: number,
  n: number,
  turned: boolean,
  seed: number,
): Problem {
  const next = numbers(seed);
  const fill = (rows: number, columns: number, value: (i: number, j: number) => number): HostArray => {
    const data = Array.from({ length: lines * rows * columns }, (_, e) =>
      value(Math.floor(e / columns) % rows, e % columns),
    );
    return hostArray(dtype, [lines, rows, columns], data);
  };
  const shapes: number[][] = [];
  const inputs: HostArray[] = [];
  const add = (rows: number, columns: number, value: (i: number, j: number) => number): void => {
    shapes.push([lines, rows, columns]);
    // A transposed operand holds the same numbers the other way round.
    inputs.push(turned ? fill(columns, rows, (i, j) => value(j, i)) : fill(rows, columns, value));
  };
  if (kind === 'cholesky') add(n, n, (i, j) => (i === j ? n + 1 : 0.5 * next()));
  else if (kind === 'lowerSolve' || kind === 'unitLowerSolve') {
    add(m, m, (i, j) => (i === j ? 2 + 0.5 * next() : next() / Math.sqrt(m)));
    add(m, n, next);
  } else if (kind === 'luOfPairs' || kind === 'householderOfPairs') add(m, 2 * Math.min(n, 17), next);
  else if (kind === 'ldlSymmetric' || kind === 'ldlHermitian') add(m, 2 * m, next);
  else if (kind === 'exchanges') add(m, 1, () => Math.floor((next() + 1) * (m / 2 + 1)) - 1);
  else add(m, n, next);
  return { inputs, graph: algorithm(kind, shapes, dtype, turned) };
}

function greatest(data: ArrayLike<number | bigint>): number {
  return Array.from(data).reduce<number>((most, x) => Math.max(most, Math.abs(Number(x))), 0);
}

const kinds: readonly FactorKind[] = [
  'cholesky',
  'lowerSolve',
  'unitLowerSolve',
  'lu',
  'householder',
  'qr',
  'exchanges',
  'luOfPairs',
  'householderOfPairs',
  'ldlSymmetric',
  'ldlHermitian',
];

describe.each(kinds)('%s', (kind) => {
  test.each(targets.map((target) => [target.name, target] as const))(
    'gives on %s what the textbook gives, in whole and in blocks',
    (_, target) => {
      const size = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constantFrom(16, 17, 33, 70));
      const dtypes: readonly DType[] = target.dtypes.includes('f64') ? ['f32', 'f64'] : ['f32'];
      fc.assert(
        fc.property(
          fc.record({
            dtype: fc.constantFrom(...dtypes),
            lines: fc.integer({ min: 1, max: 3 }),
            m: size,
            n: size,
            turned: fc.boolean(),
            seed: fc.integer(),
          }),
          ({ dtype, lines, m, n, turned, seed }) => {
            const { graph, inputs } = problem(kind, dtype, lines, m, n, turned, seed);
            const [wanted] = interpret(graph, inputs);
            const [got] = runLoops(target, graph, inputs);
            expect(got!.shape).toEqual(dims(graph.outputs[0]!));
            const scale = greatest(wanted!.data);
            const bound = (dtype === 'f64' ? 1e-11 : 2e-3) * Math.max(1, scale);
            got!.data.forEach((x, i) => {
              const off = Math.abs(Number(x) - Number(wanted!.data[i]));
              if (!(off <= bound)) expect({ i, got: x }).toEqual({ i, got: wanted!.data[i] });
            });
          },
        ),
        { numRuns: 12, endOnFailure: true },
      );
    },
  );
});
