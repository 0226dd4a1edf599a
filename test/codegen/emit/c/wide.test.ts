// Kernels in C on wide registers: what the compiler makes of merged vectors computes the bits that vectors of four compute.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { vectorStatements, widenVectors } from '../../../../src/codegen/emit/c/rewrite/widen.ts';
import { realDTypes } from '../../../../src/ir/dtype.ts';
import { dims, type Node } from '../../../../src/ir/graph.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import type { HostArray } from '../../../../src/ir/value.ts';
import { cTarget, withVectors, type Target } from '../../../../src/schedule/target.ts';
import { CKernels, compiler, loopsOf, nativeFlags, runCompiled } from '../../../support/text/c.ts';
import { seed } from '../../../support/property.ts';
import { expectClose, randomProgram, type Program } from '../../../support/random/graph.ts';
import { randomArray } from '../../../support/random/values.ts';
import { Sketch } from '../../cases.ts';

/** Vectors wider than the machine's are passed in memory, of which GCC warns. */
const flags = [...nativeFlags, '-Wall', '-Wextra', '-Wconversion', '-Werror', '-Wno-psabi'];

type Results = ReturnType<typeof runCompiled>;

/** Runs programs as they are and widened, and compares them with each other and with the interpreter. Gives the wide Loops. */
function check(programs: readonly Program[], target: Target, lanes: 8 | 16): number {
  const narrow = loopsOf(target, programs);
  const wide = narrow.map((loop) => widenVectors(loop, lanes));
  const [expected, actual] = [narrow, wide].map((loops) =>
    runCompiled(new CKernels(loops, flags), target, programs),
  ) as [Results, Results];
  const bits = ({ data }: HostArray): Uint8Array =>
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  programs.forEach(({ graph, inputs }, i) => {
    expect(actual[i]!.map(bits)).toEqual(expected[i]!.map(bits));
    interpret(graph, inputs).forEach((want, j) =>
      expectClose(actual[i]![j]!, want, want.dtype === 'bf16' ? 2e-2 : want.dtype === 'f16' ? 4e-3 : 1e-3),
    );
  });
  return wide.filter((loop) => (vectorStatements(loop).get(lanes) ?? 0) > 0).length;
}

function program(make: (s: Sketch) => readonly Node[]): Program {
  const s = new Sketch();
  const graph = s.graph(make(s));
  const inputs = graph.parameters.map((one, i): HostArray =>
    randomArray(one.dtype, dims(one as Node), seed + i, 'tame'),
  );
  return { graph, inputs };
}

test.skipIf(compiler === undefined).each([
  [8, 16],
  [16, 32],
] as const)('programs on %i lanes', (lanes, registers) => {
  const programs = [
    program((s) => [s.matmul(s.input([70, 65]), s.input([65, 96]))]),
    program((s) => [s.matmul(s.input([24, 330]), s.input([330, 64]))]),
    program((s) => [s.matmul(s.input([64, 64], 'f64'), s.input([64, 64], 'f64'))]),
    program((s) => [s.softmax(s.input([16, 512]), 1)]),
    program((s) => [s.conv(s.input([1, 16, 20, 20]), s.input([16, 16, 3, 3]))]),
    ...fc.sample(randomProgram({ dtypes: realDTypes, values: 'tame' }), { numRuns: 12, seed }),
  ];
  expect(check(programs, withVectors(cTarget, { lanes, registers }), lanes)).toBeGreaterThanOrEqual(4);
});
