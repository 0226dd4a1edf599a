// The text of a Loop says all of it: what is read back is equal, and computes the same bits.
// Malformed text is refused where it is wrong.

import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';

import { lowerGraph, optimise } from '../../../src/compile.ts';
import type { Loop } from '../../../src/codegen/loop/loop.ts';
import { printLoop } from '../../../src/codegen/loop/print.ts';
import { parseLoop } from '../../support/text/loop/parse.ts';
import { verifyLoop } from '../../../src/codegen/loop/verify.ts';
import { ParseError } from '../../../src/errors.ts';
import { rowWords } from '../../../src/ir/blocks/layout.ts';
import { permute } from '../../../src/ir/build.ts';
import type { Graph, Node } from '../../../src/ir/graph.ts';
import {
  cTarget,
  cudaTarget,
  gpuTarget,
  wasmTarget,
  withVectors,
  type Target,
} from '../../../src/schedule/target.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { randomProgram } from '../../support/random/graph.ts';
import { allTargets } from '../../support/targets.ts';
import { goldenPrograms } from '../golden-programs.ts';
import { cases, Sketch } from '../cases.ts';
import { prepare } from '../template/template-cases.ts';
import { graphOf } from '../template/product-graph.ts';

const seen = new Set<string>();

/**
 * Throws unless the text is read back to an equal Loop. What several targets have in common is read
 * once.
 */
function readBack(loop: Loop): string {
  const text = printLoop(loop);
  if (seen.has(text)) return text;
  seen.add(text);
  const back = parseLoop(text);
  // `toEqual` shows the difference, and is slow where there is none.
  if (!isDeepStrictEqual(back, loop)) expect(back).toEqual(loop);
  expect(printLoop(back)).toBe(text);
  return text;
}

function loopsOf(graph: Graph, target: Target): readonly Loop[] {
  const { loops } = lowerGraph(optimise(graph, target), target, new Map(), new Map());
  return [...loops.values()];
}

describe('parseLoop(printLoop(loop)) is the loop', () => {
  const common = ['f32', 'i32', 'u32', 'bool', 'f16', 'bf16'] as const;
  const runs = Number(process.env['SINTER_TEXT_RUNS'] ?? 12);
  test.each([
    ['on all targets', allTargets, common],
    ['of 64 bits', [wasmTarget, cudaTarget], ['f64', 'i64', 'u64', 'f32', 'bool'] as const],
  ])('for random programs %s', (_, on, dtypes) => {
    checkLaw(runs, randomProgram({ dtypes: [...dtypes], values: 'special', maxSteps: 12 }), ({ graph }) => {
      for (const target of on) loopsOf(graph, target).forEach(readBack);
    });
  });

  test('for every template', () => {
    const kinds = new Set<string>();
    const machines = [gpuTarget, wasmTarget, cudaTarget];
    for (const [i, name] of Object.keys(cases).entries())
      for (const loop of loopsOf(prepare(name).graph, machines[i % 3]!)) {
        readBack(loop);
        kinds.add(loop.kind);
      }
    expect(kinds.size).toBeGreaterThan(8);
  });

  test('for matrix units, copies of tiles and mbarriers', () => {
    const [target, make] = goldenPrograms['matmul-bf16-cuda']!;
    const sketch = new Sketch();
    const texts = loopsOf(sketch.graph(make(sketch)), target).map(readBack);
    const hopper: Target = { ...cudaTarget, warpgroups: true, cores: { count: 132, invocations: 2048 } };
    const large = graphOf({
      dtype: 'bf16',
      batch: 1,
      m: 2048,
      n: 2048,
      k: 512,
      turnLhs: false,
      turnRhs: false,
      sharedRhs: false,
      lhs: 'whole',
      epilogue: true,
    });
    texts.push(...loopsOf(large, hopper).map(readBack));
    const all = texts.join('\n');
    for (const word of [
      'mma bf16',
      'matrices',
      'wgmma bf16',
      'mbarriers',
      'await',
      'arrive',
      'panel',
      'fence',
    ])
      expect(all).toContain(word);
  });

  test('for what is asked of memory before it is read', () => {
    const s = new Sketch();
    const words = s.input([64, rowWords('q8_0', 576)], 'u32');
    const weights = s.b.add('dequantize', [words], { format: 'q8_0', columns: 576 }) as Node;
    const graph = s.graph([s.matmul(s.input([1, 576]), permute(s.b, weights, [1, 0]))]);
    const wide = withVectors(cTarget, { lanes: 8, registers: 16 });
    expect(loopsOf(graph, wide).map(readBack).join('\n')).toContain('prefetch');
  });

  test('and what is read computes the same bits', () => {
    const programs = randomProgram({ dtypes: ['f32', 'i32', 'bool'], values: 'special' });
    checkLaw(6, programs, ({ graph, inputs }) => {
      for (const target of [gpuTarget, wasmTarget]) {
        const made = runLoops(target, graph, inputs);
        const read = runLoops(target, graph, inputs, undefined, new Map(), (loop) =>
          parseLoop(printLoop(loop)),
        );
        expect(read).toEqual(made);
      }
    });
  });
});

test('each constant is read as it was: its sign, its type, all of its digits', () => {
  const text = `loop k (test) grid 1x1x1 workgroup 1x1x1
  global y: f32[4]
{
  let a: f32 = -0_f32
  let b: f32x4 = nan_f32x4
  let c: f32 = -inf_f32
  let d: u64 = 18446744073709551615n_u64
  let e: bool = true
  let f: f64 = 1e-320_f64
  let g: i32 = -7
  let h: i32x2 = 3_i32x2
}`;
  const loop = parseLoop(text);
  expect(printLoop(loop)).toBe(text);
  const values = loop.body.map((stmt) => (stmt.kind === 'let' ? stmt.value : undefined));
  expect(values[0]).toEqual({ kind: 'constant', value: -0, type: 'f32', width: 1 });
  expect(values[3]).toMatchObject({ exact: 18446744073709551615n });
  verifyLoop(loop);
});

const around = (line: string): string => `loop k (test) grid 1x1x1 workgroup 4x1x1
  // a header
  global x: f32[16] read
  global y: f32[16]
{
  let at: i32 = local.x
  ${line}
}`;

describe('malformed text is refused at its line and column', () => {
  test.each([
    ['let a: f32 = x[there]', 18, 'there is not defined here'],
    ['let a: f32 = z[at]', 16, 'there is no buffer z'],
    ['let a: f32 = frobnicate(at)', 16, 'frobnicate is no operation'],
    ['let a: f32 = mul(at, 2)', 10, 'the value is i32, not f32'],
    ['let a: f32 = cast(at)', 16, 'cast names a type: cast<f32>'],
    ['let a: f32 = x[at', 20, 'expected'],
    ['y[at:4] = x[at]', 3, '4 elements of y take no value of 1'],
    ['b = x[at]', 3, 'b is not defined here'],
    ['} else {', 3, 'there is no if that this belongs to'],
    ['for i in 0 .. 4', 18, 'expected "{", but the line ends'],
  ])('%s', (line, column, problem) => {
    let caught: unknown;
    try {
      parseLoop(around(line));
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(ParseError);
    const { message, line: at, column: place } = caught as ParseError;
    expect(message).toContain(problem);
    expect([at, place]).toEqual([7, column]);
  });

  test.each([
    ['', 'expected "loop", but the text ends'],
    ['loop k (test) grid 1x1x1 workgroup 1x1x1\n', 'expected "{", but the text ends'],
    [`${around('barrier')}\nbarrier`, 'line 9, column 1: expected nothing after the loop'],
    [around('if true {'), 'expected "}", but the text ends'],
  ])('a text that ends early or late: %j', (text, problem) => {
    expect(() => parseLoop(text)).toThrow(problem);
  });

  test('whatever is cut out of a text, it is read or refused, never worse', () => {
    const sketch = new Sketch();
    const [target, make] = goldenPrograms['softmax-gpu']!;
    const [loop] = loopsOf(sketch.graph(make(sketch)), target);
    const text = printLoop(loop!);
    for (let from = 0; from < text.length; from += 41) {
      try {
        parseLoop(text.slice(0, from) + text.slice(from + 13));
      } catch (error) {
        expect(error).toBeInstanceOf(ParseError);
      }
    }
  });
});
