// Kernels in C for every kind of processor that the compiler knows, whichever this machine has: the same text compiles for each. What a
// compiler knows by name and what a processor has are two questions.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { emitC, isTaken } from '../../../../src/codegen/emit/c/emit.ts';
import { joinC } from '../../../../src/codegen/emit/c/join.ts';
import { widenVectors } from '../../../../src/codegen/emit/c/rewrite/widen.ts';
import type { Loop } from '../../../../src/codegen/loop/loop.ts';
import type { BlockFormat } from '../../../../src/ir/blocks/format.ts';
import { rowWords } from '../../../../src/ir/blocks/layout.ts';
import { broadcast, permute } from '../../../../src/ir/build.ts';
import { dims, type Graph, type Node } from '../../../../src/ir/graph.ts';
import type { HostArray } from '../../../../src/ir/value.ts';
import { cTarget, withVectors } from '../../../../src/schedule/target.ts';
import { runLoops } from '../../../support/execute.ts';
import { randomArray } from '../../../support/random/values.ts';
import { compileC, compiler, inFolder, nativeFlags, strictFlags } from '../../../support/text/c.ts';
import { Sketch } from '../../cases.ts';
import { mapLoop } from '../../run-loop.ts';
import { argumentsOf, spellingCases } from '../spelling-cases.ts';

/** Processors of x64, from the least on: with and without dot products of halves, in either of their two encodings. */
const machines = ['x86-64', 'haswell', 'alderlake', 'skylake-avx512'];

function knows(machine: string): boolean {
  const args = [`-march=${machine}`, '-E', '-x', 'c', '-'];
  return compiler !== undefined && spawnSync(compiler, args, { input: '' }).status === 0;
}

const known = machines.filter(knows);

/** What native kernels are compiled with, but for the processor and the level. */
const flags = nativeFlags.filter((flag) => !/^-(march|O)/.test(flag));

/** Products of a row with blocks, which take halves, and products, rows and convolutions of floats and 16-bit floats. */
function graphs(): readonly Graph[] {
  const rows = (format: BlockFormat): Graph => {
    const s = new Sketch();
    const words = s.input([64, rowWords(format, 512)], 'u32');
    const weights = s.b.add('dequantize', [words], { format, columns: 512 }) as Node;
    return s.graph([s.matmul(s.input([1, 512]), permute(s.b, weights, [1, 0]))]);
  };
  const of = (make: (s: Sketch) => Node): Graph => {
    const s = new Sketch();
    return s.graph([make(s)]);
  };
  return [
    ...(['q8_0', 'q4_0', 'q4_k', 'q6_k'] as const).map(rows),
    of((s) => s.matmul(s.input([24, 64]), s.input([64, 64]))),
    of((s) => s.softmax(s.input([16, 512], 'f16'), 1)),
    of((s) => s.conv(s.input([1, 16, 20, 20]), s.input([16, 16, 3, 3]))),
  ];
}

/** Loops of the programs for registers of so many lanes, and of every operation at the same width. */
function loopsFor(lanes: 4 | 8 | 16): readonly Loop[] {
  const target = lanes === 4 ? cTarget : withVectors(cTarget, { lanes, registers: lanes === 8 ? 16 : 32 });
  const loops: Loop[] = spellingCases.map((row) => mapLoop(row, lanes, argumentsOf(row)[0]!.length));
  for (const graph of graphs()) {
    const inputs = graph.parameters.map((one, i): HostArray =>
      randomArray(one.dtype, dims(one as Node), i, 'tame'),
    );
    runLoops(target, graph, inputs, undefined, undefined, undefined, [], (loop) =>
      loops.push(lanes === 4 ? loop : widenVectors(loop, lanes)),
    );
  }
  return loops;
}

describe.skipIf(compiler === undefined || process.arch !== 'x64')('C for processors of x64', () => {
  test('the compiler knows some that this machine may not be', () => {
    expect(known.length).toBeGreaterThan(2);
  });

  test.each([4, 8, 16] as const)('kernels on %i lanes compile for each', (lanes) => {
    const text = joinC(loopsFor(lanes).map((loop, i) => emitC({ ...loop, name: `k${i}` }, { lanes }).source));
    // Blocks by rows are added up by one instruction where registers are wide.
    if (lanes > 4) expect(text).toContain(`__builtin_ia32_vpdpwssd_v${lanes}si`);
    const functions = [...text.matchAll(/^static inline \w+ (\w+)\(/gm)].map(([, name]) => name!);
    expect(functions.filter((name) => !isTaken(name) && !/^k\d+_group$/.test(name))).toEqual([]);
    inFolder((folder) => {
      for (const machine of known)
        compileC(text, join(folder, machine), ['-c', '-O0', `-march=${machine}`, ...strictFlags, ...flags]);
    });
  });

  // Version 12 of GCC folds each load into all multiply-adds of it for this processor, if it may.
  test.skipIf(!knows('znver3'))('factors of products stay in registers', () => {
    const s = new Sketch();
    const assembly = assemblyFor('znver3', s.graph([s.matmul(s.input([96, 512]), s.input([512, 96]))]));
    const products = assembly.filter((line) => /^\s*vfmadd\d+ps\s.*ymm/.test(line));
    expect(products.length).toBeGreaterThan(11);
    expect(products.filter((line) => line.includes('(')).length).toBeLessThan(products.length / 2);
  });

  // And it keeps the bounds in registers, and some of the sums in memory.
  test.skipIf(!knows('znver3'))(
    'sums of products stay in registers where they are bounded afterwards',
    () => {
      const s = new Sketch();
      const sums = s.conv(s.input([1, 64, 28, 28]), s.input([384, 64, 1, 1]));
      const shape = dims(sums);
      const x = s.b.add('add', [sums, broadcast(s.b, s.input([384, 1, 1]), shape)], {}) as Node;
      const [least, most] = [0, 6].map((bound) => broadcast(s.b, s.constant(bound), shape));
      const isLess = s.b.add('le', [x, least!], {}) as Node;
      const atLeast = s.b.add('where', [isLess, least!, x], {}) as Node;
      const graph = s.graph([s.b.add('min', [atLeast, most!], {}) as Node]);
      const loops = innermostLoops(assemblyFor('znver3', graph)).filter(
        (lines) => lines.filter((line) => /^\s*vfmadd\d+ps\s.*ymm/.test(line)).length >= 8,
      );
      expect(loops.length).toBeGreaterThan(0);
      expect(loops.flat().filter((line) => /ymm/.test(line) && /%r[sb]p/.test(line))).toEqual([]);
    },
  );
});

/** Lines of what the C of a graph is compiled to for a processor with eight lanes. */
function assemblyFor(machine: string, graph: Graph): readonly string[] {
  const target = withVectors(cTarget, { lanes: 8, registers: 16 });
  const inputs = graph.parameters.map((one, i) => randomArray(one.dtype, dims(one as Node), i, 'tame'));
  const texts: string[] = [];
  runLoops(target, graph, inputs, undefined, undefined, undefined, [], (loop) =>
    texts.push(emitC(loop, { lanes: 8 }).source),
  );
  return inFolder((folder) => {
    const output = join(folder, 'assembly');
    compileC(joinC(texts), output, ['-S', '-O3', `-march=${machine}`, ...flags]);
    return readFileSync(output, 'utf8').split('\n');
  });
}

/** The lines from each label to a jump back to it, where no other label with a jump back lies between. */
function innermostLoops(lines: readonly string[]): readonly (readonly string[])[] {
  const labels = new Map<string, number>();
  const loops: { readonly from: number; readonly to: number }[] = [];
  lines.forEach((line, to) => {
    const label = /^(\.L\d+):/.exec(line)?.[1];
    if (label !== undefined) labels.set(label, to);
    const from = labels.get(/^\s+j\w+\s+(\.L\d+)/.exec(line)?.[1] ?? '');
    if (from !== undefined && !loops.some((inner) => inner.from >= from)) loops.push({ from, to });
  });
  return loops.map(({ from, to }) => lines.slice(from, to));
}
