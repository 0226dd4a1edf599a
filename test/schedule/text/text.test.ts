// The text of kernels says all of them: what is read back is equal. Malformed text is refused where
// it is wrong, and a kernel that is not well-formed by the verifier.

import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';

import { ParseError } from '../../../src/errors.ts';
import { print } from '../../../src/ir/text/print.ts';
import { parse } from '../../../src/ir/text/parse.ts';
import type { Kernel } from '../../../src/schedule/kernel.ts';
import { cudaTarget, gpuTarget, wasmTarget } from '../../../src/schedule/target.ts';
import { parseKernels } from '../../support/text/kernels/parse.ts';
import { printKernels } from '../../../src/schedule/text/print.ts';
import { verifyKernel } from '../../../src/schedule/verify.ts';
import { cases, Sketch } from '../../codegen/cases.ts';
import { goldenPrograms } from '../../codegen/golden-programs.ts';
import { prepare } from '../../codegen/template/template-cases.ts';
import { checkLaw } from '../../support/property.ts';
import { randomProgram } from '../../support/random/graph.ts';
import { allTargets } from '../../support/targets.ts';
import { plain, scheduled, type Scheduled } from './kernels.ts';

const seen = new Set<string>();

/**
 * Throws unless the text is read back to equal kernels. What targets have in common is read once.
 */
function readBack(made: Scheduled): string {
  made.kernels.forEach((kernel) => verifyKernel(kernel));
  const text = printKernels(made, made.graph);
  const key = text + print(made.graph);
  if (seen.has(key)) return text;
  seen.add(key);
  const back = { graph: made.graph, ...parseKernels(text, made.graph) };
  const [wanted, found] = [plain(made), plain(back)];
  // `toEqual` shows the difference, and is slow where there is none.
  if (!isDeepStrictEqual(found, wanted)) expect(found).toEqual(wanted);
  expect(printKernels(back, made.graph)).toBe(text);
  back.kernels.forEach((kernel) => verifyKernel(kernel));
  return text;
}

describe('parseKernels(printKernels(kernels)) are the kernels', () => {
  const common = ['f32', 'i32', 'u32', 'bool', 'f16', 'bf16', 'i8'] as const;
  const runs = Number(process.env['SINTER_TEXT_RUNS'] ?? 15);
  test.each([
    ['on all targets', allTargets, common],
    ['of 64 bits', [wasmTarget, cudaTarget], ['f64', 'i64', 'u64', 'f32', 'bool'] as const],
  ])('of random programs %s', (_, on, dtypes) => {
    checkLaw(runs, randomProgram({ dtypes: [...dtypes], values: 'special', maxSteps: 16 }), ({ graph }) => {
      for (const [i, target] of on.entries()) readBack(scheduled(graph, target, i % 2 === 1));
    });
  });

  test('of every kind', () => {
    const kinds = new Set<string>();
    const machines = [gpuTarget, wasmTarget, cudaTarget];
    for (const [i, name] of Object.keys(cases).entries()) {
      const made = scheduled(prepare(name).graph, machines[i % 3]!);
      readBack(made);
      for (const { kind } of made.kernels) kinds.add(kind);
    }
    expect(kinds.size).toBeGreaterThan(9);
  });

  test('and the packs that they share', () => {
    const sketch = new Sketch();
    const [target, make] = goldenPrograms['adam-of-three']!;
    const text = readBack(scheduled(sketch.graph(make(sketch)), target));
    expect(text).toMatch(/^pack\d+ = f32\[\d+\] \{%\d+ at 0 of \d+, /);
  });
});

const graph = parse(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[4,8]
  %1 = reduce(%0) {monoid: "sum", axes: [1]} : f32[4]
  %2 = reshape(%1) : f32[4,1]
  %3 = broadcast(%2) : f32[4,8]
  %4 = div(%0, %3) : f32[4,8]
  return %4
}`);

test('a kernel reads well', () => {
  const made = scheduled(graph, gpuTarget);
  expect(printKernels(made, made.graph)).toMatchInlineSnapshot(`
    "kernel row_reduction_div_0 row-reduction flops 160 bytes 256 {
      reads %0
      axes row[4], col[8]
      e0 = %0[row*8 + col] : f32
      e1 = result(%1) : f32
      e2 = div(e0, e1) : f32
      body row-reduction
        row: row[4]
        column: col[8]
        stages: [{node: %1, monoid: "sum", arg: false, value: e0, pass: 0, dtype: "f32"}]
      write %4[row*8 + col] = e2
      nodes %1, %2, %3, %4
    }
    "
  `);
});

const rows = (line: string): string => `kernel k row-reduction flops 60 bytes 256 {
  reads %0
  axes row[4], col[8]
  e0 = %0[row*8 + col] : f32
  ${line}
}
`;

describe('malformed text is refused at its line and column', () => {
  test.each([
    ['e1 = %9[row] : f32', 8, 'there is no node %9'],
    ['e1 = %0[there] : f32', 11, 'there is no axis there'],
    ['e1 = add(e0, e7) : f32', 16, 'e7 is not defined above'],
    ['e2 = neg(e0) : f32', 3, 'expressions count e0, e1, e2…: this is e1'],
    ['e1 = %0[row*8 + col] : f32', 3, 'this is e0, which stands above'],
    ['e1 = frobnicate(e0) : f32', 8, 'frobnicate is no operation of elements'],
    ['e1 = neg(e0) : f33', 3, 'f33 is no dtype'],
    ['body heap', 8, 'heap is no kind of body'],
    ['body map', 8, 'a body of kind map has a field axis'],
    ['dynamic at0: 3..1 from e0', 11, 'at0 has less than two values: 3..1'],
    ['reads %0 %1', 12, 'expected end of line or ",", found %'],
  ])('%s', (line, column, problem) => {
    let caught: unknown;
    try {
      parseKernels(rows(line), graph);
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(ParseError);
    const { message, line: at, column: place } = caught as ParseError;
    expect(message).toContain(problem);
    expect([at, place]).toEqual([5, column]);
  });

  test.each([
    ['  axis: row[4]\n  shape: 3', 'line 7, column 10: expected a list, found a number'],
    ['  axis: e0', 'line 6, column 11: expected an axis, found an expr'],
    ['  axis: row[4]\n  depth: row[4]', 'line 7, column 3: a body of kind map has no field depth'],
  ])('fields of a body: %j', (fields, problem) => {
    expect(() => parseKernels(rows(`body map\n  ${fields}`), graph)).toThrow(problem);
  });

  test('a text that ends early, and whatever is cut out', () => {
    expect(() => parseKernels('kernel k map flops 0 bytes 0 {', graph)).toThrow('the text ends');
    const made = scheduled(graph, gpuTarget);
    const text = printKernels(made, made.graph);
    for (let from = 0; from < text.length; from += 17) {
      try {
        parseKernels(text.slice(0, from) + text.slice(from + 11), made.graph);
      } catch (error) {
        expect(error).toBeInstanceOf(ParseError);
      }
    }
  });
});

describe('the verifier refuses', () => {
  const made = scheduled(graph, gpuTarget);
  const kernel = made.kernels[0]!;
  const refuses = (changes: Partial<Kernel>, problem: string): void =>
    expect(() => verifyKernel({ ...kernel, ...changes })).toThrow(problem);
  const read = (text: string): Kernel => parseKernels(text, graph).kernels[0]!;

  test('a kind with another kind of body', () =>
    refuses({ kind: 'map' }, 'a kernel of kind map has a body of kind row-reduction'));

  test('what is read without being bound, and bound twice', () => {
    refuses({ reads: [] }, 'reads what is not bound: %');
    refuses({ reads: [kernel.reads[0]!, kernel.reads[0]!] }, 'a node is bound twice');
  });

  test('a kernel that stores nothing, or outside of its node, or in another dtype', () => {
    refuses({ writes: [] }, 'nothing is stored');
    const [write] = kernel.writes;
    const beyond = read(rows('body row-reduction\nrow: row[4]\ncolumn: col[8]\nwrite %4[row*9 + col] = e0'));
    expect(() => verifyKernel(beyond)).toThrow('row*9 + col leaves the 32 elements of %');
    const bool = kernel.pool.constant(1, 'bool');
    refuses({ writes: [{ ...write!, value: bool }] }, 'is stored in %');
  });

  test('expressions of another kernel, and wrong dtypes', () => {
    const other = scheduled(graph, gpuTarget).kernels[0]!;
    refuses({ pool: other.pool }, 'is an expression of another kernel');
    const typed = read(
      rows('e1 = lt(e0, e0) : f32\n  body map\n  axis: row[4]\nwrite %4[row] = e1').replace(
        'row-reduction',
        'map',
      ),
    );
    expect(() => verifyKernel(typed)).toThrow('e1: lt gives bool');
  });

  test('indices of axes that the kernel does not have', () => {
    const stray = read(
      rows('body map\n  axis: row[4]\nwrite %4[row*8 + col] = e0').replace('row-reduction', 'map'),
    );
    expect(() => verifyKernel(stray)).toThrow('the kernel has no axis col: row*8 + col');
  });
});
