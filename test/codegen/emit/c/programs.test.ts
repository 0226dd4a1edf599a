// Random programs as kernels in C: what they compute equals the reference interpreter, for every dtype, and so do graphs of each kind of
// kernel. All kernels of a test are one library.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';

import { cast, div, reduce } from '../../../../src/ir/build.ts';
import type { Graph, Node } from '../../../../src/ir/graph.ts';
import { dims } from '../../../../src/ir/graph.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import { realDTypes, type DType } from '../../../../src/ir/dtype.ts';
import { hostArray, type HostArray } from '../../../../src/ir/value.ts';
import { cTarget } from '../../../../src/schedule/target.ts';
import {
  CKernels,
  compiler,
  loopsOf,
  nativeFlags,
  runCompiled,
  strictFlags,
} from '../../../support/text/c.ts';
import { seed } from '../../../support/property.ts';
import { expectClose, randomProgram, type Program } from '../../../support/random/graph.ts';
import { randomArray } from '../../../support/random/values.ts';
import { Sketch } from '../../cases.ts';

const tolerance = (dtype: DType): number => (dtype === 'bf16' ? 2e-2 : dtype === 'f16' ? 4e-3 : 1e-3);

/** Compiles the kernels of all programs at once, and compares every program with the interpreter. */
function check(programs: readonly Program[], flags: readonly string[]): number {
  const loops = loopsOf(cTarget, programs);
  const results = runCompiled(new CKernels(loops, flags), cTarget, programs);
  programs.forEach(({ graph, inputs }, p) =>
    interpret(graph, inputs).forEach((expected, i) =>
      expectClose(results[p]![i]!, expected, tolerance(expected.dtype)),
    ),
  );
  return loops.length;
}

const sampled = (values: 'tame' | 'edges', count: number): Program[] =>
  fc.sample(randomProgram({ dtypes: realDTypes, values }), { numRuns: count, seed });

test.skipIf(compiler === undefined)('random programs of every dtype in C equal the interpreter', () => {
  console.log(`seed ${seed}`);
  expect(check(sampled('tame', 60), ['-O1', ...strictFlags])).toBeGreaterThan(60);
});

test.skipIf(compiler === undefined)(
  'quotients and remainders of integers by themselves, as compilers like them',
  () => {
    const programs = (['i8', 'u8', 'i16', 'i32', 'u32', 'i64', 'u64'] as const).map((dtype): Program => {
      const s = new Sketch();
      const x = s.input([6], dtype);
      const graph = s.graph([div(s.b, x, x), s.b.add('mod', [x, x], {}) as Node]);
      return { graph, inputs: [hostArray(dtype, [6], [6, 0, 5, 1, 0, 127])] };
    });
    // Without the flag that keeps GCC 12 from it, a quotient was −1.
    for (const slp of ['-ftree-slp-vectorize', '-fno-tree-slp-vectorize'])
      expect(check(programs, [...nativeFlags, slp, ...strictFlags])).toBeGreaterThan(6);
  },
);

const undefinedFlags = ['-O1', '-fsanitize=undefined,float-cast-overflow', '-fno-sanitize-recover=all'];

test.skipIf(compiler === undefined)(
  'random programs of special values do nothing that C leaves undefined',
  () => {
    expect(check(sampled('edges', 40), [...undefinedFlags, '-static-libubsan'])).toBeGreaterThan(40);
  },
);

function program(make: (s: Sketch) => readonly Node[]): Program {
  const s = new Sketch();
  const graph: Graph = s.graph(make(s));
  const inputs = graph.parameters.map((one, i): HostArray =>
    randomArray(one.dtype, dims(one as Node), seed + i, 'tame'),
  );
  return { graph, inputs };
}

test.skipIf(compiler === undefined)('products, reductions, scans, sorts and convolutions in C', () => {
  const programs = [
    program((s) => [s.matmul(s.input([70, 65]), s.input([65, 90]))]),
    program((s) => [s.matmul(s.input([3, 200]), s.input([200, 33]))]),
    program((s) => [s.matmul(s.input([64, 64], 'f64'), s.input([64, 64], 'f64'))]),
    program((s) => [s.matmul(s.input([40, 30], 'bf16'), s.input([30, 50], 'bf16'))]),
    program((s) => [s.softmax(s.input([64, 256]), 1)]),
    program((s) => [s.scan(s.input([16, 64]), 1, 'sum')]),
    program((s) => [s.argSort(s.input([40, 100], 'u32'), 1)]),
    program((s) => [s.conv(s.input([1, 16, 20, 20]), s.input([16, 16, 3, 3]))]),
    program((s) => {
      const x = s.input([33, 100], 'f16');
      return [div(s.b, reduce(s.b, 'sum', x, [1]), reduce(s.b, 'max', x, [1]))];
    }),
  ];
  expect(check(programs, [...nativeFlags, ...strictFlags])).toBeGreaterThanOrEqual(programs.length);
});

test.skipIf(compiler === undefined)('floats as integers, at and beyond the ends of those', () => {
  const ends = [31, 32, 63, 64].flatMap((bits) => [2 ** bits, -(2 ** bits)]);
  const near = ends.flatMap((x) => [x, x * (1 - 2 ** -24), x * (1 + 2 ** -23)]);
  const x = [Number.NaN, Infinity, -Infinity, 0, -0, 0.9, -0.9, 1, -1, 255.5, -128.5, ...near];
  const dtypes = ['i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64'] as const;
  // Lengths of whole vectors, and others.
  const programs = [4, 8, 16, x.length].flatMap((length) =>
    (['f32', 'f64'] as const).map((from): Program => {
      const s = new Sketch();
      const input = s.input([length], from);
      const data = from === 'f32' ? Float32Array.from(x) : Float64Array.from(x);
      return {
        graph: s.graph(dtypes.map((dtype) => cast(s.b, input, dtype))),
        inputs: [{ dtype: from, shape: [length], data: data.slice(-length) }],
      };
    }),
  );
  expect(check(programs, [...nativeFlags, ...strictFlags])).toBeGreaterThanOrEqual(programs.length);
});
