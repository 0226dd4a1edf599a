// Loops on vectors of 8 and 16 lanes compute the bits that they compute on vectors of four, touch what they touched, and take
// fewer statements.

import { describe, expect, test } from 'vitest';

import { lowerGraph, optimise } from '../../../../src/compile.ts';
import { vectorStatements, widenVectors } from '../../../../src/codegen/emit/c/rewrite/widen.ts';
import type { Loop } from '../../../../src/codegen/loop/loop.ts';
import { printLoop } from '../../../../src/codegen/loop/print.ts';
import { legalTilings } from '../../../../src/codegen/template/contract/choose.ts';
import type { ContractProblem } from '../../../../src/codegen/template/contract/problem.ts';
import type { ContractTiling } from '../../../../src/codegen/template/contract/strategies.ts';
import { interpret } from '../../../../src/ir/interpret/interpret.ts';
import { expectNear } from '../../template/template-cases.ts';
import { verifyLoop } from '../../../../src/codegen/loop/verify.ts';
import { add, mul, reduce, unary } from '../../../../src/ir/build.ts';
import type { Graph, Node } from '../../../../src/ir/graph.ts';
import type { HostArray } from '../../../../src/ir/value.ts';
import { cTarget, targetOf, wasmTarget, withVectors, type Target } from '../../../../src/schedule/target.ts';
import { runLoops } from '../../../support/execute.ts';
import { checkLaw } from '../../../support/property.ts';
import { randomProgram } from '../../../support/random/graph.ts';
import { rowTargets } from '../../../support/targets.ts';
import { interpretLoop } from '../../../support/interpret/run.ts';
import { parseLoop } from '../../../support/text/loop/parse.ts';
import { cases, Sketch } from '../../cases.ts';
import { goldenPrograms } from '../../golden-programs.ts';
import { randomArray } from '../../../support/random/values.ts';

function loopsOf(make: (s: Sketch) => readonly Node[]): readonly Loop[] {
  const sketch = new Sketch();
  const graph = optimise(sketch.graph(make(sketch)), wasmTarget);
  return [...lowerGraph(graph, wasmTarget, new Map(), new Map()).loops.values()];
}

/** Bits of results, in which a NaN has the sign and payload that it has. */
function bitsOf(values: readonly HostArray[]): readonly Uint8Array[] {
  return values.map(({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
}

function inputsOf(graph: Graph): HostArray[] {
  return graph.parameters.map(({ dtype, shape }, i) => randomArray(dtype, shape as number[], i + 1, 'tame'));
}

/** How many Loops of a program are widened; their results have the bits that they have. */
function compare(
  graph: Graph,
  inputs: readonly HostArray[],
  target: Target = wasmTarget,
  registers: readonly (8 | 16)[] = [8, 16],
): number {
  let [count, expected] = [0, undefined as readonly Uint8Array[] | undefined];
  const { loops } = lowerGraph(optimise(graph, target), target, new Map(), new Map());
  for (const lanes of registers) {
    const widened = [...loops.values()].filter((loop) => widenVectors(loop, lanes) !== loop).length;
    if (widened === 0) continue;
    count += widened;
    expected ??= bitsOf(runLoops(target, graph, inputs));
    const wide = (loop: Loop): Loop => widenVectors(loop, lanes);
    expect(bitsOf(runLoops(target, graph, inputs, undefined, new Map(), wide))).toEqual(expected);
  }
  return count;
}

describe('widened Loops give the same bits', () => {
  // What takes the interpreter long, and has few vectors to merge.
  const long = ['long sorts', 'large convolution', 'short sorts of every dtype'];
  const small = Object.keys(cases).filter((name) => !long.includes(name));
  test.each(small)('%s', (name) => {
    const sketch = new Sketch();
    const graph = sketch.graph(cases[name]!(sketch));
    compare(graph, inputsOf(graph), wasmTarget, [16]);
  });

  const golden = Object.entries(goldenPrograms).filter(([, [target]]) => target === wasmTarget);
  test.each(golden)('of the golden program %s', (_, [target, make]) => {
    const sketch = new Sketch();
    const graph = sketch.graph(make(sketch));
    compare(graph, inputsOf(graph), target);
  });
});

/** A Loop of one invocation with these buffers, written as text. */
function written(buffers: string, body: string): Loop {
  const text = `loop written (map) grid 1x1x1 workgroup 1x1x1\n${buffers}\n{\n${body}\n}`;
  const loop = parseLoop(text);
  verifyLoop(loop);
  return loop;
}

/** The body of a widened Loop, which computes the same bits. */
function widenedBody(loop: Loop, lanes: 8 | 16): string {
  const wide = widenVectors(loop, lanes);
  verifyLoop(wide, undefined, 16);
  const run = (one: Loop): Uint8Array[] => {
    const memory = new Map(
      loop.buffers.map(({ name, dtype, size }, i) => [name, randomArray(dtype, [size], i + 1, 'tame').data]),
    );
    interpretLoop(one, memory, []);
    return [...memory.values()].map((data) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  };
  expect(run(wide)).toEqual(run(loop));
  const text = printLoop(wide);
  expect(parseLoop(text)).toEqual(wide);
  return text.slice(text.indexOf('{\n') + 2, -2).replaceAll(/^ {2}/gm, '');
}

const inAndOut = '  global x: f32[64] read\n  global y: f32[64]';

describe('what is merged', () => {
  const groups = (count: number, of: (at: string, i: number) => readonly string[]): string =>
    Array.from({ length: count }, (_, i) => of(i === 0 ? 'at' : `add(at, ${4 * i})`, i).join('\n')).join(
      '\n',
    );
  const doubled = (count: number): Loop =>
    written(
      inAndOut,
      `let at: i32 = mul(workgroup.x, 64)\n${groups(count, (at, i) => [
        `let v${i}: f32x4 = x[${at}:4]`,
        `y[${at}:4] = mul(v${i}, 2_f32x4)`,
      ])}`,
    );

  test('four neighbours become one of sixteen lanes, and two of eight', () => {
    expect(widenedBody(doubled(4), 16)).toBe(
      [
        'let at: i32 = mul(workgroup.x, 64)',
        'let v0_w: f32x16 = x[at:16]',
        'y[at:16] = mul(v0_w, 2_f32x16)',
      ].join('\n'),
    );
    expect(vectorStatements(widenVectors(doubled(4), 8))).toEqual(new Map([[8, 4]]));
  });

  test('what is left over has eight lanes, or four', () => {
    expect(vectorStatements(widenVectors(doubled(7), 16))).toEqual(
      new Map([
        [16, 2],
        [8, 2],
        [4, 2],
      ]),
    );
    widenedBody(doubled(7), 16);
  });

  test('registers of 64 bits are half as many', () => {
    const loop = written(
      '  global x: f64[64] read\n  global y: f64[64]',
      groups(4, (at, i) => [`let v${i}: f64x4 = x[${at}:4]`, `y[${at}:4] = neg(v${i})`]).replaceAll(
        'at',
        '0',
      ),
    );
    widenedBody(loop, 16);
    expect(vectorStatements(widenVectors(loop, 16))).toEqual(new Map([[8, 4]]));
    expect(widenVectors(loop, 8)).toBe(loop);
  });

  test('elements that other stores may change are not read before them', () => {
    // Each store writes what the next load reads.
    const chained = written(
      '  global y: f32[64]',
      ['let a: f32x4 = y[0:4]', 'y[4:4] = neg(a)', 'let b: f32x4 = y[4:4]', 'y[8:4] = neg(b)'].join('\n'),
    );
    expect(widenVectors(chained, 16)).toBe(chained);
    // A place that nobody knows lies between.
    const unknown = written(
      '  global x: i32[64] read\n  global y: f32[64]',
      ['let i: i32 = and(x[0], 31)', 'y[0:4] = 1_f32x4', 'y[i] = 2_f32', 'y[4:4] = 1_f32x4'].join('\n'),
    );
    expect(widenVectors(unknown, 16)).toBe(unknown);
    // Overlapping stores stay in order.
    const twice = written(
      '  global y: f32[64]',
      ['y[0:4] = 1_f32x4', 'y[2:4?] = 2_f32x4', 'y[4:4] = 3_f32x4'].join('\n').replace(':4?', ':4'),
    );
    expect(widenVectors(twice, 16)).toBe(twice);
  });

  test('nothing is merged across control flow', () => {
    const parted = written(
      inAndOut,
      ['y[0:4] = neg(x[0:4])', 'if lt(workgroup.x, 4) {', '  y[4:4] = neg(x[4:4])', '}'].join('\n'),
    );
    expect(widenVectors(parted, 16)).toBe(parted);
  });

  const summed = (inside: string): Loop =>
    written(
      inAndOut,
      [
        'var a: f32x4 = 0_f32x4',
        'var b: f32x4 = 0_f32x4',
        'for i in 0 .. 4 {',
        'let p: f32x4 = x[mul(i, 8):4]',
        'let q: f32x4 = x[add(mul(i, 8), 4):4]',
        'a = add(a, p)',
        inside,
        'b = add(b, q)',
        '}',
        'let s: f32x4 = add(a, b)',
        'y[0:4] = s',
      ].join('\n'),
    );

  test('accumulators are one, and taken apart where they are combined', () => {
    expect(widenedBody(summed('// between'), 16).split('\n')).toEqual([
      'var a_w: f32x8 = 0_f32x8',
      'for i in 0 .. 4 {',
      '  let p_w: f32x8 = x[mul(i, 8):8]',
      '  a_w = add(a_w, p_w)',
      '  // between',
      '}',
      'let s: f32x4 = add({a_w.0, a_w.1, a_w.2, a_w.3}, {a_w.4, a_w.5, a_w.6, a_w.7})',
      'y[0:4] = s',
    ]);
  });

  test('an accumulator that the other one reads is its own', () => {
    const loop = summed('').body;
    const crossed = written(
      inAndOut,
      [
        'var a: f32x4 = 0_f32x4',
        'var b: f32x4 = 0_f32x4',
        'for i in 0 .. 4 {',
        'a = add(a, x[mul(i, 8):4])',
        'b = add(a, x[add(mul(i, 8), 4):4])',
        '}',
        'y[0:4] = a',
        'y[32:4] = b',
      ].join('\n'),
    );
    expect(loop.length).toBeGreaterThan(0);
    expect(widenVectors(crossed, 16)).toBe(crossed);
  });

  test('an accumulator that is read inside the loop is read from the wide one', () => {
    const text = widenedBody(summed('y[add(mul(i, 4), 8):4] = a'), 16);
    expect(text).toContain('y[add(mul(i, 4), 8):4] = {a_w.0, a_w.1, a_w.2, a_w.3}');
  });

  test('what would have to be put together lane by lane is left alone', () => {
    const gathered = written(
      inAndOut,
      ['y[0:4] = {x[0], x[9], x[3], x[7]}', 'y[4:4] = {x[1], x[8], x[2], x[6]}'].join('\n'),
    );
    expect(widenVectors(gathered, 16)).toBe(gathered);
  });
});

describe('statements on vectors, by their lanes', () => {
  const counts = (make: (s: Sketch) => readonly Node[]): readonly (readonly [string, string])[] =>
    loopsOf(make).map((loop) => {
      const spell = (one: Loop): string =>
        [...vectorStatements(one)]
          .toSorted(([a], [b]) => a - b)
          .map(([lanes, count]) => `${count} of ${lanes}`)
          .join(', ');
      return [spell(loop), spell(widenVectors(loop, 16))];
    });
  const gelu = (s: Sketch): readonly Node[] => {
    const x = s.input([64, 1024]);
    return [mul(s.b, mul(s.b, x, 0.5), add(s.b, unary(s.b, 'erf', x), 1))];
  };
  test.each([
    ['a gelu', gelu, [['24 of 4', '6 of 16']]],
    ['a softmax', (s: Sketch) => [s.softmax(s.input([64, 1024]), 1)], [['36 of 4', '20 of 4, 7 of 16']]],
    [
      'sums of rows',
      (s: Sketch) => [reduce(s.b, 'sum', s.input([64, 1024]), [1])],
      [['21 of 4', '5 of 4, 7 of 16']],
    ],
    [
      'a product',
      (s: Sketch) => [s.matmul(s.input([256, 256]), s.input([256, 256]))],
      [['52 of 4', '14 of 4, 11 of 16']],
    ],
    [
      'a convolution',
      (s: Sketch) => [s.conv(s.input([1, 16, 32, 32]), s.input([16, 16, 3, 3]))],
      [['473 of 4', '439 of 4, 9 of 16']],
    ],
  ] as const)('%s', (_, make, expected) => {
    expect(counts(make)).toEqual(expected);
  });
});

describe('vectors of more than four lanes', () => {
  const wide = widenVectors(written(inAndOut, 'y[0:4] = neg(x[0:4])\ny[4:4] = neg(x[4:4])'), 8);

  test('are refused by the verifier, but where they are asked for', () => {
    expect(() => verifyLoop(wide)).toThrow(/has 8 lanes, at most 4 here/);
    verifyLoop(wide, undefined, 8);
  });
});

describe('Loops that are written for wide registers', () => {
  const targets = [
    withVectors(cTarget, { lanes: 8, registers: 16 }),
    withVectors(cTarget, { lanes: 16, registers: 32 }),
  ];
  const products: Readonly<Record<string, (s: Sketch) => readonly Node[]>> = {
    'whole tiles': (s) => [s.matmul(s.input([24, 20]), s.input([20, 64]))],
    'tiles that look beyond both edges': (s) => [s.matmul(s.input([26, 17]), s.input([17, 43]))],
    'sums that wait between blocks of k': (s) => [s.matmul(s.input([24, 324]), s.input([324, 32]))],
    'sides turned': (s) => {
      const [x, y] = [s.input([20, 28]), s.input([64, 20])];
      return [s.dot(x, y, [], [], [0], [1])];
    },
    halves: (s) => [s.matmul(s.input([24, 32], 'f16'), s.input([32, 64], 'f16'))],
    doubles: (s) => [s.matmul(s.input([24, 16], 'f64'), s.input([16, 48], 'f64'))],
  };
  test.each(Object.entries(products))('products in tiles: %s', (_, make) => {
    for (const target of targets) {
      const sketch = new Sketch();
      const graph = sketch.graph(make(sketch));
      const inputs = inputsOf(graph);
      const tilings = new Set<number>();
      const tall = (problem: ContractProblem): ContractTiling | undefined => {
        const tiling = legalTilings(problem, target).find(
          (one) => one.kind === 'packed' && !tilings.has(one.rows),
        );
        if (tiling !== undefined) tilings.add(tiling.rows);
        return tiling;
      };
      const rows = target.vectors?.registers === 32 ? 3 : 1;
      for (let i = 0; i < rows; i++) {
        const tiling = new Map<ContractProblem, ContractTiling | undefined>();
        const pinned = (problem: ContractProblem): ContractTiling | undefined => {
          if (!tiling.has(problem)) tiling.set(problem, tall(problem));
          return tiling.get(problem);
        };
        const wide = (loop: Loop): Loop => widenVectors(loop, target.vectors!.lanes as 8 | 16);
        const first = runLoops(target, graph, inputs, pinned);
        expectNear(first, interpret(graph, inputs));
        expect(bitsOf(runLoops(target, graph, inputs, pinned, new Map(), wide))).toEqual(bitsOf(first));
      }
      expect(tilings.size).toBe(rows);
    }
  });

  const fewRows: Readonly<Record<string, readonly [rows: number, k: number, columns: number]>> = {
    'one row': [1, 18, 128],
    'two rows, and columns that fill no register': [2, 9, 52],
    'one row, an odd end': [1, 7, 75],
  };
  test.each(Object.entries(fewRows))('products of %s', (_, [m, k, n]) => {
    for (const target of targets) {
      const sketch = new Sketch();
      const graph = sketch.graph([sketch.matmul(sketch.input([m, k]), sketch.input([k, n]))]);
      const inputs = inputsOf(graph);
      const pinned = (problem: ContractProblem): ContractTiling | undefined =>
        legalTilings(problem, target).find(({ kind }) => kind === 'gemv');
      let fewest = Infinity;
      const wide = (loop: Loop): Loop => {
        const widened = widenVectors(loop, target.vectors!.lanes as 8 | 16);
        fewest = Math.min(fewest, vectorStatements(widened).get(target.vectors!.lanes) ?? 0);
        return widened;
      };
      const first = runLoops(target, graph, inputs, pinned);
      expectNear(first, interpret(graph, inputs));
      expect(bitsOf(runLoops(target, graph, inputs, pinned, new Map(), wide))).toEqual(bitsOf(first));
      expect(fewest).toBeGreaterThan(4);
    }
  });

  test('convolutions in tiles', () => {
    for (const target of targets) {
      const sketch = new Sketch();
      const graph = sketch.graph([sketch.conv(sketch.input([1, 4, 9, 11]), sketch.input([13, 4, 3, 3]))]);
      const inputs = inputsOf(graph);
      const seen = new Set<number>();
      const pinned = (problem: ContractProblem): ContractTiling | undefined => {
        const tiling = legalTilings(problem, target).find(({ kind }) => kind === 'image');
        seen.add(tiling?.rows ?? 0);
        return tiling;
      };
      const wide = (loop: Loop): Loop => widenVectors(loop, target.vectors!.lanes as 8 | 16);
      const first = runLoops(target, graph, inputs, pinned);
      expectNear(first, interpret(graph, inputs));
      expect(bitsOf(runLoops(target, graph, inputs, pinned, new Map(), wide))).toEqual(bitsOf(first));
      expect([...seen]).toEqual([target.vectors?.lanes === 16 ? 12 : 4]);
    }
  });

  const others = [
    'softmax over rows of a multiple of four',
    'softmax over odd rows',
    'column sums',
    'a long sum',
  ];
  test.each(others)('%s', (name) => {
    for (const target of targets) {
      const sketch = new Sketch();
      const graph = sketch.graph(cases[name]!(sketch));
      const inputs = inputsOf(graph);
      expectNear(runLoops(target, graph, inputs), interpret(graph, inputs));
      compare(graph, inputs, target);
    }
  });

  test('the registers of a processor are known by its features', () => {
    const facts = (...features: string[]): Target =>
      targetOf({
        name: 'native',
        target: 'c',
        description: '',
        software: false,
        features,
        limits: cTarget.limits,
      });
    expect(facts('avx2', 'fma', 'avx512f').vectors).toEqual({ lanes: 16, registers: 32 });
    expect(facts('avx2', 'fma').vectors).toEqual({ lanes: 8, registers: 16 });
    expect(facts('avx2').vectors).toBeUndefined();
    expect(facts('neon').serial).toEqual(wasmTarget.serial);
  });
});

describe('random programs keep their bits', () => {
  const runs = 25;
  test.each([
    ['', wasmTarget, ['f32', 'i32', 'u32', 'bool', 'f16', 'bf16'], 1],
    // Few loops over short rows are widened, so there may be none among so few programs.
    ['on a core with short rows', rowTargets['rows on a core']!, ['f32', 'i32', 'u32', 'bool'], 0],
    ['of narrow and wide numbers', wasmTarget, ['f64', 'i64', 'u64', 'i8', 'u16', 'f32', 'bool'], 1],
  ] as const)('%s', (_, target, dtypes, least) => {
    let widened = 0;
    checkLaw(runs, randomProgram({ dtypes: [...dtypes], values: 'tame' }), ({ graph, inputs }) => {
      widened += compare(graph, inputs, target);
    });
    expect(widened).toBeGreaterThanOrEqual(least);
  });
});
